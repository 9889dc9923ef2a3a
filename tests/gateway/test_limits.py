"""Departures under a limit, with a clock that never waits."""

from __future__ import annotations

import asyncio
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.gateway.limits import Limiter
from tests.gateway.conftest import VirtualClock


def departures(
    rpm: int | None,
    tpm: int | None,
    jobs: list[tuple[float, int, float]],
    *,
    max_in_flight: int = 1000,
    lag: float = 0.0,
    seed: int = 0,
) -> list[tuple[float, int, int]]:
    """(time, job, tokens) of each departure; a job is (arrives at, tokens, takes seconds)."""
    rng = random.Random(seed)
    clock = VirtualClock(lambda: rng.uniform(0, lag))
    left: list[tuple[float, int, int]] = []

    async def main() -> None:
        limiter = Limiter(rpm, tpm, max_in_flight, clock.clock)

        async def job(number: int, arrival: float, tokens: int, takes: float) -> None:
            await clock.clock.sleep(arrival)
            async with limiter.permit(tokens):
                left.append((clock.time, number, tokens))
                await clock.clock.sleep(takes)

        await asyncio.gather(*(job(n, *spec) for n, spec in enumerate(jobs)))

    clock.run(main())
    return left


def most_in_window(points: list[tuple[float, int]], width: float) -> int:
    """The largest sum of weights in any half-open window of ``width`` seconds."""
    return max(sum(w for t, w in points if start <= t < start + width) for start, _ in points)


_jobs = st.lists(st.tuples(st.floats(0, 20), st.integers(1, 500), st.floats(0, 5)), min_size=1, max_size=60)


@settings(max_examples=30, deadline=None)
@given(_jobs, st.integers(1, 3000), st.floats(0, 0.05), st.integers(0, 9))
def test_no_window_holds_more_requests_than_the_limit(jobs: list, rpm: int, lag: float, seed: int) -> None:
    left = [(t, 1) for t, _, _ in departures(rpm, None, jobs, lag=lag, seed=seed)]
    for width in (1, 60):
        assert most_in_window(left, width) <= math.ceil(width * rpm / 60)


@settings(max_examples=30, deadline=None)
@given(_jobs, st.integers(1000, 30_000), st.floats(0, 0.05), st.integers(0, 9))
def test_no_window_holds_more_tokens_than_the_limit(jobs: list, tpm: int, lag: float, seed: int) -> None:
    left = [(t, tokens) for t, _, tokens in departures(None, tpm, jobs, lag=lag, seed=seed)]
    assert most_in_window(left, 60) <= tpm


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3000), st.integers(2, 60))
def test_a_backlog_leaves_at_the_full_rate(rpm: int, n: int) -> None:
    left = departures(rpm, None, [(0.0, 1, 0.0)] * n)
    assert left[-1][0] <= (n - 1) * 60 / rpm * 1.03 + 1e-6


@pytest.mark.parametrize("latency", [0.3, 1.0, 3.0])
def test_pace_does_not_depend_on_latency(latency: float) -> None:
    left = departures(1200, None, [(0.0, 1, latency)] * 400, lag=0.005)
    goodput = 399 / (left[-1][0] - left[0][0]) / 20
    assert 0.97 <= goodput <= 1


def test_idle_time_is_not_saved_up() -> None:
    left = departures(60, None, [(0.0, 1, 0.0)] + [(100.0, 1, 0.0)] * 3)
    times = [t for t, _, _ in left]
    assert times[2] - times[1] >= 1
    assert times[3] - times[2] >= 1


def test_first_come_first_served_and_never_more_in_flight_than_allowed() -> None:
    jobs = [(0.001 * n, 1 + n % 7 * 50, 0.5) for n in range(60)]
    left = departures(3000, 100_000, jobs, max_in_flight=4)
    assert [n for _, n, _ in left] == list(range(60))
    for t, _, _ in left:
        assert sum(s <= t < s + 0.5 for s, _, _ in left) <= 4


def test_a_request_above_the_token_limit_still_leaves() -> None:
    assert len(departures(None, 100, [(0.0, 1000, 0.0)] * 2)) == 2


def test_correction_by_usage_changes_the_pace() -> None:
    def span(used: int) -> float:
        clock = VirtualClock()

        async def main() -> None:
            limiter = Limiter(None, 60_000, 10, clock.clock)
            for _ in range(20):
                async with limiter.permit(1000) as permit:
                    permit.answered(used)

        clock.run(main())
        return clock.time

    assert span(500) < 0.6 * span(1000)
    assert span(2000) > 1.8 * span(1000)


def test_a_pause_holds_everybody_and_ends_without_a_herd() -> None:
    clock = VirtualClock()
    left: list[float] = []

    async def main() -> None:
        limiter = Limiter(600, None, 100, clock.clock)
        limiter.pause(7)

        async def job() -> None:
            async with limiter.permit(1):
                left.append(clock.time)

        waiting = [asyncio.create_task(job()) for _ in range(20)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert limiter.waiting_on == "pause"
        await asyncio.gather(*waiting)

    clock.run(main())
    assert min(left) >= 7
    assert most_in_window([(t, 1) for t in left], 1) <= 10


def test_who_comes_again_goes_first() -> None:
    clock = VirtualClock()
    order: list[int] = []

    async def main() -> None:
        limiter = Limiter(60, None, 9, clock.clock)

        async def job(number: int, again: bool) -> None:
            async with limiter.permit(1, again):
                order.append(number)

        await asyncio.gather(*(job(number, again=number == 4) for number in range(5)))

    clock.run(main())
    assert order == [0, 1, 4, 2, 3]  # 1 stood at the head already


@settings(max_examples=30, deadline=None)
@given(st.sets(st.integers(0, 19)), st.integers(0, 9))
def test_cancelled_waiters_hold_up_nobody(cancelled: set[int], after: int) -> None:
    clock = VirtualClock()
    order: list[int] = []

    async def main() -> None:
        limiter = Limiter(600, None, 3, clock.clock)

        async def job(number: int) -> None:
            async with limiter.permit(1):
                order.append(number)
                await clock.clock.sleep(0.2)

        tasks = [asyncio.create_task(job(number)) for number in range(20)]
        for _ in range(after):
            await asyncio.sleep(0)
        for number in cancelled:
            tasks[number].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert limiter.in_flight == 0

    clock.run(main())
    assert set(range(20)) - cancelled <= set(order)
    assert order == sorted(order)


def test_a_cancelled_waiter_leaves_no_slot_behind() -> None:
    async def main() -> None:
        limiter = Limiter(None, None, 1)
        async with limiter.permit(1):
            waiter = asyncio.create_task(limiter.permit(1).__aenter__())
            await asyncio.sleep(0)
            assert limiter.waiting_on == "concurrency"
            waiter.cancel()
            await asyncio.gather(waiter, return_exceptions=True)
        async with asyncio.timeout(1), limiter.permit(1):
            assert limiter.in_flight == 1
        assert limiter.in_flight == 0

    asyncio.run(main())


def test_tokens_flow_at_nearly_the_limit() -> None:
    rng = random.Random(1)
    left = departures(None, 2_090_000, [(0.0, rng.randint(200, 4000), 1.0) for _ in range(1500)], lag=0.005)
    assert sum(tokens for _, _, tokens in left[:-1]) / (left[-1][0] - left[0][0]) * 60 >= 0.95 * 2_090_000


def test_an_unknown_limit_is_found_by_its_refusals() -> None:
    """A server that takes 10 requests a second and says nothing but 429: it is kept busy, and nobody is refused for ever."""
    clock = VirtualClock()
    rng = random.Random(0)
    accepted: list[float] = []
    tries = [0] * 400

    async def main() -> None:
        limiter = Limiter(None, None, 64, clock.clock)

        async def job(number: int) -> None:
            while True:
                tries[number] += 1
                async with limiter.permit(1) as permit:
                    if sum(t > clock.time - 1 for t in accepted[-10:]) < 10:
                        accepted.append(clock.time)
                        await clock.clock.sleep(0.5)
                        permit.answered(None)
                        return
                    await clock.clock.sleep(0.05)
                    permit.refused(None, None)
                await clock.clock.sleep(rng.uniform(0, 0.5 * 2 ** tries[number]))

        await asyncio.gather(*(job(number) for number in range(400)))

    clock.run(main())
    steady = accepted[50:-50]
    assert (len(steady) - 1) / (steady[-1] - steady[0]) >= 0.75 * 10
    assert max(tries) <= 6


def test_a_limit_the_server_names_is_kept_from_then_on() -> None:
    clock = VirtualClock()

    async def main() -> None:
        limiter = Limiter(None, None, 64, clock.clock)
        async with limiter.permit(1) as permit:
            permit.refused(600, None)
        start = clock.time
        for _ in range(20):
            async with limiter.permit(1):
                pass
        assert clock.time - start >= 1.9
        assert limiter.cap == 64

    clock.run(main())
