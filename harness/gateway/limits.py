"""When a request may leave: paced departures for requests and tokens a minute, a cap on requests in the air, pauses.

Departures are paced by a virtual schedule (the generic cell rate algorithm, ITU-T I.371): a request of cost n books n slots
of ``interval`` seconds, and the next one leaves when the schedule has come round. There is no burst to exhaust a window
with, whatever the latency; a late wake-up may be caught up for ``TOLERANCE_S``, and the interval is 2 % longer than the limit
asks for, so that no window of a second or more ever holds more departures than the limit allows it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

TOLERANCE_S = 0.02
_MARGIN = 1.02
_LARGEST_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds that only go forward, and how to wait; tests put their own in."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Pacer:
    """Departures of cost n under a limit a minute. Any half-open window of W >= 1 s costs at most ``limit * W / 60``.

    The bound holds up to rounding by one request: exactly for unit costs, and over 60 s for any costs below half the limit,
    because the interval makes room for the largest cost seen (the last departure of a window is paid for after it).
    """

    def __init__(self, limit_per_minute: int) -> None:
        self._limit = limit_per_minute
        self._next = float("-inf")
        self._largest = 1.0

    @property
    def interval(self) -> float:
        """Seconds booked for a cost of one."""
        room = self._limit - (self._largest if self._largest > 1 else 0)
        return max(_MARGIN * 60 / self._limit, (60 + TOLERANCE_S) / max(room, self._limit * _LARGEST_SHARE))

    def delay(self, now: float) -> float:
        """Seconds until the next request may leave; 0 if now."""
        return max(0.0, self._next - TOLERANCE_S - now)

    def book(self, now: float, cost: float) -> None:
        """Record a departure at ``now``."""
        cost = min(cost, self._limit)
        self._largest = max(self._largest, cost)
        self._next = max(self._next, now) + cost * self.interval

    def correct(self, difference: float) -> None:
        """The last departures cost ``difference`` more (or, negative, less) than was booked."""
        self._next += difference * self.interval


class Permit:
    """The right to one request in the air. ``used`` tells what it really cost."""

    def __init__(self, limiter: Limiter, reserved: int) -> None:
        self._limiter = limiter
        self._reserved = reserved

    def used(self, tokens: int) -> None:
        """Correct the token schedule by what the reply says was used."""
        if self._limiter.tokens is not None:
            self._limiter.tokens.correct(tokens - self._reserved)


class Limiter:
    """First come, first served: the head of the queue waits for a slot, a pause, the request and the token schedule."""

    def __init__(self, rpm: int | None, tpm: int | None, max_in_flight: int, clock: Clock | None = None) -> None:
        self.requests = Pacer(rpm) if rpm is not None else None
        self.tokens = Pacer(tpm) if tpm is not None else None
        self.waiting_on: str | None = None
        self.in_flight = 0
        self._slots = asyncio.Semaphore(max_in_flight)
        self._turn = asyncio.Lock()
        self._clock = clock or Clock()
        self._paused_until = float("-inf")

    @asynccontextmanager
    async def permit(self, tokens: int) -> AsyncIterator[Permit]:
        """Wait until one request that will need ``tokens`` may leave; it is in the air until the block ends."""
        async with self._turn:
            if self._slots.locked():
                self.waiting_on = "concurrency"
            try:
                await self._slots.acquire()
                try:
                    await self._departure(tokens)
                except BaseException:
                    self._slots.release()
                    raise
            finally:
                self.waiting_on = None
        self.in_flight += 1
        try:
            yield Permit(self, tokens)
        finally:
            self.in_flight -= 1
            self._slots.release()

    def pause(self, seconds: float) -> None:
        """No departure for ``seconds`` from now; afterwards they are paced as before, so that nobody stampedes."""
        self._paused_until = max(self._paused_until, self._clock.now() + seconds)

    async def _departure(self, tokens: int) -> None:
        while True:
            now = self._clock.now()
            waits = {
                "pause": self._paused_until - now,
                "rpm": self.requests.delay(now) if self.requests else 0.0,
                "tpm": self.tokens.delay(now) if self.tokens else 0.0,
            }
            reason = max(waits, key=waits.__getitem__)
            if waits[reason] <= 0:
                break
            self.waiting_on = reason
            await self._clock.sleep(waits[reason])
        if self.requests:
            self.requests.book(now, 1)
        if self.tokens:
            self.tokens.book(now, tokens)
