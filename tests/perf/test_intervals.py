"""`make bench`: how often intervals hold the truth, and how often the corrected tests are deceived, on simulated answers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from reports import intervals, metrics
from reports.answers import Answers
from reports.clusters import around, one_way, share_interval
from reports.intervals import Interval
from reports.paired import differences, holm, mcnemar, sign_flip
from tests.reports.simulate import EQUAL, FINPURE, coverage, one, shares

pytestmark = [pytest.mark.perf, pytest.mark.timeout(1800)]
DRAWS = 2000
ACC = 0.6


def independent(a: Answers) -> Interval | None:
    return intervals.wilson(float(a.hits.mean()), a.size)


def by_day(a: Answers) -> Interval | None:
    assert a.day_codes is not None
    return share_interval(float(a.hits.mean()), one_way(a.hits, a.day_codes))


def mcc_by_day(a: Answers) -> Interval | None:
    assert a.day_codes is not None
    point = metrics.classify(a.truth, a.predicted)
    assert point is not None
    return around(point.mcc, one_way(intervals.mcc_influence(a.truth, a.predicted), a.day_codes))


def bootstrap(name: str, a: Answers) -> Interval | None:
    draws = intervals.resample(intervals.confusion_sums(a.truth, a.predicted, range(a.size)))
    return intervals.percentiles(getattr(metrics, name)(draws))


@pytest.mark.parametrize(
    ("name", "sizes", "icc", "low", "high"),
    [
        ("independent rows, 11 equal days", EQUAL, 0.0, 0.93, 0.97),
        ("independent rows, FinPURE's days", FINPURE, 0.0, 0.93, 0.97),
        ("ICC 0.4, 11 equal days", EQUAL, 0.4, 0.92, 0.98),
        ("ICC 0.4, FinPURE's days", FINPURE, 0.4, 0.85, 0.98),
    ],
)
def test_coverage_by_day(name: str, sizes: tuple[int, ...], icc: float, low: float, high: float) -> None:
    acc, mcc, plain = (
        coverage(f, value, sizes, ACC, icc, DRAWS)
        for f, value in ((by_day, ACC), (mcc_by_day, 2 * ACC - 1), (independent, ACC))
    )
    print(f"\n  {name}: Acc {acc:.3f}, MCC {mcc:.3f}; as if rows were independent {plain:.3f}", flush=True)
    assert low <= acc <= high
    assert low - 0.02 <= mcc <= high
    assert plain < 0.75 if icc else 0.93 <= plain <= 0.97


@pytest.mark.parametrize(("name", "value"), [("mcc_of", 2 * ACC - 1), ("f1_of", ACC)])
def test_coverage_of_the_bootstrap(name: str, value: float) -> None:
    held = coverage(lambda a: bootstrap(name, a), value, (1,) * 128, ACC, 0.0, 1000)
    print(f"\n  {name} bootstrap over 128 independent catalysts: {held:.3f}", flush=True)
    assert 0.925 <= held <= 0.97


@pytest.mark.parametrize(("icc", "sizes"), [(0.0, EQUAL), (0.4, EQUAL), (0.4, FINPURE)])
def test_coverage_of_a_paired_difference(icc: float, sizes: tuple[int, ...]) -> None:
    rng, held = np.random.default_rng(3), 0
    for _ in range(DRAWS):
        a, b = one(rng, sizes, 0.65, icc), one(rng, sizes, 0.55, icc)
        assert a.day_codes is not None
        ends = around(float((a.hits - b.hits).mean()), one_way(a.hits - b.hits, a.day_codes))
        held += ends is not None and ends[0] <= 0.1 <= ends[1]
    print(f"\n  paired difference, ICC {icc}, largest day {max(sizes)}: {held / DRAWS:.3f}", flush=True)
    assert held / DRAWS >= (0.85 if sizes is FINPURE else 0.92)


@pytest.mark.parametrize(("icc", "sizes"), [(0.0, EQUAL), (0.4, EQUAL), (0.4, FINPURE)])
def test_false_discoveries_under_the_null(icc: float, sizes: tuple[int, ...]) -> None:
    """Ten methods against a reference of the same accuracy; a discovery needs both tests after Holm."""
    rng, plain, clustered, both = np.random.default_rng(4), 0, 0, 0
    draws = 400
    for _ in range(draws):
        reference = one(rng, sizes, 0.55, icc)
        days = reference.day_codes
        assert days is not None
        deltas = [reference.hits - one(rng, sizes, 0.55, icc).hits for _ in range(10)]
        rows = holm([mcnemar(int((d > 0).sum()), int((d < 0).sum())) for d in deltas])
        by_days = holm([sign_flip(np.bincount(days, weights=d)) for d in deltas])
        plain += min(rows) <= 0.05
        clustered += min(by_days) <= 0.05
        both += any(max(pair) <= 0.05 for pair in zip(rows, by_days, strict=True))
    print(f"\n  false discoveries, ICC {icc}, largest day {max(sizes)}: by rows {plain / draws:.3f}, by days "
          f"{clustered / draws:.3f}, both {both / draws:.3f}", flush=True)  # fmt: skip
    assert both / draws <= 0.05
    assert clustered / draws <= 0.07
    assert plain / draws <= 0.05 or icc


def test_simulated_answers_have_the_correlation_asked_for() -> None:
    rng = np.random.default_rng(5)
    first = np.array([shares(rng, (2,), ACC, 0.4) for _ in range(4000)])
    right = rng.random(first.shape) < first
    assert np.corrcoef(right[:, 0], right[:, 1])[0, 1] == pytest.approx(0.4, abs=0.06)
    assert all(a == b for row in first[:10] for a, b in pairwise(row))
    assert differences(one(rng, EQUAL, ACC, 0.4), one(rng, EQUAL, ACC, 0.4)).keys() == {"acc", "mcc", "f1"}
