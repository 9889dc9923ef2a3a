"""Counts of what a build had to leave out, told to every cell that uses it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

_NAMED = 3


class Tally:
    """Counts by kind; ``kinds`` says in words what each kind is."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.kinds = kinds
        self.counts: dict[str, int] = dict.fromkeys(kinds, 0)
        self._first: dict[str, list[str]] = defaultdict(list)
        self._notices: dict[str, str] = {}

    def count(self, kind: str, item: str) -> None:
        """One more of ``kind``. The notice is renewed at the first, second, fourth, eighth ... of them."""
        self.counts[kind] += 1
        number = self.counts[kind]
        if len(self._first[kind]) < _NAMED:
            self._first[kind].append(item)
        if number.bit_count() == 1:
            self._notices[kind] = f"{self.kinds[kind]}: {number} or more, first {', '.join(self._first[kind])}"

    def tell(self, warn: Callable[[str], None]) -> None:
        """Pass on the notices as they stand."""
        for notice in self._notices.values():
            warn(notice)
