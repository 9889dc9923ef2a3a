"""Comparisons of two methods: what is paired, the tests, and what is said where nothing can be."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests

from reports import metrics, paired
from reports.load import load
from reports.pairs import Pair, pairs
from tests.reports.runs import rows, write_cell
from tests.reports.simulate import EQUAL, one

Rows = list[dict[str, Any]]


def of(method: str, right: list[bool], days: list[int] | None = None, run_seed: int = 1, **same: Any) -> Rows:
    """A cell that is right where said; every other label is positive."""
    found = rows(method, n=len(right), cell=f"{method}{run_seed}{same.get('gate', '')}", **same)
    for i, row in enumerate(found):
        row["seed"] = run_seed
        truth = i % 2 == 0
        row["label"] = "positive" if truth else "negative"
        row["prob_positive"] = 0.9 if truth == right[i] else 0.1
        row["direction"] = "positive" if truth == right[i] else "negative"
        row["decision_day"] = date(2024, 3, 1) + timedelta(days=days[i] if days else i)
    return found


def compared(run: Path, *cells: Rows, reference: str = "tiem") -> list[Pair]:
    for cell in cells:
        write_cell(run, cell)
    return pairs(load([run]).cells, reference)


@given(st.integers(0, 30), st.integers(0, 30))
def test_mcnemar_is_the_exact_one(only_a: int, only_b: int) -> None:
    assert paired.mcnemar(only_a, only_b) == pytest.approx(
        reference_mcnemar([[0, only_a], [only_b, 0]], exact=True).pvalue if only_a + only_b else 1.0, abs=1e-12
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_holm_is_that_of_statsmodels(seed: int) -> None:
    values = np.round(np.random.default_rng(seed).random(12) ** 3, 2).tolist()
    assert paired.holm(values) == pytest.approx(list(multipletests(values, method="holm")[1]), abs=1e-12)


def test_sign_flips_of_few_days_are_all_tried() -> None:
    sums = np.array([3.0, 1.0, -1.0, 2.0])
    totals = [abs(float(np.dot(signs, sums))) for signs in product((1, -1), repeat=4)]
    assert paired.sign_flip(sums) == sum(total >= 5 for total in totals) / 16


def test_sign_flips_of_many_days_agree_with_the_normal_limit() -> None:
    rng = np.random.default_rng(6)
    sums = rng.normal(0.25, 1, 60)
    z = abs(sums.sum()) / np.sqrt((sums**2).sum())
    assert paired.sign_flip(sums) == pytest.approx(2 * stats.norm.sf(z), abs=0.015)


def test_swapping_whole_days_by_hand() -> None:
    rng = np.random.default_rng(7)
    a, b = (replace(one(rng, (3, 2, 4), acc, 0.0), truth=np.arange(9) % 2 == 0) for acc in (0.8, 0.5))
    observed, draws = None, []
    for pattern in product((False, True), repeat=3):
        swapped = np.repeat(pattern, (3, 2, 4))
        values = [
            metrics.classify(a.truth, np.where(swapped, second.predicted, first.predicted))
            for first, second in ((a, b), (b, a))
        ]
        assert values[0] is not None
        assert values[1] is not None
        draws.append(abs(values[0].mcc - values[1].mcc))
        observed = draws[0]
    assert observed is not None
    assert a.day_codes is not None
    assert paired.swap(a, b, a.day_codes, metrics.mcc_of) == sum(d >= observed - 1e-9 for d in draws) / 8


def test_methods_are_compared_on_common_catalysts_and_it_is_said(run: Path) -> None:
    a, b = of("tiem", [True] * 20), of("cot", [True, False] * 10)
    (pair,) = compared(run, a[:15], b[5:])
    assert (pair.n, pair.n_a, pair.n_b) == (10, 15, 15)
    assert pair.diff == pytest.approx(5 / 10)
    assert "compared on the 10 rows scored in both, of 15 and 15" in pair.warnings


def test_no_common_catalyst_is_null_and_said(run: Path) -> None:
    a, b = of("tiem", [True] * 20), of("cot", [True] * 20)
    (pair,) = compared(run, a[:10], b[10:])
    assert (pair.n, pair.diff, pair.ci, pair.p_mcnemar, pair.mde) == (0, None, None, None, None)
    assert pair.warnings == ("no row is scored in both cells: the comparison is null",)


def test_one_day_has_no_interval_by_day(run: Path) -> None:
    (pair,) = compared(run, of("tiem", [True] * 8, [0] * 8), of("cot", [True, False] * 4, [0] * 8))
    assert (pair.n_days, pair.ci, pair.p_cluster, pair.mde) == (1, None, None, None)
    assert pair.ci_independent is not None
    assert pair.diff == 0.5
    assert not pair.significant
    assert any("one decision day" in text for text in pair.warnings)


def test_few_days_cannot_be_significant_and_it_is_said(run: Path) -> None:
    days = [i // 5 for i in range(20)]
    (pair,) = compared(run, of("tiem", [True] * 20, days), of("cot", [False] * 20, days))
    assert pair.p_mcnemar is not None
    assert pair.p_mcnemar < 1e-4
    assert pair.p_cluster == 2 / 16
    assert not pair.significant
    assert any("cannot fall below 0.125 with 4 decision days" in text for text in pair.warnings)


def test_equal_answers_have_no_error_and_no_smallest_difference(run: Path) -> None:
    (pair,) = compared(run, of("tiem", [True, False] * 6), of("cot", [True, False] * 6))
    assert (pair.diff, pair.ci, pair.p_mcnemar, pair.p_cluster, pair.mde, pair.n_needed) == (
        0,
        (0, 0),
        1,
        1,
        None,
        None,
    )
    assert any("no row is discordant" in text for text in pair.warnings)


def test_days_that_differ_by_the_same_have_no_error_and_it_is_said(run: Path) -> None:
    days = [day for day in range(7) for _ in range(3)]
    (pair,) = compared(run, of("tiem", [True, True, False] * 7, days), of("cot", [True, False, False] * 7, days))
    assert (pair.diff, pair.mde, pair.n_needed) == (pytest.approx(1 / 3), None, None)
    assert pair.p_cluster == pytest.approx(2 / 2**7)
    assert any("all days differ by the same" in text for text in pair.warnings)


def test_one_row_is_compared_without_failing(run: Path) -> None:
    (pair,) = compared(run, of("tiem", [True]), of("cot", [False]))
    assert (pair.n, pair.diff, pair.p_mcnemar, pair.ci_independent) == (1, 1.0, 1.0, None)


def test_missing_days_and_stocks_are_named(run: Path) -> None:
    a, b = of("tiem", [True] * 6), of("cot", [True, False] * 3)
    for row in (*a, *b):
        row["decision_day"] = row["stock"] = None
    (pair,) = compared(run, a, b)
    assert (pair.ci, pair.ci_stock, pair.p_cluster) == (None, None, None)
    assert pair.diff_mcc is not None
    assert any("decision_day is missing" in text for text in pair.warnings)
    assert any("stock is missing" in text for text in pair.warnings)


def test_smallest_difference_and_rows_needed_follow_from_the_error(run: Path) -> None:
    rng = np.random.default_rng(8)
    right = [bool(x) for x in rng.random(60) < 0.7]
    (pair,) = compared(run, of("tiem", right), of("cot", [bool(x) for x in rng.random(60) < 0.5]))
    assert pair.ci is not None
    assert pair.diff
    assert pair.mde is not None
    error = (pair.ci[1] - pair.ci[0]) / 2 / stats.t.ppf(0.975, 59)
    assert pair.mde == pytest.approx((stats.t.ppf(0.975, 59) + stats.t.ppf(0.8, 59)) * error)
    assert pair.n_needed == int(np.ceil(60 * (pair.mde / pair.diff) ** 2))


def test_families_are_kept_apart_by_gate_and_seed(run: Path) -> None:
    right = [True] * 12
    wrong = [False] * 8 + [True] * 4
    found = compared(
        run,
        *(
            of(method, right if method == "tiem" else wrong, run_seed=seed, gate=gate)
            for method in ("tiem", "cot", "mem0")
            for seed, gate in ((1, "strict"), (2, "strict"), (1, "off"))
        ),
    )
    assert len(found) == 6
    assert {(pair.seed, pair.gate) for pair in found} == {(1, "strict"), (2, "strict"), (1, "off")}
    assert all(pair.p_mcnemar is not None and pair.p_holm == pytest.approx(2 * pair.p_mcnemar) for pair in found)
    assert all(pair.p_cluster and pair.p_cluster_holm == pytest.approx(2 * pair.p_cluster) for pair in found)


def test_holm_is_over_benchmarks_too(run: Path) -> None:
    cells: list[Rows] = []
    for benchmark in ("astock", "edt"):
        for method, wrong in (("tiem", 0), ("cot", 7), ("mem0", 9)):
            cell = of(method, [False] * wrong + [True] * (20 - wrong), benchmark=benchmark)
            cells.append([{**row, "cell": f"{method}-{benchmark}"} for row in cell])
    found = compared(run, *cells)
    assert [p.p_holm for p in found if p.n_discordant == 9] == pytest.approx([4 * 2 / 2**9] * 2)
    assert [p.p_holm for p in found if p.n_discordant == 7] == pytest.approx([2 * 2 / 2**7] * 2)


def test_discoveries_under_the_null_are_rare() -> None:
    """The short version of the bench: 100 families of ten, answers alike within days."""
    rng, found = np.random.default_rng(9), 0
    for _ in range(100):
        reference = one(rng, EQUAL, 0.55, 0.4)
        assert reference.day_codes is not None
        deltas = [reference.hits - one(rng, EQUAL, 0.55, 0.4).hits for _ in range(10)]
        by_days = paired.holm([paired.sign_flip(np.bincount(reference.day_codes, weights=d)) for d in deltas])
        found += min(by_days) <= 0.05
    assert found <= 10
