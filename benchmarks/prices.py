"""A benchmark's own price paths: the sessions a stock really traded, which know suspensions that no calendar knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from benchmarks.problems import Problems, quote
from benchmarks.rows import Row
from harness.clock import parse_stamp
from harness.errors import ClockError


@dataclass(frozen=True, slots=True)
class PricePath:
    """The sessions of a stock from the entry of one decision on.

    Attributes:
        row: where it stands.
        stock_id: the stock.
        decision: text of the decision time it belongs to.
        sessions: entry session, then the sessions after it, ascending.
    """

    row: Row
    stock_id: str
    decision: str
    sessions: tuple[date, ...]


def read_prices(rows: Sequence[Row], problems: Problems) -> dict[str, PricePath]:
    """Price paths by the catalysts they name: the ids in ``catalysts``, and ``doc_id``."""
    by_id: dict[str, PricePath] = {}
    by_doc: dict[str, PricePath] = {}
    for row in rows:
        with problems.collect():
            path = PricePath(row, row.text("stock_id"), row.stamp("decision_time", "UTC").text, _sessions(row))
            for catalyst_id in _named(row):
                if catalyst_id in by_id:
                    raise row.error(
                        "catalysts", f"{catalyst_id} has a path in row {by_id[catalyst_id].row.position} already"
                    )
                by_id[catalyst_id] = path
            doc_id = row.optional_text("doc_id")
            if doc_id is not None:
                by_doc[doc_id] = path
    return by_doc | by_id


def path_of(paths: Mapping[str, PricePath], catalyst_id: str, stock_id: str, decision: str) -> PricePath | None:
    """The path of a catalyst, if the file has one for the same stock and the same decision time."""
    path = paths.get(catalyst_id)
    return path if path is not None and (path.stock_id, path.decision) == (stock_id, decision) else None


def _named(row: Row) -> list[str]:
    entries = row.get("catalysts") or []
    if not isinstance(entries, list):
        raise row.error("catalysts", "write a list of {catalyst_id: …}")
    ids: list[str] = []
    for entry in entries:
        catalyst_id = entry.get("catalyst_id") if isinstance(entry, dict) else entry
        if not isinstance(catalyst_id, str):
            raise row.error("catalysts", f"{quote(entry)} names no catalyst_id")
        ids.append(catalyst_id)
    return ids


def _sessions(row: Row) -> tuple[date, ...]:
    """Entry session and the dates of ``path``, whose steps are ``[date, open, close]``."""
    steps = row.need("path")
    if not isinstance(steps, list):
        raise row.error("path", "write a list of [date, open, close]")
    sessions = [row.day("entry_session")]
    for step in steps:
        try:
            stamp = parse_stamp(step[0] if isinstance(step, list) and step else None, "UTC")
        except ClockError:
            raise row.error("path", f"step {quote(step)} is not [date, open, close]") from None
        if not stamp.date_only or stamp.day <= sessions[-1]:
            raise row.error("path", f"step {quote(step)} is not later than the session before it ({sessions[-1]})")
        sessions.append(stamp.day)
    return tuple(sessions)
