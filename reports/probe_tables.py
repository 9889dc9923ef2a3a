"""The tables of the probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports.columns import hidden
from reports.labels import titled
from reports.probe_effects import CHANGES
from reports.probe_tests import FAIL, NOT_TESTABLE
from reports.probes import Findings
from reports.scores import Score
from reports.tables import Column, Table
from reports.wording import Sentence

NAMES = ("probes", "probe_cells", "ndp", "probe_effects", "probe_identity", "probe_recall", "cutoff")
"""Names of all tables over probes; a report has those with something to show."""
Rows = Sequence[Mapping[str, Any]]
_WHERE = (Column("benchmark", "Benchmark"), Column("backbone", "Backbone"))
_HIDDEN = hidden("gate", "seed", "cells", "label")


def tables(f: Findings, data: Mapping[str, Any]) -> tuple[Table, ...]:
    """All tables over probe cells, in the order of the page; none where no probe was run and no cutoff is declared."""
    found = [
        *([_verdicts(f, data["probes"]), _cells(f, data["probe_cells"])] if f.scores else []),
        *([_name_dates(f, data["ndp"])] if f.name_dates else []),
        *([_effects(f, data["probe_effects"])] if f.effects else []),
        *([_identity(f, data["probe_identity"])] if f.identities else []),
        *([_recall(f, data["probes"])] if any(test.table for test in f.tests) else []),
        *([_cutoffs(f, data["cutoff"])] if f.cutoffs else []),
    ]
    return tuple(found)


def narrative(f: Findings) -> tuple[Sentence, ...]:
    """A sentence a backbone and benchmark: which probes expose it."""
    found = []
    for place in dict.fromkeys((t.backbone, t.benchmark) for t in f.tests):
        own = [t for t in f.tests if (t.backbone, t.benchmark) == place]
        failed = [t.probe for t in own if t.verdict == FAIL]
        silent = sum(t.verdict == NOT_TESTABLE for t in own)
        numbers = {"probes": len(own), "failed": len(failed), "not_testable": silent}
        where = f"{place[0]} on {place[1]}"
        if failed:
            text = f"{where}: {len(failed)} of {len(own)} probes show answers drawn from memory ({', '.join(failed)}). Its accuracy there is not all forecast."
        else:
            text = (
                f"{where}: none of {len(own)} probes shows answers drawn from memory; that is no proof that none are."
            )
        text += f" {silent} could not be told." if silent else ""
        found.append(Sentence("probes", text, "care" if failed else "plain", numbers, "probes"))
    return tuple(found)


def facts(rows: Rows) -> list[tuple[str, str]]:
    """Counts for the head of the page; none without probes."""
    return [("probe cell" if len(rows) == 1 else "probe cells", f"{len(rows):,}")] if rows else []


def _verdicts(f: Findings, rows: Rows) -> Table:
    return Table(
        "probes",
        titled("Probes: signs that answers are drawn from memory", f.scores),
        (
            *_WHERE,
            Column("probe", "Probe"),
            Column("measure", "What is measured"),
            Column("n", "n", "int"),
            Column("n_units", "Days", "int"),
            Column("value", "Value", "decimal", ci="ci"),
            Column("p", "p", "p"),
            Column("p_holm", "p Holm", "p"),
            Column("mde", "MDE", "decimal"),
            Column("verdict", "Verdict"),
            *hidden("scale"),
            *_HIDDEN,
        ),
        tuple(rows),
        "FAIL: answers depend on who and when beyond chance (p Holm below 0.05, over the tests of a backbone and benchmark). PASS: nothing of the kind seen with this "
        "many cases, which is no proof; MDE is the smallest difference that would have been found with power 0.8. NOT TESTABLE: too few days or no such answers. "
        "Differences and shares as fractions. p: sign flips over decision days; identify: binomial against 0.05; recall_interaction: Fisher's exact test.",
    )


def _cells(f: Findings, rows: Rows) -> Table:
    return Table(
        "probe_cells",
        titled("Probe cells: accuracy of each input. Not forecasts of the tables above", f.scores),
        (
            *_WHERE,
            Column("method", "Probe"),
            Column("n", "n", "int"),
            Column("n_scored", "Scored", "int"),
            Column("coverage", "Coverage %", "percent"),
            Column("acc", "Acc %", "percent", ci="acc_ci"),
            Column("positive_share", "Says positive %", "percent"),
            Column("base_rate", "Base rate %", "percent"),
            Column("tokens_final_mean", "Tokens", "int"),
            Column("cost_usd", "Cost US$", "usd"),
            Column("notes", "Notes"),
            *hidden("cell", "gate", "memory", "embedder", "feed", "context", "seed", "state", "label"),
        ),
        tuple(rows),
        "Acc: Wilson interval. All probes of one seed ask the same sample.",
    )


def _name_dates(f: Findings, rows: Rows) -> Table:
    return Table(
        "ndp",
        titled("Name-Date Probe: what name and date alone give, and what the text adds", _of(f, rows)),
        (
            *_WHERE,
            Column("n", "n", "int"),
            Column("membase", "MemBase %", "percent", ci="membase_ci"),
            Column("base_rate", "Base rate %", "percent"),
            Column("base_distance", "MemBase − base rate, points", "percent", ci="base_distance_ci"),
            Column("acc_nc", "Acc with headlines %", "percent"),
            Column("acc_full", "Acc with text %", "percent"),
            Column("delta_content", "Δ content, points", "percent", ci="delta_content_ci"),
            Column("positive_nd", "Says positive, name and date %", "percent", ci="positive_nd_ci"),
            Column("positive_nc", "headlines %", "percent"),
            Column("positive_full", "text %", "percent"),
            *hidden("majority", "n_days"),
            *_HIDDEN,
        ),
        tuple(rows),
        "MemBase: accuracy from name and date alone. Δ content: accuracy with the text minus accuracy with headlines only. Intervals by decision day. "
        "Base rate: share of rises, the accuracy of always answering positive.",
    )


def _effects(f: Findings, rows: Rows) -> Table:
    return Table(
        "probe_effects",
        titled("Counterfactuals: what a change of the input does to the answer", _of(f, rows)),
        (
            *_WHERE,
            Column("change_words", "Changed"),
            Column("n", "n", "int"),
            Column("same", "Same direction %", "percent", ci="same_ci"),
            Column("moved", "Input dependency %", "percent", ci="moved_ci"),
            Column("prob_moved", "Mean |Δp|", "decimal", ci="prob_moved_ci"),
            Column("lean", "p rising − falling news", "decimal", ci="lean_ci"),
            Column("acc_before", "Acc before %", "percent"),
            Column("acc_after", "after %", "percent"),
            *hidden("change"),
            *_HIDDEN,
        ),
        tuple({**row, "change_words": CHANGES[row["change"]]} for row in rows),
        "Same direction: prediction consistency; input dependency is the rest. Acc after is against the label of the unchanged case: with news of the opposite outcome, "
        "a forecast that follows the news is wrong more often.",
    )


def _identity(f: Findings, rows: Rows) -> Table:
    return Table(
        "probe_identity",
        titled("Re-identification: who and when, from masked input", _of(f, rows)),
        (
            *_WHERE,
            Column("n", "n", "int"),
            Column("who", "Company or code %", "percent", ci="who_ci"),
            Column("named", "company %", "percent"),
            Column("coded", "code %", "percent"),
            Column("dated", "Day %", "percent", ci="dated_ci"),
            Column("month", "month %", "percent"),
            Column("year", "year %", "percent"),
            Column("both", "Who and day %", "percent", ci="both_ci"),
            *_HIDDEN,
        ),
        tuple(rows),
        "Exact matches; a null answer is none. People, products, places and amounts are not masked: a company may be recognised by these.",
    )


def _recall(f: Findings, rows: Rows) -> Table:
    kept = [row for row in rows if row["table"]]
    names = ("remembered_right", "remembered_wrong", "else_right", "else_wrong")
    return Table(
        "probe_recall",
        titled("Recall and forecast: right forecasts where the return was remembered, and elsewhere", _of(f, kept)),
        (
            *_WHERE,
            Column("n", "n", "int"),
            Column(names[0], "right", "int", over="Remembered, forecast"),
            Column(names[1], "wrong", "int", over="Remembered, forecast"),
            Column(names[2], "right", "int", over="Not, forecast"),
            Column(names[3], "wrong", "int", over="Not, forecast"),
            Column("value", "Odds ratio", "decimal", ci="ci"),
            Column("p", "p", "p"),
            *_HIDDEN,
        ),
        tuple({**row, **dict(zip(names, row["table"], strict=True))} for row in kept),
        "Remembered: the return was said to be remembered, and its sign is right. Odds ratio with ½ added to each count; p: Fisher's exact test.",
    )


def _cutoffs(f: Findings, rows: Rows) -> Table:
    return Table(
        "cutoff",
        titled("Before and after the training cutoff that the backbone's maker declares", _of(f, rows)),
        (
            *_WHERE,
            Column("method", "Method"),
            Column("cutoff", "Cutoff"),
            Column("n_before", "n", "int", over="Up to it"),
            Column("before", "Acc %", "percent", ci="before_ci", over="Up to it"),
            Column("n_after", "n", "int", over="After"),
            Column("after", "Acc %", "percent", ci="after_ci", over="After"),
            Column("drop", "Drop, points", "percent", ci="drop_ci"),
            *hidden("gate", "cells", "label"),
        ),
        tuple(rows),
        "Intervals by decision day. A drop may have other reasons than memory: markets change too. Months: report.json.",
    )


def _of(f: Findings, rows: Rows) -> list[Score]:
    found = {cell for row in rows for cell in row["cells"]}
    return [s for s in f.every if s.cell in found]
