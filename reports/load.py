"""Run directories in, checked cells out. Only ``cells/*/forecasts.parquet`` is required; the rest is used where present."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import DataError
from harness.records import CALL_SCHEMA, DROPPED, EVIDENCE_SCHEMA, FORECAST_SCHEMA, NEGATIVE, POSITIVE, Status
from reports.read import CELL_JSON, LEDGER_JSON, MANIFEST_JSON, read_json, read_parquet

Columns = Mapping[str, list[Any]]
"""Rows as lists by column name, all of one length; missing is None, never NaN."""

REQUIRED = (
    "cell", "method", "backbone", "benchmark", "epoch", "gate", "catalyst_id", "label", "prob_positive", "status",
    "rehearsal",
)  # fmt: skip
OPTIONAL = (
    "seed", "memory", "embedder", "stock", "decision_day", "fwd_ret", "direction", "n_calls", "prompt_tokens", "completion_tokens",
    "total_prompt_tokens", "total_completion_tokens", "cost_usd", "prompt_sha256",
)  # fmt: skip
OF_PROBES = ("probe_answer",)
"""Columns that only probes fill: forecasts without them lack nothing."""
EVIDENCE = ("catalyst_id", "epoch", "kind", "verdict")
CALLS = ("epoch", "request_sha256", "prompt_tokens", "completion_tokens", "cost_usd")
_NEVER_NULL = ("cell", "method", "backbone", "benchmark", "epoch", "gate", "catalyst_id", "status", "rehearsal")
_CONSTANT = ("cell", "method", "backbone", "benchmark", "gate", "seed", "memory", "embedder")
_FINITE = ("fwd_ret", "cost_usd")
_KNOWN = {
    "gate": ("strict", "paper", "off"),
    "label": (POSITIVE, NEGATIVE, DROPPED),
    "status": tuple(status.value for status in Status),
}


@dataclass(frozen=True)
class Cell:
    """One cell as read from disk.

    Attributes:
        feed, context: what the memory is fed and how much of it is shown, where cell.json says so.
        exclude: findings whose catalysts and documents are left out, joined by ``+``, or "none"; None where cell.json does not say.
        rows: the columns ``REQUIRED``, ``OPTIONAL`` and ``OF_PROBES``, sorted by (catalyst_id, epoch). Empty lists if the cell has no forecasts.
        meta: ``cell.json``, or None where the file is missing.
        evidence: the columns ``EVIDENCE``, or None where the file is missing.
        calls: the columns ``CALLS``, or None where the file is missing.
        absent: optional columns that forecasts.parquet does not have.
        remembers: whether its method has a memory; False only where cell.json says that there is none.
    """

    cell: str
    method: str
    backbone: str
    benchmark: str
    gate: str | None
    seed: int | None
    memory: str | None
    embedder: str | None
    feed: str | None
    context: str | None
    rehearsal: bool
    rows: Columns
    meta: Mapping[str, Any] | None
    evidence: Columns | None
    calls: Columns | None = None
    absent: tuple[str, ...] = ()
    remembers: bool = True
    exclude: str | None = None

    @property
    def size(self) -> int:
        return len(self.rows["catalyst_id"])


@dataclass(frozen=True)
class Loaded:
    """All cells of all runs in the order (benchmark, backbone, method, cell), and one manifest and ledger (or None) a run.

    ``unbegun`` are cells that a manifest lists and of which no run has a row yet.
    """

    cells: tuple[Cell, ...]
    manifests: tuple[Mapping[str, Any] | None, ...]
    warnings: tuple[str, ...]
    ledgers: tuple[Mapping[str, Any] | None, ...] = ()
    unbegun: tuple[str, ...] = ()


def load(run_dirs: Sequence[Path]) -> Loaded:
    """Read every cell below ``run_dirs``.

    Raises:
        DataError: no cells, an unreadable file, a missing column, another type, a bad value, one (cell, catalyst_id, epoch) twice,
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
                cell = _together(found[cell.cell][1], cell)
            found[cell.cell] = (folder, cell)
    if not found:
        raise DataError(
            f"No cell with forecasts in {', '.join(map(str, runs))}. Give run directories that hold cells/*/forecasts.parquet."
        )
    cells = sorted((cell for _, cell in found.values()), key=lambda c: (c.benchmark, c.backbone, c.method, c.cell))
    manifests = tuple(read_json(run / "manifest.json", MANIFEST_JSON) for run in runs)
    ledgers = tuple(read_json(run / "ledger.json", LEDGER_JSON) for run in runs)
    listed = {name for manifest in manifests for name in (manifest or {}).get("cells") or ()}
    unbegun = tuple(sorted(listed - found.keys()))
    if unbegun:
        warnings.append(
            f"{len(unbegun)} of {len(listed)} cells that were to be run have no row yet and are left out: {', '.join(unbegun)}. "
            "Run the same command again to go on."
        )
    return Loaded(tuple(cells), manifests, tuple(warnings), ledgers, unbegun)


def _cell_folders(run: Path) -> list[Path]:
    if not (run / "cells").is_dir():
        if (run / "leak_hunt.json").exists():
            return []  # it goes with the cells of other runs
        raise DataError(
            f"{run}: no folder cells/ here. Give a run directory (the value of run.dir), which holds cells/*/forecasts.parquet."
        )
    return sorted(path for path in (run / "cells").iterdir() if path.is_dir())


def _read_cell(folder: Path) -> Cell | None:
    """The cell in ``folder``; None if there is nothing to name it by."""
    meta = read_json(folder / "cell.json", CELL_JSON)
    path = folder / "forecasts.parquet"
    rows, absent = (
        _read_forecasts(path) if path.exists() else ({name: [] for name in (*REQUIRED, *OPTIONAL, *OF_PROBES)}, ())
    )
    source: dict[str, Any] = {name: values[0] for name, values in rows.items() if values} or dict(
        meta or (_from_name(folder.name) if path.exists() else {})
    )
    if not source:
        return None
    for key in ("cell", "method", "backbone", "benchmark"):
        if not source.get(key):
            raise DataError(
                f"{folder / 'cell.json'}: key {key!r} is missing. Run the cell again, or remove its folder."
            )
    identity = (meta or {}).get("identity") or {}
    return Cell(
        cell=source["cell"],
        method=source["method"],
        backbone=source["backbone"],
        benchmark=source["benchmark"],
        gate=source.get("gate"),
        seed=source.get("seed"),
        memory=source.get("memory"),
        embedder=source.get("embedder"),
        feed=identity.get("feed"),
        context=identity.get("context"),
        rehearsal=any(rows["rehearsal"]) or bool(source.get("rehearsal")),
        rows=rows,
        meta=meta,
        evidence=_read_evidence(folder / "evidence.parquet"),
        calls=_read_calls(folder / "calls.parquet"),
        absent=absent,
        remembers=meta is None or meta.get("memory_log_sha256", "unknown") is not None,
        exclude=_exclude(identity),
    )


def _exclude(identity: Mapping[str, Any]) -> str | None:
    """``benchmark.exclude`` as one word, whatever the order it was written in."""
    names = ((identity.get("benchmark") or {}).get("settings") or {}).get("exclude")
    return None if names is None else "+".join(sorted(names)) or "none"


def _from_name(name: str) -> dict[str, str]:
    """What the name of a cell's folder says of it: method__backbone__benchmark__hash; empty if it is no such name."""
    parts = name.split("__")
    return (
        {"cell": name, **dict(zip(("method", "backbone", "benchmark"), parts, strict=False))} if len(parts) == 4 else {}
    )


def _read_forecasts(path: Path) -> tuple[Columns, tuple[str, ...]]:
    columns = read_parquet(path, FORECAST_SCHEMA, REQUIRED, (*OPTIONAL, *OF_PROBES))
    absent = tuple(name for name in OPTIONAL if name not in columns)
    size = len(columns["cell"])
    full: dict[str, list[Any]] = {
        **columns,
        **{name: [None] * size for name in (*absent, *OF_PROBES) if name not in columns},
    }
    _check(path, full)
    order = sorted(range(size), key=lambda i: (full["catalyst_id"][i], full["epoch"][i]))
    return {name: [values[i] for i in order] for name, values in full.items()}, absent


def _check(path: Path, rows: Columns) -> None:
    """Refuse what would make a figure wrong; the message names file, row (from 0), key and value."""
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
        for name, known in _KNOWN.items():
            if rows[name][i] not in known and (name, rows[name][i]) != ("label", None):  # an outcome not known yet
                raise DataError(
                    f"{path}: row {i} ({key[0]!r}): {name} is {rows[name][i]!r}; it must be one of {', '.join(known)}."
                )
        for name in _FINITE:
            if rows[name][i] is not None and math.isinf(rows[name][i]):
                raise DataError(
                    f"{path}: row {i} ({key[0]!r}): {name} is {rows[name][i]!r}; it must be finite or null."
                )
        status, prob = rows["status"][i], rows["prob_positive"][i]
        if status == Status.OK and (prob is None or not 0.0 <= prob <= 1.0):
            raise DataError(
                f"{path}: row {i} ({key[0]!r}): status is ok but prob_positive is {prob!r}; it must lie in [0, 1]."
            )


def _read_evidence(path: Path) -> Columns | None:
    if not path.exists():
        return None
    columns = read_parquet(path, EVIDENCE_SCHEMA, EVIDENCE)
    for name, values in columns.items():
        if None in values:
            raise DataError(f"{path}: row {values.index(None)}: {name} is null; it must be given.")
    return columns


def _read_calls(path: Path) -> Columns | None:
    return read_parquet(path, CALL_SCHEMA, CALLS) if path.exists() else None


def _together(one: Cell, other: Cell) -> Cell:
    """One cell that two runs hold, with the files of either: which of them lacks one does not matter."""
    first, second = (one, other) if one.meta is not None else (other, one)
    return replace(
        first,
        evidence=second.evidence if first.evidence is None else first.evidence,
        calls=second.calls if first.calls is None else first.calls,
    )


def _same_or_refuse(old: tuple[Path, Cell], new: tuple[Path, Cell]) -> None:
    (old_path, a), (new_path, b) = old, new
    if a.rows != b.rows or (a.meta and b.meta and a.meta != b.meta):
        raise DataError(
            f"{new_path} and {old_path} both hold cell {b.cell!r} with different contents. Give only the run whose forecasts should count."
        )
