"""Counts of what a build had to leave out, told in powers of two so that a warning is no stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable


class Tally:
    """How often each thing went wrong. Shared by the cells of a process, so every cell hears of all of it."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._notices: list[str] = []

    def add(self, what: str, example: str, times: int = 1) -> None:
        """Count ``what``; ``example`` names one instance, as a reader would look for it."""
        before = self.counts[what]
        self.counts[what] += times
        if self.counts[what].bit_length() > before.bit_length():
            self._notices.append(f"{what}: {self.counts[what]} or more, such as {example[:120]}")

    def tell(self, warn: Callable[[str], None]) -> None:
        """Say all that is known so far."""
        for notice in self._notices:
            warn(notice)
