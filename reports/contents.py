"""Which tables the report holds, and the columns of those over pairs, runs and payments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from reports import contents_cells as cells
from reports import contents_paper as paper
from reports.columns import WHO, hidden
from reports.findings import Findings
from reports.labels import display_names, label, titled
from reports.pairs import Pair
from reports.scores import Score
from reports.tables import Column, Table

LEDGER = "ledger"
"""Name of the table of what was paid."""
NAMES = (
    "results", "hindsight", "table1", "pairs", "precision", "ablation", "shift", "efficiency", "consistency",
    "calibration_and_cost", "unusable_answers", LEDGER, "spread", "finance", "published", "time_gate", "audit", "cells",
)  # fmt: skip
"""Names of all tables over methods."""


def tables(f: Findings, data: Mapping[str, Any]) -> tuple[Table, ...]:
    """All tables in the order of the page, those without rows too; of a report without methods those that have rows.

    ``data`` is the content of report.json. What was paid is a table where a run has a ledger.
    """
    found = (
        cells.results(f.scores),
        hindsight(f, data["hindsight"]),
        paper.main(f),
        paired(f.scores, f.pairs),
        cells.precision(f.scores),
        paper.ablation(f),
        paper.shifted(f, data["shift"]),
        paper.efficiency(f, data["tokens"]),
        paper.consistency(f, data["consistency"]),
        cells.calibration(f.scores),
        cells.policies(f.scores),
        *((paid(f.scores, f.loaded.ledgers),) if any(f.loaded.ledgers) else ()),
        spread(f, data["spread"]),
        returns(f, data["finance"]),
        paper.published(f.scores, f.comparisons),
        paper.gated(f.scores, f.gates),
        paper.audited(f, data["audit"]),
        cells.states(f.scores),
    )
    return found if f.scores else tuple(table for table in found if table.rows)


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
            Column("p_cluster_holm", "p days, Holm", "p"),
            Column("mde", "MDE, points", "percent"),
            Column("notes", "Notes"),
            Column("n_needed", "n needed", "int"),
            Column("diff_mcc", "MCC a − b", "decimal", ci="ci_mcc"),
            Column("p_mcc", "p days, MCC", "p"),
            Column("diff_f1", "F1 a − b, points", "percent", ci="ci_f1"),
            Column("p_f1", "p days, F1", "p"),
            *(
                Column(key, key, "percent", shown=False, interval=True)
                for key in ("ci_independent", "ci_stock", "ci_two_way")
            ),
            *hidden("n_a", "n_b", "gate", "seed", "icc_day", "design_effect_day", "cell_a", "cell_b", "label"),
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
        "Intervals and p days: clustered by decision day. p McNemar: exact. Holm: over methods and benchmarks within a backbone. "
        "MDE: smallest difference found with power 0.8 at alpha 0.05. n needed: rows at which a difference of the size seen would be.",
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


def spread(f: Findings, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Several runs of one cell."""
    names = display_names(f.scores)
    return Table(
        "spread",
        titled(
            "Several runs: what running again changes, beside what the choice of catalysts leaves open", f.behind(rows)
        ),
        (
            *WHO,
            Column("runs", "Runs", "int"),
            Column("n", "Catalysts", "int"),
            Column("acc_mean", "Acc %, mean", "percent"),
            Column("acc_min", "lowest", "percent"),
            Column("acc_max", "highest", "percent"),
            Column("acc_sd_runs", "sd between runs, points", "percent"),
            Column("acc_se_sampling", "error of sampling, points", "percent"),
            Column("acc_se_day", "by day, points", "percent"),
            Column("mcc_sd_runs", "MCC, sd between runs", "decimal"),
            Column("f1_sd_runs", "F1, sd between runs, points", "percent"),
            Column("flip_share", "Answers that flip %", "percent"),
            *hidden(
                "gate", "memory", "embedder", "feed", "context", "exclude", "run_variance", "answer_variance", "label"
            ),
        ),
        tuple({**row, "method": names[row["cells"][0]].split(" (")[0]} for row in rows),
        "Runs are epochs and seeds, on the catalysts scored in all of them. More runs shrink the spread between runs, never the error of sampling.",
    )


def returns(f: Findings, rows: Sequence[Mapping[str, Any]]) -> Table:
    """The finance view."""
    names = display_names(f.scores)
    return Table(
        "finance",
        titled(
            "Finance view, not tradable advice: daily rank correlation with returns, and a long-short mean",
            f.behind(rows),
        ),
        (
            *WHO,
            Column("n", "Rows", "int"),
            Column("ic_days", "Days", "int", over="Rank IC"),
            Column("ic_mean", "mean", "decimal", over="Rank IC"),
            Column("ic_sd", "sd", "decimal", over="Rank IC"),
            Column("icir", "ICIR", "decimal", over="Rank IC"),
            Column("ic_t", "t (Newey-West)", "decimal", over="Rank IC"),
            Column("ls_days", "Days", "int", over="Long-short"),
            Column("ls_gross", "gross %", "percent", over="Long-short"),
            Column("ls_net", "net %", "percent", over="Long-short"),
            Column("ls_net_t", "t of net", "decimal", over="Long-short"),
            *hidden("cell", "cost_a_trade", "label"),
        ),
        tuple({**row, "method": names[row["cell"]]} for row in rows),
        "Not tradable advice. Rank IC: Spearman correlation of probability and return within a day. Long-short: mean return where a rise was "
        "said minus where a fall was said, over the benchmark's horizon; net of 10 basis points for each of four trades. t: Newey-West.",
    )


def hindsight(f: Findings, rows: Sequence[Mapping[str, Any]]) -> Table:
    """What the direction of the market alone would give."""
    return Table(
        "hindsight",
        titled("Oracle, not a forecast: the majority of the decision day, in hindsight", f.scores),
        (
            Column("benchmark", "Benchmark"),
            Column("n", "Catalysts", "int"),
            Column("n_days", "Days", "int"),
            Column("always_positive", "Always positive %", "percent"),
            Column("acc", "Acc %", "percent", over="Majority of the day"),
            Column("mcc", "MCC", "decimal", over="Majority of the day"),
            Column("f1_macro", "F1 %", "percent", over="Majority of the day"),
            *hidden("label"),
        ),
        tuple(rows),
        "It knows the outcomes of the day it answers, so nobody could have said it in time: with few catalysts a day it is high by itself. A "
        "method on a benchmark of few days that stays below it may have guessed the direction of the market and nothing else.",
    )
