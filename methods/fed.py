"""What memory baselines make of the records they are fed: one text a record, the same for all of them, and where it is from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from harness.clock import Stamp, known_before
from harness.evidence import RETRIEVED, Gate
from harness.method import FedRecord
from harness.records import Document, Source
from harness.tokens import cut_to_tokens
from methods.feed import case_record

RECORD_TOKENS = 4_096
"""Tokens of a record that a memory reads; the few longer ones are cut and counted."""

CUT = "record longer than the window, cut"


@dataclass(frozen=True, slots=True)
class FedText:
    """A record as a memory reads it.

    Attributes:
        stamp: date, and time where there is one, at which it became known, exchange local.
        stock: the first security it is about.
        text: what it says, with its date, company and security in front.
        incidents: what had to be done to it.
    """

    stamp: str
    stock: str | None
    text: str
    incidents: tuple[str, ...] = ()


def fed_text(record: FedRecord, tokens: int = RECORD_TOKENS) -> FedText:
    """``record`` as one text of at most ``tokens`` tokens."""
    item = record.item
    if isinstance(item, Document):
        assert item.time is not None  # no other document is fed
        stamp, stock = item.time.text, item.stocks[0] if item.stocks else None
        about = " ".join([stamp, record.company, ",".join(item.stocks)]).strip()
        whole = f"[{about}] {item.text}"
    else:
        stamp, stock = item.outcome.resolve_session.isoformat(), item.case.stock_id
        whole = case_record(item).text
    text = cut_to_tokens(whole, tokens)
    return FedText(stamp, stock, text, () if text == whole else (CUT,))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a piece of a memory comes from.

    Attributes:
        sources: ids of the records that it was written from.
        first, known_at: of all records that shaped it, whether written from or only read along, the earliest and the latest time.
        day: the latest calendar day among the documents of these.
        evaluated: evaluated cases among these: their own forecasts never see it, whatever the gate.
    """

    sources: tuple[str, ...]
    first: datetime
    known_at: datetime
    day: date | None
    evaluated: tuple[str, ...] = ()

    @classmethod
    def of(cls, record: FedRecord) -> Origin:
        """That of a piece that ``record`` alone makes."""
        key = record.key
        return cls(
            (key.record_id,), key.valid_from, key.valid_from, key.day, (record.evaluated,) if record.evaluated else ()
        )

    def shaped_by(self, *others: Origin) -> Origin:
        """Of a piece that is written from this and was shaped by ``others``."""
        every = (self, *others)
        days = [o.day for o in every if o.day is not None]
        return Origin(
            self.sources,
            min(o.first for o in every),
            max(o.known_at for o in every),
            max(days, default=None),
            tuple(sorted({name for o in every for name in o.evaluated})),
        )

    def joined(self, other: Origin) -> Origin:
        """Of a piece that is written from both."""
        sources = tuple(dict.fromkeys((*self.sources, *other.sources)))
        both = self.shaped_by(other)
        return Origin(sources, both.first, both.known_at, both.day, both.evaluated)

    def admitted(self, gate: Gate, decision: Stamp, catalyst_id: str) -> bool:
        """Whether a forecast of ``catalyst_id`` at ``decision`` may see it in the state that it is given.

        ``strict``: that state is the one of its time, and the harness checks every note at the prompt. ``paper``: in the final
        state, what any later record shaped is left out. ``off``: only what the case's own outcome shaped.
        """
        match gate:
            case Gate.STRICT:
                return True
            case Gate.PAPER:
                return known_before(self.known_at, self.day, decision)
        return catalyst_id not in self.evaluated

    def source(self, item_id: str, stock: str | None) -> Source:
        """As a row of evidence."""
        return Source("memory_note", item_id, stock, self.first, self.known_at, self.known_at, self.known_at, RETRIEVED)

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "sources": list(self.sources),
            "first": self.first.isoformat(),
            "known_at": self.known_at.isoformat(),
            "day": self.day.isoformat() if self.day else None,
            "evaluated": list(self.evaluated),
        }

    @classmethod
    def from_plain(cls, value: Mapping[str, Any]) -> Origin:
        return cls(
            tuple(value["sources"]),
            _utc(value["first"]),
            _utc(value["known_at"]),
            date.fromisoformat(value["day"]) if value["day"] else None,
            tuple(value["evaluated"]),
        )


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def dumps(value: Mapping[str, Any]) -> str:
    """Canonical JSON of a piece of a memory."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
