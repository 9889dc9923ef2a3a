"""Two sets of answers to the same questions: differences, their intervals, and tests that swap the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from scipy import stats

from reports import intervals, metrics
from reports.answers import Answers
from reports.clusters import Codes, Precision, one_way
from reports.intervals import SEED
from reports.metrics import Floats, outcomes

FLIPS = 10_000
_ENUMERATED = 13  # clusters up to which all 2^G patterns are tried: no more than FLIPS of them
_BLOCK = 1000  # random patterns at a time: bounds memory at 1000 x clusters
_ROUNDING = 1e-9
Metric = Callable[[Floats], Floats]
"""Confusion counts, shape (draws, 4), to one value a draw."""


def mcnemar(only_a: int, only_b: int) -> float:
    """Exact two-sided p of ``only_a`` against ``only_b`` discordant rows (binomial, 1/2); 1 if there are none."""
    n = only_a + only_b
    return float(stats.binomtest(only_a, n, 0.5).pvalue) if n else 1.0


def holm(values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment (1979), in the order given. Written out: statsmodels' takes 0.1 s a call."""
    order = np.argsort(values, kind="stable")
    raised = np.maximum.accumulate(np.arange(len(order), 0, -1) * np.asarray(values, dtype=np.float64)[order])
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(raised, 1.0)
    return [float(p) for p in adjusted]


def sign_flip(sums: Floats, seed: int = SEED) -> float:
    """Two-sided p that the clusters' summed differences, shape (clusters,), are symmetric around 0.

    Exact up to 13 clusters, where all sign patterns are tried; beyond, 10,000 random ones.
    """
    whole = float(sums.sum())
    totals, exact = _over_patterns(sums.size, seed, lambda flipped: whole - 2 * (flipped @ sums))
    return _p(np.abs(totals), abs(whole), exact=exact)


def swap(a: Answers, b: Answers, clusters: Codes, metric: Metric, seed: int = SEED) -> float:
    """Two-sided p of the difference of a metric if whole clusters may have had their two sets of answers swapped."""
    counts_a, counts_b = (_confusion(x, clusters) for x in (a, b))
    whole_a, whole_b, change = counts_a.sum(axis=0), counts_b.sum(axis=0), counts_b - counts_a

    def difference(swapped: Floats) -> Floats:
        moved = swapped @ change
        return metric(whole_a + moved) - metric(whole_b - moved)

    draws, exact = _over_patterns(len(change), seed, difference)
    return _p(np.abs(draws), abs(float(difference(np.zeros((1, len(change))))[0])), exact=exact)


def differences(a: Answers, b: Answers) -> dict[str, tuple[float, Floats]]:
    """Acc, MCC and macro F1 of a minus b, each with its influence values a row (mean 0 but for Acc), shape (rows,)."""
    found = {"acc": (float((a.hits - b.hits).mean()), a.hits - b.hits)}
    for name, metric, influence in (
        ("mcc", metrics.mcc_of, intervals.mcc_influence),
        ("f1", metrics.f1_of, intervals.f1_influence),
    ):
        one, two = (float(metric(_confusion(x, np.zeros(x.size, dtype=np.int64)))[0]) for x in (a, b))
        found[name] = (one - two, influence(a.truth, a.predicted) - influence(b.truth, b.predicted))
    return found


def rows_needed(n: int, precision: Precision, diff: float) -> int | None:
    """Rows, of days like these, at which ``diff`` would be found with power 0.8 at alpha 0.05; None for no difference."""
    if diff == 0:
        return None
    return int(np.ceil(n * (precision.smallest_difference / diff) ** 2))


def of_catalysts(values: Floats, answers: Answers) -> Precision | None:
    """Precision if catalysts are independent; repeated answers to one are not."""
    return one_way(values, answers.catalyst_codes)


def _confusion(x: Answers, clusters: Codes) -> Floats:
    cells = outcomes(x.truth, x.predicted)
    return np.stack([np.bincount(clusters, weights=cell.astype(np.float64)) for cell in cells], axis=1)


def _over_patterns(count: int, seed: int, value: Callable[[Floats], Floats]) -> tuple[Floats, bool]:
    """``value`` of patterns of zeros and ones, given in blocks (patterns, count), and whether these are all there are."""
    if count <= _ENUMERATED:
        return value(_every_pattern(count)), True
    rng = np.random.default_rng(seed)
    blocks = (
        rng.integers(0, 2, size=(_BLOCK, count), dtype=np.int8).astype(np.float64) for _ in range(FLIPS // _BLOCK)
    )
    return np.concatenate([value(block) for block in blocks]), False


@cache
def _every_pattern(count: int) -> Floats:
    return ((np.arange(2**count)[:, None] >> np.arange(count)) & 1).astype(np.float64)


def _p(draws: Floats, observed: float, *, exact: bool) -> float:
    beyond = int((draws >= observed - _ROUNDING).sum())
    return beyond / draws.size if exact else (1 + beyond) / (1 + draws.size)
