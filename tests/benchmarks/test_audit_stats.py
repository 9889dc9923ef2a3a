"""The figures of an audit, against hand calculation."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.audit.stats import clustering
from tests.benchmarks.quiet import audit_of, cases, quiet, texts

labels = st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=6), min_size=1, max_size=8)


def test_clustering_by_hand() -> None:
    # days of 3 and 2: MSB = 1.2, MSW = (2/3 + 0) / 3 = 2/9, n0 = (5 - 13/5) / 1 = 2.4
    found = clustering([[1.0, 1.0, 0.0], [0.0, 0.0]])
    between, within, size = 3 * (2 / 3 - 0.4) ** 2 + 2 * 0.4**2, 2 / 9, 2.4
    icc = (between - within) / (between + (size - 1) * within)
    assert found.icc == pytest.approx(icc)
    assert found.design_effect == pytest.approx(1 + (13 / 5 - 1) * icc)
    assert found.effective_n == pytest.approx(5 / (1 + 1.6 * icc))


def test_days_of_one_mind_count_once() -> None:
    found = clustering([[1.0] * 4, [0.0] * 4, [1.0] * 4])
    assert (found.icc, found.design_effect, found.effective_n) == (1.0, 4.0, 3.0)


@pytest.mark.parametrize("groups", [[], [[1.0, 0.0]], [[1.0], [0.0]], [[1.0, 1.0], [1.0, 1.0]]])
def test_clustering_that_is_not_defined(groups: list[list[float]]) -> None:
    assert clustering(groups).icc is None


@given(labels)
def test_clustering_does_not_depend_on_which_label_is_called_positive(groups: list[list[float]]) -> None:
    found, turned = clustering(groups), clustering([[1 - value for value in group] for group in groups])
    assert (found.icc is None) == (turned.icc is None)
    if found.icc is not None:
        assert found.icc == pytest.approx(turned.icc, abs=1e-9)
        assert found.icc <= 1 + 1e-9


def test_base_rates_and_counts(tmp_path: Path) -> None:
    content = quiet()
    for row in cases(content)[:10]:
        row["catalyst_type"] = "ma"
        row.update(outcome="positive", fwd_ret=0.03)
    cases(content)[30].update(outcome="dropped", fwd_ret=0.0)
    stats = audit_of(tmp_path, content).stats
    assert (stats["n"], stats["n_scored"], stats["stocks"], stats["documents"]) == (31, 30, 31, 62)
    assert (stats["decision_days"], stats["first"], stats["last"]) == (31, "2021-03-01 17:30", "2021-03-31 17:30")
    assert stats["positive_share"] == stats["base_rates"]["always_positive"] == 20 / 30
    assert stats["base_rates"]["type_majority"] == (10 + 10) / 30
    assert stats["base_rates"]["day_majority_hindsight"] == 1.0
    assert stats["entry_basis"] == {"open": 1}


def test_documents_per_query(tmp_path: Path) -> None:
    content = quiet()
    del cases(content)[1:]
    stats = audit_of(tmp_path, content).stats
    at_t = sum(text["ts"] <= "2021-03-01 17:30" for text in texts(content))
    assert stats["future_documents_per_query_median"] == 62 - at_t
    assert stats["prior_documents_per_query_median"] == 1
    assert stats["focal_age_days_median"] == 0


def test_the_age_of_stale_copies(tmp_path: Path) -> None:
    content = quiet()
    for i in (15, 17):
        texts(content)[i]["body"] = texts(content)[i - 1]["body"]
    texts(content)[16]["ts"] = "2021-02-26 10:00"
    assert audit_of(tmp_path, content).stats["focal_copy_age_days"] == {"n": 2, "median": 7.0, "max": 11}


def test_the_stretch_of_shifted_stamps(tmp_path: Path) -> None:
    content = quiet()
    for i in (2, 12):
        texts(content)[i].update(ts=texts(content)[i]["ts"][:10] + " 03:10", body=f"公司晚间公告{i}。")
    shift = audit_of(tmp_path, content).stats["stamp_shift"]
    first, last = texts(content)[2]["ts"], texts(content)[12]["ts"]
    assert (shift["first"], shift["last"]) == (first, last)
    assert shift["documents_between"] == sum(first <= text["ts"] <= last for text in texts(content))
    assert shift["documents_before_7"] == 2
