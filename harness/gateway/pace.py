"""Departures at a pace: the clock of the gateway, and a leaky bucket that books departures on a virtual schedule.

The schedule is the generic cell rate algorithm (ITU-T I.371), so the pace is the same at any latency, and no window of a
minute ever holds more than the limit allows it, wherever it starts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

_LATE_S = 0.02
_LARGEST_SHARE = 0.5


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
        self.limit = limit_per_minute
        self._interval = interval
        self._capacity = capacity
        self._next = float("-inf")

    @classmethod
    def of_requests(cls, rpm: float) -> Pacer:
        """No bursts: only a late wake-up is made up for, by 20 ms.

        The interval is 2 % longer than the limit asks for, so half-open windows of any length W >= 1 s hold at most
        ``ceil(W * rpm / 60)`` departures: servers that look at single seconds see no excess either.
        """
        interval = (1 + _LATE_S) * 60 / rpm
        return cls(rpm, interval, 1 + _LATE_S / interval)

    @classmethod
    def of_tokens(cls, tpm: float) -> Pacer:
        """Bursts of one second's worth, or of the largest request seen; windows of 60 s cost at most ``tpm``.

        Requests above half the limit are booked as half the limit: they could never leave otherwise.
        """
        capacity = tpm / 60
        return cls(tpm, 60 / (tpm - capacity), capacity)

    def retune(self, other: Pacer) -> None:
        """Take over the limit of ``other``; what is booked stays booked."""
        self.limit, self._interval, self._capacity = other.limit, other._interval, other._capacity

    def delay(self, now: float, cost: float) -> float:
        """Seconds until a departure of ``cost`` may leave; 0 if now."""
        cost = min(cost, self.limit * _LARGEST_SHARE) if cost > 1 else cost
        if cost > self._capacity:
            self._grow(now, cost)
        return max(0.0, self._next + (cost - self._capacity) * self._interval - now)

    def _grow(self, now: float, capacity: float) -> None:
        """Make room for a larger request without giving credit for what left in the last minute."""
        owed = max(0.0, self._next - now) / self._interval + capacity - self._capacity
        self._capacity = capacity
        self._interval = 60 / (self.limit - capacity)
        if self._next > now - 60:
            self._next = now + owed * self._interval

    def book(self, now: float, cost: float) -> None:
        """Record a departure at ``now``."""
        self._next = max(self._next, now) + cost * self._interval

    def correct(self, difference: float) -> None:
        """The last departures cost ``difference`` more (or, negative, less) than was booked."""
        self._next += difference * self._interval
