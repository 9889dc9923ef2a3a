"""Reliability over the benchmarks of a method and backbone: how often what was said to be likely came true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports import metrics
from reports.intervals import Interval, wilson
from reports.series import Series, Setting

ROWS_A_BIN = 20
"""At least so many rows a bin, or its share of rises is noise."""
MOST_BINS = metrics.ECE_BINS


@dataclass(frozen=True)
class CurvePoint:
    """A bin: rows, mean probability, share of rises, and its Wilson interval as if rows were independent."""

    n: int
    prob_mean: float
    outcome_mean: float
    ci: Interval


@dataclass(frozen=True)
class Curve:
    """One method and backbone over the rows with a probability of all its benchmarks; points by rising probability."""

    method: str
    backbone: str
    setting: Setting
    cells: tuple[str, ...]
    n: int
    points: tuple[CurvePoint, ...]


def curves(every: Sequence[Series]) -> list[Curve]:
    """A curve a series of a model with rows for two bins: one bin says nothing of a slope."""
    found = (_curve(s) for s in every if not all(score.no_llm for score in s.scores))
    return [curve for curve in found if curve is not None]


def _curve(s: Series) -> Curve | None:
    scored = [member.answers for member in s.scored.values()]
    if not scored:
        return None
    truth, probs = (np.concatenate([getattr(a, name)[a.usable] for a in scored]) for name in ("truth", "probs"))
    bins = min(MOST_BINS, truth.size // ROWS_A_BIN)
    if bins < 2:
        return None
    points = []
    for b in metrics.reliability(truth, probs, bins):
        ci = wilson(b.outcome_mean, b.n)
        assert ci is not None
        points.append(CurvePoint(b.n, b.prob_mean, b.outcome_mean, ci))
    return Curve(s.method, s.backbone, s.setting, s.cells, int(truth.size), tuple(points))
