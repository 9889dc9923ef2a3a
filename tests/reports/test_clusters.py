"""Clustered precision against its matrix definition, by hand, and against the truth of simulated answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from reports import clusters, intervals, metrics
from reports.answers import Answers
from tests.reports.simulate import EQUAL, FINPURE, coverage, one


def by_matrices(values: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """CR2 variance and Bell & McCaffrey's degrees of freedom of a mean, from the definition with n × n matrices."""
    n = values.size
    design = np.ones((n, 1))
    hat = np.eye(n) - design @ design.T / n
    residuals, columns, variance = hat @ values, [], 0.0
    for g in np.unique(codes):
        rows = codes == g
        roots, vectors = np.linalg.eigh(hat[np.ix_(rows, rows)])
        inverse = vectors @ np.diag([root**-0.5 if root > 1e-10 else 0.0 for root in roots]) @ vectors.T
        weights = inverse @ design[rows, 0] / n
        variance += float(weights @ residuals[rows]) ** 2
        columns.append(hat[:, rows] @ weights)
    spread = np.array(columns) @ np.array(columns).T
    return variance, float(np.trace(spread) ** 2 / (spread**2).sum())


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-1, 1)), min_size=3, max_size=30))
def test_closed_forms_equal_the_definition(rows: list[tuple[int, float]]) -> None:
    codes = clusters.codes([g for g, _ in rows])
    values = np.array([value for _, value in rows])
    assert codes is not None
    found = clusters.one_way(values, codes)
    if len(set(codes.tolist())) < 2:
        assert found is None
        return
    assert found is not None
    variance, freedom = by_matrices(values, codes)
    assert found.se**2 == pytest.approx(variance, abs=1e-12)
    assert found.df == pytest.approx(freedom, rel=1e-6)


def test_equal_days_give_days_minus_one_degrees_of_freedom() -> None:
    found = clusters.one_way(np.random.default_rng(0).random(132), np.repeat(np.arange(11), 12))
    assert found is not None
    assert found.df == pytest.approx(10)


def test_a_cluster_a_row_is_the_usual_error_of_a_mean() -> None:
    values = np.random.default_rng(1).random(40)
    found = clusters.one_way(values, np.arange(40))
    assert found is not None
    assert found.se == pytest.approx(values.std(ddof=1) / np.sqrt(40))
    ends = clusters.around(float(values.mean()), found)
    assert ends == pytest.approx(stats.t.interval(0.95, 39, values.mean(), stats.sem(values)))


def test_one_cluster_and_no_rows_have_no_precision() -> None:
    assert clusters.one_way(np.ones(5), np.zeros(5, dtype=np.int64)) is None
    assert clusters.one_way(np.array([]), np.array([], dtype=np.int64)) is None
    assert clusters.around(0.5, None) is clusters.share_interval(0.5, None) is None
    assert clusters.codes([1, None]) is None


def test_clusters_that_agree_have_no_error_whatever_the_rounding() -> None:
    """Two of three right on each of seven days: a sum of deviations of 1e-16 is no error, and must not make an interval of no width."""
    hits, days = np.tile([1.0, 1.0, 0.0], 7), np.repeat(np.arange(7), 3)
    found = clusters.one_way(hits, days)
    assert found is not None
    assert found.se == 0
    ends = clusters.share_interval(2 / 3, found)
    assert ends == pytest.approx(intervals.score_interval(2 / 3, 7, stats.t.ppf(0.975, 6)))


def test_two_ways_are_never_below_one() -> None:
    rng = np.random.default_rng(2)
    values, days, stocks = rng.random(60), rng.integers(0, 6, 60), rng.integers(0, 9, 60)
    both = clusters.two_way(values, days, stocks)
    singles = [clusters.one_way(values, x) for x in (days, stocks)]
    assert both is not None
    assert all(single is not None and both.se >= single.se for single in singles)
    assert both.df == min(single.df for single in singles if single)
    alone = clusters.two_way(values, np.arange(60), np.arange(60))
    plain = clusters.one_way(values, np.arange(60))
    assert alone is not None
    assert plain is not None
    assert alone.se == pytest.approx(plain.se)


def test_answers_that_all_agree_count_a_day_as_one() -> None:
    found = clusters.one_way(np.ones(60), np.repeat(np.arange(6), 10))
    ends = clusters.share_interval(1.0, found)
    assert found is not None
    assert ends == pytest.approx(intervals.score_interval(1.0, 6, found.t))


def test_intraclass_and_design_effect_by_hand() -> None:
    values, codes = np.array([1.0, 1, 0, 0]), np.array([0, 0, 1, 1])
    assert clusters.intraclass(values, codes) == pytest.approx(1.0)
    assert clusters.design_effect(1.0, codes) == pytest.approx(2.0)
    assert clusters.intraclass(np.array([1.0, 0, 1, 0]), codes) == pytest.approx(-1.0)
    assert clusters.design_effect(-1.0, codes) == 1.0
    # by hand: between 0.25 / 1, within 0.5 / 2, typical size 2
    assert clusters.intraclass(np.array([1.0, 1, 1, 0]), codes) == pytest.approx((0.25 - 0.25) / (0.25 + 0.25))
    assert clusters.intraclass(np.ones(4), codes) is None
    assert clusters.intraclass(np.array([1.0, 0]), np.array([0, 1])) is None


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=4, max_size=40))
def test_influence_is_the_derivative(rows: list[tuple[bool, bool]]) -> None:
    truth, said = (np.array(x) for x in zip(*rows, strict=True))
    counts = intervals.confusion_sums(truth, said, range(len(rows)))
    whole, step = counts.mean(axis=0), 1e-7
    for metric, influence in (
        (metrics.mcc_of, intervals.mcc_influence),
        (metrics.f1_of, intervals.f1_influence),
    ):
        if metric is metrics.mcc_of and min(truth.sum(), (~truth).sum(), said.sum(), (~said).sum()) == 0:
            assert not influence(truth, said).any()
            continue
        moved = (metric((1 - step) * whole + step * counts) - metric(whole[None])) / step
        assert influence(truth, said) == pytest.approx(moved, abs=1e-4)


@pytest.mark.parametrize(("sizes", "icc", "low"), [(EQUAL, 0.0, 0.91), (EQUAL, 0.4, 0.9), (FINPURE, 0.4, 0.85)])
def test_intervals_by_day_hold_the_truth(sizes: tuple[int, ...], icc: float, low: float) -> None:
    """The short version of the bench: 500 draws, so 0.95 comes out between 0.92 and 0.98."""

    def interval(a: Answers) -> tuple[float, float] | None:
        assert a.day_codes is not None
        return clusters.share_interval(float(a.hits.mean()), clusters.one_way(a.hits, a.day_codes))

    assert low <= coverage(interval, 0.6, sizes, 0.6, icc, 500) <= 0.985


def test_rows_taken_as_independent_do_not() -> None:
    held = coverage(lambda a: intervals.wilson(float(a.hits.mean()), a.size), 0.6, FINPURE, 0.6, 0.4, 300)
    assert held < 0.75


def test_mcc_by_day_holds_the_truth() -> None:
    def interval(a: Answers) -> tuple[float, float] | None:
        point = metrics.classify(a.truth, a.predicted)
        assert point is not None
        assert a.day_codes is not None
        return clusters.around(point.mcc, clusters.one_way(intervals.mcc_influence(a.truth, a.predicted), a.day_codes))

    assert coverage(interval, 0.2, EQUAL, 0.6, 0.4, 400) >= 0.89
    assert one(np.random.default_rng(0), EQUAL, 0.6, 0.4).size == 132
