"""What grows and is never forgotten: values and links of a log, each as of any number of inserts.

Inserts are numbered from 0. The state after ``n`` of them is made of what was written by inserts below ``n``, so it does not
change when the log goes on, and no state is ever copied.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Versions(Generic[K, V]):
    """A mapping whose earlier states can be read."""

    def __init__(self) -> None:
        self._written: dict[K, tuple[list[int], list[V]]] = {}

    def put(self, key: K, value: V, insert: int) -> None:
        """Write ``value`` by ``insert``, which is not below any insert that wrote before it."""
        inserts, values = self._written.setdefault(key, ([], []))
        if inserts and inserts[-1] == insert:
            values[-1] = value
        else:
            inserts.append(insert)
            values.append(value)

    def latest(self, key: K) -> V | None:
        """The newest value; None for a key never written."""
        written = self._written.get(key)
        return written[1][-1] if written else None

    def at(self, key: K, n: int) -> V | None:
        """The value after ``n`` inserts; None if there was none yet."""
        inserts, values = self._written.get(key, ((), ()))
        position = bisect_left(inserts, n)
        return values[position - 1] if position else None

    def items_at(self, n: int) -> Iterator[tuple[K, V]]:
        """Keys and values after ``n`` inserts, in the order in which keys first came."""
        for key, (inserts, values) in self._written.items():
            if inserts[0] >= n:  # keys came in order: all others are newer
                return
            yield key, values[bisect_left(inserts, n) - 1]


class Links(Generic[K, V]):
    """Lists that only grow, whose earlier states can be read."""

    def __init__(self) -> None:
        self._added: dict[K, tuple[list[int], list[V]]] = {}

    def add(self, key: K, value: V, insert: int) -> None:
        """Append ``value`` to the list of ``key``."""
        inserts, values = self._added.setdefault(key, ([], []))
        inserts.append(insert)
        values.append(value)

    def at(self, key: K, n: int) -> Sequence[V]:
        """The list after ``n`` inserts, in the order of adding."""
        inserts, values = self._added.get(key, ((), ()))
        return values[: bisect_left(inserts, n)]

    def count(self, key: K, n: int) -> int:
        """Its length."""
        return bisect_left(self._added.get(key, ((), ()))[0], n)
