"""A structure that grows by one insert a record in order of time, so that its state at T is a prefix of its log.

A record is a document or a resolved case. What an insert takes from its own record (the model's extraction) depends on that
record alone and is prepared for many records at once; the inserts themselves follow each other. One log serves every T.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from harness.evidence import RESOLVED, RETRIEVED, Gate
from harness.method import Context
from harness.records import Source
from methods.concurrency import bounded_map
from methods.feed import Record, case_record, company_of, document_records, fed_cases

EXTRACTIONS_AT_ONCE = 64
"""Records of one request that are extracted at a time; the endpoint's own limits come on top."""
LOGS_HELD = 4
"""Logs of different records that are held at a time. Under the strict gate a corpus has one."""

Summarise = Callable[[str, str], Awaitable[str]]
"""(what it describes, merged description) -> the description to store."""
E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)
E_contra = TypeVar("E_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Entry:
    """What one insert takes: the chunks of a document, or a resolved case. ``instant`` is when it was known (UTC)."""

    item_id: str
    instant: datetime
    is_case: bool
    chunks: tuple[Record, ...]

    @property
    def order(self) -> tuple[datetime, bool, str]:
        """Place in a log: time, documents before cases, id."""
        return self.instant, self.is_case, self.item_id


@dataclass(frozen=True, slots=True)
class Feed:
    """Entries in the order of a log, and how many of them, from the first on, T admits."""

    entries: tuple[Entry, ...]
    admitted: int


def feed_as_of(ctx: Context, chunk_tokens: int, chunk_overlap: int) -> Feed:
    """What a log is fed for a forecast.

    ``strict``: the longest prefix whose documents may be retrieved at T and whose outcomes are known before it. ``paper`` and
    ``off``: the whole corpus with the cases of the context, of which T admits the prefix (``paper``) or everything (``off``).
    """
    entries = [
        Entry(d.doc_id, chunks[0].instant, False, chunks)
        for d in ctx.evidence.build_on().retrievable()
        for chunks in [document_records(d, company_of(d, ctx.evidence), chunk_tokens, chunk_overlap)]
    ]
    cases = [case_record(resolved) for resolved in fed_cases(ctx)]
    entries += [Entry(c.item_id, c.instant, True, (c,)) for c in cases]
    entries.sort(key=lambda entry: entry.order)
    if ctx.gate is Gate.OFF:
        return Feed(tuple(entries), len(entries))
    instant, doc_id = ctx.evidence.log_end()
    admitted = bisect_left(entries, (instant, False, doc_id), key=lambda entry: entry.order)
    return Feed(tuple(entries[:admitted] if ctx.gate is Gate.STRICT else entries), admitted)


class Reader(Protocol[E_co]):
    """The model's part in a build."""

    async def extract(self, record: Record) -> E_co:
        """What the text of ``record`` says, whatever else there is."""
        ...

    async def summarise(self, name: str, description: str) -> str:
        """The description to store for ``name``: a short one stays as it is."""
        ...


class Growing(Protocol[E_contra]):
    """What a log builds."""

    async def insert(self, insert: int, extracted: Sequence[tuple[int, E_contra]], summarise: Summarise) -> None:
        """Take the extractions of one entry, with the numbers of their chunks: all of it, or on an error nothing."""
        ...


G = TypeVar("G", bound=Growing)  # type: ignore[type-arg]


class Log(Generic[E, G]):
    """Inserts in order of time, and the graph that they made.

    Attributes:
        graph: the structure.
        entries: what was inserted.
        chunks: chunks of all entries, numbered in this order.
        planned: entries that the log is going to hold: those of the longest feed it was chosen for.
    """

    def __init__(self, graph: G) -> None:
        self.graph = graph
        self.entries: list[Entry] = []
        self.chunks: list[Record] = []
        self.planned: tuple[str, ...] = ()
        self._insert_of: list[int] = []
        self._turn = asyncio.Lock()

    async def reach(self, entries: Sequence[Entry], reader: Reader[E]) -> None:
        """Insert those of ``entries`` that are not in yet.

        Raises:
            CallFailed: the model could not be asked; what was inserted before stays.
        """
        start = len(self.entries)

        async def of_entry(entry: Entry) -> list[E]:
            return [await reader.extract(chunk) for chunk in entry.chunks]

        found = await bounded_map(of_entry, entries[start:], EXTRACTIONS_AT_ONCE)
        async with self._turn:
            for number in range(len(self.entries), len(entries)):
                first = len(self.chunks)
                extracted = list(enumerate(found[number - start], start=first))
                await self.graph.insert(number, extracted, reader.summarise)
                self.entries.append(entries[number])
                self.chunks += entries[number].chunks
                self._insert_of += [number] * len(entries[number].chunks)

    def insert_of(self, chunk: int) -> int:
        """The insert that brought ``chunk``."""
        return self._insert_of[chunk]

    def source(self, kind: str, item_id: str, chunks: Sequence[int], last: int) -> Source:
        """Where an item comes from that ``chunks`` speak of and that insert ``last`` was the last to shape.

        It was known when the newest of its sources was: that is the entry of ``last``, for a log is in order of time.
        """
        newest = self.entries[last]
        stocks = {self.chunks[number].source.stock for number in chunks}
        return Source(
            kind=kind,
            item_id=item_id,
            stock=stocks.pop() if len(stocks) == 1 else None,
            ts_start=self.chunks[chunks[0]].source.ts_start,
            ts_end=newest.instant,
            known_at=newest.instant,
            visible_from=newest.instant,
            gate_rule=RESOLVED if newest.is_case else RETRIEVED,
        )

    def chunk_source(self, chunk: int) -> Source:
        """Where a chunk comes from."""
        return replace(self.chunks[chunk].source, kind="chunk")


class Logs(Generic[E, G]):
    """The logs of one process on one corpus: one for all feeds that are prefixes of each other."""

    def __init__(self, make_graph: Callable[[], G]) -> None:
        self._make_graph = make_graph
        self._logs: list[Log[E, G]] = []

    def of(self, entries: Sequence[Entry]) -> Log[E, G]:
        """The log that holds ``entries`` or will: the newest used that does not hold anything else in their place."""
        wanted = tuple(entry.item_id for entry in entries)
        for log in self._logs:
            common = min(len(log.planned), len(wanted))
            if log.planned[:common] == wanted[:common]:
                self._logs.remove(log)
                break
        else:
            log = Log(self._make_graph())
        log.planned = max(log.planned, wanted, key=len)
        self._logs = [log, *self._logs[: LOGS_HELD - 1]]
        return log
