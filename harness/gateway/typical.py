"""What a purpose usually takes, learned as the run goes: output tokens for reservations, latency for deadlines."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_RECENT = 200
_ENOUGH = 20
_FLOOR_S = 2.0
_STRETCH = 2.0
_NEARLY_ALL = 0.98


class Typical:
    """Recent replies by purpose (a forecast and an index build differ too much to share a mean)."""

    def __init__(self, request_timeout: float) -> None:
        self._request_timeout = request_timeout
        self._latency: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_RECENT))
        self._waiting: defaultdict[str, set[Callable[[], None]]] = defaultdict(set)
        self._tokens: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_RECENT))

    def observe(self, purpose: str, latency_s: float, completion_tokens: int | None) -> None:
        """One reply arrived."""
        self._latency[purpose].append(latency_s)
        if self.known(purpose):
            for tell in self._waiting.pop(purpose, ()):
                tell()
        if completion_tokens is not None:
            self._tokens[purpose].append(completion_tokens)

    def known(self, purpose: str) -> bool:
        """Whether enough replies came to say what is usual."""
        return len(self._latency[purpose]) >= _ENOUGH

    @contextmanager
    def once_known(self, purpose: str, tell: Callable[[], None]) -> Iterator[None]:
        """Call ``tell`` if what is usual becomes known while the block runs."""
        if self.known(purpose):
            yield
            return
        self._waiting[purpose].add(tell)
        try:
            yield
        finally:
            self._waiting[purpose].discard(tell)

    def output_tokens(self, purpose: str, most: int) -> int:
        """Expected length of a reply in tokens; ``most`` until one was seen."""
        seen = self._tokens[purpose]
        return min(most, round(sum(seen) / len(seen))) if seen else most

    def deadline(self, purpose: str, timeouts: int) -> float:
        """Seconds to give an attempt at a request of which ``timeouts`` attempts were given up before.

        Once 20 replies are known: twice what 98 % of recent ones took, at least 2 s, so that a hang costs
        seconds and not the whole timeout; doubled with every time-out, so that a reply that is merely slow gets its time.
        Never more than ``request_timeout``.
        """
        if not self.known(purpose):
            return self._request_timeout
        seen = sorted(self._latency[purpose])
        usual = max(_FLOOR_S, _STRETCH * seen[int(_NEARLY_ALL * (len(seen) - 1))])
        return min(self._request_timeout, usual * 2.0**timeouts)
