"""The pace of an endpoint whose limit nobody knows, learned from what it refuses with 429.

A limiter that refuses something is exhausted at that moment, whatever it counts with (a token bucket, a fixed or a sliding
window). What it accepts between two such moments, divided by the time between them, is its limit. So the first refusals
set a pace; it is raised while nothing is refused, and set anew when too much is: an additive increase, and a decrease to
what was accepted. Odd refusals that have nothing to do with the pace change little.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

_LOOK_BACK, _TOO_MANY = 100, 8
"""So many of the last departures refused are no accident (one window in ten thousand at 2 % accidents)."""
_STEP = 0.95
"""Down to this part of the pace when raising it has met a refusal."""
_ALL = 3
"""So many in a row refused, since the pace changed or one after the other: the endpoint takes nothing for now."""
_GROWTH = 0.01
"""Of the pace, a second, while nothing is refused; more and more after the time that the pace is known from."""
_CALM = 100
"""Departures without a refusal before the pace is raised again."""
_BASIS_S, _BASIS_N = 5.0, 20
"""A pace is computed from so many seconds, or so many departures that passed."""
_TRUSTED_S = 10.0
_MEMORY_S = 60.0
_SLOWEST = 1 / 60


class Refusal(Enum):
    """What one refusal says."""

    ODD = auto()
    """Nothing about the others."""
    TOO_FAST = auto()
    """The pace has been lowered."""
    CLOSED = auto()
    """Nothing passes for now."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """A moment: number of departures up to it, and its time in seconds."""

    number: int
    time: float


class LearnedPace:
    """Departures are numbered; those not refused so far count as accepted, since refusals come sooner than answers."""

    def __init__(self) -> None:
        self._sent = 0
        self._refused: list[int] = []
        self._minute: deque[_Mark] = deque()
        """Marks of about the last minute, one every five seconds."""
        self._exhausted: deque[_Mark] = deque(maxlen=20)
        self._reopened: deque[_Mark] = deque(maxlen=20)
        self._basis = self._end = _Mark(0, 0.0)
        """What the present pace was computed from."""
        self._changed = 0
        self._closed = False
        self._round, self._rounds = 0, 0
        self._base: float | None = None
        self._since = 0.0
        self._searching, self._doubling_s = True, 1.0
        self._trusted_s = _BASIS_S

    def departed(self, now: float) -> int:
        """Record a departure; its number."""
        if not self._minute or now - self._minute[-1].time >= _BASIS_S:
            self._minute.append(_Mark(self._sent, now))
            while self._minute[0].time < now - _MEMORY_S - _BASIS_S:
                self._minute.popleft()
            del self._refused[: bisect_right(self._refused, self._minute[0].number)]
        self._sent += 1
        return self._sent

    def rate(self, now: float) -> float | None:
        """Departures a second; None while there is no reason to hold back."""
        if self._base is None:
            return None
        clean = max(0.0, now - self._since)
        if self._searching:
            return self._base * math.pow(2.0, min(clean / self._doubling_s, 20.0))
        return self._base * (1 + _GROWTH * clean + (clean / self._trusted_s) ** 3)

    def refused(self, number: int, left_at: float, now: float, asked_s: float = 0.0) -> Refusal:
        """Departure ``number``, which left at ``left_at``, was refused, and a wait was asked for (0: none was)."""
        insort(self._refused, number)
        rate = self.rate(now)
        passed = self._passed(self._round, number)
        if number > self._round:
            self._rounds = 0 if passed else self._rounds + 1
            self._round = self._sent
        if self._closed:
            return Refusal.CLOSED
        if number <= self._changed:  # it left before the pace changed, and tells better how much passed until then
            if self._base is not None and self._basis.number < number <= self._end.number:
                self._base = min(self._base, self._estimate())
            return Refusal.ODD
        if self._rounds >= _ALL or (
            rate and number - self._changed >= _ALL and not self._passed(self._changed, number)
        ):
            self._changed, self._closed = self._sent, True
            return Refusal.CLOSED
        start = max(self._changed, number - _LOOK_BACK)
        if number - start - self._passed(start, number) < _TOO_MANY:
            if rate is not None and now > self._since:  # it grew up to the limit
                self._searching = False
                self._set(self._exhausted, _Mark(number, left_at), now, max(_CALM / rate, now - left_at))
                self._base = min(rate, max(_STEP * rate, self._estimate()))
            elif rate is not None:
                self._since = now + max(_CALM / rate, now - left_at)
            return Refusal.ODD
        self._searching = self._base is None
        self._set(self._exhausted, _Mark(number, left_at), now, asked_s + now - left_at)
        self._changed, self._rounds = self._sent, 0
        return Refusal.TOO_FAST

    def reopened(self, number: int, left_at: float, now: float) -> None:
        """After nothing passed, departure ``number`` did: the limit is what passed since the last such moment."""
        self._searching = self._closed = False
        self._set(self._reopened, _Mark(number, left_at), now, 0.0)
        self._reopened.append(self._end)
        self._changed, self._rounds = self._sent, 0

    def _set(self, moments: Sequence[_Mark], end: _Mark, now: float, kept_s: float) -> None:
        """Set the pace by what passed until ``end``, since the last of like ``moments`` that is long enough before it.

        It is not raised for ``kept_s``: sooner it is not known whether it is right.
        """
        start = self._minute[0]
        self._basis, self._end = next((m for m in reversed(moments) if self._long_enough(m, end)), start), end
        if self._basis.time < start.time:
            self._basis = start
        self._base, self._since = self._estimate(), now + kept_s
        self._trusted_s = max(_TRUSTED_S, end.time - self._basis.time)
        self._doubling_s = max(1.0, 2 * kept_s)
        self._exhausted.append(_Mark(self._sent, now))

    def _long_enough(self, start: _Mark, end: _Mark) -> bool:
        return end.time - start.time >= _BASIS_S or self._passed(start.number, end.number) >= _BASIS_N

    def _estimate(self) -> float:
        """What passed a second; a first burst is taken for what a limiter lets pass in a second."""
        seconds = max(1.0, self._end.time - self._basis.time)
        return max(self._passed(self._basis.number, self._end.number) / seconds, _SLOWEST)

    def _passed(self, after: int, upto: int) -> int:
        """How many of the departures after one and up to another are not refused so far."""
        refused = bisect_right(self._refused, upto) - bisect_right(self._refused, after)
        return max(0, upto - after - refused)
