"""Replies on disk, found by request: a reply is committed here before anyone sees it.

One SQLite file in WAL mode. A commit survives ``kill -9`` of the process (the WAL is in the page cache of the system); with
``synchronous=NORMAL`` a power cut may lose the last commits but corrupts nothing. Replies that wait together are committed
together, off the event loop. Only usable replies are kept, as they came: whether a reply still parses is decided when it
is read, so a better parser needs no new calls.
"""

from __future__ import annotations

import asyncio
import sqlite3
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from harness.errors import HarnessError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    request_sha256 TEXT PRIMARY KEY,
    endpoint TEXT NOT NULL,
    created_at TEXT NOT NULL,
    request BLOB NOT NULL,
    reply BLOB,
    answered_by TEXT
)
"""
_BUSY_S = 30.0
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
        self._waiting: list[tuple[CachedReply, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._reader = self._guard(self._open)
        self._store = self._guard(self._open)

    def get(self, request_sha256: str) -> CachedReply | None:
        """The row of a request, or None."""
        row = self._guard(
            lambda: self._reader.execute("SELECT * FROM replies WHERE request_sha256 = ?", (request_sha256,)).fetchone()
        )
        if row is None:
            return None
        sha, endpoint, created_at, request, reply, answered_by = row
        text = None if reply is None else _unpack(reply)
        return CachedReply(sha, endpoint, created_at, _unpack(request), text, answered_by)

    async def put(self, row: CachedReply) -> None:
        """Return once ``row`` is committed. The first reply to a request stays.

        Raises:
            CacheError: it could not be written.
        """
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, written))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_waiting())
        await written

    def close(self) -> None:
        self._reader.close()
        self._store.close()

    async def _write_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._commit, [row for row, _ in batch])
            except CacheError as error:
                for _, written in batch:
                    if not written.done():
                        written.set_exception(error)
            else:
                for _, written in batch:
                    if not written.done():
                        written.set_result(None)

    def _commit(self, rows: list[CachedReply]) -> None:
        values = [
            (
                row.request_sha256,
                row.endpoint,
                row.created_at,
                _pack(row.request),
                None if row.reply is None else _pack(row.reply),
                row.answered_by,
            )
            for row in rows
        ]

        def insert() -> None:
            with self._store:
                self._store.executemany("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?, ?)", values)

        self._guard(insert)

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_BUSY_S, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(_SCHEMA)
        connection.commit()
        return connection

    def _guard(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except (sqlite3.Error, OSError) as error:
            raise CacheError(
                f"reply cache {self.path}: {error}. Check free space and permissions there, then run the same command "
                "again; replies stored so far are kept."
            ) from error


def _pack(text: str) -> bytes:
    return zlib.compress(text.encode(), 1)


def _unpack(blob: bytes) -> str:
    return zlib.decompress(blob).decode()
