from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as skm

from reports import intervals, metrics
from reports.paired import holm, mcnemar, sign_flip


def test_constant_predictor_has_mcc_zero_and_says_why() -> None:
    found = metrics.classification(["positive", "positive", "negative"], [0.6, 0.7, 0.9])
    assert found is not None
    assert (round(found.acc, 4), found.mcc, round(found.f1_macro, 4)) == (0.6667, 0.0, 0.4)
    assert found.degenerate == "predictions"


def test_missing_probability_counts_as_the_opposite_class() -> None:
    found = metrics.classification(["positive", "negative", "positive"], [None, None, 0.5])
    assert found is not None
    assert found.acc == pytest.approx(1 / 3)


def test_no_rows_is_none_and_a_bad_label_is_refused() -> None:
    assert metrics.classification([], []) is None
    with pytest.raises(ValueError, match="dropped"):
        metrics.classification(["dropped"], [0.3])


@pytest.mark.filterwarnings("ignore:A single label was found")
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_closed_forms_equal_scikit_learn(pairs: list[tuple[bool, bool]]) -> None:
    truth, predicted = (np.array(x) for x in zip(*pairs, strict=True))
    totals = intervals.confusion_sums(truth, predicted, range(len(pairs))).sum(axis=0, keepdims=True)
    point = metrics.classify(truth, predicted)
    assert point is not None
    assert metrics.mcc_of(totals)[0] == pytest.approx(point.mcc, abs=1e-12)
    assert metrics.f1_of(totals)[0] == pytest.approx(point.f1_macro, abs=1e-12)
    assert point.mcc == pytest.approx(skm.matthews_corrcoef(truth, predicted), abs=1e-12)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.1, 0.4, 0.5, 0.9])), min_size=1, max_size=50), st.randoms())
def test_ece_does_not_depend_on_the_order_of_ties(rows: list[tuple[bool, float]], random: object) -> None:
    shuffled = rows.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    values = [metrics.ece(*(np.array(x) for x in zip(*order, strict=True))) for order in (rows, shuffled)]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


def test_ece_of_equal_count_bins_by_hand() -> None:
    probs = np.array([0.1, 0.2, 0.8, 0.9])
    truth = np.array([False, True, True, True])
    assert metrics.ece(truth, probs, bins=2) == pytest.approx((abs(0.5 - 0.15) + abs(1.0 - 0.85)) / 2)


def test_calibration_of_nothing_is_none() -> None:
    none, empty = np.array([], dtype=bool), np.array([])
    assert metrics.brier(none, empty) is metrics.log_loss(none, empty) is metrics.ece(none, empty) is None


def test_log_loss_of_a_certain_error_is_finite() -> None:
    value = metrics.log_loss(np.array([True]), np.array([0.0]))
    assert value == pytest.approx(-np.log(np.finfo(float).eps))


def test_wilson_by_hand() -> None:
    low, high = intervals.wilson(0.5, 100) or (None, None)
    assert (low, high) == (pytest.approx(0.4038, abs=1e-4), pytest.approx(0.5962, abs=1e-4))
    assert intervals.wilson(0.0, 0) is None
    assert intervals.wilson(1.0, 10) == (pytest.approx(0.7225, abs=1e-4), 1.0)


@given(st.integers(1, 500), st.data())
def test_wilson_holds_its_share(n: int, data: st.DataObject) -> None:
    share = data.draw(st.integers(0, n)) / n
    low, high = intervals.wilson(share, n) or (1.0, 0.0)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1


def test_epochs_do_not_narrow_the_bootstrap() -> None:
    rng = np.random.default_rng(3)
    truth = rng.random(80) < 0.5
    predicted = truth ^ (rng.random(80) < 0.35)
    once, five = (
        intervals.percentiles(
            metrics.mcc_of(
                intervals.resample(
                    intervals.confusion_sums(np.tile(truth, k), np.tile(predicted, k), list(range(80)) * k)
                )
            )
        )
        for k in (1, 5)
    )
    assert five == pytest.approx(once)  # five copies of one answer are one answer


def test_mcnemar_and_holm_by_hand() -> None:
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(1, 9) == pytest.approx(2 * 11 / 1024)
    assert mcnemar(5, 5) == 1.0
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_sign_flip_sees_a_shift_and_no_shift() -> None:
    assert sign_flip(np.full(20, 1.0)) < 0.001
    assert sign_flip(np.array([1.0, -1.0, 2.0, -2.0])) == 1.0


def test_log_loss_clips_at_the_stated_eps() -> None:
    assert metrics.log_loss(np.array([True]), np.array([0.0])) == pytest.approx(-np.log(metrics.LOG_LOSS_EPS))
