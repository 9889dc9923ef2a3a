"""95 % intervals that do not take repeated epochs for independent evidence: the unit is always the catalyst."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from reports.metrics import Bools, Floats, outcomes

RESAMPLES = 2000
SEED = 20260801
_Z = NormalDist().inv_cdf(0.975)
_BLOCK = 250  # resamples at a time: bounds memory at 250 x clusters
Interval = tuple[float, float]


def wilson(share: float, n: int) -> Interval | None:
    """Wilson (1927) score interval of a proportion ``share`` seen in ``n`` independent units; None if ``n`` is 0."""
    return score_interval(share, n, _Z) if n else None


def score_interval(share: float, n: float, quantile: float) -> Interval:
    """The shares that a score test with ``n`` units (a whole number or not) does not refuse at ``quantile`` standard errors."""
    shrink = 1 + quantile**2 / n
    centre = (share + quantile**2 / (2 * n)) / shrink
    half = quantile * np.sqrt(share * (1 - share) / n + quantile**2 / (4 * n**2)) / shrink
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def cluster_sums(values: Floats, clusters: Sequence[object]) -> Floats:
    """Sum of ``values`` and number of rows in each cluster, shape (clusters, 2), in order of first appearance."""
    group = _codes(clusters)
    return np.stack([np.bincount(group, weights=values), np.bincount(group)], axis=1)


def resample(sums: Floats, seed: int | Sequence[int] = SEED) -> Floats:
    """Bootstrap over clusters: totals of as many clusters as there are, drawn with replacement.

    Args:
        sums: what each cluster adds to the totals, shape (clusters, k).
        seed: of the generator; the same input gives the same draws.

    Returns:
        Totals, shape (RESAMPLES, k); shape (0, k) without clusters.
    """
    count = len(sums)
    if count == 0:
        return sums
    rng = np.random.default_rng(seed)
    even = np.full(count, 1 / count)
    return np.concatenate([rng.multinomial(count, even, size=_BLOCK) @ sums for _ in range(RESAMPLES // _BLOCK)])


def percentiles(draws: Floats) -> Interval | None:
    """The 2.5 % and 97.5 % quantiles of bootstrap draws, unrounded; None without draws."""
    return None if draws.size == 0 else (float(np.quantile(draws, 0.025)), float(np.quantile(draws, 0.975)))


def confusion_sums(truth: Bools, predicted: Bools, clusters: Sequence[object]) -> Floats:
    """True positives, false positives, false negatives, true negatives of each cluster, shape (clusters, 4)."""
    group = _codes(clusters)
    return np.stack(
        [np.bincount(group, weights=cell.astype(np.float64)) for cell in outcomes(truth, predicted)], axis=1
    )


def mcc_influence(truth: Bools, predicted: Bools) -> Floats:
    """What each row moves the Matthews correlation by, times the number of rows: its influence values, mean 0, shape (rows,).

    All 0 where the correlation is 0 by convention.
    """
    tp, fp, fn, tn = _shares(truth, predicted)
    margins = (tp + fp, tp + fn, tn + fp, tn + fn)
    if min(margins) == 0:
        return np.zeros(truth.size)
    said, rose, fell, denied = (1 / margin for margin in margins)
    root = np.sqrt(said * rose * fell * denied)
    half = (tp * tn - fp * fn) * root / 2
    slopes = (
        tn * root - half * (said + rose), -fn * root - half * (said + fell),
        -fp * root - half * (rose + denied), tp * root - half * (fell + denied),
    )  # fmt: skip
    return _influence(truth, predicted, slopes)


def f1_influence(truth: Bools, predicted: Bools) -> Floats:
    """Influence values of macro F1, mean 0, shape (rows,)."""
    tp, fp, fn, tn = _shares(truth, predicted)
    slopes = np.zeros(4)
    for hit, own in ((tp, 0), (tn, 3)):
        whole = 2 * hit + fp + fn
        if whole > 0:
            slopes[own] += (fp + fn) / whole**2
            slopes[1:3] -= hit / whole**2
    return _influence(truth, predicted, slopes)


def _shares(truth: Bools, predicted: Bools) -> Floats:
    """(tp, fp, fn, tn) as shares of the rows."""
    return np.bincount(_outcomes(truth, predicted), minlength=4) / max(1, truth.size)


def _outcomes(truth: Bools, predicted: Bools) -> NDArray[np.int64]:
    """0, 1, 2, 3 for tp, fp, fn, tn."""
    return np.where(predicted, np.where(truth, 0, 1), np.where(truth, 2, 3))


def _influence(truth: Bools, predicted: Bools, slopes: Sequence[float] | Floats) -> Floats:
    moved = np.asarray(slopes, dtype=np.float64)[_outcomes(truth, predicted)]
    return moved - moved.mean() if moved.size else moved


def _codes(clusters: Sequence[object]) -> NDArray[np.int64]:
    """Numbers 0, 1, … by first appearance."""
    seen: dict[object, int] = {}
    return np.array([seen.setdefault(cluster, len(seen)) for cluster in clusters], dtype=np.int64)
