"""Outcomes added to forecasts that were made before they were known.

A cell with catalysts without outcomes ends with ``forecasts.parquet.sha256``, to be published then. Here the forecasts are held
against that hash, outcomes are joined by catalyst id, and the result is written elsewhere: the sealed file stays as it is.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.catalysts import label_of
from benchmarks.files import Folder
from benchmarks.problems import Problems
from benchmarks.rows import Row, refuse_repeats
from benchmarks.sources import json_rows
from benchmarks.tables import read_table
from harness.errors import ConfigError, DataError
from harness.records import DROPPED, FORECAST_SCHEMA, NEGATIVE, POSITIVE, Status

FORECASTS = "forecasts.parquet"
SEAL = f"{FORECASTS}.sha256"
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_OUTCOMES = (".csv", ".jsonl", ".parquet", ".json")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A cell with what is now known of it.

    Attributes:
        sha256: of the forecasts as they were made.
        n: forecasts.
        open: those whose outcome is still not known.
        scored: those with a positive or negative label and an answer of the model.
        right: of these, the right ones; an answer that cannot be used is wrong.
    """

    cell: str
    sha256: str
    n: int
    open: int
    scored: int
    right: int


def resolve(
    run: Path, outcomes: Path, out: Path, published: Collection[str], now: datetime
) -> tuple[list[Resolved], list[str]]:
    """Write the cells of ``run`` with their outcomes below ``out``.

    Args:
        run: a run directory made with ``benchmark.prospective=true``.
        outcomes: table (CSV, JSONL, Parquet) with ``catalyst_id`` and ``fwd_ret``, or JSON as released; rows without a return are
            not known yet. Where ``outcome`` is given it must agree with the return.
        out: another directory, in the layout of a run, that ``python -m reports`` reads.
        published: hashes that were published; each cell's must be among them. Empty: the ones beside the forecasts are believed.
        now: an outcome that is known only later is refused.

    Returns:
        The cells, and sentences about outcomes that could not be used.

    Raises:
        ConfigError: ``out`` is ``run`` or cannot be written; ``outcomes`` is no file of a known kind; a published hash is none.
        DataError: no sealed cell, a file that was changed after its hash was written, or bad outcomes.
    """
    if out.resolve() == run.resolve():
        raise ConfigError(
            f"--out {out}: is the run itself, whose forecasts must stay as they are; name another directory"
        )
    _refuse_other_hashes(published)
    returns, warnings = _returns(outcomes)
    sealed = [(folder, *_verified(folder, published)) for folder in _sealed(run)]
    asked = {row["catalyst_id"] for _, _, rows in sealed for row in rows}
    _refuse_early(returns, [row for _, _, rows in sealed for row in rows], now)
    if unused := sorted(returns.keys() - asked):
        warnings.append(f"{outcomes.name}: {len(unused)} outcomes are of no forecast, e.g. {unused[0]}.")
    if large := sum(fwd_ret > 1 for fwd_ret in returns.values()):
        warnings.append(
            f"{outcomes.name}: {large} returns are above 100 %; are they in per cent? Fractions are expected."
        )
    if not published:
        warnings.append(
            "no published hash was given (--published): the forecasts are held against the hash beside them, which whoever changes them can "
            "write anew."
        )
    done: list[Resolved] = []
    for folder, sha256, rows in sealed:
        joined = [_joined(row, returns) for row in rows]
        _write(folder, out / "cells" / folder.name, joined)
        done.append(_count(folder.name, sha256, joined))
    return done, warnings


def _refuse_other_hashes(published: Collection[str]) -> None:
    for value in published:
        if not _SHA256.fullmatch(value):
            raise ConfigError(
                f"--published {value}: not a SHA-256 of 64 hexadecimal digits; give the hash that the run printed when its cell was complete"
            )


def _sealed(run: Path) -> list[Path]:
    folders = sorted(path.parent for path in (run / "cells").glob(f"*/{FORECASTS}"))
    if not folders:
        raise DataError(f"{run}: no cells/*/{FORECASTS}; give the run directory of a prospective run (run.dir).")
    for folder in folders:
        if not (folder / SEAL).exists():
            raise DataError(
                f"{folder / SEAL}: no such file: the cell is not complete, or all its outcomes were known when it was made. "
                "Run the same command with benchmark.prospective=true until it is complete, in a run.dir of its own."
            )
    return folders


def _verified(folder: Path, published: Collection[str]) -> tuple[str, list[dict[str, Any]]]:
    """Hash and rows of the forecasts in ``folder``, read once, so that what is hashed is what is used."""
    data = (folder / FORECASTS).read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    stated = (folder / SEAL).read_text("utf-8", "replace").split()
    if stated[:1] != [sha256]:
        raise DataError(
            f"{folder / FORECASTS}: changed after its hash was written (SHA-256 {sha256}, {SEAL} says "
            f"{stated[0] if stated else 'nothing'}); no outcome is added. Restore the file that was hashed."
        )
    if published and sha256 not in {value.lower() for value in published}:
        raise DataError(
            f"{folder / FORECASTS}: SHA-256 {sha256} is none of the {len(published)} published hashes; no outcome is added. "
            "Restore the files that were published."
        )
    try:  # no threads: a refusal may end the process before a reader's pool has come up
        table = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False).read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{folder / FORECASTS}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    if not table.schema.equals(FORECAST_SCHEMA):
        raise DataError(
            f"{folder / FORECASTS}: not the columns of forecasts.parquet; it was written by another version."
        )
    rows: list[dict[str, Any]] = table.to_pylist()
    return sha256, rows


def _returns(outcomes: Path) -> tuple[dict[str, float], list[str]]:
    """Known returns by catalyst id, and the reader's warnings."""
    if outcomes.suffix.lower() not in _OUTCOMES:
        raise ConfigError(f"--outcomes {outcomes}: must be a {', '.join(_OUTCOMES)} file; rename or convert it")
    if not outcomes.is_file():
        raise ConfigError(f"--outcomes {outcomes}: no such file")
    folder, problems = Folder(outcomes.parent), Problems(str(outcomes), "no outcome is added")
    name = outcomes.name
    is_json = outcomes.suffix.lower() == ".json"
    rows = json_rows(folder, name, "catalysts", "catalyst_id") if is_json else read_table(folder, name, "outcomes")
    found: dict[str, float] = {}
    first: dict[str, Row] = {}
    for row in rows:
        with problems.collect():
            catalyst_id = row.text("catalyst_id")
            refuse_repeats(row, catalyst_id, first)
            if row.get("fwd_ret") is None and row.get("outcome") is None:
                continue
            fwd_ret = row.number("fwd_ret")
            if fwd_ret <= -1:
                raise row.error(
                    "fwd_ret", f"is {fwd_ret!r}: nothing loses all its value or more; give a fraction, -0.05 for -5 %"
                )
            label = row.optional_choice("outcome", (POSITIVE, NEGATIVE, DROPPED))
            if label not in (None, label_of(fwd_ret)):
                raise row.error("outcome", f"contradicts fwd_ret = {fwd_ret!r}, which is {label_of(fwd_ret)}")
            found[catalyst_id] = fwd_ret
    problems.stop_if_any()
    return found, list(folder.warnings)


def _refuse_early(returns: Mapping[str, float], rows: Sequence[Mapping[str, Any]], now: datetime) -> None:
    for row in rows:
        if row["label"] is None and row["catalyst_id"] in returns and row["resolve_time"] > now:
            raise DataError(
                f"outcome of {row['catalyst_id']}: it is known at {row['resolve_time'].isoformat()} only, which is still to come; "
                "leave its fwd_ret empty until then."
            )


def _joined(row: dict[str, Any], returns: Mapping[str, float]) -> dict[str, Any]:
    """The row with its outcome, if that has become known; a label that was there when the forecast was made stays."""
    fwd_ret = returns.get(row["catalyst_id"])
    if row["label"] is not None or fwd_ret is None:
        return row
    label = label_of(fwd_ret)
    counts = label != DROPPED and Status(row["status"]).final
    return {**row, "label": label, "fwd_ret": fwd_ret, "correct": row["direction"] == label if counts else None}


def _count(cell: str, sha256: str, rows: Sequence[Mapping[str, Any]]) -> Resolved:
    right = [row["correct"] for row in rows if row["correct"] is not None]
    return Resolved(cell, sha256, len(rows), sum(row["label"] is None for row in rows), len(right), sum(right))


def _write(folder: Path, target: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """``rows`` and the other files of the cell in ``target``."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file in folder.iterdir():
            if file.is_file() and file.name not in (FORECASTS, SEAL):
                shutil.copy2(file, target / file.name)
        pq.write_table(pa.Table.from_pylist(list(rows), FORECAST_SCHEMA), target / FORECASTS, compression="zstd")
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written ({error.strerror}); choose another --out") from None
