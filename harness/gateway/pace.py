"""Departures at a pace: the clock of the gateway, and a leaky bucket that books departures on a virtual schedule.

The schedule is the generic cell rate algorithm (ITU-T I.371), so the pace is the same at any latency, and no window of a
minute ever holds more than the limit allows it, wherever it starts.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

_LATE_S = 0.1
_SECOND_S = 1.01
_LEARNED_LATE_S = 0.02
_LARGEST_SHARE = 0.5
_LATELY_S = 1.0


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds that only go forward, and how to wait; tests put their own in."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Pacer:
    """A leaky bucket: a departure of cost n books n times ``interval`` seconds of the schedule.

    It may leave up to ``capacity`` costs ahead of the schedule. Half-open windows of W seconds then hold at most
    ``ceil(capacity - 1 + W / interval)`` departures of cost 1 (and cost at most ``capacity + W / interval`` otherwise), which
    the constructors keep at or below the limit. ``a_second`` bounds the departures of any second besides.
    """

    def __init__(self, limit_per_minute: float, interval: float, capacity: float, a_second: int | None = None) -> None:
        self.limit = limit_per_minute
        self._interval = interval
        self._capacity = capacity
        self._next = float("-inf")
        self._latest: deque[float] = deque(maxlen=a_second or 0)
        self._taken, self._lately, self._asked = 0.0, 0.0, float("-inf")

    @classmethod
    def of_requests(cls, rpm: float) -> Pacer:
        """No bursts: only late wake-ups are made up for, by 0.1 s. No minute and no second holds more than its share.

        A second is taken for 1.01 s: the network does not keep distances exactly.
        """
        interval = (60 + 1.01 * _LATE_S) / rpm
        return cls(rpm, interval, 1 + _LATE_S / interval, math.ceil(rpm / 60))

    @classmethod
    def of_pace(cls, rate: float) -> Pacer:
        """Departures at ``rate`` a second, evenly: for a limit that is not exactly known."""
        return cls(60 * rate, (1 + _LEARNED_LATE_S) / rate, 1 + _LEARNED_LATE_S * rate)

    @classmethod
    def of_tokens(cls, tpm: float) -> Pacer:
        """Bursts of one second's worth, or of the largest request seen; windows of 60 s cost at most ``tpm``.

        Requests above half the limit are booked as half the limit: they could never leave otherwise.
        """
        capacity = tpm / 60
        return cls(tpm, 60 / (tpm - capacity), capacity)

    def retune(self, other: Pacer, now: float) -> None:
        """Take over the limit of ``other``; what is booked ahead of the schedule stays booked, at the new pace."""
        if self._next > now:
            self._next = now + (self._next - now) / self._interval * other._interval
        self.limit, self._interval, self._capacity = other.limit, other._interval, other._capacity
        self._latest = deque(self._latest, maxlen=other._latest.maxlen)

    def delay(self, now: float, cost: float) -> float:
        """Seconds until a departure of ``cost`` may leave; 0 if now."""
        cost = min(cost, self.limit * _LARGEST_SHARE) if cost > 1 else cost
        if cost > self._capacity:
            self._grow(now, cost)
        at = self._next + (cost - self._capacity) * self._interval
        if self._latest and len(self._latest) == self._latest.maxlen:
            at = max(at, self._latest[0] + _SECOND_S)
        return max(0.0, at - now)

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
        self._latest.append(now)
        self._taken += cost

    def correct(self, difference: float) -> None:
        """The last departures cost ``difference`` more (or, negative, less) than was booked."""
        self._next += difference * self._interval
        self._taken += difference

    def lately(self, now: float) -> float:
        """What was booked a second, of late; exact if this is asked several times a second."""
        kept, self._asked = math.exp((self._asked - now) / _LATELY_S), now
        self._lately, self._taken = kept * self._lately + self._taken, 0.0
        return self._lately / _LATELY_S
