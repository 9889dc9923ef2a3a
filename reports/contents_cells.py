"""The tables that hold a row a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.records import Status
from reports.columns import IDENTITY, WHO, cell_row, cell_rows, hidden
from reports.labels import display_names, titled
from reports.metrics import LOG_LOSS_EPS
from reports.scores import Score
from reports.tables import Column, Table


def results(scores: Sequence[Score]) -> Table:
    """Coverage, Acc, MCC and macro F1 with 95 % intervals, as in the paper's Table 1."""
    return Table(
        "results",
        titled("Results: accuracy, MCC and macro F1 with 95 % intervals", scores),
        (
            *WHO,
            Column("n", "n", "int", text="n_shown"),
            Column("n_scored", "Scored", "int"),
            Column("coverage", "Coverage %", "percent"),
            Column("acc", "Acc %", "percent", ci="acc_ci"),
            Column("mcc", "MCC", "decimal", ci="mcc_ci"),
            Column("f1_macro", "Macro F1 %", "percent", ci="f1_ci"),
            Column("positive_share", "Says positive %", "percent"),
            Column("base_rate", "Base rate %", "percent"),
            Column("notes", "Notes"),
            *IDENTITY,
        ),
        cell_rows(scores),
        "n: forecasts expected; catalysts × epochs where there are several epochs. Acc: Wilson interval. MCC and macro F1: percentile bootstrap over catalysts. Base rate: share of positive labels, "
        "the accuracy of always answering positive.",
    )


def precision(scores: Sequence[Score]) -> Table:
    """What the intervals become if answers of one day, or about one stock, are not independent."""
    return Table(
        "precision",
        titled(
            "Precision: 95 % intervals of accuracy, MCC and macro F1 with rows clustered by decision day and by stock",
            scores,
        ),
        (
            *WHO,
            Column("n_scored", "Scored", "int"),
            Column("n_days", "Days", "int"),
            Column("n_stocks", "Stocks", "int"),
            Column("acc", "Acc %, rows independent", "percent", ci="acc_ci"),
            Column("acc_ci_day", "Acc %, by day", "percent", interval=True),
            Column("acc_ci_stock", "Acc %, by stock", "percent", interval=True),
            Column("acc_ci_two_way", "Acc %, by day and stock", "percent", interval=True),
            Column("mcc_ci_day", "MCC, by day", "decimal", interval=True),
            Column("f1_ci_day", "Macro F1 %, by day", "percent", interval=True),
            Column("icc_day", "ICC of days", "decimal"),
            Column("design_effect_day", "Design effect", "decimal"),
            Column("effective_n_day", "Effective n", "int"),
            Column("notes", "Notes"),
            *IDENTITY,
        ),
        cell_rows(scores),
        "By day, stock: score interval with the effective number of rows that the bias-reduced clustered error implies, and Student's t. "
        "MCC and F1: t interval, linearised. Design effect: 1 + (Σ n² ÷ n − 1) × ICC over days; effective n: rows ÷ design effect.",
    )


def calibration(scores: Sequence[Score]) -> Table:
    """Quality of the probabilities, and what they cost."""
    return Table(
        "calibration_and_cost",
        titled("Calibration of the probabilities, tokens and cost", scores),
        (
            *WHO,
            Column("brier", "Brier", "decimal"),
            Column("log_loss", "Log loss", "decimal"),
            Column("ece", "ECE", "decimal"),
            Column("brier_reliability", "Reliability", "decimal"),
            Column("brier_resolution", "Resolution", "decimal"),
            Column("brier_uncertainty", "Uncertainty", "decimal"),
            Column("tokens_final_mean", "Tokens, final call (mean)", "int"),
            Column("tokens_total", "Tokens, all calls", "int"),
            Column("cost_usd", "Cost US$", "usd"),
            Column("notes", "Notes"),
            *hidden("brier_within"),
            *IDENTITY,
        ),
        cell_rows(scores),
        "Brier = reliability − resolution + uncertainty + the spread within bins. Brier, log loss (nats) and ECE (10 equal-count bins) over rows with a probability; lower is better. "
        f"For log loss, probabilities are clipped to [eps, 1 − eps] with eps = {LOG_LOSS_EPS:.1e}: a forecaster that says 0 or 1 "
        f"pays {-math.log(LOG_LOSS_EPS):.1f} nats for every row it has wrong. "
        "Tokens and cost are sums over forecast rows; cost is at list price, cached or not.",
    )


def policies(scores: Sequence[Score]) -> Table:
    """What becomes of the figures if unusable answers are not counted as wrong."""
    return Table(
        "unusable_answers",
        titled("Unusable answers: counted as wrong, left out, had they been right", scores),
        (
            *WHO,
            Column("coverage", "Coverage %", "percent"),
            *(
                column
                for over, suffix in (("Wrong", ""), ("Left out", "_answered"), ("Right", "_if_right"))
                for column in (
                    Column(f"acc{suffix}", "Acc %", "percent", over=over),
                    Column(f"mcc{suffix}", "MCC", "decimal", over=over),
                    Column(f"f1{suffix or '_macro'}", "F1 %", "percent", over=over),
                )
            ),
            Column("balanced_acc", "Balanced acc %", "percent"),
            Column("notes", "Notes"),
            *IDENTITY,
        ),
        cell_rows(scores),
        "Wrong is the default of this report; the other two bound what it can do to a comparison. Balanced acc: mean recall of both classes.",
    )


def states(scores: Sequence[Score]) -> Table:
    """What became of every expected forecast; why a cell is not complete and how to go on."""
    used = [status.value for status in Status if any(s.counts.get(status.value) for s in scores)]
    names = display_names(scores)
    return Table(
        "cells",
        titled("State of the cells: forecasts by status", scores),
        (
            *WHO,
            Column("state", "State"),
            Column("n", "n", "int", text="n_shown"),
            *(Column(status, status, "int") for status in used),
            Column("reason", "Reason"),
            Column("remedy", "What to do"),
            Column("notes", "Notes"),
            *IDENTITY,
        ),
        tuple({**cell_row(s, names), **{status: s.counts.get(status, 0) for status in used}} for s in scores),
        "invalid, truncated and refused answers count as wrong; rate_limited, budget, provider and bug are not scored and lower coverage only.",
    )
