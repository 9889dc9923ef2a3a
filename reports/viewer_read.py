"""What the case viewer reads of a run: forecasts with everything about them, evidence, calls, memory, stored exchanges.

Only forecasts.parquet is required; every other file is used where it is there. One cell's files are read at a time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.records import CALL_SCHEMA, EVIDENCE_SCHEMA, FORECAST_SCHEMA
from reports.read import listed, read_arrays

Key = tuple[str, int]
"""(catalyst_id, epoch)."""
Columns = Mapping[str, list[Any]]
"""Rows as lists by column name; instants are microseconds since 1970, UTC."""

_REQUIRED = ("cell", "method", "backbone", "benchmark", "epoch", "catalyst_id", "label", "prob_positive", "status")
_EVIDENCE_REQUIRED = ("catalyst_id", "epoch", "kind", "verdict")
_CALLS_REQUIRED = ("catalyst_id", "purpose", "request_sha256", "status")
_UTC = pa.timestamp("us", tz="UTC")
_MEMORY_SCHEMA = pa.schema(
    [("object_id", pa.string()), ("value", pa.string()), ("valid_from", _UTC), ("day", pa.date32())]
)


@dataclass(frozen=True)
class Slices:
    """Rows of a file grouped by forecast; columns that the file does not have are full of None."""

    columns: Columns
    at: Mapping[Key, Sequence[int]]

    def of(self, key: Key) -> Sequence[int]:
        """Positions of the rows of one forecast, in the file's order."""
        return self.at.get(key, ())


@dataclass(frozen=True)
class Memory:
    """The log of a memory by object: (valid_from, day, value) of each operation in the order of commits."""

    log: Mapping[str, Sequence[tuple[int, date | None, str | None]]]

    def before(self, object_id: str, decided: int, whole_day: date | None) -> str | None:
        """The value of ``object_id`` that a decision could see; None if there was none, or it was closed.

        Args:
            object_id: as in evidence.parquet.
            decided: instant of the decision, in microseconds since 1970.
            whole_day: its day, where the decision is no instant but a day: documents of that day are not seen.
        """
        for valid_from, day, value in reversed(self.log.get(object_id, ())):
            if valid_from < decided and (whole_day is None or day is None or day < whole_day):
                return value
        return None


@dataclass(frozen=True)
class CaseCell:
    """One cell: where its files are, and every column of its forecasts.parquet (full of None where the file has no such column)."""

    cell: str
    folder: Path
    rows: Columns

    @property
    def run_dir(self) -> Path:
        return self.folder.parent.parent

    @property
    def size(self) -> int:
        return len(self.rows["catalyst_id"])


@dataclass(frozen=True)
class CaseFiles:
    """The other files of a cell; None where there is no such file."""

    evidence: Slices | None
    calls: Slices | None
    memory: Memory | None


def read_cells(run_dirs: Iterable[Path], cells: Iterable[str]) -> list[CaseCell]:
    """The cells named in ``cells`` in that order, each from the first run that holds its forecasts; one without forecasts is left out.

    Raises:
        DataError: a file that is there cannot be read, or has a column of another type.
    """
    found: dict[str, CaseCell] = {}
    wanted = list(cells)
    for run in dict.fromkeys(path.resolve() for path in run_dirs):
        for path in sorted((run / "cells").glob("*/forecasts.parquet")):
            rows = _all_columns(path, FORECAST_SCHEMA, _REQUIRED)
            if rows["cell"] and rows["cell"][0] in wanted:
                found.setdefault(rows["cell"][0], CaseCell(rows["cell"][0], path.parent, rows))
    return [found[cell] for cell in wanted if cell in found]


def read_files(cell: CaseCell) -> CaseFiles:
    """Evidence, calls and memory of ``cell``.

    Raises:
        DataError: a file that is there cannot be read, or has a column of another type.
    """
    return CaseFiles(
        _slices(cell.folder / "evidence.parquet", EVIDENCE_SCHEMA, _EVIDENCE_REQUIRED),
        _slices(cell.folder / "calls.parquet", CALL_SCHEMA, _CALLS_REQUIRED),
        _memory(cell.folder / "memory.parquet"),
    )


def _all_columns(path: Path, schema: pa.Schema, required: Sequence[str]) -> Columns:
    arrays = read_arrays(path, schema, required, [name for name in schema.names if name not in required])
    size = len(arrays[required[0]])
    return {name: _listed(arrays[name]) if name in arrays else [None] * size for name in schema.names}


def _listed(array: pa.ChunkedArray) -> list[Any]:
    """Python values; instants as microseconds since 1970, since a grid has millions and a datetime of each takes minutes."""
    return listed(array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array)


def _slices(path: Path, schema: pa.Schema, required: Sequence[str]) -> Slices | None:
    if not path.exists():
        return None
    columns = _all_columns(path, schema, required)
    at: dict[Key, list[int]] = defaultdict(list)
    for i, (catalyst, epoch) in enumerate(zip(columns["catalyst_id"], columns["epoch"], strict=True)):
        if catalyst is not None:  # else a call that belongs to no forecast
            at[catalyst, epoch or 0].append(i)
    return Slices(columns, dict(at))


def _memory(path: Path) -> Memory | None:
    if not path.exists():
        return None
    columns = _all_columns(path, _MEMORY_SCHEMA, ("object_id", "value", "valid_from"))
    log: dict[str, list[tuple[int, date | None, str | None]]] = defaultdict(list)
    for object_id, value, valid_from, day in zip(
        *(columns[name] for name in ("object_id", "value", "valid_from", "day")), strict=True
    ):
        if object_id is not None and valid_from is not None:
            log[object_id].append((valid_from, day, value))
    return Memory(dict(log))


def valid_text(text: str) -> str:
    """``text`` with every lone surrogate replaced by U+FFFD: a reply's JSON may escape one, and UTF-8 cannot hold it."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def messages_of(request: str) -> list[tuple[str, str]]:
    """(role, text) of each message of a stored request, oldest first; a call of a tool is shown by its name and arguments.

    Raises:
        ValueError: not the JSON of a chat request.
    """
    try:
        messages = json.loads(request)["body"]["messages"]
        return [(str(message.get("role", "")), valid_text(_content(message))) for message in messages]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the stored request is not a chat request ({error})") from error


@dataclass(frozen=True)
class Answer:
    """A stored reply: what the model wrote, what it wrote while thinking, and why it stopped."""

    content: str
    thinking: str | None
    finish_reason: str | None


def answer_of(reply: str) -> Answer:
    """The first choice of a stored reply.

    Raises:
        ValueError: not the JSON of a chat completion.
    """
    try:
        choice = json.loads(reply)["choices"][0]
        message = choice["message"]
        thinking = message.get("reasoning_content") or message.get("reasoning")
        return Answer(
            valid_text(_content(message)),
            valid_text(thinking) if isinstance(thinking, str) else None,
            choice.get("finish_reason"),
        )
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"the stored reply is not a chat completion ({error})") from error


def _content(message: Mapping[str, Any]) -> str:
    """The text of a message; content in parts is joined, a refusal or the calls of tools stand in its place."""
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    texts = [content or message.get("refusal") or ""]
    for call in message.get("tool_calls") or ():
        function = call["function"]
        texts.append(f"{function['name']}({function['arguments']})")
    return "\n".join(text for text in texts if text)
