"""The paper's tables, and its figures as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports import published as paper
from reports.alike import nearest
from reports.columns import IDENTITY, SETTING, WHO, cell_row, hidden, series_names, series_rows
from reports.findings import Findings
from reports.gates import GateRow
from reports.labels import display_names, label, titled
from reports.pairs import Pair
from reports.published import Comparison
from reports.scores import Score
from reports.series import Series
from reports.tables import Column, Table

_FULL = "tiem"
_FIGURES = (("acc", "Acc %", "percent"), ("mcc", "MCC", "decimal"), ("f1_macro", "F1 %", "percent"))


def main(f: Findings) -> Table:
    """The paper's Table 1: methods down, benchmarks across."""
    order = [*paper.METHODS]
    every = sorted(
        (s for s in f.series if s.scored and not _ablates(s)),
        key=lambda s: (
            s.backbone,
            str(s.setting),
            order.index(s.method) if s.method in order else len(order),
            s.method,
        ),
    )
    benchmarks = sorted({name for s in every for name in s.scored}, key=_benchmark_order)
    names = display_names(f.scores)
    rows = []
    for s in every:
        row: dict[str, Any] = {
            "backbone": s.backbone, "cells": s.cells, "gate": s.setting.gate, "seed": s.setting.seed,
            "memory": s.setting.memory, "embedder": s.setting.embedder, "feed": s.setting.feed, "context": s.setting.context, "exclude": s.setting.exclude, "label": label(s.scores),
            "notes": tuple(dict.fromkeys(n for score in s.scores for n in score.notes if n != "MCC 0 by convention")),
        }  # fmt: skip
        for name, member in s.scored.items():
            row |= {f"{name}_{key}": getattr(member.score, key) for key, _, _ in _FIGURES}
        rows.append(row)
    shown = [{**row, "method": name} for row, name in zip(rows, series_names(rows, names), strict=True)]
    return Table(
        "table1",
        titled(
            "Table 1: accuracy, MCC and macro F1 by method and benchmark", [score for s in every for score in s.scores]
        ),
        (
            Column("backbone", "Backbone"),
            Column("method", "Method"),
            *(
                Column(f"{name}_{key}", header, kind, over=name, ranked=True)  # type: ignore[arg-type]
                for name in benchmarks
                for key, header, kind in _FIGURES
            ),
            Column("notes", "Notes"),
            *SETTING,
        ),
        tuple(shown),
        "Best of a backbone in bold, second underlined; a difference that is marked is not one that is significant, see the pairs.",
        group=("backbone", "gate", "seed", "exclude"),
    )


def _benchmark_order(name: str) -> tuple[int, str]:
    order = ("astock", "finpure", "cmin_us", "edt", "csmd")
    return (order.index(name) if name in order else len(order), name)


def _ablates(s: Series) -> bool:
    return s.method.startswith(f"{_FULL}_")


def ablation(f: Findings) -> Table:
    """The paper's Table 2: TIEM and what it loses without each part."""
    ablated = [s for s in f.series if s.scored and _ablates(s)]
    kept = {(s.backbone, s.setting.gate, s.setting.seed) for s in ablated}
    names = display_names(f.scores)
    against = _against_full(f)
    rows = []
    for s in f.series:
        if s in ablated or (s.method == _FULL and (s.backbone, s.setting.gate, s.setting.seed) in kept):
            for member in s.scored.values():
                pair = against.get(member.score.cell)
                row = cell_row(member.score, names)
                rows.append(row | {"diff": pair.diff, "ci": pair.ci, "p_cluster": pair.p_cluster} if pair else row)
    scores = [f.by_cell[row["cell"]] for row in rows]
    return Table(
        "ablation",
        titled("Table 2: TIEM without its parts", scores),
        (
            *WHO,
            Column("acc", "Acc %", "percent", ci="acc_ci", ranked=True),
            Column("mcc", "MCC", "decimal", ci="mcc_ci", ranked=True),
            Column("f1_macro", "Macro F1 %", "percent", ci="f1_ci", ranked=True),
            Column("diff", "Full − this, points", "percent", ci="ci"),
            Column("p_cluster", "p days", "p"),
            Column("notes", "Notes"),
            *IDENTITY,
        ),
        tuple(sorted(rows, key=lambda row: (row["benchmark"], row["backbone"], row["method"]))),
        "Full − this: accuracy of the whole method minus that of the row, interval and p clustered by decision day, before correction; "
        "of several cells of TIEM the nearest in its settings counts, and where several are as near, see the pairs.",
        group=("benchmark", "backbone", "gate", "seed", "exclude"),
    )


def _against_full(f: Findings) -> dict[str, Pair]:
    """By cell the pair with the cell of TIEM that is nearest to it; none where several are as near."""
    cells = {cell.cell: cell for cell in f.loaded.cells}
    of: dict[str, dict[str, Pair]] = {}
    for pair in f.pairs:
        if pair.a == _FULL:
            of.setdefault(pair.cell_b, {})[pair.cell_a] = pair
    chosen = {cell: nearest(cells[cell], [cells[name] for name in found]) for cell, found in of.items()}
    return {cell: of[cell][near[0].cell] for cell, near in chosen.items() if len(near) == 1}


def shifted(f: Findings, rows: Sequence[Mapping[str, Any]]) -> Table:
    """The paper's Figure 6."""
    return Table(
        "shift",
        titled("Shift: from the reference benchmarks to the others", f.behind(rows)),
        (
            Column("backbone", "Backbone"),
            Column("method", "Method"),
            Column("acc_ref", "Acc %, reference", "percent", ci="acc_ref_ci"),
            Column("acc_shift", "Acc %, shift", "percent", ci="acc_shift_ci"),
            Column("acc_worst", "Acc %, worst", "percent"),
            Column("worst", "Worst on"),
            Column("f1_shift", "Macro F1 %, shift", "percent"),
            Column("robustness", "Robustness", "decimal", ci="robustness_ci"),
            Column("notes", "Notes"),
            *SETTING,
        ),
        series_rows(rows, f.by_cell),
        "Reference: mean of astock and finpure. Shift: mean of cmin_us, edt and csmd. Robustness: shift ÷ reference. Intervals by decision day.",
    )


def efficiency(f: Findings, rows: Sequence[Mapping[str, Any]]) -> Table:
    """The paper's Figure 7, and what it leaves out."""
    return Table(
        "efficiency",
        titled("Accuracy against tokens and dollars", f.behind(rows)),
        (
            Column("backbone", "Backbone"),
            Column("method", "Method"),
            Column("acc_mean", "Acc %, mean", "percent"),
            Column("tokens_final_mean", "Tokens, final call", "int"),
            Column("acc_per_ln_tokens", "Acc ÷ ln tokens", "decimal"),
            Column("marginal_acc_per_1k", "Acc points per 1,000 more than zero-shot", "percent"),
            Column("tokens_lifecycle_mean", "Tokens, all calls", "int"),
            Column("cost_per_forecast", "US$ a forecast", "usd"),
            Column("cost_per_correct", "US$ a right answer", "usd"),
            Column("cost_per_extra_correct", "US$ an extra right answer", "usd"),
            Column("frontier_share", "On the frontier % (all calls)", "percent"),
            Column("frontier_share_final", "On the frontier % (final call)", "percent"),
            Column("notes", "Notes"),
            *hidden("n"),
            *SETTING,
        ),
        series_rows(rows, f.by_cell),
        "Means over benchmarks. All calls: with the method's part of an index or a memory, where calls.parquet tells. Extra: beyond zero-shot. "
        "On the frontier: share of bootstrap draws in which no method is at least as accurate with no more tokens.",
    )


def consistency(f: Findings, rows: Sequence[Mapping[str, Any]]) -> Table:
    """The paper's Figure 8."""
    return Table(
        "consistency",
        titled("Agreement between backbones", f.behind(rows)),
        (
            Column("backbone_a", "Backbone a"),
            Column("backbone_b", "Backbone b"),
            Column("method", "Method"),
            Column("benchmark", "Benchmark"),
            Column("n", "Shared rows", "int"),
            Column("n_answered", "Answered by both", "int"),
            Column("agreement", "Agreement %", "percent"),
            Column("kappa", "Cohen's κ", "decimal"),
            Column("dual_correct", "Both right %", "percent"),
            Column("notes", "Notes"),
            *hidden("n_benchmarks"),
            *SETTING,
        ),
        series_rows(rows, f.by_cell),
        "Agreement and κ: rows that both backbones answered in a usable way. Both right: all shared rows. macro: mean over benchmarks.",
    )


def gated(scores: Sequence[Score], gates: Sequence[GateRow]) -> Table:
    """Cells that differ in the gate alone, as in the paper's Table 5."""
    names = display_names(scores)
    return Table(
        "time_gate",
        titled("Time gate: the same cells under strict, paper and off", [row.score for row in gates]),
        (
            *WHO,
            Column("gate", "Gate"),
            Column("acc", "Acc %", "percent", ci="acc_ci"),
            Column("mcc", "MCC", "decimal", ci="mcc_ci"),
            Column("f1_macro", "Macro F1 %", "percent", ci="f1_ci"),
            Column("acc_minus_strict", "Acc − strict, points", "percent"),
            Column("n_shared", "Shared rows", "int"),
            Column("prompts", "Prompts compared", "int"),
            Column("prompts_differ", "Prompts that differ", "int"),
            Column("notes", "Notes"),
            *(column for column in IDENTITY if column.key != "gate"),
        ),
        tuple(
            {
                **cell_row(row.score, names),
                "prompts": row.prompts,
                "prompts_differ": row.prompts_differ,
                "acc_minus_strict": row.acc_minus_strict,
                "n_shared": row.n_shared,
            }
            for row in gates
        ),
        "Acc − strict: on the shared rows, those scored in both cells. "
        "Prompts that differ: final prompts that are not byte for byte those of the strict cell.",
    )


def published(scores: Sequence[Score], comparisons: Sequence[Comparison]) -> Table:
    """Our cell beside the paper's row."""
    names = display_names(scores)
    rows = tuple(
        {
            **cell_row(c.score, names),
            "table": c.published.table,
            "published_method": c.published.method,
            "published_backbone": c.published.backbone,
            "paper_row": f"{c.published.table}, {c.published.method}, published with {c.published.backbone}",
            "acc_published": c.published.acc,
            "mcc_published": c.published.mcc,
            "f1_published": c.published.f1_macro,
            "comparable": c.comparable,
            "published_note": c.published.note,
            "verdict": _verdict(c),
        }
        for c in comparisons
    )
    return Table(
        "published",
        titled("Beside the published figures", [c.score for c in comparisons]),
        (
            *WHO,
            Column("acc", "Acc %, here", "percent", ci="acc_ci"),
            Column("acc_published", "Acc %, paper", "percent"),
            Column("verdict", "Published Acc in our interval"),
            Column("mcc", "MCC, here", "decimal"),
            Column("mcc_published", "MCC, paper", "decimal"),
            Column("f1_macro", "F1 %, here", "percent"),
            Column("f1_published", "F1 %, paper", "percent"),
            Column("paper_row", "Paper's row"),
            Column("published_note", "Remark on it"),
            Column("notes", "Notes"),
            *(Column(key, key, shown=False) for key in ("table", "published_method", "published_backbone")),
            Column("comparable", "comparable", "flag", shown=False),
            *IDENTITY,
        ),
        rows,
        "A row is comparable only if the cell ran on the backbone that the paper names.",
    )


def _verdict(c: Comparison) -> str:
    if not c.comparable:
        return "not comparable"
    return "unknown" if c.published_in_ci is None else "yes" if c.published_in_ci else "no"


def audited(f: Findings, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Verdicts of the time gate by method, gate and kind of record: the paper's Table 4, for every method."""
    names = (
        ("checked", "Checked"),
        ("late", "Late"),
        ("unverifiable", "Unverifiable"),
        ("affected_queries", "Affected queries"),
    )
    return Table(
        "audit",
        titled("Audit of the evidence in prompts", f.behind(rows)),
        (
            Column("method", "Method"),
            Column("gate", "Gate"),
            Column("kind", "Kind of record"),
            Column("n_cells", "Cells", "int"),
            *(Column(key, header, "int") for key, header in names),
            *(Column(f"{key}_published", header, "int", over="Paper:") for key, header in names),
            Column("label", "label", shown=False),
        ),
        tuple(rows),
        "Late: known only after the decision time. Unverifiable: no trustworthy time. "
        "Affected queries: forecasts with at least one such record in a prompt. Paper: its Table 4, over 1,280 forecasts of TIEM.",
    )
