"""An event loop whose time jumps to the next timer, servers with limits, and calls through the real sender: minutes in milliseconds."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from harness.gateway.limits import Limiter, Need
from harness.gateway.pace import Clock
from harness.gateway.retry import AttemptFailed, Failure, Sending
from harness.gateway.sender import Sender
from harness.gateway.settings import Endpoint
from harness.records import Status

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """Waits for nothing: a timeout passes at once. ``lag`` makes wake-ups late, as on a busy machine."""

    def __init__(self, lag: Callable[[], float]) -> None:
        super().__init__()
        self.time = 0.0
        self._lag = lag

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("nothing will ever happen")
        if not ready and timeout:
            self.time += timeout + self._lag()
        return ready


def run_virtually(work: Coroutine[Any, Any, T], lag: Callable[[], float] = lambda: 0.0) -> T:
    """Run ``work`` in virtual time, which starts at 0; ``asyncio.sleep`` and timeouts follow it."""
    selector = _Jumping(lag)
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.time  # type: ignore[method-assign]
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


def now() -> float:
    return asyncio.get_running_loop().time()


CLOCK = Clock(now)


class Door(Protocol):
    """A server's limit: seconds until a request may pass, 0 if it has passed."""

    def admit(self, now: float) -> float: ...


@dataclass
class Bucket:
    """A token bucket of ``seconds`` worth."""

    rpm: float
    seconds: float = 1.0
    level: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.level = self.capacity

    @property
    def capacity(self) -> float:
        return max(1.0, self.rpm / 60 * self.seconds)

    def admit(self, now: float) -> float:
        self.level = min(self.capacity, self.level + (now - self.at) * self.rpm / 60)
        self.at = now
        if self.level < 1 - 1e-9:
            return (1 - self.level) * 60 / self.rpm
        self.level -= 1
        return 0.0


@dataclass
class Sliding:
    """At most so many in any ``width`` seconds."""

    rpm: float
    width: float = 60.0
    passed: deque[float] = field(default_factory=deque)

    def admit(self, now: float) -> float:
        while self.passed and self.passed[0] <= now - self.width:
            self.passed.popleft()
        if len(self.passed) >= self.rpm * self.width / 60:
            return self.passed[0] + self.width - now
        self.passed.append(now)
        return 0.0


@dataclass
class Fixed:
    """At most so many in each minute; the first one ends after ``first`` seconds."""

    rpm: float
    first: float = 25.0
    minute: int = -1
    count: int = 0

    def admit(self, now: float) -> float:
        minute = int((now - self.first) // 60)
        if minute != self.minute:
            self.minute, self.count = minute, 0
        if self.count >= self.rpm:
            return self.first + 60 * (minute + 1) - now
        self.count += 1
        return 0.0


@dataclass
class World:
    """A server behind a door, what happened there, and a sender before it."""

    door: Door | None
    latency: Callable[[], float]
    refusal_s: float = 0.02
    retry_after: Callable[[float], float | None] = lambda wait: None
    fault: Callable[[], str | None] = lambda: None
    arrivals: list[float] = field(default_factory=list)
    accepted: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)
    number: int = -1
    """Time of every arrival, acceptance and refusal; the numbers of the calls that were answered, and of the last one let in."""

    async def exchange(self, number: int) -> tuple[int, dict[str, Any]]:
        self.arrivals.append(now())
        wait = self.door.admit(now()) if self.door else 0.0
        if wait > 0:
            self.refused.append(now())
            await asyncio.sleep(self.refusal_s)
            asked = self.retry_after(wait)
            raise AttemptFailed(Failure(Status.RATE_LIMITED, "too many", retry=True, wait_s=asked, http_status=429))
        self.accepted.append(now())
        self.number = number
        match self.fault():
            case "500":
                await asyncio.sleep(self.latency())
                raise AttemptFailed(Failure(Status.PROVIDER, "broken", retry=True, http_status=500))
            case "reset":
                raise AttemptFailed(Failure(Status.PROVIDER, "reset", retry=True))
            case "429":
                raise AttemptFailed(Failure(Status.RATE_LIMITED, "odd", retry=True, http_status=429))
            case "refused":
                raise AttemptFailed(Failure(Status.PROVIDER, "nothing answers", retry=True))
            case "hang":
                await asyncio.sleep(120)
                raise AttemptFailed(Failure(Status.PROVIDER, "reset", retry=True))
        await asyncio.sleep(self.latency())
        self.answered.append(number)
        return number, {}

    def run(
        self,
        calls: int,
        seed: int = 0,
        at_once: int = 256,
        meanwhile: Coroutine[Any, Any, None] | None = None,
        **fields: Any,
    ) -> list[tuple[Sending, Any]]:
        """Make ``calls`` through one sender, so many at once as cells would; what became of each."""
        endpoint = Endpoint(**{"name": "e", "model": "m", "max_in_flight": 128, **fields})

        async def main() -> list[Any]:
            self.sender = sender = Sender(endpoint, Limiter.of([endpoint], CLOCK), CLOCK, random.Random(seed))
            beside = asyncio.ensure_future(meanwhile) if meanwhile is not None else None
            todo = iter(range(calls))
            done: list[Any] = []

            async def store(number: int, reply: dict[str, Any]) -> None:
                pass

            async def work() -> None:
                for number in todo:
                    done.append(await sender.send("forecast", Need(0, 0), lambda n=number: self.exchange(n), store))

            await asyncio.gather(*(work() for _ in range(at_once)))
            if beside is not None:
                await beside
            return done

        return run_virtually(main())

    def goodput(self, rpm: float, after: float = 0.0) -> float:
        """Accepted requests ÷ limit ÷ span from ``after`` to the last arrival."""
        first = max(after, self.arrivals[0])
        return sum(t >= first for t in self.accepted) / (rpm / 60) / (self.arrivals[-1] - first)
