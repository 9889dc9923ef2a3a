"""The run directory: parts written as rows finish, files exported from them, the manifest, one run at a time.

A cell's truth is ``cells/<cell>/parts/``. Each flush is one numbered part of three Parquet files, written to a temporary
name and renamed; ``forecasts-N`` is written last and commits the part, so a kill leaves either a whole part or none that
counts. ``forecasts.parquet``, ``evidence.parquet`` and ``calls.parquet`` are exports of the parts, replaced atomically.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.errors import ConfigError, HarnessError
from harness.records import CALL_SCHEMA, EVIDENCE_SCHEMA, FORECAST_SCHEMA, Row, Status
from harness.text import clean

Key = tuple[str, int]
_TABLES = {"calls": CALL_SCHEMA, "evidence": EVIDENCE_SCHEMA, "forecasts": FORECAST_SCHEMA}
SEAL = "forecasts.parquet.sha256"
_COMMIT = re.compile(r"forecasts-(\d{6})\.parquet")


def write_atomic(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data`` so that a reader sees the old or the new file, never a torn one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise HarnessError(
            f"{path}: cannot be written ({error.strerror}); free space or choose another run.dir"
        ) from error


def write_json(path: Path, value: Any) -> None:
    """Write strict JSON (no NaN), keys in the given order, atomically."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False, default=str)
    write_atomic(path, (text + "\n").encode("utf-8", "replace"))


def _write(path: Path, table: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    write_atomic(path, sink.getvalue().to_pybytes())


def _table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """``rows`` as a table. What Parquet cannot hold (text with a lone surrogate) is replaced: one odd row must not cost the rest."""
    try:
        return pa.Table.from_pylist(list(rows), schema=schema)
    except UnicodeEncodeError:
        return pa.Table.from_pylist(clean(list(rows)), schema=schema)


def _read_table(path: Path) -> list[Row]:
    rows: list[Row] = pq.read_table(path).to_pylist()
    return rows


class CellStore:
    """Rows of one cell. One writer; readers may look at any time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.parts = directory / "parts"
        self._next = max((n for n, _ in self._committed()), default=-1) + 1

    def about(self) -> dict[str, Any] | None:
        """cell.json, or None if the cell has not ended yet.

        Raises:
            ConfigError: the file is damaged.
        """
        path = self.directory / "cell.json"
        if not path.exists():
            return None
        try:
            found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        except ValueError:
            raise ConfigError(f"{path}: not valid JSON; move it away and run again") from None
        return found

    def append(self, forecasts: Sequence[Row], evidence: Sequence[Row], calls: Sequence[Row]) -> None:
        """Write one part. ``forecasts`` may be empty (calls of a build); the part counts once its last file is there."""
        for table, rows in (("calls", calls), ("evidence", evidence), ("forecasts", forecasts)):
            if rows or table == "forecasts":
                _write(self.parts / f"{table}-{self._next:06d}.parquet", _table(rows, _TABLES[table]))
        self._next += 1

    def finished(self) -> dict[Key, Row]:
        """Rows that the model has answered, by (catalyst_id, epoch): they are never asked again."""
        return {key: row for key, (row, _) in self._latest().items() if Status(row["status"]).final}

    def export(self) -> list[Row]:
        """Write the three Parquet files from the parts and return the forecasts, in order of (decision time, id, epoch)."""
        latest = self._latest()
        rows = sorted(latest.values(), key=lambda r: (r[0]["decision_time"], r[0]["catalyst_id"], r[0]["epoch"]))
        place = {(row["catalyst_id"], row["epoch"], number): i for i, (row, number) in enumerate(rows)}
        placed = {key[:2]: i for key, i in place.items()}
        # Evidence goes with the row that counts, in the order of its prompt; calls were made whether or not theirs does.
        evidence = self._gathered("evidence", lambda key, number: place.get((*key, number)))
        calls = self._gathered("calls", lambda key, number: placed.get(key, -1), "sent_at")
        forecasts = [row for row, _ in rows]
        for name, table in (("evidence", evidence), ("calls", calls)):
            _write(self.directory / f"{name}.parquet", table)
        _write(self.directory / "forecasts.parquet", _table(forecasts, FORECAST_SCHEMA))
        return forecasts

    def seal(self, complete: bool) -> None:
        """Write the SHA-256 of ``forecasts.parquet`` beside it, as ``sha256sum`` does, so that it can be published.

        A file that may still change has none: then (not ``complete``) the seal of an earlier run is taken away.
        """
        path, seal = self.directory / "forecasts.parquet", self.directory / SEAL
        if not complete:
            seal.unlink(missing_ok=True)
            return
        write_atomic(seal, f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n".encode())

    def _gathered(self, name: str, place: Callable[[Key, int], int | None], then: str | None = None) -> pa.Table:
        """Rows of all parts in the order of ``place`` (key, part; None to leave a row out), then of a time, then as written."""
        parts, places = [_TABLES[name].empty_table()], list[int | None]()
        for number, _ in self._committed():
            path = self.parts / f"{name}-{number:06d}.parquet"
            if path.exists():
                part = pq.read_table(path)
                keys = zip(part["catalyst_id"].to_pylist(), part["epoch"].to_pylist(), strict=True)
                places += [place(key, number) for key in keys]
                parts.append(part)
        table = pa.concat_tables(parts).append_column("place", pa.array(places, pa.int64()))
        table = table.filter(pc.field("place").is_valid())
        when = pc.fill_null(table[then].cast(pa.int64()), -1) if then else table["place"]
        order = pc.sort_indices(
            pa.table([table["place"], when], ["place", "when"]), [("place", "ascending"), ("when", "ascending")]
        )
        return table.take(order).drop_columns("place")

    def _committed(self) -> list[tuple[int, Path]]:
        if not self.parts.is_dir():
            return []
        found = ((_COMMIT.fullmatch(p.name), p) for p in self.parts.iterdir())
        return sorted((int(match.group(1)), path) for match, path in found if match)

    def _latest(self) -> dict[Key, tuple[Row, int]]:
        """The row that counts for each key with its part: a finished row is never replaced, else the newest wins."""
        latest: dict[Key, tuple[Row, int]] = {}
        for number, path in self._committed():
            for row in _read_table(path):
                key = (row["catalyst_id"], row["epoch"])
                if key not in latest or not Status(latest[key][0]["status"]).final:
                    latest[key] = (row, number)
        return latest


def in_use(run_dir: Path) -> bool:
    """Whether a run holds ``run_dir`` now: asked of the system, which forgets nobody and remembers no one who is gone."""
    try:
        handle = (run_dir / ".lock").open("r")
    except OSError:
        return False
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


class RunDirectory:
    """A run directory, held by one run at a time."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser().absolute()
        self._lock: IO[str] | None = None

    def lock(self) -> None:
        """Create the directory and take it for this process (released by the system when the process ends).

        Raises:
            ConfigError: not writable, or another run holds it.
        """
        try:
            for folder in ("cells", "memories", "cache", "report"):
                (self.path / folder).mkdir(parents=True, exist_ok=True)
            handle = (self.path / ".lock").open("w")
        except OSError as error:
            raise ConfigError(
                f"run.dir={self.path}: not writable ({error.strerror}: {error.filename}); choose another run.dir"
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            raise ConfigError(
                f"run.dir={self.path}: another run is writing there; wait for it, or choose another run.dir"
            ) from None
        self._lock = handle

    def store(self, kind: str, name: str) -> CellStore:
        """Rows of a cell (``cells``) or of the training of a memory (``memories``)."""
        return CellStore(self.path / kind / name)

    @property
    def cache(self) -> Path:
        return self.path / "cache"

    @property
    def report(self) -> Path:
        return self.path / "report"

    def update_manifest(self, values: Mapping[str, Any], cells: Mapping[str, Any], data: Iterable[Row]) -> None:
        """Add this run to ``manifest.json``: cells of earlier runs in the same directory stay."""
        path = self.path / "manifest.json"
        old: dict[str, Any] = {}
        if path.exists():
            try:
                old = json.loads(path.read_text("utf-8"))
            except ValueError:
                raise ConfigError(f"{path}: not valid JSON; move it away and run again") from None
        files = {(f["benchmark"], f["path"], f["sha256"]): f for f in [*old.get("data", []), *data]}
        write_json(
            path, {**values, "cells": {**old.get("cells", {}), **cells}, "data": [files[k] for k in sorted(files)]}
        )
