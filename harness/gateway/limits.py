"""When a request may leave: paced departures for requests and tokens a minute, a cap on requests in the air, pauses.

Departures follow a virtual schedule (the generic cell rate algorithm, ITU-T I.371), so the pace is the same at any latency,
and no window of a minute ever holds more than the limit allows it, wherever it starts.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

_LATE_S = 0.02
_LARGEST_SHARE = 0.5
_CUT = 2 / 3


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds that only go forward, and how to wait; tests put their own in."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Pacer:
    """A leaky bucket: a departure of cost n books n times ``interval`` seconds of the schedule.

    It may leave up to ``capacity`` costs ahead of the schedule. Any window of W seconds then costs at most
    ``capacity + W / interval``, which the two constructors keep at or below the limit.
    """

    def __init__(self, limit_per_minute: float, interval: float, capacity: float) -> None:
        self._limit = limit_per_minute
        self._interval = interval
        self._capacity = capacity
        self._next = float("-inf")

    @classmethod
    def of_requests(cls, rpm: int) -> Pacer:
        """No bursts: only a late wake-up is made up for, by 20 ms.

        The interval is 2 % longer than the limit asks for, so half-open windows of any length W >= 1 s hold at most
        ``ceil(W * rpm / 60)`` departures: servers that look at single seconds see no excess either.
        """
        interval = (1 + _LATE_S) * 60 / rpm
        return cls(rpm, interval, 1 + _LATE_S / interval)

    @classmethod
    def of_tokens(cls, tpm: int) -> Pacer:
        """Bursts of one second's worth, or of the largest request seen; windows of 60 s cost at most ``tpm``.

        Requests above half the limit are booked as half the limit: they could never leave otherwise.
        """
        capacity = tpm / 60
        return cls(tpm, 60 / (tpm - capacity), capacity)

    def delay(self, now: float, cost: float) -> float:
        """Seconds until a departure of ``cost`` may leave; 0 if now."""
        cost = min(cost, self._limit * _LARGEST_SHARE) if cost > 1 else cost
        if cost > self._capacity:
            self._grow(now, cost)
        return max(0.0, self._next + (cost - self._capacity) * self._interval - now)

    def _grow(self, now: float, capacity: float) -> None:
        """Make room for a larger request without giving credit for what left in the last minute."""
        owed = max(0.0, self._next - now) / self._interval + capacity - self._capacity
        self._capacity = capacity
        self._interval = 60 / (self._limit - capacity)
        if self._next > now - 60:
            self._next = now + owed * self._interval

    def book(self, now: float, cost: float) -> None:
        """Record a departure at ``now``."""
        self._next = max(self._next, now) + cost * self._interval

    def correct(self, difference: float) -> None:
        """The last departures cost ``difference`` more (or, negative, less) than was booked."""
        self._next += difference * self._interval


class _Queue:
    """A lock that is handed on in order of arrival; who comes ``again`` stands in front, having waited before."""

    def __init__(self) -> None:
        self._held = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def turn(self, again: bool) -> AsyncIterator[None]:
        if self._held:
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            (self._waiting.appendleft if again else self._waiting.append)(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():  # the turn came with the cancellation: hand it on
                    self._hand_on()
                raise
        self._held = True
        try:
            yield
        finally:
            self._hand_on()

    def _hand_on(self) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._held = False


class Permit:
    """The right to one request in the air, and what became of it."""

    def __init__(self, limiter: Limiter, reserved: int, left_at: float) -> None:
        self._limiter = limiter
        self._reserved = reserved
        self._left_at = left_at

    def answered(self, tokens: int | None) -> None:
        """There is a reply; ``tokens`` is what it used, if the server says so: corrects the token schedule."""
        limiter = self._limiter
        if limiter.tokens is not None and tokens is not None:
            limiter.tokens.correct(tokens - self._reserved)
        limiter.cap = min(limiter.max_in_flight, limiter.cap + 1 / limiter.cap)

    def refused(self, rpm: int | None, tpm: int | None) -> None:
        """A 429. ``rpm`` and ``tpm`` are limits the server names.

        A limit that was not set is learned. While none is known, fewer requests may be in the air: once for all those
        that left together, a third less (additive increase, multiplicative decrease).
        """
        limiter = self._limiter
        limiter.requests = limiter.requests or (Pacer.of_requests(rpm) if rpm else None)
        limiter.tokens = limiter.tokens or (Pacer.of_tokens(tpm) if tpm else None)
        if limiter.requests is None and limiter.tokens is None and self._left_at > limiter.cut_at:
            limiter.cut_at = limiter.now()
            limiter.cap = max(1.0, min(limiter.cap, limiter.in_flight) * _CUT)


class Limiter:
    """First come, first served: the head of the queue waits for a slot, a pause, the request and the token schedule."""

    def __init__(self, rpm: int | None, tpm: int | None, max_in_flight: int, clock: Clock | None = None) -> None:
        self.requests = Pacer.of_requests(rpm) if rpm is not None else None
        self.tokens = Pacer.of_tokens(tpm) if tpm is not None else None
        self.max_in_flight = max_in_flight
        self.cap = float(max_in_flight)
        self.cut_at = float("-inf")
        self.in_flight = 0
        self.waiting_on: str | None = None
        self._clock = clock or Clock()
        self._queue = _Queue()
        self._freed = asyncio.Event()
        self._paused_until = float("-inf")

    def now(self) -> float:
        return self._clock.now()

    @asynccontextmanager
    async def permit(self, tokens: int, again: bool = False) -> AsyncIterator[Permit]:
        """Wait until one request that will need ``tokens`` may leave; it is in the air until the block ends.

        A request sent ``again`` goes before those that have not left yet: failures then do not pile up at the end of a run.
        """
        async with self._queue.turn(again):
            try:
                left_at = await self._departure(tokens)
            finally:
                self.waiting_on = None
            self.in_flight += 1
        try:
            yield Permit(self, tokens, left_at)
        finally:
            self.in_flight -= 1
            self._freed.set()

    def pause(self, seconds: float) -> None:
        """No departure for ``seconds`` from now; afterwards they are paced as before, so that nobody stampedes."""
        self._paused_until = max(self._paused_until, self.now() + seconds)

    async def _departure(self, tokens: int) -> float:
        while True:
            while self.in_flight >= int(self.cap):
                self.waiting_on = "concurrency"
                self._freed.clear()
                await self._freed.wait()
            now = self.now()
            waits = {
                "pause": self._paused_until - now,
                "rpm": self.requests.delay(now, 1) if self.requests else 0.0,
                "tpm": self.tokens.delay(now, tokens) if self.tokens else 0.0,
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
        return now
