from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from methods.tiem.recall import Ancestry, admit, ancestry, known_at, recall
from methods.tiem.skills import Skill
from methods.tiem.stability import STABILITY_WEIGHTS, Stability
from methods.vectors import VectorTable
from tests.tiem.memory import QUERY, VECTORS, ancestor, day, decision, memories, skill

days = st.integers(0, 32)


def seen(state: dict[str, Skill], n: int, **knobs: Any) -> list[Any]:
    return recall(admit(state, decision(n)).skills, QUERY, "earnings", VECTORS, **{"min_sim": -1.0, **knobs})


@given(memories(), days)
def test_a_rejected_skill_changes_nothing_of_what_is_seen(state: dict[str, Skill], n: int) -> None:
    found = admit(state, decision(n))
    without = {key: s for key, s in state.items() if key not in {*found.late, *found.unverifiable}}
    assert seen(without, n) == seen(state, n)
    assert len(found.skills) + len(found.late) + len(found.unverifiable) == len(state)


@given(memories(), days, days)
def test_time_only_adds(state: dict[str, Skill], one: int, other: int) -> None:
    early, late = (admit(state, decision(n)) for n in sorted((one, other)))
    assert early.skills.keys() <= late.skills.keys()
    assert early.unverifiable == late.unverifiable


@given(memories(), days)
def test_a_skill_is_seen_only_after_everything_that_shaped_it(state: dict[str, Skill], n: int) -> None:
    for found in seen(state, n):
        known = known_at(found.skill)
        assert known is not None
        assert known < decision(n).instant
        assert all(a.resolve_time < day(n) for a in (*found.skill.ancestors, *found.skill.label_ancestors))


@given(memories(), days, st.randoms(use_true_random=False))
def test_the_order_of_the_memory_does_not_matter(state: dict[str, Skill], n: int, random: Any) -> None:
    keys = list(state)
    random.shuffle(keys)
    assert seen({key: state[key] for key in keys}, n) == seen(state, n)


NAIVE = datetime(2019, 1, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"time": None},
        {"time": NAIVE},
        {"ancestors": ()},
        {"ancestors": (replace(ancestor(1), source_catalyst_id=""),)},
        {"ancestors": (replace(ancestor(1), decision_time=None),)},
        {"ancestors": (replace(ancestor(1), resolve_time=None),)},
        {"ancestors": (replace(ancestor(1), resolve_time=NAIVE),)},
        {"ancestors": (replace(ancestor(1), outcome_hash=""),)},
        {"ancestors": (replace(ancestor(1), distillation_hash=""),)},
        {"label_ancestors": (replace(ancestor(1), resolve_time=None),)},
        {"ancestors": (ancestor(30), replace(ancestor(1), resolve_time=None))},
    ],
)
def test_incomplete_ancestry_is_rejected_and_counted(change: dict[str, Any]) -> None:
    broken = replace(skill("w0", 1), **change)
    assert ancestry(broken, decision(20)) is Ancestry.UNVERIFIABLE
    assert admit({"s": broken, "t": skill("w1", 1)}, decision(20)).unverifiable == ("s",)


def test_an_unknown_time_has_no_known_at() -> None:
    whole = skill("w0", 1)
    assert known_at(whole) == day(1)
    for broken in (replace(whole, time=None), replace(whole, ancestors=()), replace(whole, time=NAIVE)):
        assert known_at(broken) is None


@pytest.mark.parametrize("field", ["ancestors", "label_ancestors"])
def test_one_late_ancestor_is_enough(field: str) -> None:
    old = skill("w0", 1)
    mixed = replace(old, **{field: (*old.ancestors, ancestor(5))})
    assert ancestry(mixed, decision(5)) is Ancestry.LATE  # known at T is not known before T
    assert ancestry(mixed, decision(6)) is Ancestry.OK


def test_the_floor_comes_after_the_top_k() -> None:
    state = {"near": skill("w0", 1, advantage=-1.0), "far": skill("w1", 1, advantage=1.0)}
    vectors = VectorTable.of({"w0. w0": QUERY * 0 + [0.6, 0.8, 0.0], "w1. w1": QUERY * 0 + [0.5, 0.0, 0.0]})
    query = QUERY * 0 + [1.0, 0.0, 0.0]
    knobs: dict[str, Any] = {"min_sim": 0.55}
    both = recall(state, query, "earnings", vectors, k=2, **knobs)
    assert [r.skill_id for r in both] == ["near"]
    assert (both[0].cosine, both[0].score) == (0.6, 0.6)
    assert recall(state, query, "earnings", vectors, k=1, **knobs) == []


def test_the_domain_bonus_and_the_stability_weight_reorder() -> None:
    state = {
        "a": skill("w0", 1, domain="ma"),
        "b": replace(skill("w1", 1), stability=Stability.UNSTABLE),
    }
    vectors = VectorTable.of({"w0. w0": QUERY * 0 + [0.6, 0.0, 0.0], "w1. w1": QUERY * 0 + [0.5, 0.0, 0.0]})
    query = QUERY * 0 + [1.0, 0.0, 0.0]

    def order(**knobs: Any) -> list[str]:
        return [r.skill_id for r in recall(state, query, "earnings", vectors, **knobs)]

    assert order() == ["a", "b"]
    assert order(gamma=0.15) == ["b", "a"]
    assert order(gamma=0.15, stability_weights=STABILITY_WEIGHTS) == ["a", "b"]


def test_ties_go_to_the_newer_then_to_the_id() -> None:
    state = {"b": skill("w0", 1), "a": skill("w0", 1), "c": skill("w0", 2)}
    assert [r.skill_id for r in seen(state, 20)] == ["c", "a", "b"]


def test_an_empty_memory_answers_nothing() -> None:
    assert seen({}, 20) == []
