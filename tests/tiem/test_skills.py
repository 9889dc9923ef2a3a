from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from methods.ranking import cosine_scores
from methods.tiem.recall import known_at
from methods.tiem.skills import (
    Delete,
    Put,
    Skill,
    auto_merge,
    evoke,
    fold,
    merge,
    relabel,
    retire,
    revise,
    skill_id,
)
from methods.tiem.stability import Stability, StabilityResult
from tests.tiem.memory import VECTORS, ancestor, fresh, memories, skill


def assert_grown(merged: Skill, *parts: Skill) -> None:
    """Nothing that shaped a part is forgotten, and the whole is not known before any part."""
    assert set(merged.ancestors) == {a for part in parts for a in part.ancestors}
    assert set(merged.label_ancestors) == {a for part in parts for a in part.label_ancestors}
    assert set(merged.provenance) == {source for part in parts for source in part.provenance}
    assert set(merged.tags) == {tag for part in parts for tag in part.tags}
    assert merged.stability is Stability.UNEVALUABLE
    times = [known for part in parts if (known := known_at(part))]
    whole = known_at(merged)
    assert whole is None or all(whole >= time for time in times)
    if len(times) == len(parts):
        assert whole == max(times)


@given(fresh, st.lists(fresh, min_size=1, max_size=6), st.floats(0, 1))
def test_auto_merge_stays_in_range_and_forgets_nothing(old: Skill, met: list[Skill], decay: float) -> None:
    for new in met:
        merged = auto_merge(replace(old, stability=Stability.STABLE, label_ancestors=(ancestor(3),)), new, decay)
        assert_grown(merged, replace(old, label_ancestors=(ancestor(3),)), new)
        lowest, highest = sorted((old.advantage, new.advantage))
        assert max(-1, lowest - 1e-12) <= merged.advantage <= min(1, highest + 1e-12)
        assert (merged.text, merged.domain, merged.time) == (old.text, old.domain, old.time)
        assert merged.merge_count == old.merge_count + 1
        old = merged


@given(memories(), fresh)
def test_evoke_merges_into_the_nearest_of_its_domain_or_adds(state: dict[str, Skill], new: Skill) -> None:
    before = dict(state)
    (change,) = evoke(state, "new", new, VECTORS)
    assert state == before
    near = {
        key: cosine_scores(VECTORS[s.text][None], VECTORS[new.text])[0]
        for key, s in state.items()
        if s.domain == new.domain
    }
    best = max(near.values(), default=-1.0)
    if best >= 0.85:
        assert near[change.skill_id] == best
        assert_grown(change.skill, state[change.skill_id], new)  # type: ignore[union-attr]
    else:
        assert change == Put("new", new)


@given(memories(), fresh, st.randoms(use_true_random=False))
def test_evoke_does_not_depend_on_the_order_of_the_state(state: dict[str, Skill], new: Skill, random: object) -> None:
    keys = list(state)
    random.shuffle(keys)  # type: ignore[attr-defined]
    assert evoke({key: state[key] for key in keys}, "new", new, VECTORS) == evoke(state, "new", new, VECTORS)


def test_an_id_is_given_once() -> None:
    with pytest.raises(ValueError, match="in the memory already"):
        evoke({"s": skill("w0", 1)}, "s", skill("w1", 2), VECTORS)


@given(memories())
def test_merge_unites_two_and_removes_one(state: dict[str, Skill]) -> None:
    assume(len(state) >= 2)
    first, second = list(state)[:2]
    after = fold(state, merge(state, first, second))
    assert after.keys() == state.keys() - {second}
    assert_grown(after[first], state[first], state[second])
    assert after[first].advantage == pytest.approx((state[first].advantage + state[second].advantage) / 2)
    assert after[first].description == f"{state[first].description} | {state[second].description}"


def test_merged_descriptions_are_cut() -> None:
    state = {name: replace(skill("w0", 1), description="x" * 300) for name in "ab"}
    assert len(fold(state, merge(state, "a", "b"))["a"].description) == 500
    with pytest.raises(ValueError, match="into itself"):
        merge(state, "a", "a")


@pytest.mark.parametrize(("asked", "kept"), [(3.0, 1.0), (-3.0, -1.0), (0.4, 0.4), (None, 0.2)])
def test_revise_clamps_and_names_its_reason(asked: float | None, kept: float) -> None:
    state = {"s": skill("w0", 1)}
    found = fold(state, revise(state, "s", advantage=asked, description="y" * 600, because_of=[ancestor(9)]))["s"]
    assert (found.advantage, found.description) == (kept, "y" * 500)
    assert found.ancestors == (ancestor(1), ancestor(9))


def test_a_label_brings_its_cases_and_a_miss_retires() -> None:
    state = {"s": skill("w0", 1)}
    found = fold(state, relabel(state, "s", StabilityResult(Stability.STABLE), [ancestor(9)]))["s"]
    assert (found.stability, found.label_ancestors) == (Stability.STABLE, (ancestor(9),))
    assert relabel(state, "s", StabilityResult(Stability.MISS), [ancestor(9)]) == [Delete("s")] == retire(state, "s")
    assert fold(state, retire(state, "s")) == {}
    with pytest.raises(KeyError):
        retire({}, "s")


def test_ids_are_functions_of_their_source() -> None:
    assert skill_id("c1", 0) == skill_id("c1", 0)
    assert len({skill_id("c1", 0), skill_id("c1", 1), skill_id("c11", 0), skill_id("c", 10)}) == 4


@pytest.mark.parametrize("advantage", [1.01, -2.0, float("nan")])
def test_an_advantage_out_of_range_is_refused(advantage: float) -> None:
    with pytest.raises(ValueError, match="outside"):
        skill("w0", 1, advantage=advantage)
