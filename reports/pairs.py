"""The reference method against every other one on the same catalysts: exact McNemar, tests and intervals over decision days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb
from statistics import NormalDist
from typing import Any

import numpy as np

from harness.records import NEGATIVE, POSITIVE, Status
from reports import intervals
from reports.intervals import SEED, Interval
from reports.load import Cell
from reports.metrics import Floats

REFERENCE = "tiem"
FLIPS = 10_000
_MDE_FACTOR = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)  # two-sided alpha 0.05, power 0.8


@dataclass(frozen=True)
class Pair:
    """Cell ``a`` (the reference method) minus cell ``b`` over the rows that both have scored.

    Attributes:
        n: shared scored rows.
        n_days: decision days among them, the unit of ``ci`` and ``p_cluster``; None without decision days.
        diff: accuracy of a minus accuracy of b, a fraction.
        ci: 95 % percentile bootstrap over decision days.
        n_discordant: rows that exactly one of the two has right.
        p_mcnemar: exact two-sided McNemar test; None with several epochs, whose rows are not independent.
        p_cluster: sign-flip test over the days' summed differences.
        p_holm: ``p_mcnemar`` after Holm over methods and benchmarks within the backbone.
        mde: smallest difference found with power 0.8 at alpha 0.05, from the bootstrap's standard error.
    """

    a: str
    b: str
    cell_a: str
    cell_b: str
    backbone: str
    benchmark: str
    n: int
    n_days: int | None = None
    diff: float | None = None
    ci: Interval | None = None
    n_discordant: int | None = None
    p_mcnemar: float | None = None
    p_cluster: float | None = None
    p_holm: float | None = None
    mde: float | None = None
    warnings: tuple[str, ...] = ()


def pairs(cells: Sequence[Cell], reference: str = REFERENCE) -> list[Pair]:
    """Pair every cell of ``reference`` with each other method's cell of the same backbone, benchmark, gate and seed."""
    found = [
        _pair(a, b)
        for a in cells
        for b in cells
        if a.method == reference != b.method
        and a.size
        and b.size
        and (a.backbone, a.benchmark, a.gate, a.seed) == (b.backbone, b.benchmark, b.gate, b.seed)
    ]
    adjusted: dict[int, float] = {}
    for backbone in {pair.backbone for pair in found}:
        family = [i for i, pair in enumerate(found) if pair.backbone == backbone and pair.p_mcnemar is not None]
        adjusted.update(zip(family, holm([float(found[i].p_mcnemar or 0.0) for i in family]), strict=True))
    return [replace(pair, p_holm=adjusted.get(i)) for i, pair in enumerate(found)]


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided p of ``only_a`` against ``only_b`` discordant rows (binomial, 1/2); 1 if there are none."""
    n = only_a + only_b
    tail = sum(comb(n, k) for k in range(min(only_a, only_b) + 1))
    return min(1.0, float(2 * tail / 2**n))


def holm(values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment (1979), in the order given."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    adjusted, highest = [0.0] * len(values), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[i]))
        adjusted[i] = highest
    return adjusted


def sign_flip(sums: Floats, seed: int = SEED) -> float:
    """Two-sided p that the clusters' summed differences, shape (clusters,), are symmetric around 0 (random sign flips)."""
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 2, size=(FLIPS, sums.size), dtype=np.int8) * np.int8(2) - np.int8(1)
    beyond = np.abs(signs @ sums) >= abs(sums.sum()) - 1e-9
    return float((1 + beyond.sum()) / (1 + FLIPS))


def _pair(a: Cell, b: Cell) -> Pair:
    right_a, right_b = _right(a), _right(b)
    keys = sorted(right_a.keys() & right_b.keys())
    pair = Pair(a.method, b.method, a.cell, b.cell, a.backbone, a.benchmark, len(keys))
    if not keys:
        return replace(pair, warnings=("no row is scored in both cells: the comparison is null",))
    deltas = np.array([float(right_a[key]) - float(right_b[key]) for key in keys])
    days = dict(zip(zip(a.rows["catalyst_id"], a.rows["epoch"], strict=True), a.rows["decision_day"], strict=True))
    pair = replace(pair, diff=float(deltas.mean()), n_discordant=int(np.count_nonzero(deltas)))
    warnings = []
    if len({epoch for _, epoch in keys}) == 1:
        pair = replace(pair, p_mcnemar=mcnemar(int((deltas > 0).sum()), int((deltas < 0).sum())))
    else:
        warnings.append("p_mcnemar and p_holm are null: rows of several epochs are not independent; see p_cluster")
    if any(days[key] is None for key in keys):
        warnings.append("ci, p_cluster and mde are null: decision_day is missing")
        return replace(pair, warnings=tuple(warnings))
    return replace(_over_days(pair, deltas, [days[key] for key in keys]), warnings=tuple(warnings))


def _over_days(pair: Pair, deltas: Floats, days: Sequence[Any]) -> Pair:
    """``pair`` with what takes the day as the unit: catalysts of one day share the market's move."""
    sums = intervals.cluster_sums(deltas, days)
    difference, rows = intervals.resample(sums).T
    draws = difference / rows
    return replace(
        pair,
        n_days=len(sums),
        ci=intervals.percentiles(draws),
        p_cluster=sign_flip(sums[:, 0]),
        mde=float(_MDE_FACTOR * draws.std(ddof=1)),
    )


def _right(cell: Cell) -> dict[tuple[str, int], bool]:
    """Whether each scored row is right, by (catalyst_id, epoch); an unusable answer is wrong."""
    rows = cell.rows
    columns = (rows[name] for name in ("catalyst_id", "epoch", "label", "status", "prob_positive"))
    return {
        (catalyst, epoch): status == Status.OK and (prob >= 0.5) == (label == POSITIVE)
        for catalyst, epoch, label, status, prob in zip(*columns, strict=True)
        if label in (POSITIVE, NEGATIVE) and Status(status).final
    }
