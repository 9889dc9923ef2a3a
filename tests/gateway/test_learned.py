"""Limits that only refusals tell of: servers of every kind, through the real sender, in virtual time."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable

import pytest

from harness.gateway.retry import Failure
from tests.gateway.virtual import Bucket, Door, Fixed, Sliding, World

RPM = 1200


def absent(wait: float) -> float | None:
    return None


def seconds(wait: float) -> float | None:
    return float(math.ceil(wait))


def milliseconds(wait: float) -> float | None:
    return math.ceil(1000 * wait) / 1000


def world(door: Door, latency: float, retry_after: Callable[[float], float | None] = absent) -> World:
    rng = random.Random(1)
    return World(door, lambda: latency * rng.uniform(0.8, 1.3), retry_after=retry_after)


def lost(done: list) -> int:
    return sum(isinstance(outcome, Failure) for _, outcome in done)


@pytest.mark.parametrize("retry_after", [absent, seconds, milliseconds])
@pytest.mark.parametrize("latency", [0.3, 1.0, 3.0])
def test_a_hidden_limit_is_used_up(latency: float, retry_after: Callable[[float], float | None]) -> None:
    """A token bucket of one second's worth."""
    at = world(Bucket(RPM), latency, retry_after)
    assert lost(at.run(1500)) == 0
    assert len(at.answered) == len(set(at.answered)) == 1500
    assert 0.9 <= at.goodput(RPM, after=15) <= 1.03
    late = sum(t > 15 for t in at.refused) / sum(t > 15 for t in at.accepted)
    assert late < 0.1


@pytest.mark.parametrize("latency", [0.3, 3.0])
def test_a_window_of_a_second(latency: float) -> None:
    at = world(Sliding(RPM, width=1), latency)
    assert lost(at.run(1500)) == 0
    assert at.goodput(RPM, after=15) >= 0.85


@pytest.mark.parametrize("latency", [0.3, 3.0])
@pytest.mark.parametrize("door", [Sliding, Fixed])
def test_a_window_of_a_minute_is_waited_for(door: type[Door], latency: float) -> None:
    """A first burst fills the window: nothing passes for most of a minute, no call is lost to it, then it flows evenly."""
    at = world(door(RPM), latency)  # type: ignore[call-arg]
    done = at.run(2800)
    assert lost(done) == 0
    assert at.goodput(RPM) >= 0.95
    assert len(at.refused) < 0.06 * 2800
    first = 25 if door is Fixed else 0
    minutes = range(first, int(at.arrivals[-1]) - 60, 60)
    assert all(sum(m <= t < m + 60 for t in at.accepted) >= 0.9 * RPM for m in minutes)


def test_one_call_after_the_other_waits_for_a_window() -> None:
    """There is nobody else to find out when the window opens: it costs the one call none of its retries."""
    at = world(Sliding(30), 0.1)
    assert lost(at.run(60, at_once=1, max_in_flight=1)) == 0
    assert len(at.answered) == 60


def test_a_limit_that_changes_is_found_again() -> None:
    door = Bucket(RPM)
    at = world(door, 1.0)

    async def change() -> None:
        await asyncio.sleep(40)
        door.rpm = RPM / 2

    assert lost(at.run(2000, meanwhile=change())) == 0
    assert 0.85 <= at.goodput(RPM / 2, after=50) <= 1.05


def test_odd_refusals_do_not_slow_anybody_down() -> None:
    rng = random.Random(3)
    at = World(None, lambda: 1.0, fault=lambda: "429" if rng.random() < 0.02 else None)
    assert lost(at.run(3000)) == 0
    assert at.arrivals[-1] - at.arrivals[0] < 1.2 * 3000 / 128


def test_a_pause_that_a_server_asks_for_ends_without_a_herd() -> None:
    for retry_after in (absent, seconds, milliseconds):
        at = world(Bucket(RPM), 1.0, retry_after)
        at.run(600)
        after = [t for t in at.arrivals if t > 5]
        assert max(sum(t <= u < t + 1 for u in after) for t in after) < 2.5 * RPM / 60


def test_a_known_limit_meets_no_refusal() -> None:
    for latency, door in ((0.3, Bucket(RPM)), (1.0, Sliding(RPM, 1)), (3.0, Bucket(RPM)), (3.0, Fixed(RPM))):
        at = world(door, latency)
        at.run(1300, rpm=RPM)
        assert not at.refused
        assert at.goodput(RPM) >= 0.98
