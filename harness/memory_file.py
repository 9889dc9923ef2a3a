"""A memory on disk: the journal that a run appends to, and the Parquet file that is shared and read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import DataError
from harness.memory import MEMORY_SCHEMA, MemoryLog, MemoryOp, loads, ops_of

_ROWS_AT_ONCE = 512
_EPOCH = datetime.fromtimestamp(0, UTC)


def read_journal(path: Path) -> list[MemoryOp]:
    """The operations on file. A last line that a kill left unfinished is taken off: it was never acknowledged."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    return [op for line in whole.decode("utf-8", "surrogatepass").split("\n")[:-1] for op in loads(line)]


def write_memory(path: Path, log: MemoryLog) -> None:
    """Export ``log`` as one Parquet file; its hash, how far it was filled and by whom in the file's metadata."""
    stated = {"log_sha256": log.sha256()}
    if log.made_by is not None:
        stated["made_by"] = json.dumps(log.made_by, ensure_ascii=False, sort_keys=True)
    if log.filled_until is not None:
        stated["filled_until"] = log.filled_until.isoformat()
    table = pa.Table.from_pylist(log.rows(), schema=MEMORY_SCHEMA.with_metadata(stated))
    path.parent.mkdir(parents=True, exist_ok=True)  # a memory without a record has no journal yet
    temporary = path.with_name(f".{path.name}.tmp")
    pq.write_table(table, temporary, compression="zstd")
    temporary.replace(path)


def read_memory(path: Path) -> MemoryLog:
    """A trained memory from its Parquet file.

    Raises:
        DataError: not such a file, or its operations do not have the hash that it states.
    """
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            if not set(MEMORY_SCHEMA.names) <= set(schema.names):
                raise DataError(f"{path}: not a memory file: it needs the columns {', '.join(MEMORY_SCHEMA.names)}")
            batches = file.iter_batches(_ROWS_AT_ONCE, columns=MEMORY_SCHEMA.names)
            log = MemoryLog(ops_of(row for batch in batches for row in _plain_rows(batch)))
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: not a memory file ({error})") from None
    stated = {k.decode(): v.decode() for k, v in (schema.metadata or {}).items()}
    log.made_by = json.loads(stated["made_by"]) if "made_by" in stated else None
    if "filled_until" in stated:
        log.filled_until = datetime.fromisoformat(stated["filled_until"])
    if stated.get("log_sha256", log.sha256()) != log.sha256():
        raise DataError(f"{path}: the operations do not match the hash stated in the file; it was altered or cut")
    return log


def _plain_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Rows with times made by hand: Arrow's own conversion loads pandas, 50 MB in each of many processes."""
    columns: dict[str, list[Any]] = {}
    for name in MEMORY_SCHEMA.names:
        column = batch.column(name)
        if pa.types.is_timestamp(column.type):
            counts = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
            columns[name] = [None if n is None else _EPOCH + timedelta(microseconds=n) for n in counts]
        else:
            columns[name] = column.to_pylist()
    return (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
