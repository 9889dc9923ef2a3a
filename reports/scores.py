"""One cell's row of the report: coverage, classification with intervals, calibration, tokens, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.records import DROPPED, POSITIVE, Status
from reports import measure
from reports.answers import Answers, answers
from reports.intervals import Interval
from reports.load import Cell
from reports.metrics import Bin


@dataclass(frozen=True)
class Score:
    """Everything the tables show of one cell. Shares are fractions; None is undefined or unknown, and ``warnings`` say why.

    Attributes:
        n: forecasts expected (catalysts x epochs) where cell.json says so, else rows.
        epochs: different epochs among the rows; 1 without rows.
        n_scored: rows with a label and an answer of the model, usable or not.
        n_pending: rows whose outcome is not known yet.
        n_dropped: rows whose outcome lies inside the dead band, neither a rise nor a fall.
        n_clusters: different catalysts among them, the sample size of ``acc_ci``, ``mcc_ci`` and ``f1_ci``.
        n_days, n_stocks: decision days and stocks among them; None where a row has none.
        acc_ci_day, mcc_ci_day, f1_ci_day: 95 % intervals with the decision day as the unit.
        acc_ci_stock, acc_ci_two_way: with the stock as the unit, with day and stock.
        icc_day: intra-class correlation of being right within a day; design_effect_day and effective_n_day follow from it.
        acc_answered …: over usable answers alone. acc_if_right …: had the others been right.
        coverage: rows with status ok / n.
        base_rate: share of positive labels among scored rows, the accuracy of always saying positive.
        positive_share: share of positive answers among scored rows with status ok.
        tokens_unknown, cost_unknown: rows that made a call and are not in ``tokens_total``, ``cost_usd``.
        no_llm: no row made a call, so the rehearsal endpoint has no part in the figures.
        evidence_records: records that entered its prompts; None where evidence.parquet is missing.
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
    feed: str | None
    context: str | None
    rehearsal: bool
    no_llm: bool
    state: str
    reason: str | None
    remedy: str | None
    n: int
    epochs: int
    n_scored: int
    n_pending: int
    n_dropped: int
    n_clusters: int
    counts: Mapping[str, int]
    coverage: float | None
    acc: float | None = None
    acc_ci: Interval | None = None
    mcc: float | None = None
    mcc_ci: Interval | None = None
    f1_macro: float | None = None
    f1_ci: Interval | None = None
    balanced_acc: float | None = None
    n_days: int | None = None
    n_stocks: int | None = None
    acc_ci_day: Interval | None = None
    mcc_ci_day: Interval | None = None
    f1_ci_day: Interval | None = None
    acc_ci_stock: Interval | None = None
    acc_ci_two_way: Interval | None = None
    icc_day: float | None = None
    design_effect_day: float | None = None
    effective_n_day: float | None = None
    acc_answered: float | None = None
    mcc_answered: float | None = None
    f1_answered: float | None = None
    acc_if_right: float | None = None
    mcc_if_right: float | None = None
    f1_if_right: float | None = None
    base_rate: float | None = None
    positive_share: float | None = None
    brier: float | None = None
    brier_reliability: float | None = None
    brier_resolution: float | None = None
    brier_uncertainty: float | None = None
    brier_within: float | None = None
    reliability: tuple[Bin, ...] = ()
    log_loss: float | None = None
    ece: float | None = None
    exclude: str | None = None
    tokens_final_mean: float | None = None
    tokens_total: float | None = None
    tokens_unknown: int = 0
    cost_usd: float | None = None
    cost_unknown: int = 0
    evidence_records: int | None = None
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


def score(cell: Cell, found: Answers | None = None) -> Score:
    """Score one cell; ``found`` are its scored rows where the caller has them already."""
    rows = cell.rows
    counts = Counter(rows["status"])
    meta = cell.meta or {}
    n = max(int(meta.get("n") or 0), cell.size)
    scored = answers(cell) if found is None else found
    warnings = [*_row_warnings(cell, meta, counts, n), *map(str, meta.get("warnings") or ())]
    results = {
        **measure.classified(scored, warnings),
        **measure.clustered(scored, warnings),
        **measure.policies(scored),
        **measure.calibrated(scored, warnings),
        **measure.spent(cell, warnings),
    }
    ok = counts[Status.OK]
    if n == 0:
        warnings.append("coverage is null: no forecast was expected")
    return Score(
        cell=cell.cell, method=cell.method, backbone=cell.backbone, benchmark=cell.benchmark, gate=cell.gate,
        seed=cell.seed, memory=cell.memory, embedder=cell.embedder, feed=cell.feed, context=cell.context,
        rehearsal=cell.rehearsal,
        exclude=cell.exclude,
        no_llm=measure.no_llm(cell),
        state=_state(meta, counts, n),
        reason=meta.get("reason"),
        remedy=meta.get("remedy"),
        n=n,
        epochs=len(set(rows["epoch"])) or 1,
        n_scored=scored.size,
        n_pending=rows["label"].count(None),
        n_dropped=rows["label"].count(DROPPED),
        n_clusters=len({catalyst for catalyst, _ in scored.keys}),
        counts={status.value: counts[status] for status in Status if counts[status]},
        coverage=ok / n if n else None,
        evidence_records=None if cell.evidence is None else len(cell.evidence["kind"]),
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
    pending, dropped = (cell.rows["label"].count(label) for label in (None, DROPPED))
    if pending:
        found.append(f"{pending} rows have no outcome yet and are not scored")
    if dropped:
        found.append(f"{dropped} rows lie inside the deadband and are not scored")
    said = zip(cell.rows["direction"], cell.rows["prob_positive"], cell.rows["status"], strict=True)
    contrary = sum(s == Status.OK and d is not None and (d == POSITIVE) != (p >= 0.5) for d, p, s in said)
    if contrary:
        found.append(f"{contrary} rows state a direction that contradicts prob_positive; the probability is scored")
    if cell.absent:
        found.append(f"forecasts.parquet has no column {', '.join(cell.absent)}; what needs it is null")
    return found
