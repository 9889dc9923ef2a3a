"""What a build leaves on disk: Parquet parts, appended as the work goes, from which the next run goes on.

A part is named by its content and appears whole or not at all, so processes may write side by side, and a part written twice
is one file. Rows are keyed by the content they were made from: what is found on disk is valid for whoever asks the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.clock import Granularity, Stamp
from harness.errors import HarnessError
from methods.tiem.records import Entity, Proposition, Relation

Row = dict[str, Any]
PART_ROWS = 64
"""Settled pieces of work that a part waits for while the build goes on: what a kill can lose of it."""

_S, _I, _F, _B = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_UTC = pa.timestamp("us", tz="UTC")
_STAMP = pa.struct([("text", _S), ("instant", _UTC), ("day", pa.date32()), ("granularity", _S)])
_ENTITIES = pa.list_(pa.struct([("name", _S), ("type", _S)]))
_RELATIONS = pa.list_(pa.struct([("src", _S), ("dst", _S), ("type", _S)]))

TABLES: Mapping[str, pa.Schema] = {
    "propositions": pa.schema(
        [("key", _S), ("doc_id", _S), ("chunk", _I), ("index", _I), ("ts", _STAMP), ("sentence", _S),
         ("entities", _ENTITIES), ("relations", _RELATIONS)]
    ),
    "failures": pa.schema([("key", _S), ("kind", _S), ("item", _S), ("status", _S), ("reason", _S)]),
    "episodes": pa.schema(
        [("key", _S), ("stock", _S), ("ts_start", _UTC), ("ts_end", _UTC), ("propositions", pa.list_(_S)),
         ("accepted", _B), ("confidence", _F), ("type", _S), ("summary", _S)]
    ),
    "themes": pa.schema(
        [("key", _S), ("stocks", pa.list_(_S)), ("ts_start", _UTC), ("ts_end", _UTC), ("episodes", pa.list_(_S)),
         ("accepted", _B), ("confidence", _F), ("name", _S), ("description", _S), ("type", _S)]
    ),
    "chunks": pa.schema([("key", _S), ("doc_id", _S), ("chunk", _I), ("text_sha256", _S), ("propositions", _I)]),
}  # fmt: skip
"""``episodes`` and ``themes`` hold what the model said of each window and cluster it was shown, rejected ones included.

``chunks`` is written last and says that all propositions of the chunk are there, of which there may be none.
"""


@dataclass(frozen=True, slots=True)
class Failure:
    """A question whose answer could not be used. It is asked again by the next run.

    Attributes:
        key: content key of what was asked.
        kind: extract, episode or theme.
        item: the chunk, window or cluster, as a reader knows it.
        status, reason: those of the answer.
    """

    key: str
    kind: str
    item: str
    status: str
    reason: str


class Artefacts:
    """The tables of one build in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.failures: list[Failure] = []
        self.notices: list[str] = []
        self._waiting: dict[str, list[Row]] = {table: [] for table in TABLES}
        self._settled = 0

    def rows(self, table: str) -> list[Row]:
        """The rows of all parts of ``table`` on disk, parts in the order of their names."""
        return [
            row for path in sorted(self.directory.glob(f"{table}-*.parquet")) for row in pq.read_table(path).to_pylist()
        ]

    def add(self, **rows: list[Row]) -> None:
        """Take the rows that settle one piece of work, by table; written with others, or by ``flush``."""
        for table, some in rows.items():
            self._waiting[table] += some
        self._settled += 1
        if self._settled >= PART_ROWS:
            self.flush()

    def fail(self, failure: Failure) -> None:
        """Record a failure. ``notices`` tells of the first, second, fourth, eighth ... of its kind."""
        self.failures.append(failure)
        same = [f for f in self.failures if f.kind == failure.kind]
        if len(same).bit_count() == 1:
            named = ", ".join(f"{f.item} ({f.status}: {f.reason})" for f in same[:3])
            self.notices.append(
                f"{_LOST[failure.kind]}: {len(same)} or more, first {named}; asked again by the next run "
                f"(all of them: {self.directory}/failures-*.parquet)"
            )
        self.add(failures=[{name: getattr(failure, name) for name in Failure.__slots__}])

    def flush(self) -> None:
        """Write what is waiting."""
        waiting, self._waiting, self._settled = self._waiting, {table: [] for table in TABLES}, 0
        for table, schema in TABLES.items():
            if waiting[table]:
                _write(self.directory, table, pa.Table.from_pylist(waiting[table], schema=schema))

    def open_failures(self) -> list[Row]:
        """Failures on disk that no later run has made good."""
        good = {row["key"] for table in ("chunks", "episodes", "themes") for row in self.rows(table)}
        latest = {row["key"]: row for row in self.rows("failures") if row["key"] not in good}
        return list(latest.values())

    def propositions(self) -> list[Proposition]:
        """All propositions on disk, for audits and provenance. ``stock`` is empty: they belong to their document."""
        found = {(row["key"], row["index"]): row for row in self.rows("propositions")}
        return [_proposition(row) for row in found.values()]

    def extracted(self) -> Iterator[tuple[str, list[Proposition]]]:
        """(key, propositions) of every chunk on disk."""
        by_key: dict[str, dict[int, Proposition]] = {}
        for row in self.rows("propositions"):
            by_key.setdefault(row["key"], {})[row["index"]] = _proposition(row)
        for row in self.rows("chunks"):
            own = by_key.get(row["key"], {})
            yield row["key"], [own[index] for index in sorted(own)]


_LOST = {
    "extract": "chunks of documents without propositions, because the model's answer could not be used",
    "episode": "windows that are no episodes, because the model's answer could not be used",
    "theme": "clusters that are no themes, because the model's answer could not be used",
}


def proposition_row(key: str, p: Proposition) -> Row:
    """``p`` as a row of ``propositions``; ``key`` is its chunk's."""
    return {
        "key": key,
        "doc_id": p.doc_id,
        "chunk": p.chunk,
        "index": p.index,
        "ts": None if p.time is None else {name: getattr(p.time, name) for name in Stamp.__slots__},
        "sentence": p.sentence,
        "entities": [{"name": e.name, "type": e.type} for e in p.entities],
        "relations": [{"src": r.src, "dst": r.dst, "type": r.type} for r in p.relations],
    }


def _proposition(row: Row) -> Proposition:
    ts = row["ts"]
    return Proposition(
        row["doc_id"],
        row["chunk"],
        row["index"],
        "",
        None if ts is None else Stamp(ts["text"], _utc(ts["instant"]), ts["day"], Granularity(ts["granularity"])),
        row["sentence"],
        tuple(Entity(**e) for e in row["entities"]),
        tuple(Relation(**r) for r in row["relations"]),
    )


def _utc(instant: datetime) -> datetime:
    return instant.astimezone(UTC)


def _write(directory: Path, table: str, content: pa.Table) -> None:
    """Write a part under another name first: a reader sees the whole of it or nothing."""
    sink = pa.BufferOutputStream()
    pq.write_table(content, sink, compression="zstd")
    data = sink.getvalue().to_pybytes()
    path = directory / f"{table}-{hashlib.sha256(data).hexdigest()[:16]}.parquet"
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise HarnessError(f"{path}: cannot be written ({error.strerror}); free space, then run again") from error
