"""The report's first screen: sentences made from the numbers of report.json, and from nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reports import told_cells, told_pairs
from reports.wording import Row, Sentence, dollars, many, names


def narrative(report: Row) -> tuple[Sentence, ...]:
    """Sentences about ``report``, the content of report.json; the label (rehearsal, lifted gate) always comes first.

    Uses ``label``, ``reference``, ``cells``, ``pairs``, ``audit`` and ``ledger``; reads nothing else and computes no statistic.
    """
    said = [
        *_label(report),
        *told_pairs.comparisons(report["pairs"], report["reference"]),
        *told_cells.beyond_constant(report["cells"]),
        *told_cells.days(report["cells"]),
        *told_cells.coverage(report["cells"], report["unbegun"]),
        *_audit(report["audit"], report["cells"]),
        *_cost(report["cells"], report["ledger"]),
    ]
    return tuple(said)


def _label(report: Row) -> Iterable[Sentence]:
    if report["label"]:
        yield Sentence("label", f"{report['label']}.", "care")


def _audit(rows: Sequence[Row], cells: Sequence[Row]) -> Iterable[Sentence]:
    """Whether every record in a prompt was known at the decision time."""
    checked = sum(r["checked"] for r in rows)
    asked = [c for c in cells if c["counts"] and not c["no_llm"]]
    unseen, bare = ([c for c in asked if c["evidence_records"] == records] for records in (None, 0))
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
            f"{many(len(unseen), 'cell')} that asked a model {'has' if len(unseen) == 1 else 'have'} no evidence on file, so nothing is known about what entered {'its' if len(unseen) == 1 else 'their'} prompts: {names(unseen)}.",
            "care",
            {"unseen": len(unseen)},
            "audit",
        )
    if bare:
        yield Sentence(
            "audit",
            f"No record of evidence entered a prompt of {many(len(bare), 'cell')} that asked a model: {names(bare)}.",
            "care",
            {"bare": len(bare)},
            "audit",
        )


def _without(cells: int, forecasts: int, said: Callable[[int], str]) -> str:
    """What a sum leaves out, in brackets after a space; nothing if it is whole."""
    parts = [f"{many(count, noun)}{said(count)}" for count, noun in ((cells, "cell"), (forecasts, "forecast")) if count]
    return f" (without {' and '.join(parts)})" if parts else ""


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
        rows = sum(c.get("tokens_unknown", 0) for c in asked if c["tokens_total"] is not None)
        numbers["forecasts_without_tokens"] = rows
        missing = _without(
            len(asked) - len(tokens), rows, lambda count: f" that {'does' if count == 1 else 'do'} not report them"
        )
        words.append(f"the forecasts used {sum(tokens):,.0f} tokens{missing}")
    if priced:
        numbers["cost_usd"] = sum(priced)
        rows = sum(c.get("cost_unknown", 0) for c in asked if c["cost_usd"] is not None)
        numbers["forecasts_without_price"] = rows
        missing = _without(len(asked) - len(priced), rows, lambda _: " of unknown price")
        words.append(f"cost {dollars(sum(priced))} at list price{missing}")
    if not priced:
        words.append("no price is known for this backbone" if len({c["backbone"] for c in asked}) == 1 else "no price is known for these backbones")  # fmt: skip
    text = "; ".join(words) if not priced or not tokens else " and ".join(words)
    paid = [ledger["total"]["cost_usd"] for ledger in ledgers if ledger["total"]["cost_usd"] is not None]
    if paid:
        numbers["paid_usd"] = sum(paid)
        tail = f"So far {dollars(sum(paid))} was paid, with what cells share."
    else:
        tail = "What cells share, such as the building of an index, is not in it."
    yield Sentence(
        "cost",
        f"{text[0].upper()}{text[1:]}. {tail}",
        "plain",
        numbers,
        "calibration",
    )
