"""Stored replies as a reader sees them: read-only, no endpoint, no client; a store that a run is writing to may be read."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from harness.errors import DataError
from harness.packing import unpacker

STORES = "replies-*.sqlite"
"""Names of the stores in a run's ``cache/``, one an endpoint."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What was asked and what came back, both as JSON texts: the canonical request, and the body of the chat completion."""

    request: str
    reply: str


def store_of(cache: Path, endpoint: str) -> Path:
    """The store of ``endpoint`` (its name) in ``cache``."""
    return cache / STORES.replace("*", endpoint)


def endpoint_of(store: Path) -> str:
    """Name of the endpoint whose replies ``store`` holds."""
    return store.stem.removeprefix("replies-")


def open_store(path: Path) -> sqlite3.Connection:
    """``path`` for reading only.

    Raises:
        DataError: not a store of replies.
    """
    try:
        db = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
        db.execute("SELECT count(*) FROM replies").fetchone()
    except sqlite3.Error as error:
        raise DataError(f"{path}: not a store of replies ({error})") from None
    return db


def stores_of(run_dir: Path) -> list[Path]:
    """The stores of a run directory, by name; none where nothing was kept."""
    return sorted((run_dir / "cache").glob(STORES))


class Replies:
    """Some stores read as one. ``get`` finds an exchange in whichever holds it; ``close`` when done."""

    def __init__(self, stores: Iterable[Path]) -> None:
        """Open them all.

        Raises:
            DataError: one is not a store of replies.
        """
        self._stores = [(path, db, unpacker(db)) for path, db in ((path, open_store(path)) for path in stores)]

    def __len__(self) -> int:
        """How many stores there are."""
        return len(self._stores)

    def get(self, request_sha256: str) -> Exchange | None:
        """The exchange of a request, by way of the fresh try that was usable; None if it is not kept.

        Raises:
            DataError: a row that cannot be read.
        """
        for path, db, unpack in self._stores:
            try:
                row = db.execute(
                    "SELECT asked.request, coalesce(asked.reply, tried.reply) FROM replies AS asked "
                    "LEFT JOIN replies AS tried ON tried.request_sha256 = asked.answered_by WHERE asked.request_sha256 = ?",
                    (request_sha256,),
                ).fetchone()
                if row is not None and row[1] is not None:
                    return Exchange(unpack(row[0]), unpack(row[1]))
            except (sqlite3.Error, zlib.error, UnicodeDecodeError) as error:
                raise DataError(
                    f"{path}: the row of request {request_sha256} cannot be read ({error}). "
                    "Look for damage with: python -m harness.cache verify RUN_DIR"
                ) from None
        return None

    def close(self) -> None:
        for _, db, _ in self._stores:
            db.close()
