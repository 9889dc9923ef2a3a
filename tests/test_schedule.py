"""The frontier: a forecast is free exactly when all that it may know is committed; the order of work changes nothing."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.memory import CommitKey
from harness.schedule import Chronology, Step
from tests.chain import longest_chain

START = datetime(2020, 1, 1, tzinfo=UTC)
cases = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 15)), min_size=1, max_size=25)


def steps_of(drawn: list[tuple[int, int]]) -> list[Step]:
    return [
        Step(
            CommitKey(START + timedelta(days=t + h), START + timedelta(days=t), f"c{i:02d}"), START + timedelta(days=t)
        )
        for i, (t, h) in enumerate(drawn)
    ]


def run(steps: list[Step], order: random.Random) -> tuple[list[str], dict[str, frozenset[str]]]:
    """Work in a random order of arrival: (commits in their order, what each forecast could see)."""
    chronology = Chronology(steps, [(s.decision, s.key.record_id) for s in steps if s.decision])
    by_name = {s.key.record_id: s for s in steps}
    free: list[str] = []
    proposed: set[str] = set()
    committed: list[str] = []
    seen: dict[str, frozenset[str]] = {}
    while len(committed) < len(steps):
        free += [name for _, name in chronology.free()]
        step = chronology.next_step
        assert step is not None
        may_commit = step.key.record_id in proposed
        assert free or may_commit, "nothing is free and nothing can be committed"
        if may_commit and (not free or order.random() < 0.5):
            committed.append(step.key.record_id)
            chronology.commit()
        else:
            name = free.pop(order.randrange(len(free)))
            decision = by_name[name].decision
            assert decision is not None
            seen[name] = frozenset(c for c in committed if by_name[c].key.valid_from < decision)
            proposed.add(name)
    return committed, seen


@given(cases, st.integers(0, 2**32))
def test_any_order_of_arrival_gives_one_order_of_commits_and_one_view(drawn: list[tuple[int, int]], seed: int) -> None:
    steps = steps_of(drawn)
    committed, seen = run(steps, random.Random(seed))
    assert committed == [s.key.record_id for s in sorted(steps, key=lambda s: s.key)]
    for step in steps:  # what it would see, were the cases done one by one
        assert step.decision is not None
        past = {s.key.record_id for s in steps if s.key.valid_from < step.decision}
        assert seen[step.key.record_id] == past


@given(cases)
def test_nothing_is_free_before_what_it_may_know_is_committed(drawn: list[tuple[int, int]]) -> None:
    steps = steps_of(drawn)
    chronology = Chronology(steps, [(s.decision, s.key.record_id) for s in steps if s.decision])
    decisions = {s.key.record_id: s.decision for s in steps}
    while chronology.next_step is not None:
        for _, name in chronology.free():
            decision = decisions[name]
            assert decision is not None
            assert chronology.frontier is not None
            assert decision <= chronology.frontier
        chronology.commit()


def brute_force_chain(steps: list[Step]) -> int:
    def depth(step: Step) -> int:
        before = [depth(s) for s in steps if step.decision and s.key.valid_from < step.decision]
        return 1 + max(before, default=0)

    return max(depth(s) for s in steps)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), min_size=1, max_size=9))
def test_the_longest_chain(drawn: list[tuple[int, int]]) -> None:
    steps = steps_of(drawn)
    assert longest_chain(steps) == brute_force_chain(steps)


def test_commit_by_arrival_is_caught() -> None:
    """The planted violation: a scheduler that commits what arrives first gives another order."""
    steps = steps_of([(0, 10), (1, 2)])
    by_arrival = ["c00", "c01"]
    assert run(steps, random.Random(0))[0] != by_arrival


def test_a_review_stands_before_what_becomes_known_at_its_instant() -> None:
    from harness.memory_actor import review_key

    at = START + timedelta(days=5)
    steps = [*steps_of([(0, 5), (1, 3)]), Step(review_key(at), None)]
    chronology = Chronology(steps, [])
    order = []
    while chronology.next_step is not None:
        order.append(chronology.next_step.key.record_id.split(":")[0])
        chronology.commit()
    assert order == ["c01", "review", "c00"]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=12), st.sets(st.integers(1, 9)))
def test_bursts_are_the_steps_in_order_one_instant_each_and_reviews_alone(
    drawn: list[tuple[int, int]], reviews: set[int]
) -> None:
    from harness.memory_actor import review_key

    steps = [*steps_of(drawn), *(Step(review_key(START + timedelta(days=n)), None) for n in reviews)]
    chronology = Chronology(steps, [])
    found: list[Step] = []
    while burst := chronology.burst:
        assert len({step.key.valid_from for step in burst}) == 1
        assert len(burst) == 1 or all(step.decision is not None for step in burst)
        found += burst
        chronology.commit(len(burst))
    assert found == sorted(steps, key=lambda s: s.key)
    with pytest.raises(ValueError, match="nothing is left"):
        chronology.commit()
