"""Which tables the report holds, and what stands in their columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from harness.records import Status
from reports.audit import Tally
from reports.gates import GateRow
from reports.labels import backbone_name, display_names, label, titled
from reports.metrics import LOG_LOSS_EPS
from reports.pairs import Pair
from reports.published import Comparison
from reports.scores import Score
from reports.tables import Column, Table

LEDGER = "ledger"
"""Name of the table of what was paid."""
_WHO = (
    Column("benchmark", "Benchmark"),
    Column("backbone", "Backbone"),
    Column("method", "Method"),
)
_IDENTITY = tuple(Column(key, key, shown=False) for key in ("cell", "gate", "memory", "embedder", "seed", "label"))


def tables(
    scores: Sequence[Score],
    compared: Sequence[Pair],
    comparisons: Sequence[Comparison],
    tallies: Sequence[Tally],
    gates: Sequence[GateRow],
    ledgers: Sequence[Mapping[str, Any] | None] = (),
) -> tuple[Table, ...]:
    """All tables in the order of the page; one without rows is written too, so that none of an earlier report stays behind.

    What was paid is a table where a run has a ledger.
    """
    return (
        results(scores),
        paired(scores, compared),
        calibration(scores),
        *((paid(scores, ledgers),) if any(ledgers) else ()),
        published(scores, comparisons),
        gated(scores, gates),
        audited(scores, tallies),
        states(scores),
    )


def results(scores: Sequence[Score]) -> Table:
    """Coverage, Acc, MCC and macro F1 with 95 % intervals, as in the paper's Table 1."""
    return Table(
        "results",
        titled("Results: accuracy, MCC and macro F1 with 95 % intervals", scores),
        (
            *_WHO,
            Column("n", "n", "int", text="n_shown"),
            Column("n_scored", "Scored", "int"),
            Column("coverage", "Coverage %", "percent"),
            Column("acc", "Acc %", "percent", ci="acc_ci"),
            Column("mcc", "MCC", "decimal", ci="mcc_ci"),
            Column("f1_macro", "Macro F1 %", "percent", ci="f1_ci"),
            Column("positive_share", "Says positive %", "percent"),
            Column("base_rate", "Base rate %", "percent"),
            Column("notes", "Notes"),
            *_IDENTITY,
        ),
        _cells(scores),
        "n: forecasts expected; catalysts × epochs where there are several epochs. Acc: Wilson interval. MCC and macro F1: percentile bootstrap over catalysts. Base rate: share of positive labels, "
        "the accuracy of always answering positive.",
    )


def paired(scores: Sequence[Score], compared: Sequence[Pair]) -> Table:
    """The reference method minus each other method on the same catalysts."""
    by_cell, names = {s.cell: s for s in scores}, display_names(scores)
    taking_part = [s for s in scores if any(s.cell in (pair.cell_a, pair.cell_b) for pair in compared)]
    return Table(
        "pairs",
        titled("Pairs: the reference method minus each other method", taking_part),
        (
            Column("benchmark", "Benchmark"),
            Column("backbone", "Backbone"),
            Column("a", "a"),
            Column("b", "b"),
            Column("n", "Shared rows", "int"),
            Column("n_days", "Days", "int"),
            Column("diff", "Acc a − b, points", "percent", ci="ci"),
            Column("n_discordant", "Discordant", "int"),
            Column("p_mcnemar", "p McNemar", "p"),
            Column("p_holm", "p Holm", "p"),
            Column("p_cluster", "p days", "p"),
            Column("mde", "MDE, points", "percent"),
            Column("notes", "Notes"),
            *(Column(key, key, shown=False) for key in ("cell_a", "cell_b", "label")),
        ),
        tuple(
            {
                **asdict(pair),
                "a": names[pair.cell_a],
                "b": names[pair.cell_b],
                "notes": tuple(dict.fromkeys((*by_cell[pair.cell_a].notes, *by_cell[pair.cell_b].notes))),
                "label": label([by_cell[pair.cell_a], by_cell[pair.cell_b]]),
            }
            for pair in compared
        ),
        "Interval and p days: over decision days. p McNemar: exact. p Holm: McNemar over methods and benchmarks within a backbone. "
        "MDE: smallest difference found with power 0.8 at alpha 0.05.",
    )


def calibration(scores: Sequence[Score]) -> Table:
    """Quality of the probabilities, and what they cost."""
    return Table(
        "calibration_and_cost",
        titled("Calibration of the probabilities, tokens and cost", scores),
        (
            *_WHO,
            Column("brier", "Brier", "decimal"),
            Column("log_loss", "Log loss", "decimal"),
            Column("ece", "ECE", "decimal"),
            Column("tokens_final_mean", "Tokens, final call (mean)", "int"),
            Column("tokens_total", "Tokens, all calls", "int"),
            Column("cost_usd", "Cost US$", "usd"),
            Column("notes", "Notes"),
            *_IDENTITY,
        ),
        _cells(scores),
        "Brier, log loss (nats) and ECE (10 equal-count bins) over rows with a probability; lower is better. "
        f"For log loss, probabilities are clipped to [eps, 1 − eps] with eps = {LOG_LOSS_EPS:.1e}: a forecaster that says 0 or 1 "
        f"pays {-math.log(LOG_LOSS_EPS):.1f} nats for every row it has wrong. "
        "Tokens and cost are sums over forecast rows; cost is at list price, cached or not.",
    )


def paid(scores: Sequence[Score], ledgers: Sequence[Mapping[str, Any] | None]) -> Table:
    """What each run has paid, by cell and stage."""
    rows = [
        {"run": number, "label": label(scores), **line}
        for number, found in enumerate(ledgers, start=1)
        if found
        for line in (*found["cells"], {**found["total"], "cell": "all cells"})
    ]
    return Table(
        LEDGER,
        titled("Paid, by cell and stage", scores),
        (
            Column("run", "Run", "int"),
            Column("cell", "Cell"),
            Column("stage", "Stage"),
            Column("calls", "Calls", "int"),
            Column("input_tokens", "Input", "int"),
            Column("cached_tokens", "of it cached", "int"),
            Column("output_tokens", "Output", "int"),
            Column("reasoning_tokens", "of it reasoning", "int"),
            Column("cost_usd", "Cost US$", "usd"),
            Column("unanswered", "Unanswered", "int"),
            Column("unanswered_usd", "at most US$", "usd"),
            *(Column(key, key, shown=False) for key in ("backbone", "label")),
        ),
        tuple(rows),
        "Every attempt that got a reply, usable or not, at the price of its day; what others share is with the cell that asked first. "
        "Unanswered: attempts that may have been billed without a reply, at the most they can have cost.",
    )


def gated(scores: Sequence[Score], gates: Sequence[GateRow]) -> Table:
    """Cells that differ in the gate alone, as in the paper's Table 5."""
    names = display_names(scores)
    return Table(
        "time_gate",
        titled("Time gate: the same cells under strict, paper and off", [row.score for row in gates]),
        (
            *_WHO,
            Column("gate", "Gate"),
            Column("acc", "Acc %", "percent", ci="acc_ci"),
            Column("mcc", "MCC", "decimal", ci="mcc_ci"),
            Column("f1_macro", "Macro F1 %", "percent", ci="f1_ci"),
            Column("acc_minus_strict", "Acc − strict, points", "percent"),
            Column("prompts", "Prompts compared", "int"),
            Column("prompts_differ", "Prompts that differ", "int"),
            Column("notes", "Notes"),
            *(column for column in _IDENTITY if column.key != "gate"),
        ),
        tuple(
            {
                **_row(row.score, scores, names),
                "prompts": row.prompts,
                "prompts_differ": row.prompts_differ,
                "acc_minus_strict": row.acc_minus_strict,
            }
            for row in gates
        ),
        "Prompts that differ: final prompts that are not byte for byte those of the strict cell.",
    )


def published(scores: Sequence[Score], comparisons: Sequence[Comparison]) -> Table:
    """Our cell beside the paper's row."""
    names = display_names(scores)
    rows = tuple(
        {
            **_row(c.score, scores, names),
            "table": c.published.table,
            "published_method": c.published.method,
            "published_backbone": c.published.backbone,
            "paper_row": f"{c.published.table}, {c.published.method}, published with {c.published.backbone}",
            "acc_published": c.published.acc,
            "mcc_published": c.published.mcc,
            "f1_published": c.published.f1_macro,
            "comparable": c.comparable,
            "verdict": _verdict(c),
        }
        for c in comparisons
    )
    return Table(
        "published",
        titled("Beside the published figures", [c.score for c in comparisons]),
        (
            *_WHO,
            Column("acc", "Acc %, here", "percent", ci="acc_ci"),
            Column("acc_published", "Acc %, paper", "percent"),
            Column("verdict", "Published Acc in our interval"),
            Column("mcc", "MCC, here", "decimal"),
            Column("mcc_published", "MCC, paper", "decimal"),
            Column("f1_macro", "F1 %, here", "percent"),
            Column("f1_published", "F1 %, paper", "percent"),
            Column("paper_row", "Paper's row"),
            Column("notes", "Notes"),
            *(Column(key, key, shown=False) for key in ("table", "published_method", "published_backbone")),
            Column("comparable", "comparable", "flag", shown=False),
            *_IDENTITY,
        ),
        rows,
        "A row is comparable only if the cell ran on the backbone that the paper names.",
    )


def _verdict(c: Comparison) -> str:
    if not c.comparable:
        return "not comparable"
    return "unknown" if c.published_in_ci is None else "yes" if c.published_in_ci else "no"


def audited(scores: Sequence[Score], tallies: Sequence[Tally]) -> Table:
    """Verdicts of the time gate by method, gate and kind of record."""
    return Table(
        "audit",
        titled("Audit of the evidence in prompts", [s for s in scores if any(s.cell in t.cells for t in tallies)]),
        (
            Column("method", "Method"),
            Column("gate", "Gate"),
            Column("kind", "Kind of record"),
            Column("n_cells", "Cells", "int"),
            Column("checked", "Checked", "int"),
            Column("late", "Late", "int"),
            Column("unverifiable", "Unverifiable", "int"),
            Column("affected_queries", "Affected queries", "int"),
            Column("label", "label", shown=False),
        ),
        tuple(
            {
                "method": t.method, "gate": t.gate, "kind": t.kind, "n_cells": len(t.cells), "checked": t.checked,
                "late": t.late, "unverifiable": t.unverifiable, "affected_queries": len(t.affected),
                "label": label([s for s in scores if s.cell in t.cells]),
            }
            for t in tallies
        ),
        "Late: known only after the decision time. Unverifiable: no trustworthy time. "
        "Affected queries: forecasts with at least one such record in a prompt.",
    )  # fmt: skip


def states(scores: Sequence[Score]) -> Table:
    """What became of every expected forecast; why a cell is not complete and how to go on."""
    used = [status.value for status in Status if any(s.counts.get(status.value) for s in scores)]
    names = display_names(scores)
    return Table(
        "cells",
        titled("State of the cells: forecasts by status", scores),
        (
            *_WHO,
            Column("state", "State"),
            Column("n", "n", "int", text="n_shown"),
            *(Column(status, status, "int") for status in used),
            Column("reason", "Reason"),
            Column("remedy", "What to do"),
            Column("notes", "Notes"),
            *_IDENTITY,
        ),
        tuple({**_row(s, scores, names), **{status: s.counts.get(status, 0) for status in used}} for s in scores),
        "invalid, truncated and refused answers count as wrong; rate_limited, budget, provider and bug are not scored and lower coverage only.",
    )


def _cells(scores: Sequence[Score]) -> tuple[Mapping[str, Any], ...]:
    names = display_names(scores)
    return tuple(_row(s, scores, names) for s in scores)


def _row(s: Score, scores: Sequence[Score], names: Mapping[str, str]) -> dict[str, Any]:
    values = {name: getattr(s, name) for name in Score.__dataclass_fields__}
    return values | {
        "method": names[s.cell],
        "backbone": backbone_name(s),
        "n_shown": s.n_shown,
        "notes": s.notes,
        "label": label([s]),
    }
