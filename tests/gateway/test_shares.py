"""Limits divided among gateways that know nothing of each other, in virtual time."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.gateway.limits import Limiter, Limits, Need
from harness.gateway.shares import LEASE_S, PERIOD_S, NotRenewed, Shares, divided, hold_share
from tests.gateway.virtual import CLOCK, now, run_virtually


@dataclass
class Run:
    """One process: so many calls from some moment on, each of ``takes`` seconds; killed at a moment, if at all."""

    calls: int
    starts: float = 0.0
    takes: float = 1.0
    tokens: int = 0
    killed: float = math.inf
    every: float = 0.0
    """Seconds between its calls; 0: all wait at once."""
    left: list[float] = field(default_factory=list)
    flights: list[tuple[float, int]] = field(default_factory=list)
    """(moment, change of the number in the air)."""


def together(
    limits: Limits,
    runs: list[Run],
    max_in_flight: int = 1000,
    delay: Callable[[], float] = lambda: 0.0,
    lag: Callable[[], float] = lambda: 0.0,
    replaced: float = math.inf,
) -> list[Run]:
    """Do all runs at once. Asking for a share takes ``delay`` each way; ``replaced``: then nobody knows any more who has what."""

    async def main() -> None:
        shares = [Shares(CLOCK)]

        async def life(run: Run, number: int) -> None:
            await asyncio.sleep(run.starts)
            at = Limiter(limits, max_in_flight, CLOCK)
            at.share(0.0)
            knew = shares[0]

            async def renew(held: float, wanted: float) -> float:
                nonlocal knew
                await asyncio.sleep(delay())
                if now() >= replaced and len(shares) == 1:
                    shares.append(Shares(CLOCK))
                if knew is not shares[-1]:
                    knew = shares[-1]
                    raise NotRenewed("it died")
                share = await knew.renew("place", str(number), held, wanted)
                await asyncio.sleep(delay())
                return share

            async def call(n: int) -> None:
                await asyncio.sleep(n * run.every)
                async with at.permit(Need(run.tokens)):
                    run.left.append(now())
                    run.flights.append((now(), 1))
                    await asyncio.sleep(run.takes)
                run.flights.append((now(), -1))

            holding = asyncio.create_task(hold_share(at, renew, CLOCK))
            try:
                async with asyncio.timeout(None if math.isinf(run.killed) else run.killed - run.starts):
                    await asyncio.gather(*(call(n) for n in range(run.calls)))
                    await asyncio.sleep(2)  # a session takes longer than that to end
            except TimeoutError:
                run.flights.append((now(), -at.in_flight))
            finally:
                holding.cancel()

        await asyncio.gather(*(life(run, number) for number, run in enumerate(runs)))

    run_virtually(main(), lag)
    return runs


def most_in_window(times: list[float], width: float) -> int:
    times, first, most = sorted(times), 0, 0
    for last, time in enumerate(times):
        while times[first] <= time - width:
            first += 1
        most = max(most, last - first + 1)
    return most


def most_in_air(runs: list[Run]) -> int:
    number, most = 0, 0
    for _, change in sorted(flight for run in runs for flight in run.flights):
        number += change
        most = max(most, number)
    return most


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), min_size=1, max_size=8))
def test_division_is_max_min_fair(wanted: dict[str, float]) -> None:
    shares = divided(wanted)
    assert sum(shares.values()) == pytest.approx(1)
    lacking = [shares[name] for name in wanted if shares[name] < wanted[name] - 1e-9]
    if lacking:
        assert max(shares.values()) <= min(lacking) + 1e-9


@settings(max_examples=25)
@given(
    st.lists(
        st.builds(
            Run,
            calls=st.integers(1, 400),
            starts=st.floats(0, 30),
            takes=st.floats(0, 3),
            killed=st.floats(40, 60) | st.just(math.inf),
            every=st.sampled_from([0.0, 0.0, 0.2]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([60, 300, 1200]),
    st.integers(0, 9),
)
def test_no_minute_holds_more_than_the_limit_whoever_comes_and_goes(runs: list[Run], rpm: int, seed: int) -> None:
    rng = random.Random(seed)
    together(Limits(rpm), runs, max_in_flight=50, delay=lambda: rng.uniform(0, 1), lag=lambda: rng.uniform(0, 0.02))
    left = [t for run in runs for t in run.left]
    assert most_in_window(left, 60) <= rpm
    assert most_in_air(runs) <= 50 + len(runs) - 1, "a session may have one in the air, however small its share"
    for run in runs:
        assert len(run.left) == run.calls or run.killed < math.inf


@pytest.mark.parametrize("latency", [0.3, 1.0, 3.0])
def test_two_at_once_reach_the_limit_together(latency: float) -> None:
    one, other = together(Limits(1200), [Run(700, 0, latency), Run(700, 0, latency)], lag=lambda: 0.003)
    left = sorted(one.left + other.left)
    assert len(left) / 20 / (left[-1] - left[0]) >= 0.97
    assert most_in_window(left, 1) <= 20
    assert abs(one.left[-1] - other.left[-1]) < 2, "fair"


def test_tokens_are_shared_as_well() -> None:
    runs = together(Limits(tpm=2_090_000), [Run(600, tokens=2000), Run(600, tokens=2000)])
    left = sorted(t for run in runs for t in run.left)
    assert len(left) * 2000 / (left[-1] - left[0]) * 60 >= 0.95 * 2_090_000
    assert most_in_window(left, 60) * 2000 <= 2_090_000


def test_who_comes_later_gets_half_and_who_ends_gives_it_back() -> None:
    long, short = together(Limits(1200), [Run(1200), Run(200, starts=10)])
    assert short.left[0] < 10 + 4 * PERIOD_S
    assert short.left[-1] - short.left[0] == pytest.approx(200 / 10, rel=0.1)
    end = short.left[-1] + LEASE_S + 3
    assert sum(end <= t < end + 10 for t in long.left) >= 0.97 * 200


def test_who_needs_little_gets_it_and_the_others_have_the_rest() -> None:
    hungry, modest = together(Limits(1200), [Run(1000), Run(40, every=1.0)])
    assert all(t - n < 3 for n, t in enumerate(modest.left))
    assert 1000 / 20 / (hungry.left[-1] - hungry.left[0]) >= 0.85


def test_what_a_killed_one_held_comes_back() -> None:
    survivor, _ = together(Limits(1200), [Run(1500), Run(10_000, killed=20)], max_in_flight=40)
    after = 20 + LEASE_S + 2
    assert sum(after <= t < after + 10 for t in survivor.left) >= 0.97 * 200
    assert most_in_air([survivor]) >= 20


def test_who_cannot_renew_stops_before_its_share_is_given_away() -> None:
    async def main() -> tuple[int, int]:
        shares, left = Shares(CLOCK), list[float]()
        cut_off = asyncio.Event()
        at = Limiter(Limits(6000), 10, CLOCK)
        at.share(0.0)

        async def renew(held: float, wanted: float) -> float:
            if cut_off.is_set():
                raise NotRenewed("no way there")
            return await shares.renew("place", "a", held, wanted)

        async def work() -> None:
            while True:
                async with at.permit(Need()):
                    left.append(now())

        tasks = [asyncio.create_task(hold_share(at, renew, CLOCK)), asyncio.create_task(work())]
        await asyncio.sleep(10)
        cut_off.set()
        gone = now()
        assert await shares.renew("place", "b", 0.0, 1.0) == 0
        await asyncio.sleep(LEASE_S + PERIOD_S)
        assert await shares.renew("place", "b", 0.0, 1.0) == 1
        assert at.waiting_on == "other runs"
        assert gone < left[-1] <= gone + LEASE_S
        cut_off.clear()
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
        return len(left), int(at.held)

    run_virtually(main())


def test_shares_survive_whoever_divides_them() -> None:
    runs = together(Limits(1200), [Run(700), Run(700)], replaced=15)
    left = sorted(t for run in runs for t in run.left)
    assert most_in_window(left, 1) <= 21
    assert len(left) / 20 / (left[-1] - left[0]) >= 0.95


def test_room_in_the_air_is_handed_over_when_it_is_empty() -> None:
    """No pace at all, only so many at a time: the second comes in as the requests of the first end."""
    one, other = runs = together(Limits(), [Run(200, takes=5.0), Run(100, starts=3, takes=5.0)], max_in_flight=50)
    assert most_in_air(runs) <= 50
    assert other.left[0] < 3 + 5 + 3
    assert len(one.left) == 200
    assert len(other.left) == 100


def test_limits_of_different_places_are_divided_apart() -> None:
    async def main() -> None:
        shares = Shares(CLOCK)
        assert await shares.renew("x", "a", 0.0, 1.0) == 1
        assert await shares.renew("y", "b", 0.0, 1.0) == 1

    run_virtually(main())


def test_a_limit_heard_of_later_is_divided_too() -> None:
    at = Limiter(Limits(), 10, CLOCK)
    at.share(0.5)
    at.named({"rpm": 1200.0})
    assert at.limits() == {"rpm": 1200}

    async def main() -> float:
        for _ in range(101):
            async with at.permit(Need()):
                pass
        return now()

    assert run_virtually(main()) == pytest.approx(10, rel=0.05)
