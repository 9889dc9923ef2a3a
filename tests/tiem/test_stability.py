from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from methods.tiem.stability import Stability, StabilityRule, Verdict, eligible, label, sample

verdict_lists = st.lists(st.sampled_from(Verdict), max_size=30)


@given(verdict_lists)
def test_the_label_follows_the_thresholds(given_verdicts: list[Verdict]) -> None:
    ids = [f"c{n}" for n in range(len(given_verdicts))]
    found = label(ids, dict(zip(ids, given_verdicts, strict=True)))
    applied, misapplied, skipped = (given_verdicts.count(v) for v in Verdict)
    if len(ids) < 5:
        assert (found.label, found.reason) == (Stability.UNEVALUABLE, f"K_eff={len(ids)}<5")
        assert found.n_skip is None
    elif 10 * skipped >= 7 * len(ids):
        assert (found.label, found.reason) == (Stability.UNEVALUABLE, f"skip_too_high({skipped}/{len(ids)})")
    else:
        rate = applied / (applied + misapplied)
        assert found.apply_rate == rate
        want = Stability.STABLE if rate >= 0.7 else Stability.MISS if rate <= 0.3 else Stability.UNSTABLE
        assert (found.label, found.reason) == (want, None)
    assert (found.apply_rate is None) == (found.label is Stability.UNEVALUABLE)


@given(verdict_lists.filter(lambda v: len(v) >= 5), st.integers(0, 40))
def test_a_missing_verdict_is_a_skip_and_a_stray_one_nothing(given_verdicts: list[Verdict], stray: int) -> None:
    ids = [f"c{n}" for n in range(len(given_verdicts))]
    said = {i: v for i, v in zip(ids, given_verdicts, strict=True) if v is not Verdict.SKIP}
    strays = {f"x{n}": Verdict.APPLY for n in range(stray)}
    assert label(ids, {**said, **strays}) == label(ids, dict(zip(ids, given_verdicts, strict=True)))


def test_a_failed_call_is_not_a_label() -> None:
    found = label([f"c{n}" for n in range(20)], None)
    assert (found.label, found.reason, found.n_skip) == (Stability.UNEVALUABLE, "llm_fail", None)


@given(st.text(), st.integers(0, 60))
def test_a_sample_depends_on_the_skill_and_the_cases_only(skill_id: str, n: int) -> None:
    ids = [f"c{i}" for i in range(n)]
    drawn = sample(skill_id, ids)
    assert drawn == sample(skill_id, ids)
    assert len(drawn) == len(set(drawn)) == min(20, n)
    assert set(drawn) <= set(ids)


def test_skills_are_judged_on_different_samples() -> None:
    ids = [f"c{i}" for i in range(100)]
    assert sample("a", ids) != sample("b", ids)


def test_a_skill_is_not_judged_on_the_cases_it_comes_from() -> None:
    assert eligible(["c0", "c1", "c2"], {"c1"}) == ["c0", "c2"]


@pytest.mark.parametrize("knob", [{"skip_limit": 1.2}, {"stable_at": 0.2}, {"k_min": 0}, {"k": 4}])
def test_a_rule_that_cannot_decide_is_refused(knob: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="StabilityRule"):
        StabilityRule(**knob)
