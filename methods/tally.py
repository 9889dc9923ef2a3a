"""Counts of what a build had to leave out, told to every cell that uses it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from harness.method import Warn

_NAMED = 3


class Tally:
    """Counts by kind; ``kinds`` says in words what each kind is. Of the items counted it names the first three."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.kinds = kinds
        self.counts: dict[str, int] = dict.fromkeys(kinds, 0)
        self._first: dict[str, list[str]] = defaultdict(list)

    def count(self, kind: str, item: str) -> None:
        """One more of ``kind``."""
        self.counts[kind] += 1
        if len(self._first[kind]) < _NAMED:
            self._first[kind].append(item)

    def tell(self, warn: Warn) -> None:
        """Pass on the counts as they stand."""
        for kind, first in self._first.items():
            warn(self.kinds[kind], f"{self.counts[kind]}, first {', '.join(first)}")
