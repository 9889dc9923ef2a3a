"""One row of a file and the typed reading of its fields. Missing and null are the same thing: not there."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date

from benchmarks.problems import RowError, quote
from harness.clock import Stamp, parse_stamp
from harness.errors import ClockError


@dataclass(frozen=True, slots=True)
class Row:
    """A row as read, before any check.

    Attributes:
        file: path below the benchmark's root.
        position: 1-based; the place in the array for JSON and Parquet, the line for CSV and JSONL.
        values: the row's object, or whatever stands in its place.
        id_field: the field that names the row in messages.
        unit: ``row`` or ``line``.
    """

    file: str
    position: int
    values: object
    id_field: str
    unit: str = "row"

    @property
    def where(self) -> str:
        """File, row and id, as every message begins."""
        name = self.values.get(self.id_field) if isinstance(self.values, dict) else None
        shown = f" ({name})" if isinstance(name, str) and name else ""
        return f"{self.file}, {self.unit} {self.position}{shown}"

    def error(self, field: str, advice: str) -> RowError:
        """The error for this row's value of ``field``."""
        return RowError(self.where, field, f"= {quote(self.get(field))}", advice)

    def get(self, field: str) -> object:
        """The value of ``field``, None if missing.

        Raises:
            RowError: the row is not an object with fields.
        """
        if not isinstance(self.values, dict):
            raise RowError(self.where, "", quote(self.values), "is not an object; a row must be {field: value, …}")
        return self.values.get(field)

    def need(self, field: str) -> object:
        """As ``get``, for a field that must be there.

        Raises:
            RowError: missing or null.
        """
        value = self.get(field)
        if value is None:
            raise RowError(self.where, field, "= null" if self._holds(field) else "is missing", "every row needs it")
        return value

    def _holds(self, field: str) -> bool:
        return isinstance(self.values, dict) and field in self.values

    def text(self, field: str) -> str:
        """A text that says something.

        Raises:
            RowError: missing, not a text, or empty.
        """
        value = self.need(field)
        if not isinstance(value, str):
            raise self.error(field, f"is {_kind(value)}; write text in quotes")
        if not value.strip():
            raise self.error(field, "is empty")
        return value

    def optional_text(self, field: str) -> str | None:
        """A text, or None where missing or empty.

        Raises:
            RowError: not a text.
        """
        value = self.get(field)
        if value is not None and not isinstance(value, str):
            raise self.error(field, f"is {_kind(value)}; write text in quotes or leave it out")
        return value or None

    def texts(self, field: str) -> tuple[str, ...]:
        """A list of non-empty texts, each once, in the file's order; may be empty.

        Raises:
            RowError: missing, not a list, or an item that is not a text or is empty.
        """
        value = self.need(field)
        if not isinstance(value, list | tuple):
            raise self.error(field, f"is {_kind(value)}; write a list of stock ids")
        for item in value:
            if not isinstance(item, str) or not item.strip():
                raise self.error(field, f"item {quote(item)} is not a stock id")
        return tuple(dict.fromkeys(value))

    def choice(self, field: str, allowed: Collection[str]) -> str:
        """One of ``allowed``.

        Raises:
            RowError: missing or anything else.
        """
        value = self.need(field)
        if not isinstance(value, str) or value not in allowed:
            raise self.error(field, f"is unknown; use one of {', '.join(sorted(allowed))}")
        return value

    def optional_choice(self, field: str, allowed: Collection[str]) -> str | None:
        """As ``choice``, or None where missing."""
        return None if self.get(field) is None else self.choice(field, allowed)

    def number(self, field: str) -> float:
        """A finite number.

        Raises:
            RowError: missing, not a number (a truth value is none), NaN or infinite.
        """
        value = self.need(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(field, f"is {_kind(value)}; write a number")
        try:
            finite = math.isfinite(value)
        except OverflowError:
            finite = False
        if not finite:
            raise self.error(field, "is not a finite number; drop the row if the return is not known")
        return float(value)

    def optional_count(self, field: str) -> int | None:
        """A whole number from 1 to 250, or None where missing.

        Raises:
            RowError: anything else.
        """
        value = self.get(field)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 250):
            raise self.error(field, "must be a whole number of sessions, 1 to 250")
        return value

    def stamp(self, field: str, tz: str) -> Stamp:
        """A timestamp in exchange-local time of zone ``tz``.

        Raises:
            RowError: missing, or what ``parse_stamp`` refuses.
        """
        self.need(field)
        try:
            return parse_stamp(self.get(field), tz)
        except ClockError as error:
            raise self.error(field, str(error)) from None

    def day(self, field: str) -> date:
        """A date without a time of day.

        Raises:
            RowError: missing, not a date, or with a time of day.
        """
        stamp = self.stamp(field, "UTC")
        if not stamp.date_only:
            raise self.error(field, "has a time of day; write YYYY-MM-DD")
        return stamp.day


def refuse_repeats(row: Row, value: str, first: dict[str, Row]) -> None:
    """Remember ``value`` (the row's id) in ``first``.

    Raises:
        RowError: an earlier row has it already.
    """
    earlier = first.setdefault(value, row)
    if earlier is not row:
        raise row.error(
            row.id_field, f"duplicate of {earlier.file}, {earlier.unit} {earlier.position}; ids must be unique"
        )


def _kind(value: object) -> str:
    names = {bool: "a truth value", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)
