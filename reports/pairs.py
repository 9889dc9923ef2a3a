"""The reference method against every other one on the same catalysts: differences, intervals, tests, what could have been seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reports import metrics
from reports.alike import conflicts, matched
from reports.answers import Answers, answers, shared
from reports.clusters import around, design_effect, intraclass, one_way, two_way
from reports.intervals import Interval
from reports.load import Cell
from reports.paired import differences, holm, mcnemar, of_catalysts, rows_needed, sign_flip, swap

REFERENCE = "tiem"


@dataclass(frozen=True)
class Pair:
    """Cell ``a`` (the reference method) minus cell ``b`` over the rows that both have scored.

    Attributes:
        n: shared scored rows; ``n_a`` and ``n_b`` are those of each cell.
        n_days: decision days among them, the unit of ``ci``, ``p_cluster`` and ``mde``; None without decision days.
        diff, diff_mcc, diff_f1: figure of a minus figure of b, fractions.
        ci, ci_mcc, ci_f1: 95 % intervals clustered by decision day (CR2 error, t quantile).
        ci_independent, ci_stock, ci_two_way: of ``diff`` with catalysts independent, clustered by stock, by day and stock.
        n_discordant: rows that exactly one of the two has right.
        p_mcnemar: exact two-sided McNemar test; None with several epochs, whose rows are not independent.
        p_cluster: sign flips of the days' summed differences; exact up to 13 days.
        p_mcc, p_f1: the same for MCC and macro F1: all answers of a day are swapped or not.
        p_holm, p_cluster_holm: ``p_mcnemar`` and ``p_cluster`` after Holm over methods and benchmarks within backbone, gate and seed.
        mde: smallest difference found with power 0.8 at alpha 0.05, by the error of ``ci``.
        n_needed: rows at which a difference of the size seen would be found so.
        icc_day, design_effect_day: of the differences of rows.
    """

    a: str
    b: str
    cell_a: str
    cell_b: str
    backbone: str
    benchmark: str
    gate: str | None
    seed: int | None
    n: int
    n_a: int
    n_b: int
    n_days: int | None = None
    diff: float | None = None
    ci: Interval | None = None
    ci_independent: Interval | None = None
    ci_stock: Interval | None = None
    ci_two_way: Interval | None = None
    n_discordant: int | None = None
    p_mcnemar: float | None = None
    p_cluster: float | None = None
    p_holm: float | None = None
    p_cluster_holm: float | None = None
    mde: float | None = None
    n_needed: int | None = None
    diff_mcc: float | None = None
    ci_mcc: Interval | None = None
    p_mcc: float | None = None
    diff_f1: float | None = None
    ci_f1: Interval | None = None
    p_f1: float | None = None
    icc_day: float | None = None
    design_effect_day: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def significant(self) -> bool:
        """Both tests refuse equality after correction: neither rests on rows that are independent within a day."""
        known = [p for p in (self.p_holm, self.p_cluster_holm) if p is not None]
        return self.p_cluster_holm is not None and max(known) <= 0.05


def pairs(cells: Sequence[Cell], reference: str = REFERENCE) -> list[Pair]:
    """Pair cells of ``reference`` with those of each other method of the same backbone, benchmark, gate and seed, like for like.

    Of several cells of ``reference`` a partner is paired with the nearest in memory, embedder, feed, context and exclude; where all of them
    conflict with it, with all, and the pair says what differs.
    """
    scored = {cell.cell: answers(cell) for cell in cells}
    places: dict[object, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.size:
            places[cell.backbone, cell.benchmark, cell.gate, cell.seed].append(cell)
    found = [
        _pair(a, b, scored[a.cell], scored[b.cell])
        for here in places.values()
        for method in dict.fromkeys(cell.method for cell in here)
        if method != reference
        for a, b in matched(*([cell for cell in here if cell.method == name] for name in (reference, method)))
    ]
    plain, clustered = (_corrected(found, [getattr(pair, key) for pair in found]) for key in ("p_mcnemar", "p_cluster"))
    return [replace(pair, p_holm=p, p_cluster_holm=q) for pair, p, q in zip(found, plain, clustered, strict=True)]


def _corrected(found: Sequence[Pair], values: Sequence[float | None]) -> list[float | None]:
    """``values`` after Holm, each within its family; what is unknown takes no part."""
    families: dict[object, list[int]] = defaultdict(list)
    for i, (pair, value) in enumerate(zip(found, values, strict=True)):
        if value is not None:
            families[(pair.backbone, pair.gate, pair.seed)].append(i)
    adjusted: list[float | None] = [None] * len(values)
    for members in families.values():
        for i, p in zip(members, holm([float(values[i] or 0.0) for i in members]), strict=True):
            adjusted[i] = p
    return adjusted


def _pair(cell_a: Cell, cell_b: Cell, all_a: Answers, all_b: Answers) -> Pair:
    a, b = shared(all_a, all_b)
    pair = Pair(
        cell_a.method, cell_b.method, cell_a.cell, cell_b.cell, cell_a.backbone, cell_a.benchmark, cell_a.gate,
        cell_a.seed, a.size, all_a.size, all_b.size,
    )  # fmt: skip
    differs = conflicts(cell_a, cell_b)
    warnings = [f"not like for like, as no cell of {cell_a.method} is: {', '.join(differs)}"] if differs else []
    if not a.size:
        return replace(pair, warnings=(*warnings, "no row is scored in both cells: the comparison is null"))
    if a.size < max(all_a.size, all_b.size):
        warnings.append(f"compared on the {a.size} rows scored in both, of {all_a.size} and {all_b.size}")
    if not np.array_equal(a.truth, b.truth):
        odd = int((a.truth != b.truth).sum())
        warnings.append(f"{odd} shared rows have another label in each cell; each is held against its own")
    deltas = a.hits - b.hits
    pair = replace(
        pair, diff=float(deltas.mean()), n_discordant=int(np.count_nonzero(deltas)),
        ci_independent=around(float(deltas.mean()), of_catalysts(deltas, a)),
    )  # fmt: skip
    if a.epochs == 1:
        pair = replace(pair, p_mcnemar=mcnemar(int((deltas > 0).sum()), int((deltas < 0).sum())))
    else:
        warnings.append("p_mcnemar and p_holm are null: rows of several epochs are not independent; see p_cluster_holm")
    if pair.n_discordant == 0:
        warnings.append("no row is discordant, so the error cannot be estimated: mde is null, intervals have no width")
    return replace(_clustered(pair, a, b, warnings), warnings=tuple(warnings))


def _clustered(pair: Pair, a: Answers, b: Answers, warnings: list[str]) -> Pair:
    """``pair`` with what takes the day, or the stock, as the unit."""
    found = differences(a, b)
    (diff, deltas), (mcc, mcc_values), (f1, f1_values) = (found[name] for name in ("acc", "mcc", "f1"))
    pair = replace(pair, diff_mcc=mcc, diff_f1=f1)
    stocks, days = a.stock_codes, a.day_codes
    if stocks is None:
        warnings.append("ci_stock and ci_two_way are null: stock is missing")
    else:
        pair = replace(pair, ci_stock=around(diff, one_way(deltas, stocks)))
    if days is None:
        warnings.append("ci, p_cluster, mde and what else is clustered by day are null: decision_day is missing")
        return pair
    count = int(days.max()) + 1
    day = one_way(deltas, days)
    if day is None:
        warnings.append("ci, p_cluster and mde are null: all shared rows fall on one decision day")
        return replace(pair, n_days=count)
    if day.se == 0 and pair.n_discordant:
        warnings.append("all days differ by the same, so the error cannot be estimated: mde is null, ci has no width")
    if 2 ** (1 - count) > 0.05:
        warnings.append(f"p_cluster cannot fall below {2 ** (1 - count):.3g} with {count} decision days")
    correlation = intraclass(deltas, days)
    return replace(
        pair,
        n_days=count,
        ci=around(diff, day),
        ci_two_way=around(diff, two_way(deltas, days, stocks)) if stocks is not None else None,
        ci_mcc=around(mcc, one_way(mcc_values, days), -2.0, 2.0),
        ci_f1=around(f1, one_way(f1_values, days)),
        p_cluster=sign_flip(np.bincount(days, weights=deltas).astype(np.float64)),
        p_mcc=swap(a, b, days, metrics.mcc_of),
        p_f1=swap(a, b, days, metrics.f1_of),
        mde=day.smallest_difference if day.se > 0 else None,
        n_needed=rows_needed(pair.n, day, diff) if day.se > 0 else None,
        icc_day=correlation,
        design_effect_day=None if correlation is None else design_effect(correlation, days),
    )
