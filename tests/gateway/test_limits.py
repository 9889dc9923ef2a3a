"""Departures under a limit, in virtual time."""

from __future__ import annotations

import asyncio
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.gateway.limits import Limiter, Limits, Need
from harness.gateway.settings import Endpoint
from tests.gateway.virtual import CLOCK, now, run_virtually

Job = tuple[float, int, float]


def limiter(rpm: float | None = None, tpm: float | None = None, max_in_flight: int = 1000, **more: float) -> Limiter:
    return Limiter(Limits(rpm, tpm, **more), max_in_flight, CLOCK)


def departures(
    limits: Limits,
    jobs: list[Job],
    *,
    max_in_flight: int = 1000,
    lag: float = 0.0,
    seed: int = 0,
) -> list[tuple[float, int, int]]:
    """(time, job, tokens) of each departure; a job is (arrives at, tokens, takes seconds)."""
    rng = random.Random(seed)
    left: list[tuple[float, int, int]] = []

    async def main() -> None:
        at = Limiter(limits, max_in_flight, CLOCK)

        async def job(number: int, arrival: float, tokens: int, takes: float) -> None:
            await asyncio.sleep(arrival)
            async with at.permit(Need(tokens // 2, tokens - tokens // 2)):
                left.append((now(), number, tokens))
                await asyncio.sleep(takes)

        await asyncio.gather(*(job(n, *spec) for n, spec in enumerate(jobs)))

    run_virtually(main(), lambda: rng.uniform(0, lag))
    return left


def most_in_window(points: list[tuple[float, int]], width: float) -> int:
    """The largest sum of weights in any half-open window of ``width`` seconds."""
    return max(sum(w for t, w in points if start <= t < start + width) for start, _ in points)


_jobs = st.lists(st.tuples(st.floats(0, 20), st.integers(1, 500), st.floats(0, 5)), min_size=1, max_size=60)


@settings(max_examples=30, deadline=None)
@given(_jobs, st.integers(1, 3000), st.floats(0, 0.05), st.integers(0, 9))
def test_no_window_holds_more_requests_than_the_limit(jobs: list, rpm: int, lag: float, seed: int) -> None:
    left = [(t, 1) for t, _, _ in departures(Limits(rpm), jobs, lag=lag, seed=seed)]
    for width in (1, 60):
        assert most_in_window(left, width) <= math.ceil(width * rpm / 60)


@settings(max_examples=30, deadline=None)
@given(_jobs, st.integers(1000, 30_000), st.floats(0, 0.05), st.integers(0, 9))
def test_no_window_holds_more_tokens_than_the_limit(jobs: list, tpm: int, lag: float, seed: int) -> None:
    left = [(t, tokens) for t, _, tokens in departures(Limits(tpm=tpm), jobs, lag=lag, seed=seed)]
    assert most_in_window(left, 60) <= tpm


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3000), st.integers(2, 60))
def test_a_backlog_leaves_at_the_full_rate(rpm: int, n: int) -> None:
    left = departures(Limits(rpm), [(0.0, 1, 0.0)] * n)
    assert left[-1][0] <= (n - 1) * 60 / rpm * 1.03 + 1e-6


@pytest.mark.parametrize("latency", [0.3, 1.0, 3.0])
def test_pace_does_not_depend_on_latency(latency: float) -> None:
    left = departures(Limits(1200), [(0.0, 1, latency)] * 400, lag=0.005)
    goodput = 399 / (left[-1][0] - left[0][0]) / 20
    assert 0.97 <= goodput <= 1


def test_idle_time_is_not_saved_up() -> None:
    left = departures(Limits(60), [(0.0, 1, 0.0)] + [(100.0, 1, 0.0)] * 3)
    times = [t for t, _, _ in left]
    assert times[2] - times[1] >= 1
    assert times[3] - times[2] >= 1


def test_first_come_first_served_and_never_more_in_flight_than_allowed() -> None:
    jobs = [(0.001 * n, 1 + n % 7 * 50, 0.5) for n in range(60)]
    left = departures(Limits(3000, 100_000), jobs, max_in_flight=4)
    assert [n for _, n, _ in left] == list(range(60))
    for t, _, _ in left:
        assert sum(s <= t < s + 0.5 for s, _, _ in left) <= 4


def test_a_request_above_the_token_limit_still_leaves() -> None:
    assert len(departures(Limits(tpm=100), [(0.0, 1000, 0.0)] * 2)) == 2


def test_correction_by_usage_changes_the_pace() -> None:
    def span(used: int) -> float:
        async def main() -> float:
            at = limiter(tpm=60_000)
            for _ in range(20):
                async with at.permit(Need(1000)) as permit:
                    at.correct(permit.need, Need(used))
            return now()

        return run_virtually(main())

    assert span(500) < 0.6 * span(1000)
    assert span(2000) > 1.8 * span(1000)


def test_prompt_and_output_tokens_are_limited_apart() -> None:
    def span(need: Need) -> float:
        async def main() -> float:
            at = limiter(input_tpm=60_000, output_tpm=6_000)
            for _ in range(20):
                async with at.permit(need):
                    pass
            return now()

        return run_virtually(main())

    assert span(Need(1000, 0)) == pytest.approx(span(Need(0, 100)), rel=0.1)
    assert span(Need(1000, 10)) == pytest.approx(span(Need(1000, 0)), rel=0.1)
    assert span(Need(10, 100)) > 15


def test_a_pause_holds_everybody_and_ends_without_a_herd() -> None:
    left: list[float] = []

    async def main() -> None:
        at = limiter(600)
        at.pause(7)

        async def job() -> None:
            async with at.permit(Need()):
                left.append(now())

        waiting = [asyncio.create_task(job()) for _ in range(20)]
        await asyncio.sleep(1)
        assert at.waiting_on == "pause"
        await asyncio.gather(*waiting)

    run_virtually(main())
    assert min(left) >= 7
    assert most_in_window([(t, 1) for t in left], 1) <= 10


def test_who_comes_again_goes_first() -> None:
    order: list[int] = []

    async def main() -> None:
        at = limiter(60)

        async def job(number: int, again: bool) -> None:
            async with at.permit(Need(), again=again):
                order.append(number)

        await asyncio.gather(*(job(number, again=number == 4) for number in range(5)))

    run_virtually(main())
    assert order == [0, 4, 1, 2, 3] or order == [0, 1, 4, 2, 3]  # 1 may stand at the head already


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=2, max_size=5), st.floats(0, 3), st.integers(0, 9))
def test_a_long_queue_holds_up_no_other(sizes: list[int], takes: float, seed: int) -> None:
    """While several queues have somebody waiting, none leaves twice more often than another."""
    rng = random.Random(seed)
    arrivals = [name for name, size in enumerate(sizes) for _ in range(size)]
    rng.shuffle(arrivals)
    order: list[int] = []

    async def main() -> None:
        at = limiter(600, max_in_flight=rng.choice((3, 1000)))

        async def job(name: int) -> None:
            async with at.permit(Need(), str(name), again=rng.random() < 0.1):
                order.append(name)
                await asyncio.sleep(takes)

        await asyncio.gather(*(job(name) for name in arrivals))

    run_virtually(main())
    left = [0] * len(sizes)
    for name in order:
        left[name] += 1
        waiting = [n for other, n in enumerate(left) if n < sizes[other]]
        assert not waiting or left[name] <= min(waiting) + 4  # those who left before all had come


def test_a_late_single_request_passes_a_thousand_that_wait() -> None:
    at_last: list[int] = []

    async def main() -> None:
        at = limiter(6000)
        count = 0

        async def job(queue: str) -> None:
            nonlocal count
            async with at.permit(Need(), queue):
                count += 1
                if queue == "small":
                    at_last.append(count)

        many = [asyncio.create_task(job("large")) for _ in range(1000)]
        await asyncio.sleep(1)
        before = count
        await job("small")
        at_last.append(before)
        await asyncio.gather(*many)

    run_virtually(main())
    assert at_last[0] - at_last[1] <= 3


@settings(max_examples=30, deadline=None)
@given(st.sets(st.integers(0, 19)), st.integers(0, 9))
def test_cancelled_waiters_hold_up_nobody(cancelled: set[int], after: int) -> None:
    order: list[int] = []

    async def main() -> None:
        at = limiter(600, max_in_flight=3)

        async def job(number: int) -> None:
            async with at.permit(Need()):
                order.append(number)
                await asyncio.sleep(0.2)

        tasks = [asyncio.create_task(job(number)) for number in range(20)]
        for _ in range(after):
            await asyncio.sleep(0)
        for number in cancelled:
            tasks[number].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert at.in_flight == 0

    run_virtually(main())
    assert set(range(20)) - cancelled <= set(order)
    assert order == sorted(order)


def test_a_cancelled_waiter_leaves_no_slot_behind() -> None:
    async def main() -> None:
        at = limiter(max_in_flight=1)
        async with at.permit(Need()):
            waiter = asyncio.create_task(at.permit(Need()).__aenter__())
            await asyncio.sleep(1)
            assert at.waiting_on == "concurrency"
            waiter.cancel()
            await asyncio.gather(waiter, return_exceptions=True)
        async with asyncio.timeout(1), at.permit(Need()):
            assert at.in_flight == 1
        assert at.in_flight == 0

    run_virtually(main())


def test_tokens_flow_at_nearly_the_limit() -> None:
    rng = random.Random(1)
    left = departures(Limits(tpm=2_090_000), [(0.0, rng.randint(200, 4000), 1.0) for _ in range(1500)], lag=0.005)
    assert sum(tokens for _, _, tokens in left[:-1]) / (left[-1][0] - left[0][0]) * 60 >= 0.95 * 2_090_000


def test_limits_that_a_server_names_are_kept_where_none_is_set() -> None:
    def span(at: Limiter, named: dict[str, float]) -> float:
        async def main() -> float:
            at.named(named)
            for _ in range(21):
                async with at.permit(Need(100)):
                    pass
            return now()

        return run_virtually(main())

    set_by_user = limiter(rpm=6000)
    assert span(set_by_user, {"rpm": 600.0}) < 0.3
    unset = limiter()
    assert span(unset, {"rpm": 600.0}) == pytest.approx(2, rel=0.05)
    assert not unset.counts_tokens
    assert span(unset, {"rpm": 1200.0, "tpm": 60_000.0}) > 1
    assert unset.counts_tokens


def test_of_limits_that_differ_the_smaller_counts() -> None:
    a = Endpoint(name="a", model="m", rpm=600, max_in_flight=8)
    b = Endpoint(name="b", model="m", rpm=1200, tpm=5000, outage_s=7)
    shared = Limiter.of([a, b], CLOCK)
    assert shared.limits() == {"rpm": 600, "tpm": 5000}
    assert shared.max_in_flight == 8


def test_no_limit_costs_no_time() -> None:
    left = departures(Limits(), [(0.0, 1, 1.0)] * 300, max_in_flight=100)
    assert [t for t, _, _ in left] == [0.0] * 100 + [1.0] * 100 + [2.0] * 100


def test_what_left_before_a_limit_was_known_counts() -> None:
    """A first burst leaves before any reply can name the limit: the minute in which it left holds no more than the limit."""
    left: list[float] = []

    async def main() -> None:
        at = Limiter(Limits(), 128, CLOCK)

        async def call() -> None:
            async with at.permit(Need(100)):
                left.append(now())
                await asyncio.sleep(1)
                at.named({"rpm": 1200.0, "tpm": 1e6})

        await asyncio.gather(*(call() for _ in range(1500)))

    run_virtually(main())
    assert left[127] == 0
    assert most_in_window([(t, 1) for t in left], 60) <= 1200
    assert 1500 / 20 / left[-1] >= 0.97
