"""The figures of one cell, each group with its undefined ones left out and a sentence why."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from harness.records import Status
from reports import intervals, metrics
from reports.answers import Answers
from reports.clusters import Codes, around, design_effect, intraclass, one_way, share_interval, two_way
from reports.load import Cell

Figures = dict[str, Any]
"""Fields of ``Score`` by name."""


def classified(a: Answers, warnings: list[str]) -> Figures:
    """Acc, MCC, macro F1 and their kin with intervals that take catalysts as independent."""
    point = metrics.classify(a.truth, a.predicted)
    if point is None:
        warnings.append("acc, mcc and f1_macro with their intervals are null: no row is scored")
        return {}
    if point.degenerate:
        warnings.append(f"MCC and its interval are 0 by convention: all {point.degenerate} are of one class")
    if point.balanced_acc is None:
        warnings.append("balanced_acc is null: all labels are of one class")
    catalysts = [key[0] for key in a.keys]
    right, asked = intervals.cluster_sums(a.hits, catalysts).T
    draws = intervals.resample(intervals.confusion_sums(a.truth, a.predicted, catalysts))
    return {
        "acc": point.acc,
        "acc_ci": intervals.wilson(float((right / asked).mean()), right.size),
        "mcc": point.mcc,
        "mcc_ci": intervals.percentiles(metrics.mcc_of(draws)),
        "f1_macro": point.f1_macro,
        "f1_ci": intervals.percentiles(metrics.f1_of(draws)),
        "balanced_acc": point.balanced_acc,
        "base_rate": float(a.truth.mean()),
        "positive_share": float(a.predicted[a.usable].mean()) if a.usable.any() else None,
        "constant": point.degenerate is not None,
    }


def clustered(a: Answers, warnings: list[str]) -> Figures:
    """The same figures with intervals that take the decision day, the stock, or both as the unit."""
    if not a.size:
        return {}
    acc = float(a.hits.mean())
    found: Figures = {}
    days, stocks = a.day_codes, a.stock_codes
    if days is None:
        warnings.append("intervals by day and design_effect_day are null: decision_day is missing")
    else:
        found |= {"n_days": int(days.max()) + 1, **_by_day(a, acc, days, warnings)}
    if stocks is None:
        warnings.append("intervals by stock are null: stock is missing")
    else:
        found |= {"n_stocks": int(stocks.max()) + 1, "acc_ci_stock": share_interval(acc, one_way(a.hits, stocks))}
    if days is not None and stocks is not None:
        found["acc_ci_two_way"] = share_interval(acc, two_way(a.hits, days, stocks))
    return found


def _by_day(a: Answers, acc: float, days: Codes, warnings: list[str]) -> Figures:
    day = one_way(a.hits, days)
    if day is None:
        warnings.append("intervals by day and design_effect_day are null: all scored rows fall on one decision day")
        return {}
    found: Figures = {"acc_ci_day": share_interval(acc, day)}
    totals = intervals.confusion_sums(a.truth, a.predicted, [0] * a.size)
    for name, metric, influence, low in (
        ("mcc_ci_day", metrics.mcc_of, intervals.mcc_influence, -1.0),
        ("f1_ci_day", metrics.f1_of, intervals.f1_influence, 0.0),
    ):
        found[name] = around(float(metric(totals)[0]), one_way(influence(a.truth, a.predicted), days), low, 1.0)
    correlation = intraclass(a.hits, days)
    if correlation is None:
        warnings.append(
            "icc_day, design_effect_day and effective_n_day are null: no day has two rows, or all answers are alike"
        )
        return found
    effect = design_effect(correlation, days)
    return found | {"icc_day": correlation, "design_effect_day": effect, "effective_n_day": a.size / effect}


def policies(a: Answers) -> Figures:
    """Acc, MCC and macro F1 if answers that cannot be used were left out, or had been right: what the default can hide."""
    found: Figures = {}
    for name, truth, predicted in (
        ("answered", a.truth[a.usable], a.predicted[a.usable]),
        ("if_right", a.truth, np.where(a.usable, a.predicted, a.truth)),
    ):
        point = metrics.classify(truth, predicted)
        if point is not None:
            found |= {f"acc_{name}": point.acc, f"mcc_{name}": point.mcc, f"f1_{name}": point.f1_macro}
    return found


def calibrated(a: Answers, warnings: list[str]) -> Figures:
    """Quality of the probabilities, over scored rows that have one."""
    truth, probs = a.truth[a.usable], a.probs[a.usable]
    parts = metrics.brier_parts(truth, probs)
    if parts is None:
        warnings.append(
            "brier, log_loss, ece and the share of positive answers are null: no scored row has a probability"
        )
        return {}
    return {
        "brier": metrics.brier(truth, probs),
        **{f"brier_{name}": value for name, value in asdict(parts).items()},
        "log_loss": metrics.log_loss(truth, probs),
        "ece": metrics.ece(truth, probs),
        "reliability": tuple(metrics.reliability(truth, probs)),
    }


def spent(cell: Cell, warnings: list[str]) -> Figures:
    """Tokens of the final call (mean over rows that report them) and of all calls, and cost, summed over rows."""
    rows = cell.rows
    final = both(rows["prompt_tokens"], rows["completion_tokens"])
    every = both(rows["total_prompt_tokens"], rows["total_completion_tokens"])
    called = [calls != 0 for calls in rows["n_calls"]]
    missing: dict[str, int] = {}
    for name, values in (("tokens_final_mean", final), ("tokens_total", every), ("cost_usd", rows["cost_usd"])):
        unknown = missing[name] = sum(value is None and asked for value, asked in zip(values, called, strict=True))
        if values and all(value is None for value in values):
            warnings.append(f"{name} is null: no row reports it")
        elif unknown:
            warnings.append(f"{name} leaves out {unknown} of {len(values)} rows that do not report it")
    known = [value for value in final if value is not None]
    return {
        "tokens_final_mean": sum(known) / len(known) if known else None,
        "tokens_total": metrics.total(every),
        "tokens_unknown": missing["tokens_total"],
        "cost_usd": metrics.total(rows["cost_usd"]),
        "cost_unknown": missing["cost_usd"],
    }


def both(left: list[Any], right: list[Any]) -> list[int | None]:
    """Sums row by row; None where a part is unknown."""
    return [None if a is None or b is None else a + b for a, b in zip(left, right, strict=True)]


def no_llm(cell: Cell) -> bool:
    """Whether no row of the cell made a call."""
    return Status.OK in cell.rows["status"] and all(calls == 0 for calls in cell.rows["n_calls"])
