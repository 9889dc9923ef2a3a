"""Bad rows: found one by one, reported together, ten at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harness.errors import DataError

SHOWN = 10
_VALUE_CHARS = 80


class RowError(DataError):
    """One bad value of one row. Caught by ``Problems.collect``, never seen by a user alone."""

    def __init__(self, where: str, field: str, found: str, advice: str) -> None:
        super().__init__(f"{where}: {field} {found}: {advice}" if field else f"{where}: {found}: {advice}")


def quote(value: object) -> str:
    """``value`` as shown in a message: its repr, cut after 80 characters."""
    text = repr(value)
    return text if len(text) <= _VALUE_CHARS else text[:_VALUE_CHARS] + "…"


class Problems:
    """Collects the first bad value of every bad row, so that a user mends a file in one go: of ``source``, so ``consequence``."""

    def __init__(self, source: str, consequence: str = "nothing was run") -> None:
        self.source = source
        self.consequence = consequence
        self.messages: list[str] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Note a ``RowError`` raised inside and go on with the next row."""
        try:
            yield
        except RowError as error:
            self.messages.append(str(error))

    def stop_if_any(self) -> None:
        """Raise everything collected so far.

        Raises:
            DataError: there were bad rows; the message lists the first ten and counts the rest.
        """
        if not self.messages:
            return
        n = len(self.messages)
        lines = [f"{self.source}: {n} bad {'row' if n == 1 else 'rows'}; {self.consequence}."]
        lines += [f"  {message}" for message in self.messages[:SHOWN]]
        if n > SHOWN:
            lines.append(f"  … and {n - SHOWN} more")
        raise DataError("\n".join(lines))
