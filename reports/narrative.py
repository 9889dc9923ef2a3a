"""The report's first screen: sentences made from the numbers of report.json, and from nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from reports.wording import NAMED_AT_MOST, be, interval, many, name, names, percent, points, signed

ALPHA = 0.05
"""Level of the corrected tests."""
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

    topic: str
    text: str
    tone: Tone = "plain"
    numbers: Mapping[str, Any] = field(default_factory=dict)
    see: str | None = None


def narrative(report: Row) -> tuple[Sentence, ...]:
    """Sentences about ``report``, the content of report.json; the label (rehearsal, lifted gate) always comes first.

    Uses ``label``, ``reference``, ``cells``, ``pairs``, ``audit`` and ``ledger``; reads nothing else and computes no statistic.
    """
    families: dict[tuple[str, str | None, int | None], list[Row]] = {}
    for pair in report["pairs"]:
        if pair["diff"] is not None:
            families.setdefault((pair["backbone"], pair["gate"], pair["seed"]), []).append(pair)
    where = {key: _where(key, list(families)) for key in families}
    said = [
        *_label(report),
        *(sentence for key, family in families.items() for sentence in _differences(where[key], family)),
        *([] if families else _nothing_to_compare(report)),
        *(sentence for key, family in families.items() for sentence in _undecided(where[key], family)),
        *_beyond_constant(report["cells"]),
        *_days(report["cells"]),
        *_coverage(report["cells"]),
        *_audit(report["audit"], report["cells"]),
        *_cost(report["cells"], report["ledger"]),
    ]
    return tuple(said)


def _label(report: Row) -> Iterable[Sentence]:
    if report["label"]:
        yield Sentence("label", f"{report['label']}.", "care")


def _where(key: tuple[str, str | None, int | None], keys: Sequence[tuple[str, str | None, int | None]]) -> str:
    """The backbone of a family of comparisons, with gate and seed where families differ in them."""
    extra = [f"{name} {key[i]}" for i, name in ((1, "gate"), (2, "seed")) if len({k[i] for k in keys}) > 1]
    return f"{key[0]} ({', '.join(extra)})" if extra else key[0]


def _nothing_to_compare(report: Row) -> Iterable[Sentence]:
    yield Sentence(
        "differences",
        f"No two methods could be compared: there is no cell of {report['reference']} with a partner on the same backbone, benchmark, gate "
        "and seed, so nothing is said about which is better.",
        "care",
        {"pairs": 0},
        "warnings",
    )


def _differences(where: str, family: Sequence[Row]) -> Iterable[Sentence]:
    """Which differences hold after Holm, by rows and by days; which pass by rows alone."""
    reference = family[0]["a"]
    sure = sorted((p for p in family if p["significant"]), key=lambda p: -abs(p["diff"]))
    by_rows = [p for p in family if not p["significant"] and p["p_holm"] is not None and p["p_holm"] <= ALPHA]
    numbers: dict[str, Any] = {
        "pairs": len(family), "significant": len(sure), "alpha": ALPHA, "by_rows_only": len(by_rows),
        "shown": [{key: p[key] for key in ("b", "benchmark", "diff", "ci", "p_holm", "p_cluster_holm")} for p in sure[:NAMED_AT_MOST]],
    }  # fmt: skip
    count = "none" if not sure else f"{len(sure):,}"
    text = (
        f"{where}: {count} of {many(len(family), 'difference')} between {reference} and another method "
        f"{'is' if len(sure) <= 1 else 'are'} significant after Holm's correction (α\u00a0=\u00a0{ALPHA:g}), by rows and by decision days"
    )
    if sure:
        more = f"; and {len(sure) - NAMED_AT_MOST} more" if len(sure) > NAMED_AT_MOST else ""
        text += f": {'; '.join(map(_difference, sure[:NAMED_AT_MOST]))}{more}"
    if by_rows:
        text += (
            f". {many(len(by_rows), 'difference')} would pass by rows alone, but the days they fall on move together: do not rely on "
            f"{'it' if len(by_rows) == 1 else 'them'}"
        )
    yield Sentence("differences", f"{text}.", "care" if by_rows else "plain", numbers, "pairs")


def _undecided(where: str, family: Sequence[Row]) -> Iterable[Sentence]:
    """What cannot be told apart at this n, how large a difference could have been found, and the n that would be needed."""
    left = [p for p in family if not p["significant"] and p["mde"] is not None]
    if not left:
        return
    low, high = min(p["mde"] for p in left), max(p["mde"] for p in left)
    few, most = min(p["n"] for p in left), max(p["n"] for p in left)
    at = f"n\u00a0=\u00a0{few:,}" if few == most else f"n\u00a0=\u00a0{few:,} to {most:,}"
    size = f"{points(low)}" if points(low) == points(high) else f"{points(low)} to {points(high)}"
    numbers: dict[str, Any] = {
        "undecided": len(left), "mde_low": low, "mde_high": high, "n_low": few, "n_high": most, "nearest": None,
    }  # fmt: skip
    text = (
        f"{where}: {many(len(left), 'comparison')} cannot be told apart at {at}. The smallest difference found with power 0.8, before correction, "
        f"is {size} points, so no difference found is not the same as no difference."
    )
    needed = [p for p in left if p["n_needed"] is not None]
    if needed:
        p = min(needed, key=lambda p: (p["n_needed"] / p["n"], p["benchmark"], p["b"]))
        numbers["nearest"] = {key: p[key] for key in ("b", "benchmark", "diff", "n", "n_needed")}
        text += (
            f" The nearest to a decision, {_difference(p)}, would need about {p['n_needed']:,} rows instead of {p['n']:,}."
            if p["n_needed"] > p["n"]
            else f" The nearest to a decision, {_difference(p)}, has the rows it needs to be seen alone, but not among {len(family)}."
        )
    yield Sentence("undecided", text, "plain", numbers, "pairs")


def _difference(p: Row) -> str:
    return f"{p['a']} − {p['b']} on {p['benchmark']} {signed(p['diff'])} points{interval(p['ci'])}"


def _beyond_constant(cells: Sequence[Row]) -> Iterable[Sentence]:
    """Whether models know more than the better of always yes and always no."""
    models = [c for c in cells if not c["no_llm"] and c["acc"] is not None and c["base_rate"] is not None]
    if not models:
        return
    above = [c for c in models if (c["acc_ci_day"] or c["acc_ci"])[0] > max(c["base_rate"], 1 - c["base_rate"])]
    yield Sentence(
        "constant",
        f"{len(above) or 'None'} of {many(len(models), 'cell')} with a model {be(len(above) or 1)} more accurate than the better constant answer, "
        "by the interval over days.",
        "plain",
        {"cells": len(models), "above": len(above)},
        "results",
    )


def _days(cells: Sequence[Row]) -> Iterable[Sentence]:
    """How far answers of one day are alike, where it is worst."""
    known = [c for c in cells if not c["no_llm"] and c["effective_n_day"] is not None and c["design_effect_day"] > 1]
    if known:
        worst = max(known, key=lambda c: (c["design_effect_day"], c["cell"]))
        yield Sentence(
            "constant",
            f"Answers of one decision day are alike: at worst ({name(worst)}, {many(worst['n_days'], 'day')}) {worst['n_scored']:,} rows tell as "
            f"much as {worst['effective_n_day']:,.0f} independent ones.",
            "plain",
            {key: worst[key] for key in ("n_scored", "n_days", "design_effect_day", "effective_n_day")},
            "results",
        )


def _coverage(cells: Sequence[Row]) -> Iterable[Sentence]:
    """Which cells lack answers, and what kind of lack it is."""
    unfinished = [c for c in cells if c["state"] != "complete"]
    if unfinished:
        have = sum(sum(c["counts"].values()) for c in unfinished)
        want = sum(c["n"] for c in unfinished)
        yield Sentence(
            "coverage",
            f"{len(unfinished)} of {many(len(cells), 'cell')} {be(len(unfinished))} not complete ({have:,} of their {want:,} forecasts have a row): "
            f"{names(unfinished)}. Their figures may still change.",
            "care",
            {"cells": len(cells), "not_complete": len(unfinished), "rows": have, "n": want},
            "cells",
        )
    below = [c for c in cells if c["coverage"] is not None and c["coverage"] < 1]
    if below:
        worst = min(below, key=lambda c: (c["coverage"], c["cell"]))
        yield Sentence(
            "coverage",
            f"{len(below)} of {many(len(cells), 'cell')} {be(len(below))} below full coverage; the lowest is {name(worst)} "
            f"at {percent(worst['coverage'])} %. Unusable answers count as wrong; what was never answered is not scored.",
            "care",
            {"cells": len(cells), "below": len(below), "lowest": worst["coverage"]},
            "cells",
        )
    if not unfinished and not below:
        yield Sentence(
            "coverage",
            f"Every forecast of all {many(len(cells), 'cell')} has a usable answer.",
            "good",
            {"cells": len(cells)},
            "cells",
        )
    constant = [c for c in cells if c["constant"] and not c["no_llm"]]
    if constant:
        yield Sentence(
            "coverage",
            f"{many(len(constant), 'cell')} {'gives' if len(constant) == 1 else 'give'} the same answer to everything, so MCC is 0 by convention: {names(constant)}.",
            "care",
            {"constant": len(constant)},
            "results",
        )


def _audit(rows: Sequence[Row], cells: Sequence[Row]) -> Iterable[Sentence]:
    """Whether every record in a prompt was known at the decision time."""
    checked = sum(r["checked"] for r in rows)
    unseen = [c for c in cells if c["counts"] and not c["no_llm"] and not any(c["cell"] in r["cells"] for r in rows)]
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
            f"{many(len(unseen), 'cell')} that asked a model {'has' if len(unseen) == 1 else 'have'} no evidence on file, so nothing is known about what entered their prompts: {names(unseen)}.",
            "care",
            {"unseen": len(unseen)},
            "audit",
        )


def _cost(cells: Sequence[Row], ledgers: Sequence[Row]) -> Iterable[Sentence]:
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
        missing = (
            f" (without {many(len(asked) - len(tokens), 'cell')} that {'does' if len(asked) - len(tokens) == 1 else 'do'} not report them)"
            if len(tokens) < len(asked)
            else ""
        )
        words.append(f"the forecasts used {sum(tokens):,.0f} tokens{missing}")
    if priced:
        numbers["cost_usd"] = sum(priced)
        missing = (
            f" (without {many(len(asked) - len(priced), 'cell')} of unknown price)" if len(priced) < len(asked) else ""
        )
        words.append(f"cost US$ {sum(priced):,.2f} at list price{missing}")
    if not priced:
        words.append("no price is known for this backbone" if len({c["backbone"] for c in asked}) == 1 else "no price is known for these backbones")  # fmt: skip
    text = "; ".join(words) if not priced or not tokens else " and ".join(words)
    paid = [ledger["total"]["cost_usd"] for ledger in ledgers if ledger["total"]["cost_usd"] is not None]
    if paid:
        numbers["paid_usd"] = sum(paid)
        tail = f"US$ {sum(paid):,.2f} were paid so far, with what cells share."
    else:
        tail = "What cells share, such as the building of an index, is not in it."
    yield Sentence(
        "cost",
        f"{text[0].upper()}{text[1:]}. {tail}",
        "plain",
        numbers,
        "calibration",
    )
