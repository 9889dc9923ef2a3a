"""A memory is a log of operations, each stamped with the time from which it holds; its state at T is the fold before T.

The log is generic: objects have an id and a value (canonical JSON text), an operation puts a value or closes the object, and
nothing is ever erased. Operations are appended in the order of their keys, whatever order the work was done in, so the same
records give the same log.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from harness.clock import Stamp, known_before

_UTC = pa.timestamp("us", tz="UTC")
MEMORY_SCHEMA = pa.schema(
    [
        ("seq", pa.int64()), ("op", pa.string()), ("object_id", pa.string()), ("value", pa.string()),
        ("valid_from", _UTC), ("decision_time", _UTC), ("record_id", pa.string()), ("day", pa.date32()),
        ("scope", pa.string()),
    ]
)  # fmt: skip
"""memory.parquet: operations in commit order, no wall-clock fields. ``value`` is null where an object is closed."""

NOTHING = "nothing"
"""The operation of a record that changed nothing: it says that the record was committed."""

_A_DAY_ANYWHERE = timedelta(days=3)
"""More than lies between the start of a calendar day in the first time zone and its end in the last."""

State = Mapping[str, str]
"""Object id -> value (canonical JSON text)."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change to a memory as a method proposes it: put ``value`` at ``object_id``, or close it (None).

    Without an ``object_id`` it changes nothing and says what happened: a reply that could not be used, an id that does not
    exist. Such incidents are counted (``MemoryLog.incidents``).
    """

    op: str
    object_id: str | None
    value: str | None = None


@dataclass(frozen=True, slots=True, order=True)
class CommitKey:
    """The order of commits. ``valid_from`` is when the record became known; ties by decision time, then id.

    Attributes:
        decision_time: of the case; for a record that is fed to a memory the same as ``valid_from``.
        day: calendar day of a document, for decisions that are a whole day; None for an outcome.
        scope: the part of the memory that the record reads and writes; None for all of it.
    """

    valid_from: datetime
    decision_time: datetime
    record_id: str
    day: date | None = field(default=None, compare=False)
    scope: str | None = field(default=None, compare=False)

    def known_to(self, decision: Stamp) -> bool:
        """Whether ``decision`` may know the record: an outcome resolved before T, a document retrievable at T."""
        return known_before(self.valid_from, self.day, decision)


@dataclass(frozen=True, slots=True)
class MemoryOp:
    """A change as it stands in the log."""

    key: CommitKey
    op: str
    object_id: str | None
    value: str | None


class MemoryLog:
    """Operations in commit order. Appending out of order is an error: a memory learns exactly in order.

    Attributes:
        ops: the operations.
        filled_until: of a memory that was filled no further, all that was known before then is in it; None: all there is.
        made_by: who made it: ``run``, the name of the run, and ``learner``, the fingerprint of the method; None if not stated.
    """

    def __init__(self, ops: Iterable[MemoryOp] = ()) -> None:
        self.ops: list[MemoryOp] = []
        self.filled_until: datetime | None = None
        self.made_by: Mapping[str, Any] | None = None
        self._versions: dict[str, tuple[list[int], list[str | None]]] = {}
        self._live: dict[str | None, dict[str, str]] = {None: {}}
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

    def length_at(self, decision: Stamp) -> int:
        """How many operations ``decision`` may know: the longest prefix whose documents are all retrievable at T and whose
        outcomes resolve before T.
        """
        end = bisect_left(self.ops, decision.instant, key=lambda op: op.key.valid_from)
        if not decision.date_only:
            return end
        start = bisect_left(self.ops, decision.instant - _A_DAY_ANYWHERE, hi=end, key=lambda op: op.key.valid_from)
        return next((i for i in range(start, end) if not self.ops[i].key.known_to(decision)), end)

    def state_at(self, length: int) -> dict[str, str]:
        """The fold of the first ``length`` operations."""
        found = {}
        for name, (places, values) in self._versions.items():
            index = bisect_left(places, length) - 1
            if index >= 0 and (value := values[index]) is not None:
                found[name] = value
        return found

    def final_state(self, scope: str | None = None) -> State:
        """The fold of all operations, or of those of one ``scope`` (a live view)."""
        return MappingProxyType(self._live.setdefault(scope, {}))

    def incidents(self) -> dict[str, int]:
        """How often something happened that changed no object, by its operation."""
        return dict(sorted(Counter(op.op for op in self.ops if op.object_id is None and op.op != NOTHING).items()))

    def sha256(self) -> str:
        """Hash of the operations in commit order."""
        return self._hash.copy().hexdigest()

    def rows(self) -> list[dict[str, object]]:
        """Rows of memory.parquet."""
        return [row_of(seq, op) for seq, op in enumerate(self.ops)]

    def replay(self, op: MemoryOp) -> None:
        """Append one operation as it stands on file."""
        key = op.key
        line = [op.op, op.object_id, op.value, *_plain(key)]
        self._hash.update(json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        if op.object_id is not None:
            places, values = self._versions.setdefault(op.object_id, ([], []))
            places.append(len(self.ops))
            values.append(op.value)
            for live in (self._live.setdefault(scope, {}) for scope in {None, key.scope}):
                if op.value is None:
                    live.pop(op.object_id, None)
                else:
                    live[op.object_id] = op.value
        self.ops.append(op)
        self._records.add(key.record_id)


def _plain(key: CommitKey) -> list[str | None]:
    """``key`` as JSON values."""
    day = key.day.isoformat() if key.day else None
    return [key.valid_from.isoformat(), key.decision_time.isoformat(), key.record_id, day, key.scope]


def row_of(seq: int, op: MemoryOp) -> dict[str, object]:
    """``op`` as a row of memory.parquet."""
    key = op.key
    return {
        "seq": seq, "op": op.op, "object_id": op.object_id, "value": op.value, "valid_from": key.valid_from,
        "decision_time": key.decision_time, "record_id": key.record_id, "day": key.day, "scope": key.scope,
    }  # fmt: skip


def ops_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[MemoryOp]:
    """The operations of rows of memory.parquet, in the order of ``seq``."""
    for row in sorted(rows, key=lambda r: r["seq"]):
        key = CommitKey(row["valid_from"], row["decision_time"], row["record_id"], row["day"], row["scope"])
        yield MemoryOp(key, row["op"], row["object_id"], row["value"])


def dumps(op_list: Sequence[MemoryOp]) -> str:
    """One line of the journal: the operations of one record."""
    ops = [[op.op, op.object_id, op.value] for op in op_list]
    return json.dumps([*_plain(op_list[0].key), ops], ensure_ascii=False)


def loads(line: str) -> list[MemoryOp]:
    """The operations of one line of the journal."""
    valid_from, decision, record_id, day, scope, ops = json.loads(line)
    key = CommitKey(
        datetime.fromisoformat(valid_from),
        datetime.fromisoformat(decision),
        record_id,
        date.fromisoformat(day) if day else None,
        scope,
    )
    return [MemoryOp(key, op, object_id, value) for op, object_id, value in ops]
