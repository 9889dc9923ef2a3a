"""95 % intervals that do not take repeated epochs for independent evidence: the unit is always the catalyst."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from reports.metrics import Bools, Floats

RESAMPLES = 2000
SEED = 20260801
_Z = NormalDist().inv_cdf(0.975)
_BLOCK = 250  # resamples at a time: bounds memory at 250 x clusters
Interval = tuple[float, float]


def wilson(share: float, n: int) -> Interval | None:
    """Wilson (1927) score interval of a proportion ``share`` seen in ``n`` independent units; None if ``n`` is 0."""
    if n == 0:
        return None
    shrink = 1 + _Z**2 / n
    centre = (share + _Z**2 / (2 * n)) / shrink
    half = _Z * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / shrink
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def cluster_sums(values: Floats, clusters: Sequence[object]) -> Floats:
    """Sum of ``values`` and number of rows in each cluster, shape (clusters, 2), in order of first appearance."""
    group = _codes(clusters)
    return np.stack([np.bincount(group, weights=values), np.bincount(group)], axis=1)


def resample(sums: Floats, seed: int = SEED) -> Floats:
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
    cells = (truth & predicted, ~truth & predicted, truth & ~predicted, ~truth & ~predicted)
    return np.stack([np.bincount(group, weights=cell.astype(np.float64)) for cell in cells], axis=1)


def mcc_of(confusion: Floats) -> Floats:
    """Matthews correlation of each row (tp, fp, fn, tn), shape (rows,); 0 where a class or a prediction is absent."""
    tp, fp, fn, tn = confusion.T
    root = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return _ratio(tp * tn - fp * fn, root)


def f1_of(confusion: Floats) -> Floats:
    """Macro F1 over both classes of each row (tp, fp, fn, tn), shape (rows,); an absent class adds 0."""
    tp, fp, fn, tn = confusion.T
    return (_ratio(2 * tp, 2 * tp + fp + fn) + _ratio(2 * tn, 2 * tn + fp + fn)) / 2


def _ratio(top: Floats, bottom: Floats) -> Floats:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def _codes(clusters: Sequence[object]) -> NDArray[np.int64]:
    """Numbers 0, 1, … by first appearance."""
    seen: dict[object, int] = {}
    return np.array([seen.setdefault(cluster, len(seen)) for cluster in clusters], dtype=np.int64)
