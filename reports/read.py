"""One file in, its content out with the documented types, or an error that names the file and the place in it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from pyarrow import types

from harness.errors import DataError

Schema = Mapping[str, Any]
"""A JSON schema."""

_TEXT, _INT = ({"type": [kind, "null"]} for kind in ("string", "integer"))
_STRING = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_TEXTS = {"type": ["array", "null"], "items": _STRING}

CELL_JSON: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("cell", "method", "backbone", "benchmark", "memory", "embedder"), _TEXT),
        **dict.fromkeys(("status", "reason", "remedy"), _TEXT),
        "gate": {"enum": ["strict", "paper", "off", None]},
        "seed": _INT,
        "rehearsal": {"type": ["boolean", "null"]},
        "n": {"type": ["integer", "null"], "minimum": 0},
        "identity": {
            "type": ["object", "null"],
            "properties": {
                "feed": _TEXT,
                "context": _TEXT,
                "benchmark": {
                    "type": ["object", "null"],
                    "properties": {"settings": {"type": ["object", "null"], "properties": {"exclude": _TEXTS}}},
                },
            },
        },
        "counts": {"type": ["object", "null"], "additionalProperties": _COUNT},
        "warnings": _TEXTS,
    },
}
"""What the report uses of cell.json; other keys are free, null is missing."""

MANIFEST_JSON: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("git_commit", "started_at", "finished_at"), _TEXT),
        "command": _TEXTS,
        "versions": {"type": ["object", "null"], "additionalProperties": _STRING},
        "cells": {"type": ["object", "null"]},
        "data": {
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "required": ["benchmark", "path", "sha256", "rows"],
                "properties": {**dict.fromkeys(("benchmark", "path", "sha256"), _STRING), "rows": _INT},
            },
        },
    },
}
"""What the report uses of manifest.json; other keys are free, null is missing."""


_COUNT_OR_NULL = {"type": ["integer", "null"], "minimum": 0}
_USD = {"type": ["number", "null"], "minimum": 0}
_LINE = {
    "type": "object",
    "required": ["cell", "backbone", "stage", "calls", "cost_usd", "unanswered", "unanswered_usd"],
    "properties": {
        **dict.fromkeys(("cell", "backbone", "stage"), _STRING),
        **dict.fromkeys(("calls", "unanswered"), _COUNT),
        **dict.fromkeys(("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens"), _COUNT_OR_NULL),
        **dict.fromkeys(("cost_usd", "unanswered_usd"), _USD),
    },
}
LEDGER_JSON: Schema = {
    "type": "object",
    "required": ["cells", "total"],
    "properties": {"cells": {"type": "array", "items": _LINE}, "total": _LINE},
}
"""What the report uses of ledger.json; other keys are free, null is missing."""


def read_json(
    path: Path, schema: Schema, remedy: str = "Remove the file, or run the cells again."
) -> dict[str, Any] | None:
    """The object in ``path``; None if there is no such file. ``remedy`` is what a message about a bad one advises.

    Raises:
        DataError: not strict JSON in UTF-8 (NaN and lone surrogates are not), or a value that ``schema`` refuses.
    """
    if not path.exists():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")  # the report must be able to repeat it
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not readable as JSON ({error}). {remedy}") from error
    wrong = best_match(Draft202012Validator(schema).iter_errors(value))
    if wrong is not None:
        where = f"key {wrong.json_path.removeprefix('$.')}" if wrong.absolute_path else "the file"
        raise DataError(f"{path}: {where}: {wrong.message}. Correct it, or: {remedy}")
    found: dict[str, Any] = value
    return found


def read_parquet(
    path: Path, schema: pa.Schema, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, list[Any]]:
    """``read_arrays`` as lists; missing is None, and so is NaN."""
    return {name: listed(array) for name, array in read_arrays(path, schema, required, optional).items()}


def read_arrays(
    path: Path, schema: pa.Schema, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, pa.ChunkedArray]:
    """Columns ``required`` and, where present, ``optional`` of ``path``, each of the type that ``schema`` gives it.

    A narrower or wider type of the same kind is accepted if every value survives (int32, float64 that holds whole
    numbers, dictionary-encoded text), and so is a column without a type that holds nothing but null.

    Raises:
        DataError: unreadable, a column missing, there twice, of another type, or with a value that its type cannot hold.
    """
    try:
        names = pq.read_schema(path).names
        missing = [name for name in required if name not in names]
        if missing:
            raise DataError(
                f"{path}: column(s) {', '.join(missing)} missing. Write the file again with the documented columns."
            )
        wanted = [name for name in (*required, *optional) if name in names]
        twice = [name for name in wanted if names.count(name) > 1]
        if twice:
            raise DataError(f"{path}: column(s) {', '.join(twice)} there twice. Write the file again with one of each.")
        table = pq.read_table(path, columns=wanted, partitioning=None)
        table.validate(full=True)  # finds text that is not UTF-8
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path}: not a readable Parquet file ({error}). Run the cell again, or remove its folder."
        ) from error
    return {name: _typed(path, name, table.column(name), schema.field(name).type) for name in wanted}


def listed(array: pa.ChunkedArray) -> list[Any]:
    """``array`` as Python values; missing is None, and so is NaN."""
    return [None if isinstance(value, float) and math.isnan(value) else value for value in array.to_pylist()]


def _typed(path: Path, name: str, column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """``column`` as ``wanted``. A cast between kinds (text to number) would hide a fault of the writer, so it is refused."""
    if not types.is_null(column.type) and _kind(column.type) != _kind(wanted):
        raise DataError(
            f"{path}: column {name} is of type {column.type}; it must be {wanted}. Write the file again with that type."
        )
    try:
        return column.cast(wanted)
    except pa.ArrowException as error:
        raise DataError(
            f"{path}: column {name} is of type {column.type} and holds a value that {wanted} cannot: {error}. "
            f"Write the file again with type {wanted}."
        ) from error


def _kind(found: pa.DataType) -> str:
    """The kind within which a checked cast keeps every value; a type of no such kind stands for itself."""
    if types.is_dictionary(found):
        return _kind(found.value_type)
    if types.is_string(found) or types.is_large_string(found) or types.is_string_view(found):
        return "text"
    if types.is_integer(found) or types.is_floating(found):
        return "number"
    return "date" if types.is_date(found) else str(found)
