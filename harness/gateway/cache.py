"""Replies on disk, found by request: a reply is committed here before anyone sees it.

With every reply goes a row of what it cost (``payments``), in the same commit, so that the ledger cannot lose what the store
has; unusable replies and attempts nobody answered have such a row too. ``facts`` remembers what was found out about the endpoint.

One SQLite file in WAL mode. A commit survives ``kill -9`` of the process (the WAL is in the page cache of the system); with
``synchronous=NORMAL`` a power cut may lose the last commits but corrupts nothing. Replies that wait together are committed
together, off the event loop. The WAL is folded into the file every ``_WAL_BYTES`` and when the store is closed. Only usable replies are kept, as they came: whether a reply still parses is decided when it
is read, so a better parser needs no new calls.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import TypeVar

from harness import packing
from harness.errors import HarnessError

_SCHEMA = f"""
{packing.SCHEMA};
CREATE TABLE IF NOT EXISTS replies (
    request_sha256 TEXT PRIMARY KEY,
    endpoint TEXT NOT NULL,
    created_at TEXT NOT NULL,
    request BLOB NOT NULL,
    reply BLOB,
    answered_by TEXT
);
CREATE TABLE IF NOT EXISTS payments (
    request_sha256 TEXT NOT NULL,
    paid_at TEXT NOT NULL,
    cell TEXT,
    purpose TEXT NOT NULL,
    stage TEXT NOT NULL,
    model TEXT NOT NULL,
    status TEXT NOT NULL,
    prompt_tokens INTEGER,
    cached_tokens INTEGER,
    completion_tokens INTEGER,
    reasoning_tokens INTEGER,
    cost_usd REAL
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
UNANSWERED = "unanswered"
"""Status of a payment for an attempt without an answer: its tokens and its cost are the most they can be."""
_BUSY_S = 30.0
_PAGE = 512
"""Bytes a page. A commit writes whole pages: one of the index for every row (keys are random), the last of both tables, the first."""
_WAL_BYTES = 16 << 20
"""Pages of the index are dispersed: folded in seldom, each is written once for many rows, and the disk is waited for as seldom."""
T = TypeVar("T")


class CacheError(HarnessError):
    """The reply cache cannot be read or written: nothing may go on, or paid replies would be lost."""


@dataclass(frozen=True, slots=True)
class CachedReply:
    """One row. Exactly one of ``reply`` and ``answered_by`` is set.

    Attributes:
        request: canonical JSON whose SHA-256 is ``request_sha256``.
        reply: body of the chat completion as the server sent it.
        answered_by: ``request_sha256`` of the fresh try that led to a usable reply.
    """

    request_sha256: str
    endpoint: str
    created_at: str
    request: str
    reply: str | None
    answered_by: str | None = None


@dataclass(frozen=True, slots=True)
class Payment:
    """What one attempt cost: one that got a reply, usable or not, or one whose fate is unknown.

    Attributes:
        status: of the reply, or ``unanswered``.
        cost_usd: at the price of the day; None where the price or the usage is not known.
    """

    request_sha256: str
    paid_at: str
    cell: str | None
    purpose: str
    stage: str
    model: str
    status: str
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None


PAYMENT_COLUMNS = tuple(field.name for field in fields(Payment))
_values = attrgetter(*PAYMENT_COLUMNS)
_PAY = f"INSERT INTO payments VALUES ({', '.join('?' * len(PAYMENT_COLUMNS))})"


def stamp() -> str:
    """Now, in UTC, as the cache writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class ReplyCache:
    """Open with a path, ``await put`` rows, ``get`` them at any time; ``close`` when no put is waiting."""

    def __init__(self, path: Path | str) -> None:
        """Create the file and its directory where they are missing.

        Raises:
            CacheError: not a database, or not writable.
        """
        self.path = Path(path)
        self._waiting: list[tuple[CachedReply | None, Sequence[Payment], asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._reader = self._guard(self._open)
        self._store = self._guard(self._open)
        self._unpack = packing.unpacker(self._reader)
        self._packing = packing.Packing(self._store)
        self._turn = Lock()

    def get(self, request_sha256: str) -> CachedReply | None:
        """The row of a request, or None."""
        row = self._guard(
            lambda: self._reader.execute("SELECT * FROM replies WHERE request_sha256 = ?", (request_sha256,)).fetchone()
        )
        if row is None:
            return None
        sha, endpoint, created_at, request, reply, answered_by = row
        text = None if reply is None else self._unpack(reply)
        return CachedReply(sha, endpoint, created_at, self._unpack(request), text, answered_by)

    async def put(self, row: CachedReply | None, payments: Sequence[Payment] = ()) -> None:
        """Return once ``row`` and ``payments`` are committed, all or none. The first reply to a request stays.

        Raises:
            CacheError: it could not be written.
        """
        if row is None and not payments:
            return
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, payments, written))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_waiting())
        await written

    def fact(self, name: str) -> str | None:
        """What is remembered under ``name``."""
        row = self._guard(lambda: self._reader.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone())
        return None if row is None else str(row[0])

    def remember(self, name: str, value: str) -> None:
        """Keep ``value`` under ``name``, at once."""
        with self._turn:
            self._guard(lambda: self._commit_all("INSERT OR REPLACE INTO facts VALUES (?, ?)", [(name, value)]))

    def close(self) -> None:
        self._reader.close()
        self._store.close()

    async def _write_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._commit, [(row, payments) for row, payments, _ in batch])
            except CacheError as error:
                for _, _, written in batch:
                    if not written.done():
                        written.set_exception(error)
            else:
                for _, _, written in batch:
                    if not written.done():
                        written.set_result(None)

    def _commit(self, batch: Sequence[tuple[CachedReply | None, Sequence[Payment]]]) -> None:
        def insert() -> None:
            with self._store:
                rows = [self._row(row, payments) for row, payments in batch if row is not None]
                self._store.executemany("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?, ?)", rows)
                self._store.executemany(_PAY, [_values(payment) for _, payments in batch for payment in payments])

        with self._turn:
            try:
                self._guard(insert)
            except CacheError:
                self._packing.forget()
                raise

    def _row(self, row: CachedReply, payments: Sequence[Payment]) -> tuple[str | bytes | None, ...]:
        purpose = payments[-1].purpose if payments else ""
        request, reply = self._packing.pack(purpose, row.request, row.reply)
        return row.request_sha256, row.endpoint, row.created_at, request, reply, row.answered_by

    def _commit_all(self, statement: str, rows: Sequence[tuple[str, ...]]) -> None:
        with self._store:
            self._store.executemany(statement, rows)

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_BUSY_S, check_same_thread=False)
        connection.execute(f"PRAGMA page_size={_PAGE}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint={_WAL_BYTES // _PAGE}")
        connection.executescript(_SCHEMA)
        return connection

    def _guard(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except (sqlite3.Error, OSError) as error:
            raise CacheError(
                f"reply cache {self.path}: {error}. Check free space and permissions there, then run the same command "
                "again; replies stored so far are kept."
            ) from error
