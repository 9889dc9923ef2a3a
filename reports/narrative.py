"""The report's first screen: sentences made from the numbers of report.json, and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

ALPHA = 0.05
"""A difference is called one when its p after Holm is below."""
_NAMED_AT_MOST = 6

Topic = Literal["label", "differences", "undecided", "coverage", "audit", "cost"]
Tone = Literal["plain", "good", "care"]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Sentence:
    """One statement of the first screen.

    Attributes:
        topic: what it is about; sentences of one topic stand together.
        text: what is read.
        tone: ``care`` where the reader must not trust a figure before looking further.
        numbers: every figure in ``text``, at full precision, by name.
        see: id of the section that holds the rows behind it.
    """

    topic: Topic
    text: str
    tone: Tone = "plain"
    numbers: Mapping[str, Any] = field(default_factory=dict)
    see: str | None = None

    def as_data(self) -> dict[str, Any]:
        """For report.json."""
        return asdict(self)


def narrative(report: Row) -> tuple[Sentence, ...]:
    """Sentences about ``report``, the content of report.json; the label (rehearsal, lifted gate) always comes first.

    Uses ``label``, ``cells``, ``pairs`` and ``audit``; reads nothing else and computes no statistic but the n that a
    difference would need: n × (MDE ÷ |difference|)², since the MDE falls with the square root of n.
    """
    said = [
        *_label(report),
        *_differences(report["pairs"]),
        *_undecided(report["pairs"]),
        *_coverage(report["cells"]),
        *_audit(report["audit"], report["cells"]),
        *_cost(report["cells"]),
    ]
    return tuple(said)


def needed_n(n: int, diff: float, mde: float) -> int | None:
    """Catalysts at which a difference of ``diff`` would be found with the power of ``mde`` (found at ``n``); None for a difference of 0."""
    return math.ceil(n * (mde / abs(diff)) ** 2) if diff else None


def _label(report: Row) -> Iterable[Sentence]:
    if report["label"]:
        yield Sentence("label", f"{report['label']}.", "care")


def _differences(pairs: Sequence[Row]) -> Iterable[Sentence]:
    """Which differences hold after Holm; how many were looked at."""
    tested = [p for p in pairs if p["p_holm"] is not None]
    found = [p for p in tested if p["p_holm"] < ALPHA]
    if not tested:
        yield Sentence(
            "differences",
            "No two methods could be compared: there is no reference method with a partner on the same backbone, "
            "benchmark, gate and seed, so nothing is said about which is better."
            if not pairs
            else f"None of the {len(pairs)} comparisons has a p-value after Holm's correction; the warnings say why.",
            "care",
            {"pairs": len(pairs)},
            "pairs",
        )
        return
    counted = {"pairs": len(tested), "significant": len(found), "alpha": ALPHA}
    if not found:
        yield Sentence(
            "differences",
            f"None of the {_many(len(tested), 'difference')} between {tested[0]['a']} and another method is significant "
            f"after Holm's correction (α\u00a0=\u00a0{ALPHA:g}).",
            "plain",
            counted,
            "pairs",
        )
        return
    yield Sentence(
        "differences",
        f"{len(found)} of {_many(len(tested), 'difference')} between {tested[0]['a']} and another method "
        f"{'is' if len(found) == 1 else 'are'} significant after Holm's correction (α\u00a0=\u00a0{ALPHA:g}).",
        "plain",
        counted,
        "pairs",
    )
    shown = sorted(found, key=lambda p: (p["p_holm"], -abs(p["diff"])))[:_NAMED_AT_MOST]
    for p in shown:
        days = (
            f", but over days {_p(p['p_cluster'])}: days move together, so do not rely on it"
            if p["p_cluster"] is not None and p["p_cluster"] >= ALPHA
            else ""
        )
        yield Sentence(
            "differences",
            f"{p['a']} is {'ahead of' if p['diff'] > 0 else 'behind'} {p['b']} by {_points(abs(p['diff']))} points of accuracy on "
            f"{p['benchmark']} with {p['backbone']}{_interval(p['ci'])}, {_p(p['p_holm'])} after Holm{days}.",
            "care" if days else "plain",
            {key: p[key] for key in ("diff", "ci", "p_holm", "p_cluster", "n")},
            "pairs",
        )
    if len(found) > len(shown):
        yield Sentence(
            "differences",
            f"{len(found) - len(shown)} more are in the table of pairs.",
            "plain",
            {"more": len(found) - len(shown)},
            "pairs",
        )


def _undecided(pairs: Sequence[Row]) -> Iterable[Sentence]:
    """What cannot be told apart at this n, how large a difference could have been found, and the n that would be needed."""
    open_ = [p for p in pairs if p["p_holm"] is not None and p["p_holm"] >= ALPHA and p["mde"] is not None]
    if not open_:
        return
    low, high = min(p["mde"] for p in open_), max(p["mde"] for p in open_)
    few, most = min(p["n"] for p in open_), max(p["n"] for p in open_)
    at = f"n\u00a0=\u00a0{few:,}" if few == most else f"n\u00a0=\u00a0{few:,} to {most:,}"
    size = f"{_points(low)} points" if _points(low) == _points(high) else f"{_points(low)} to {_points(high)} points"
    yield Sentence(
        "undecided",
        f"{_many(len(open_), 'comparison')} cannot be told apart at {at}: only a difference of {size} or more would have been found "
        "with power 0.8. No difference found is not the same as no difference.",
        "plain",
        {"pairs": len(open_), "mde_low": low, "mde_high": high, "n_low": few, "n_high": most},
        "pairs",
    )
    needed = [(p, needed_n(p["n"], p["diff"], p["mde"])) for p in open_]
    nearest = [(p, n) for p, n in needed if n is not None]
    if nearest:
        p, n = min(nearest, key=lambda pair: (pair[1], pair[0]["benchmark"], pair[0]["b"]))
        yield Sentence(
            "undecided",
            f"The nearest to a decision is {p['a']} against {p['b']} on {p['benchmark']} with {p['backbone']}: {_signed(p['diff'])} points at "
            f"n\u00a0=\u00a0{p['n']:,}, and about {n:,} catalysts would be needed to find a difference of that size.",
            "plain",
            {"diff": p["diff"], "n": p["n"], "n_needed": n, "mde": p["mde"]},
            "pairs",
        )


def _coverage(cells: Sequence[Row]) -> Iterable[Sentence]:
    """Which cells lack answers, and what kind of lack it is."""
    unfinished = [c for c in cells if c["state"] != "complete"]
    if unfinished:
        have = sum(sum(c["counts"].values()) for c in unfinished)
        want = sum(c["n"] for c in unfinished)
        yield Sentence(
            "coverage",
            f"{len(unfinished)} of {_many(len(cells), 'cell')} {_be(len(unfinished))} not complete ({have:,} of their {want:,} forecasts have a row): "
            f"{_names(unfinished)}. Their figures may still change.",
            "care",
            {"cells": len(cells), "not_complete": len(unfinished), "rows": have, "n": want},
            "cells",
        )
    below = [c for c in cells if c["coverage"] is not None and c["coverage"] < 1]
    if below:
        worst = min(below, key=lambda c: (c["coverage"], c["cell"]))
        yield Sentence(
            "coverage",
            f"{len(below)} of {_many(len(cells), 'cell')} {_be(len(below))} below full coverage; the lowest is {worst['method']} on {worst['benchmark']} with "
            f"{worst['backbone']} at {_percent(worst['coverage'])} %. Unusable answers count as wrong; what was never answered is not scored.",
            "care",
            {"cells": len(cells), "below": len(below), "lowest": worst["coverage"]},
            "cells",
        )
    if not unfinished and not below:
        yield Sentence(
            "coverage",
            f"Every forecast of all {_many(len(cells), 'cell')} has a usable answer.",
            "good",
            {"cells": len(cells)},
            "cells",
        )
    constant = [c for c in cells if c["constant"] and not c["no_llm"]]
    if constant:
        yield Sentence(
            "coverage",
            f"{_many(len(constant), 'cell')} {'gives' if len(constant) == 1 else 'give'} the same answer to everything, so MCC is 0 by convention: {_names(constant)}.",
            "care",
            {"constant": len(constant)},
            "results",
        )


def _audit(rows: Sequence[Row], cells: Sequence[Row]) -> Iterable[Sentence]:
    """Whether every record in a prompt was known at the decision time."""
    checked = sum(r["checked"] for r in rows)
    unseen = [c for c in cells if not c["no_llm"] and not any(c["cell"] in r["cells"] for r in rows)]
    for gate in ("strict", "paper", "off", "unknown"):
        under = [r for r in rows if r["gate"] == gate]
        late, unsure = sum(r["late"] for r in under), sum(r["unverifiable"] for r in under)
        if late or unsure:
            who = ", ".join(dict.fromkeys(r["method"] for r in under if r["late"] or r["unverifiable"]))
            effect = " That must not happen: their figures cannot be trusted." if gate == "strict" and late else ""
            yield Sentence(
                "audit",
                f"Under the gate {gate}, {late:,} late and {unsure:,} unverifiable of {sum(r['checked'] for r in under):,} records entered prompts ({who}).{effect}",
                "care",
                {"gate": gate, "late": late, "unverifiable": unsure, "checked": sum(r["checked"] for r in under)},
                "audit",
            )
    if checked and not any(r["late"] or r["unverifiable"] for r in rows):
        yield Sentence(
            "audit",
            f"All {checked:,} records that entered prompts were known at their decision time.",
            "good",
            {"checked": checked},
            "audit",
        )
    if unseen:
        yield Sentence(
            "audit",
            f"{_many(len(unseen), 'cell')} that asked a model {'has' if len(unseen) == 1 else 'have'} no evidence on file, so nothing is known about what entered their prompts: {_names(unseen)}.",
            "care",
            {"unseen": len(unseen)},
            "audit",
        )


def _cost(cells: Sequence[Row]) -> Iterable[Sentence]:
    """Tokens and dollars at list price; what is not known is said, not taken as nothing."""
    asked = [c for c in cells if not c["no_llm"]]
    if not asked:
        yield Sentence("cost", "No model was asked, so nothing was spent.", "plain", {}, "calibration")
        return
    tokens = [c["tokens_total"] for c in asked if c["tokens_total"] is not None]
    priced = [c["cost_usd"] for c in asked if c["cost_usd"] is not None]
    numbers: dict[str, Any] = {"cells": len(asked)}
    words = []
    if tokens:
        numbers["tokens"] = sum(tokens)
        missing = f" ({len(asked) - len(tokens)} cells do not report them)" if len(tokens) < len(asked) else ""
        words.append(f"the forecasts used {sum(tokens):,.0f} tokens{missing}")
    if priced:
        numbers["cost_usd"] = sum(priced)
        missing = f" (without {len(asked) - len(priced)} cells that have no price)" if len(priced) < len(asked) else ""
        words.append(f"cost US$ {sum(priced):,.2f} at list price{missing}")
    if not priced:
        words.append("no price is known for this backbone" if len({c["backbone"] for c in asked}) == 1 else "no price is known for these backbones")  # fmt: skip
    text = "; ".join(words) if not priced or not tokens else " and ".join(words)
    yield Sentence(
        "cost",
        f"{text[0].upper()}{text[1:]}. What cells share, such as the building of an index, is not in it.",
        "plain",
        numbers,
        "calibration",
    )


def _names(cells: Sequence[Row]) -> str:
    names = [f"{c['method']} × {c['backbone']} × {c['benchmark']}" for c in cells]
    more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    return "; ".join(names[:_NAMED_AT_MOST]) + more


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _percent(share: float) -> str:
    """One decimal; a share below 1 is never shown as 100."""
    return f"{min(100 * share, 99.9):.1f}" if share < 1 else "100"


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def _signed(share: float) -> str:
    return f"{'+' if share > 0 else '−'}{_points(abs(share))}"


def _p(value: float) -> str:
    return "p\u00a0<\u00a00.001" if value < 0.001 else f"p\u00a0=\u00a0{value:.3f}"


def _interval(ci: Sequence[float] | None) -> str:
    return f" (95 % interval {100 * ci[0]:.1f} to {100 * ci[1]:.1f})" if ci else ""
