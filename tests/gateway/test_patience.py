"""Who hangs is given up; who waits for an endpoint that stands still is not paid for twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from harness.gateway import patience, typical
from harness.gateway.patience import Patience
from harness.gateway.typical import Typical

USUAL_S = 0.05


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typical, "_FLOOR_S", USUAL_S)
    monkeypatch.setattr(patience, "_LOOK_S", USUAL_S / 5)


def experienced(request_timeout: float = 60.0) -> Patience:
    """One that knows what is usual."""
    known = Typical(request_timeout)
    for _ in range(20):
        known.observe("forecast", 0.001, None)
    return Patience(known, request_timeout)


async def attempts(sends: list[Callable[[], Awaitable[str]]], who: Patience) -> list[str | BaseException]:
    return await asyncio.gather(*(who.wait("forecast", 0, send) for send in sends), return_exceptions=True)


async def answered() -> str:
    return "answered"


async def hanging() -> str:
    await asyncio.Event().wait()
    return "never"


def test_one_that_others_overtake_hangs() -> None:
    async def play() -> list[str | BaseException]:
        who = experienced()
        who._spare = 0.0
        return await asyncio.wait_for(attempts([hanging, *[answered] * 10], who), 20)

    first, *others = asyncio.run(play())
    assert isinstance(first, TimeoutError)
    assert others == ["answered"] * 10


def test_an_endpoint_that_stands_still_is_asked_again_by_few() -> None:
    """None is overtaken: all but the spare ones wait until it goes on, however long that takes."""

    async def play() -> list[str | BaseException]:
        goes_on = asyncio.Event()

        async def stalled() -> str:
            await goes_on.wait()
            return "answered"

        asyncio.get_running_loop().call_later(20 * USUAL_S, goes_on.set)
        return await asyncio.wait_for(attempts([stalled] * 40, experienced()), 20)

    found = asyncio.run(play())
    assert found.count("answered") == 37
    assert sum(isinstance(outcome, TimeoutError) for outcome in found) == 3


def test_the_last_one_of_a_run_is_not_waited_for_to_the_end() -> None:
    """Nothing overtakes it any more: a spare attempt is there for that."""
    (found,) = asyncio.run(asyncio.wait_for(attempts([hanging], experienced(request_timeout=600.0)), 20))
    assert isinstance(found, TimeoutError)


def test_a_loop_that_stood_still_itself_blames_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The replies are there, only unread."""
    import time

    async def play() -> list[str | BaseException]:
        async def arrived() -> str:
            await asyncio.sleep(USUAL_S / 2)
            return "answered"

        asyncio.get_running_loop().call_later(USUAL_S / 4, time.sleep, 6 * USUAL_S)
        return await attempts([arrived] * 20, experienced())

    assert asyncio.run(play()) == ["answered"] * 20


def test_request_timeout_is_the_end_of_all_patience() -> None:
    async def play() -> list[str | BaseException]:
        who = experienced(request_timeout=2 * USUAL_S)
        who._spare = 0.0
        return await asyncio.wait_for(attempts([hanging], who), 20)

    (found,) = asyncio.run(play())
    assert isinstance(found, TimeoutError)
