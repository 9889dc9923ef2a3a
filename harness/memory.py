"""A memory is a log of operations, each stamped with the time from which it holds; its state at T is the fold before T.

The log is generic: objects have an id and a value (canonical JSON text), an operation puts a value or closes the object, and
nothing is ever erased. Operations are appended in the order (resolve time, decision time, record id), whatever order the
work was done in, so the same cases give the same log.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

import pyarrow as pa

_UTC = pa.timestamp("us", tz="UTC")
MEMORY_SCHEMA = pa.schema(
    [
        ("seq", pa.int64()), ("op", pa.string()), ("object_id", pa.string()), ("value", pa.string()),
        ("valid_from", _UTC), ("decision_time", _UTC), ("record_id", pa.string()),
    ]
)  # fmt: skip
"""memory.parquet: operations in commit order, no wall-clock fields. ``value`` is null where an object is closed."""

NOTHING = "nothing"
"""The operation of a record that changed nothing: it says that the record was committed."""

State = Mapping[str, str]
"""Object id -> value (canonical JSON text)."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change to a memory as a method proposes it: put ``value`` at ``object_id``, or close it (None)."""

    op: str
    object_id: str
    value: str | None


@dataclass(frozen=True, slots=True, order=True)
class CommitKey:
    """The order of commits. ``valid_from`` is when the outcome became known; ties by decision time, then id."""

    valid_from: datetime
    decision_time: datetime
    record_id: str


@dataclass(frozen=True, slots=True)
class MemoryOp:
    """A change as it stands in the log."""

    key: CommitKey
    op: str
    object_id: str | None
    value: str | None


class MemoryLog:
    """Operations in commit order. Appending out of order is an error: a memory learns exactly in order."""

    def __init__(self, ops: Iterable[MemoryOp] = ()) -> None:
        self.ops: list[MemoryOp] = []
        self._versions: dict[str, tuple[list[datetime], list[str | None]]] = {}
        self._live: dict[str, str] = {}
        self._records: set[str] = set()
        self._hash = hashlib.sha256()
        for op in ops:
            self.replay(op)

    def __len__(self) -> int:
        return len(self.ops)

    def __contains__(self, record_id: object) -> bool:
        return record_id in self._records

    def prepare(self, key: CommitKey, changes: Sequence[Change]) -> list[MemoryOp]:
        """The operations of one record (at least one, so that the commit is on record); nothing is appended yet.

        Raises:
            ValueError: out of order, or the record was committed before.
        """
        if key.record_id in self._records:
            raise ValueError(f"record {key.record_id} was committed before")
        if self.ops and key < self.ops[-1].key:
            raise ValueError(f"commit of {key.record_id} at {key.valid_from} comes after {self.ops[-1].key.record_id}")
        return [MemoryOp(key, c.op, c.object_id, c.value) for c in changes] or [MemoryOp(key, NOTHING, None, None)]

    def commit(self, key: CommitKey, changes: Sequence[Change]) -> list[MemoryOp]:
        """Append the changes of one record and return them as operations; raises as ``prepare``."""
        ops = self.prepare(key, changes)
        for op in ops:
            self.replay(op)
        return ops

    def length_before(self, instant: datetime) -> int:
        """How many operations hold before ``instant``: they are a prefix, for the log is in order of time."""
        return bisect_left(self.ops, instant, key=lambda op: op.key.valid_from)

    def state_at(self, instant: datetime) -> dict[str, str]:
        """The fold of the operations with ``valid_from < instant``."""
        found = {}
        for name, (times, values) in self._versions.items():
            index = bisect_left(times, instant) - 1
            if index >= 0 and (value := values[index]) is not None:
                found[name] = value
        return found

    def final_state(self) -> State:
        """The fold of all operations (a live view)."""
        return MappingProxyType(self._live)

    def sha256(self) -> str:
        """Hash of the operations in commit order."""
        return self._hash.copy().hexdigest()

    def rows(self) -> list[dict[str, object]]:
        """Rows of memory.parquet."""
        return [row_of(seq, op) for seq, op in enumerate(self.ops)]

    def replay(self, op: MemoryOp) -> None:
        """Append one operation as it stands on file."""
        self.ops.append(op)
        self._records.add(op.key.record_id)
        line = [
            op.op,
            op.object_id,
            op.value,
            op.key.valid_from.isoformat(),
            op.key.decision_time.isoformat(),
            op.key.record_id,
        ]
        self._hash.update(json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        if op.object_id is not None:
            times, values = self._versions.setdefault(op.object_id, ([], []))
            times.append(op.key.valid_from)
            values.append(op.value)
            if op.value is None:
                self._live.pop(op.object_id, None)
            else:
                self._live[op.object_id] = op.value


def row_of(seq: int, op: MemoryOp) -> dict[str, object]:
    """``op`` as a row of memory.parquet."""
    return {
        "seq": seq, "op": op.op, "object_id": op.object_id, "value": op.value, "valid_from": op.key.valid_from,
        "decision_time": op.key.decision_time, "record_id": op.key.record_id,
    }  # fmt: skip


def ops_of(rows: Iterable[Mapping[str, object]]) -> Iterator[MemoryOp]:
    """The operations of rows of memory.parquet, in the order of ``seq``."""
    for row in sorted(rows, key=lambda r: r["seq"]):  # type: ignore[arg-type, return-value]
        key = CommitKey(row["valid_from"], row["decision_time"], row["record_id"])  # type: ignore[arg-type]
        yield MemoryOp(key, row["op"], row["object_id"], row["value"])  # type: ignore[arg-type]


def dumps(op_list: Sequence[MemoryOp]) -> str:
    """One line of the journal: the operations of one record."""
    key = op_list[0].key
    ops = [[op.op, op.object_id, op.value] for op in op_list]
    return json.dumps(
        [key.valid_from.isoformat(), key.decision_time.isoformat(), key.record_id, ops], ensure_ascii=False
    )


def loads(line: str) -> list[MemoryOp]:
    """The operations of one line of the journal."""
    valid_from, decision, record_id, ops = json.loads(line)
    key = CommitKey(datetime.fromisoformat(valid_from), datetime.fromisoformat(decision), record_id)
    return [MemoryOp(key, op, object_id, value) for op, object_id, value in ops]
