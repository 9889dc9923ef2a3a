"""How precise a figure is if answers of one decision day, or about one stock, are not independent.

A catalyst shares the market's move with the others of its day, so the day is the unit. Few days make the usual cluster-robust
error too small and the normal quantile too short; what is used here holds with ten of them: the bias-reduced error CR2 with the
degrees of freedom of Bell & McCaffrey (2002), written out for a mean, where both are closed forms. A share gets a score interval
with the effective number of rows that this error implies and the t quantile in the place of the normal one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from reports.intervals import Interval, score_interval
from reports.metrics import Floats

Codes = NDArray[np.int64]
_ALPHA, _POWER = 0.05, 0.8
_ROUNDING = 1e-12
"""A cluster's sum of deviations below this share of the sum of all values is 0."""


@dataclass(frozen=True)
class Precision:
    """Standard error of a mean, the degrees of freedom it was estimated with, and the number of clusters behind it."""

    se: float
    df: float
    clusters: int

    @property
    def t(self) -> float:
        """The 97.5 % quantile of Student's t."""
        return float(stats.t.ppf(1 - _ALPHA / 2, self.df))

    @property
    def smallest_difference(self) -> float:
        """What a two-sided test at 0.05 finds with power 0.8: (t of 0.975 + t of 0.8) standard errors (Bloom 1995)."""
        return (self.t + float(stats.t.ppf(_POWER, self.df))) * self.se


def codes(values: Sequence[object]) -> Codes | None:
    """Numbers 0, 1, … by first appearance; None if a value is missing: a cluster that is not known is none."""
    seen: dict[object, int] = {}
    found = [seen.setdefault(value, len(seen)) for value in values]
    return None if None in seen else np.array(found, dtype=np.int64)


def one_way(values: Floats, clusters: Codes) -> Precision | None:
    """Precision of the mean of ``values`` (or of a figure whose influence values they are), both of shape (rows,).

    CR2 for a mean: (1/n²) Σ S_g² ÷ (1 − f_g), with S_g the cluster's sum of deviations and f_g its share of the rows. Degrees of
    freedom: Satterthwaite under independent rows, 1 ÷ (Σ f² + (Σ w)² − Σ w²), w = f² ÷ (1 − f); G − 1 if all are of one size.

    Returns:
        None with fewer than two clusters.
    """
    sizes = np.bincount(clusters) if values.size else np.array([], dtype=np.int64)
    if sizes.size < 2:
        return None
    share = sizes / values.size
    sums = np.bincount(clusters, weights=values - values.mean())
    sums[np.abs(sums) <= _ROUNDING * np.abs(values).sum()] = 0.0  # clusters that agree: an error of 1e-17 is none
    weight = share**2 / (1 - share)
    variance = float((sums**2 / (1 - share)).sum()) / values.size**2
    freedom = 1 / float((share**2).sum() + weight.sum() ** 2 - (weight**2).sum())
    return Precision(math.sqrt(variance), freedom, int(sizes.size))


def two_way(values: Floats, first: Codes, second: Codes) -> Precision | None:
    """Precision with clusters of two kinds that cross (Cameron, Gelbach & Miller 2011): V₁ + V₂ − V₁₂.

    That sum can fall below either part, or below 0; the largest of the three is taken, with the fewer degrees of freedom
    (MacKinnon, Nielsen & Webb 2021). None with fewer than two clusters of either kind.
    """
    one, two = one_way(values, first), one_way(values, second)
    if one is None or two is None:
        return None
    both = one_way(values, np.unique(np.stack([first, second]), axis=1, return_inverse=True)[1].ravel())
    crossed = one.se**2 + two.se**2 - (both.se**2 if both else 0.0)
    return Precision(
        math.sqrt(max(crossed, one.se**2, two.se**2)), min(one.df, two.df), min(one.clusters, two.clusters)
    )


def around(value: float, precision: Precision | None, low: float = -1.0, high: float = 1.0) -> Interval | None:
    """95 % t interval around ``value``, cut to the range [low, high] that the figure can have."""
    if precision is None:
        return None
    half = precision.t * precision.se
    return max(low, value - half), min(high, value + half)


def share_interval(share: float, precision: Precision | None) -> Interval | None:
    """95 % score interval of a share, with n = share (1 − share) ÷ se² and Student's t.

    If all rows, or all clusters, agree, the error is 0 and says nothing: then every cluster counts as one answer.
    """
    if precision is None:
        return None
    spread = share * (1 - share)
    n = spread / precision.se**2 if precision.se > 0 and spread > 0 else precision.clusters
    return score_interval(share, n, precision.t)


def intraclass(values: Floats, clusters: Codes) -> float | None:
    """Intra-class correlation by one-way analysis of variance with clusters of any size; may be below 0.

    None if no two clusters, no cluster of two rows, or no variance.
    """
    sizes = np.bincount(clusters) if values.size else np.array([], dtype=np.int64)
    n, k = values.size, sizes.size
    if k < 2 or n == k:
        return None
    means = np.bincount(clusters, weights=values) / sizes
    between = float((sizes * (means - values.mean()) ** 2).sum()) / (k - 1)
    within = float(((values - means[clusters]) ** 2).sum()) / (n - k)
    typical = (n - float((sizes**2).sum()) / n) / (k - 1)
    total = between + (typical - 1) * within
    return (between - within) / total if total > 0 else None


def design_effect(correlation: float, clusters: Codes) -> float:
    """How many times the variance of a mean exceeds that of independent rows: 1 + (Σ n_g² ÷ n − 1) · ICC, ICC below 0 taken as 0."""
    sizes = np.bincount(clusters)
    return 1 + (float((sizes**2).sum()) / clusters.size - 1) * max(0.0, correlation)
