"""The first screen in sentences: each is made from numbers, and carries them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from harness.records import Status
from reports.findings import Findings
from reports.pairs import Pair
from reports.scores import Score

_NAMED = 3


@dataclass(frozen=True)
class Sentence:
    """``numbers`` are those in ``text``, unrounded. ``tone`` is good, open (nothing can be said) or bad (look here first)."""

    topic: str
    tone: str
    text: str
    numbers: Mapping[str, Any]


def sentences(f: Findings) -> tuple[Sentence, ...]:
    """What a reader must know first: differences, what n can tell, days, constant answers, coverage, audit, cost."""
    families: dict[tuple[str, str | None, int | None], list[Pair]] = defaultdict(list)
    for pair in f.pairs:
        if pair.diff is not None:
            families[pair.backbone, pair.gate, pair.seed].append(pair)
    found: list[Sentence | None] = []
    for key, family in families.items():
        where = _where(key, list(families))
        found += [_significant(where, key[0], family), _undecided(where, key[0], family)]
    found += [_days(f.scores), _constant(f.scores), _coverage(f.scores), _audit(f), _cost(f)]
    return tuple(sentence for sentence in found if sentence)


def _where(key: tuple[str, str | None, int | None], keys: Sequence[tuple[str, str | None, int | None]]) -> str:
    """The backbone, with gate and seed where families differ in them."""
    extra = [f"{name} {key[i]}" for i, name in ((1, "gate"), (2, "seed")) if len({k[i] for k in keys}) > 1]
    return f"{key[0]} ({', '.join(extra)})" if extra else key[0]


def _significant(where: str, backbone: str, family: Sequence[Pair]) -> Sentence:
    sure = sorted((pair for pair in family if pair.significant), key=lambda pair: -abs(pair.diff or 0.0))
    numbers = {
        "backbone": backbone, "pairs": len(family), "significant": len(sure),
        "differences": [{"a": p.a, "b": p.b, "benchmark": p.benchmark, "diff": p.diff, "ci": p.ci} for p in sure],
    }  # fmt: skip
    reference = family[0].a
    if not sure:
        text = f"{where}: none of {len(family)} differences between {reference} and another method is significant after Holm's correction."
        return Sentence("differences", "open", text, numbers)
    listed = "; ".join(_difference(pair) for pair in sure[:_NAMED])
    more = f"; and {len(sure) - _NAMED} more" if len(sure) > _NAMED else ""
    text = (
        f"{where}: {len(sure)} of {len(family)} differences between {reference} and another method "
        f"{'is' if len(sure) == 1 else 'are'} significant after Holm's correction, by rows and by days: {listed}{more}."
    )
    return Sentence("differences", "good", text, numbers)


def _difference(pair: Pair) -> str:
    ends = f" [{100 * pair.ci[0]:+.1f}, {100 * pair.ci[1]:+.1f}]" if pair.ci else ""
    return f"{pair.a} − {pair.b} on {pair.benchmark} {100 * (pair.diff or 0.0):+.1f} points{ends}"


def _undecided(where: str, backbone: str, family: Sequence[Pair]) -> Sentence | None:
    open_ = [pair for pair in family if not pair.significant]
    seen = [pair.mde for pair in open_ if pair.mde is not None]
    if not open_ or not seen:
        return None
    numbers: dict[str, Any] = {
        "backbone": backbone, "undecided": len(open_), "mde_min": min(seen), "mde_max": max(seen), "mde_median": median(seen),
    }  # fmt: skip
    text = (
        f"{where}: {len(open_)} differences cannot be told from zero, after correction, at this n. The smallest that could have been found, with power "
        f"0.8 and before correction, lies between {100 * min(seen):.1f} and {100 * max(seen):.1f} points"
    )
    largest = max((p for p in open_ if p.n_needed), key=lambda p: abs(p.diff or 0.0), default=None)
    if largest is None or largest.n_needed is None:
        return Sentence("undecided", "open", f"{text}.", numbers)
    numbers |= {
        "largest": {
            "a": largest.a, "b": largest.b, "benchmark": largest.benchmark, "diff": largest.diff, "n": largest.n,
            "n_needed": largest.n_needed,
        }
    }  # fmt: skip
    need = (
        f"; the largest of them, {_difference(largest)}, would need {largest.n_needed:,} rows of days like these, not {largest.n:,}."
        if largest.n_needed > largest.n
        else f"; the largest of them, {_difference(largest)}, would pass alone but not among {len(family)}."
    )
    return Sentence("undecided", "open", text + need, numbers)


def _days(scores: Sequence[Score]) -> Sentence | None:
    known = [s for s in scores if s.design_effect_day is not None and s.effective_n_day is not None and not s.no_llm]
    worst = max(known, key=lambda s: s.design_effect_day or 0.0, default=None)
    if worst is None or (worst.design_effect_day or 0.0) <= 1:
        return None
    numbers: dict[str, Any] = {
        "cell": worst.cell, "n_scored": worst.n_scored, "n_days": worst.n_days,
        "design_effect_day": worst.design_effect_day, "effective_n_day": worst.effective_n_day,
    }  # fmt: skip
    text = (
        f"Answers of one decision day are alike: at worst ({worst.method} with {worst.backbone} on {worst.benchmark}, {worst.n_days} days) "
        f"{worst.n_scored:,} rows tell as much as {worst.effective_n_day:,.0f} independent ones."
    )
    return Sentence("days", "open", text, numbers)


def _constant(scores: Sequence[Score]) -> Sentence | None:
    models = [s for s in scores if not s.no_llm and s.acc is not None and s.base_rate is not None]
    if not models:
        return None
    above = 0
    for s in models:
        interval = s.acc_ci_day or s.acc_ci
        above += interval is not None and interval[0] > max(s.base_rate or 0.0, 1 - (s.base_rate or 0.0))
    text = f"{above} of {len(models)} cells with a model {'is' if above == 1 else 'are'} more accurate than the better constant answer, by the interval over days."
    return Sentence("constant", "good" if above else "open", text, {"cells": len(models), "above": above})


def _coverage(scores: Sequence[Score]) -> Sentence | None:
    known = [s for s in scores if s.coverage is not None]
    short = sorted((s for s in known if (s.coverage or 0.0) < 1), key=lambda s: s.coverage or 0.0)
    if not known:
        return None
    unusable = sum(c for s in scores for name, c in s.counts.items() if Status(name).final and name != Status.OK)
    lost = sum(c for s in scores for name, c in s.counts.items() if not Status(name).final)
    numbers: dict[str, Any] = {"cells": len(scores), "below": len(short), "unusable": unusable, "infrastructure": lost}
    if not short:
        return Sentence("coverage", "good", f"Coverage is 100 % in all {len(known)} cells.", numbers)
    first = short[0]
    numbers |= {"lowest_cell": first.cell, "lowest": first.coverage}
    text = (
        f"Coverage is below 100 % in {len(short)} of {len(known)} cells, lowest {100 * (first.coverage or 0.0):.1f} % "
        f"({first.method} with {first.backbone} on {first.benchmark}): {unusable:,} answers could not be used and count as wrong, "
        f"{lost:,} forecasts failed for want of an answer."
    )
    return Sentence("coverage", "bad", text, numbers)


def _audit(f: Findings) -> Sentence:
    strict = [t for t in f.tallies if t.gate == "strict"]
    checked, late, unknown = (sum(getattr(t, name) for t in strict) for name in ("checked", "late", "unverifiable"))
    lifted = sum(s.gate == "off" for s in f.scores)
    numbers = {"checked": checked, "late": late, "unverifiable": unknown, "gate_off_cells": lifted}
    tail = f" Cells run with the gate off: {lifted}; they are no evidence about a method." if lifted else ""
    if not checked:
        return Sentence(
            "audit",
            "open",
            f"The evidence in prompts was not audited: none is on file under the strict gate.{tail}",
            numbers,
        )
    if late or unknown:
        text = f"Of {checked:,} records in prompts under the strict gate {late:,} were late and {unknown:,} cannot be verified.{tail}"
        return Sentence("audit", "bad", text, numbers)
    return Sentence(
        "audit", "good", f"All {checked:,} records in prompts under the strict gate were known in time.{tail}", numbers
    )


def _cost(f: Findings) -> Sentence | None:
    known = [s.cost_usd for s in f.scores if s.cost_usd is not None]
    tokens = [s.tokens_total for s in f.scores if s.tokens_total is not None]
    if not known:
        return None
    paid = [
        ledger["total"]["cost_usd"] for ledger in f.loaded.ledgers if ledger and ledger["total"]["cost_usd"] is not None
    ]
    numbers = {"list_usd": sum(known), "tokens": sum(tokens), "paid_usd": sum(paid) if paid else None}
    text = f"The forecasts cost US$ {sum(known):,.2f} at list price and took {sum(tokens):,.0f} tokens"
    text += f"; US$ {sum(paid):,.2f} were paid, with what methods share." if paid else "."
    return Sentence("cost", "good", text, numbers)
