"""Run directories in, checked cells out. Only ``cells/*/forecasts.parquet`` is required; the rest is used where present."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import DataError
from harness.records import Status

Columns = Mapping[str, list[Any]]
"""Rows as lists by column name, all of one length; missing is None, never NaN."""

REQUIRED = (
    "cell", "method", "backbone", "benchmark", "epoch", "gate", "catalyst_id", "label", "prob_positive", "status",
    "rehearsal",
)  # fmt: skip
OPTIONAL = (
    "seed", "memory", "embedder", "decision_day", "direction", "n_calls", "prompt_tokens", "completion_tokens",
    "total_prompt_tokens", "total_completion_tokens", "cost_usd", "prompt_sha256",
)  # fmt: skip
EVIDENCE = ("catalyst_id", "epoch", "kind", "verdict")
_NEVER_NULL = ("cell", "method", "backbone", "benchmark", "epoch", "gate", "catalyst_id", "status", "rehearsal")
_CONSTANT = ("cell", "method", "backbone", "benchmark", "gate")


@dataclass(frozen=True)
class Cell:
    """One cell as read from disk.

    Attributes:
        rows: the columns ``REQUIRED`` and ``OPTIONAL``, sorted by (catalyst_id, epoch). Empty lists if the cell has no forecasts.
        meta: ``cell.json``, or None where the file is missing.
        evidence: the columns ``EVIDENCE``, or None where the file is missing.
        absent: optional columns that forecasts.parquet does not have.
    """

    cell: str
    method: str
    backbone: str
    benchmark: str
    gate: str | None
    seed: int | None
    memory: str | None
    embedder: str | None
    rehearsal: bool
    rows: Columns
    meta: Mapping[str, Any] | None
    evidence: Columns | None
    absent: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(self.rows["catalyst_id"])


@dataclass(frozen=True)
class Loaded:
    """All cells of all runs in the order (benchmark, backbone, method, cell), and one manifest (or None) a run."""

    cells: tuple[Cell, ...]
    manifests: tuple[Mapping[str, Any] | None, ...]
    warnings: tuple[str, ...]


def load(run_dirs: Sequence[Path]) -> Loaded:
    """Read every cell below ``run_dirs``.

    Raises:
        DataError: no cells, an unreadable file, a missing column, a bad value, one (cell, catalyst_id, epoch) twice,
            or one cell id with different contents in two runs.
    """
    found: dict[str, tuple[Path, Cell]] = {}
    warnings: list[str] = []
    runs = list(dict.fromkeys(path.resolve() for path in run_dirs))
    for run in runs:
        here: dict[str, Path] = {}
        for folder in _cell_folders(run):
            cell = _read_cell(folder)
            if cell is None:
                warnings.append(f"cells/{folder.name} holds neither forecasts nor a cell.json and is left out.")
                continue
            if cell.cell in here:
                raise DataError(
                    f"{folder}: cell {cell.cell!r} is also in {here[cell.cell]}, so its rows would count twice. "
                    "Remove one of the two folders."
                )
            here[cell.cell] = folder
            if cell.cell in found:
                _same_or_refuse(found[cell.cell], (folder, cell))
            found.setdefault(cell.cell, (folder, cell))
    if not found:
        raise DataError(
            f"No cell with forecasts in {', '.join(map(str, runs))}. Give run directories that hold cells/*/forecasts.parquet."
        )
    cells = sorted((cell for _, cell in found.values()), key=lambda c: (c.benchmark, c.backbone, c.method, c.cell))
    return Loaded(tuple(cells), tuple(_read_json(run / "manifest.json") for run in runs), tuple(warnings))


def _cell_folders(run: Path) -> list[Path]:
    if not (run / "cells").is_dir():
        raise DataError(
            f"{run}: no folder cells/ here. Give a run directory (the value of run.dir), which holds cells/*/forecasts.parquet."
        )
    return sorted(path for path in (run / "cells").iterdir() if path.is_dir())


def _read_cell(folder: Path) -> Cell | None:
    """The cell in ``folder``; None if there is nothing to name it by."""
    meta = _read_json(folder / "cell.json")
    path = folder / "forecasts.parquet"
    rows, absent = _read_forecasts(path) if path.exists() else ({name: [] for name in (*REQUIRED, *OPTIONAL)}, ())
    if not rows["cell"] and meta is None:
        return None
    source: dict[str, Any] = {name: values[0] for name, values in rows.items() if values} or dict(meta or {})
    for key in ("cell", "method", "backbone", "benchmark"):
        if not source.get(key):
            raise DataError(
                f"{folder / 'cell.json'}: key {key!r} is missing. Run the cell again, or remove its folder."
            )
    return Cell(
        cell=source["cell"],
        method=source["method"],
        backbone=source["backbone"],
        benchmark=source["benchmark"],
        gate=source.get("gate"),
        seed=source.get("seed"),
        memory=source.get("memory"),
        embedder=source.get("embedder"),
        rehearsal=any(rows["rehearsal"]) or bool(source.get("rehearsal")),
        rows=rows,
        meta=meta,
        evidence=_read_evidence(folder / "evidence.parquet"),
        absent=absent,
    )


def _read_forecasts(path: Path) -> tuple[Columns, tuple[str, ...]]:
    columns = _read_parquet(path, REQUIRED, OPTIONAL)
    absent = tuple(name for name in OPTIONAL if name not in columns)
    size = len(columns["cell"])
    full: dict[str, list[Any]] = {**columns, **{name: [None] * size for name in absent}}
    _check(path, full)
    order = sorted(range(size), key=lambda i: (full["catalyst_id"][i], full["epoch"][i]))
    return {name: [values[i] for i in order] for name, values in full.items()}, absent


def _check(path: Path, rows: Columns) -> None:
    """Refuse what would make a figure wrong; the message names file, row (from 0), key and value."""
    known = {status.value for status in Status}
    first: dict[tuple[str, int], int] = {}
    for i, key in enumerate(zip(rows["catalyst_id"], rows["epoch"], strict=True)):
        for name in _NEVER_NULL:
            if rows[name][i] is None:
                raise DataError(f"{path}: row {i}: {name} is null; it must be given.")
        for name in _CONSTANT:
            if rows[name][i] != rows[name][0]:
                raise DataError(
                    f"{path}: row {i}: {name} is {rows[name][i]!r} but {rows[name][0]!r} in row 0. One file holds one cell: split it."
                )
        if key in first:
            raise DataError(
                f"{path}: rows {first[key]} and {i} both hold cell {rows['cell'][i]!r}, catalyst_id {key[0]!r}, epoch {key[1]}. "
                "A forecast counts once: remove one of them."
            )
        first[key] = i
        status, prob = rows["status"][i], rows["prob_positive"][i]
        if status not in known:
            raise DataError(f"{path}: row {i}: status is {status!r}; known are {', '.join(sorted(known))}.")
        if status == Status.OK and (prob is None or not 0.0 <= prob <= 1.0):
            raise DataError(
                f"{path}: row {i} ({key[0]!r}): status is ok but prob_positive is {prob!r}; it must lie in [0, 1]."
            )


def _read_evidence(path: Path) -> Columns | None:
    return _read_parquet(path, EVIDENCE, ()) if path.exists() else None


def _read_parquet(path: Path, required: Sequence[str], optional: Sequence[str]) -> dict[str, list[Any]]:
    try:
        names = pq.read_schema(path).names
        missing = [name for name in required if name not in names]
        if missing:
            raise DataError(
                f"{path}: column(s) {', '.join(missing)} missing. Write the file again with the documented columns."
            )
        table = pq.read_table(
            path, columns=[name for name in (*required, *optional) if name in names], partitioning=None
        )
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path}: not a readable Parquet file ({error}). Run the cell again, or remove its folder."
        ) from error
    return {name: [_plain(value) for value in table.column(name).to_pylist()] for name in table.column_names}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _read_json(path: Path) -> Mapping[str, Any] | None:
    if not path.exists():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not readable as JSON ({error}). Remove the file, or run the cells again.") from error
    if not isinstance(value, dict):
        raise DataError(
            f"{path}: holds {type(value).__name__}, not an object. Remove the file, or run the cells again."
        )
    return value


def _same_or_refuse(old: tuple[Path, Cell], new: tuple[Path, Cell]) -> None:
    (old_path, a), (new_path, b) = old, new
    if a.rows != b.rows or (a.meta and b.meta and a.meta != b.meta):
        raise DataError(
            f"{new_path} and {old_path} both hold cell {b.cell!r} with different contents. Give only the run whose forecasts should count."
        )
