"""Batches on their way, on disk: what a run after a kill has to look for."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS batches (
    tag TEXT PRIMARY KEY, endpoint TEXT NOT NULL, created_at TEXT NOT NULL, batch_id TEXT, keys TEXT NOT NULL
)
"""


@dataclass
class Batch:
    """``left``: keys whose replies are not known to be stored."""

    tag: str
    keys: frozenset[str]
    batch_id: str | None = None
    left: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.left = set(self.keys)


class BatchLog:
    """Those of one endpoint, in a table beside its replies."""

    def __init__(self, path: Path, endpoint: str) -> None:
        self._path = path
        self._endpoint = endpoint

    def rows(self) -> list[Batch]:
        """What was submitted and not yet collected, oldest first."""
        with closing(self._open()) as db:
            query = "SELECT tag, keys, batch_id FROM batches WHERE endpoint = ? ORDER BY created_at, tag"
            found = db.execute(query, (self._endpoint,)).fetchall()
        return [Batch(tag, frozenset(json.loads(keys)), batch_id) for tag, keys, batch_id in found]

    def write(self, batch: Batch) -> None:
        """Add ``batch``, or what is now known of it."""
        row = (batch.tag, self._endpoint, datetime.now(UTC).isoformat(), batch.batch_id, json.dumps(sorted(batch.keys)))
        with closing(self._open()) as db, db:
            db.execute(
                "INSERT INTO batches VALUES (?, ?, ?, ?, ?) ON CONFLICT (tag) DO UPDATE SET batch_id = excluded.batch_id",
                row,
            )

    def remove(self, batch: Batch) -> None:
        """All of it was collected, or it never came to be."""
        with closing(self._open()) as db, db:
            db.execute("DELETE FROM batches WHERE tag = ?", (batch.tag,))

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=30)
        db.execute(_SCHEMA)
        return db
