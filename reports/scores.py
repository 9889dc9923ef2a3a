"""One cell's row of the report: coverage, classification with intervals, calibration, tokens, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.records import NEGATIVE, POSITIVE, Status
from reports import intervals, metrics
from reports.intervals import Interval
from reports.load import Cell


@dataclass(frozen=True)
class Score:
    """Everything the tables show of one cell. Shares are fractions; None is undefined or unknown, and ``warnings`` say why.

    Attributes:
        n: forecasts expected (catalysts x epochs) where cell.json says so, else rows.
        epochs: different epochs among the rows; 1 without rows.
        n_scored: rows with a label and an answer of the model, usable or not.
        n_clusters: different catalysts among them, the sample size of every interval.
        coverage: rows with status ok / n.
        base_rate: share of positive labels among scored rows, the accuracy of always saying positive.
        positive_share: share of positive answers among scored rows with status ok.
        no_llm: no row made a call, so the rehearsal endpoint has no part in the figures.
        state: complete, incomplete or failed.
    """

    cell: str
    method: str
    backbone: str
    benchmark: str
    gate: str | None
    seed: int | None
    memory: str | None
    embedder: str | None
    rehearsal: bool
    no_llm: bool
    state: str
    reason: str | None
    remedy: str | None
    n: int
    epochs: int
    n_scored: int
    n_clusters: int
    counts: Mapping[str, int]
    coverage: float | None
    acc: float | None = None
    acc_ci: Interval | None = None
    mcc: float | None = None
    mcc_ci: Interval | None = None
    f1_macro: float | None = None
    f1_ci: Interval | None = None
    base_rate: float | None = None
    positive_share: float | None = None
    brier: float | None = None
    log_loss: float | None = None
    ece: float | None = None
    tokens_final_mean: float | None = None
    tokens_total: float | None = None
    cost_usd: float | None = None
    constant: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def n_shown(self) -> str | None:
        """``n`` as catalysts × epochs; None for one epoch, or where ``n`` is no such product (some epochs have no row yet)."""
        return f"{self.n // self.epochs:,} × {self.epochs:,}" if self.epochs > 1 and self.n % self.epochs == 0 else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Short marks beside the cell in every table."""
        gate = {"off": "TIME GATE OFF", "paper": "paper gate"}.get(self.gate or "")
        marks = (
            "rehearsal" if self.rehearsal else None,
            "no LLM" if self.no_llm else None,
            gate,
            self.state if self.state != "complete" else None,
            "MCC 0 by convention" if self.constant else None,
        )
        return tuple(mark for mark in marks if mark)


def score(cell: Cell) -> Score:
    """Score one cell. Answers that cannot be used count as the opposite class; infrastructure failures are not scored."""
    rows = cell.rows
    counts = Counter(rows["status"])
    meta = cell.meta or {}
    n = max(int(meta.get("n") or 0), cell.size)
    scored = [
        i
        for i, (label, status) in enumerate(zip(rows["label"], rows["status"], strict=True))
        if label in (POSITIVE, NEGATIVE) and Status(status).final
    ]
    warnings = [*_row_warnings(cell, meta, counts, n), *map(str, meta.get("warnings") or ())]
    results = _classification(cell, scored, warnings) | _calibration(cell, scored, warnings) | _spent(cell, warnings)
    ok = counts[Status.OK]
    if n == 0:
        warnings.append("coverage is null: no forecast was expected")
    return Score(
        cell=cell.cell, method=cell.method, backbone=cell.backbone, benchmark=cell.benchmark, gate=cell.gate,
        seed=cell.seed, memory=cell.memory, embedder=cell.embedder, rehearsal=cell.rehearsal,
        no_llm=ok > 0 and all(calls == 0 for calls in rows["n_calls"]),
        state=_state(meta, counts, n),
        reason=meta.get("reason"),
        remedy=meta.get("remedy"),
        n=n,
        epochs=len(set(rows["epoch"])) or 1,
        n_scored=len(scored),
        n_clusters=len({rows["catalyst_id"][i] for i in scored}),
        counts={status.value: counts[status] for status in Status if counts[status]},
        coverage=ok / n if n else None,
        warnings=tuple(warnings),
        **results,
    )  # fmt: skip


def _state(meta: Mapping[str, Any], counts: Mapping[str, int], n: int) -> str:
    """The state in cell.json, but never "complete" if rows are missing or an answer is still owed."""
    state = str(meta.get("status") or "complete")
    finished = sum(count for status, count in counts.items() if Status(status).final)
    return "incomplete" if state == "complete" and finished < n else state


def _row_warnings(cell: Cell, meta: Mapping[str, Any], counts: Mapping[str, int], n: int) -> list[str]:
    found = []
    stated = meta.get("n")
    if cell.meta is not None and stated is None:
        found.append(
            "cell.json states no n: n is the number of rows, so a catalyst that was never asked goes unnoticed"
        )
    if stated is not None and stated < cell.size:
        found.append(f"cell.json expects {stated} forecasts but there are {cell.size} rows; n is the number of rows")
    if cell.size < n:
        found.append(f"{n - cell.size} of {n} forecasts have no row yet; run the same command again to go on")
    infrastructure = {name: count for name, count in sorted(counts.items()) if not Status(name).final}
    if infrastructure:
        listed = ", ".join(f"{count} {name}" for name, count in infrastructure.items())
        found.append(f"without an answer and not scored: {listed}; run the same command again to ask once more")
    unlabelled = sum(label not in (POSITIVE, NEGATIVE) for label in cell.rows["label"])
    if unlabelled:
        found.append(f"{unlabelled} rows have no positive or negative label and are not scored")
    said = zip(cell.rows["direction"], cell.rows["prob_positive"], cell.rows["status"], strict=True)
    contrary = sum(s == Status.OK and d is not None and (d == POSITIVE) != (p >= 0.5) for d, p, s in said)
    if contrary:
        found.append(f"{contrary} rows state a direction that contradicts prob_positive; the probability is scored")
    if cell.absent:
        found.append(f"forecasts.parquet has no column {', '.join(cell.absent)}; what needs it is null")
    return found


def _classification(cell: Cell, scored: list[int], warnings: list[str]) -> dict[str, Any]:
    rows = cell.rows
    truth = np.array([rows["label"][i] == POSITIVE for i in scored], dtype=np.bool_)
    answers = [rows["prob_positive"][i] if rows["status"][i] == Status.OK else None for i in scored]
    predicted = metrics.predictions(truth, answers)
    point = metrics.classify(truth, predicted)
    if point is None:
        warnings.append("acc, mcc and f1_macro with their intervals are null: no row is scored")
        return {}
    if point.degenerate:
        warnings.append(f"MCC and its interval are 0 by convention: all {point.degenerate} are of one class")
    clusters = [rows["catalyst_id"][i] for i in scored]
    right, asked = intervals.cluster_sums((truth == predicted).astype(np.float64), clusters).T
    draws = intervals.resample(intervals.confusion_sums(truth, predicted, clusters))
    said = [answer >= 0.5 for answer in answers if answer is not None]
    return {
        "acc": point.acc,
        "acc_ci": intervals.wilson(float((right / asked).mean()), right.size),
        "mcc": point.mcc,
        "mcc_ci": intervals.percentiles(intervals.mcc_of(draws)),
        "f1_macro": point.f1_macro,
        "f1_ci": intervals.percentiles(intervals.f1_of(draws)),
        "base_rate": float(truth.mean()),
        "positive_share": float(np.mean(said)) if said else None,
        "constant": point.degenerate is not None,
    }


def _calibration(cell: Cell, scored: list[int], warnings: list[str]) -> dict[str, Any]:
    rows = cell.rows
    usable = [i for i in scored if rows["status"][i] == Status.OK]
    if not usable:
        warnings.append(
            "brier, log_loss, ece and the share of positive answers are null: no scored row has a probability"
        )
        return {}
    truth = np.array([rows["label"][i] == POSITIVE for i in usable], dtype=np.bool_)
    probs = np.array([rows["prob_positive"][i] for i in usable], dtype=np.float64)
    return {
        "brier": metrics.brier(truth, probs),
        "log_loss": metrics.log_loss(truth, probs),
        "ece": metrics.ece(truth, probs),
    }


def _spent(cell: Cell, warnings: list[str]) -> dict[str, Any]:
    """Tokens of the final call (mean over rows that report them) and of all calls, and cost, summed over rows."""
    rows = cell.rows
    final = _both(rows["prompt_tokens"], rows["completion_tokens"])
    every = _both(rows["total_prompt_tokens"], rows["total_completion_tokens"])
    called = [calls != 0 for calls in rows["n_calls"]]
    for name, values in (("tokens_final_mean", final), ("tokens_total", every), ("cost_usd", rows["cost_usd"])):
        unknown = sum(value is None and asked for value, asked in zip(values, called, strict=True))
        if values and all(value is None for value in values):
            warnings.append(f"{name} is null: no row reports it")
        elif unknown:
            warnings.append(f"{name} leaves out {unknown} of {len(values)} rows that do not report it")
    known = [value for value in final if value is not None]
    return {
        "tokens_final_mean": sum(known) / len(known) if known else None,
        "tokens_total": metrics.total(every),
        "cost_usd": metrics.total(rows["cost_usd"]),
    }


def _both(left: list[Any], right: list[Any]) -> list[int | None]:
    return [None if a is None or b is None else a + b for a, b in zip(left, right, strict=True)]
