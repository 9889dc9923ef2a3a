"""A user's own benchmark: Parquet, CSV or JSONL with named columns, read into the rows the released JSON gives.

Text stays text ("000001" keeps its zeros): only the two numeric columns of a CSV are read as numbers, and only the stock
list is split. Everything else is left to the checks that all formats share.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import PurePath

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.files import Folder
from benchmarks.rows import Row
from harness.errors import DataError

LIST_SEPARATOR = ";"
_MAX_CELL = 2**31 - 1  # the csv module stops at 131,072 characters otherwise, less than a long filing


@dataclass(frozen=True)
class Columns:
    """The columns of one kind of table; the first of ``needed`` names the row."""

    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()


TABLES: Mapping[str, Columns] = {
    "catalysts": Columns(
        ("catalyst_id", "stock_id", "catalyst_type", "decision_time", "outcome", "fwd_ret"),
        ("resolve_date", "horizon_days", "market", "convention"),
    ),
    "prospective": Columns(
        ("catalyst_id", "stock_id", "catalyst_type", "decision_time"),
        ("outcome", "fwd_ret", "resolve_date", "horizon_days", "market", "convention"),
    ),
    "outcomes": Columns(
        ("catalyst_id", "fwd_ret"),
        (
            "outcome",
            "stock_id",
            "catalyst_type",
            "decision_time",
            "resolve_date",
            "horizon_days",
            "market",
            "convention",
        ),
    ),
    "documents": Columns(("doc_id", "ts", "mentioned_stocks", "body"), ("title",)),
    "stocks": Columns(("stock_id", "name"), ("industry", "market")),
}

Cells = list[tuple[int, object]]
"""Line or row number, and the row's values."""


def read_table(folder: Folder, name: str, kind: str) -> list[Row]:
    """The rows of table ``name``, which holds ``kind``, a key of ``TABLES``.

    Raises:
        DataError: another kind of file, not readable as such, a column missing, or no rows.
    """
    readers: Mapping[str, tuple[Callable[[Folder, str, bytes], tuple[list[str] | None, Cells]], str]] = {
        ".csv": (_csv, "line"),
        ".jsonl": (_jsonl, "line"),
        ".parquet": (_parquet, "row"),
    }
    suffix = PurePath(name).suffix.lower()
    if suffix not in readers:
        raise DataError(f"{name}: a table is a {', '.join(readers)} file; rename it, or set format: released for JSON.")
    read, unit = readers[suffix]
    data = folder.read(name)
    header, cells = read(folder, name, data)
    columns = TABLES[kind]
    if header is not None:
        _check_header(folder, name, header, columns)
    if not cells:
        raise DataError(f"{name}: no rows.")
    folder.record(name, data, len(cells))
    return [Row(name, number, _split_stocks(values), columns.needed[0], unit) for number, values in cells]


def _check_header(folder: Folder, name: str, header: list[str], columns: Columns) -> None:
    missing = [column for column in columns.needed if column not in header]
    if missing:
        raise DataError(f"{name}: column {missing[0]} is missing; it has {', '.join(header)}.")
    repeated = sorted({column for column in header if header.count(column) > 1})
    if repeated:
        raise DataError(f"{name}: column {repeated[0]} is there twice.")
    unused = [column for column in header if column not in columns.needed + columns.optional]
    if unused:
        known = ", ".join(columns.needed + columns.optional)
        folder.warnings.append(f"{name}: columns not used: {', '.join(unused)} (known: {known}).")


def _split_stocks(values: object) -> object:
    stocks = values.get("mentioned_stocks") if isinstance(values, dict) else None
    if not isinstance(values, dict) or not isinstance(stocks, str):
        return values
    return {**values, "mentioned_stocks": [s.strip() for s in stocks.split(LIST_SEPARATOR) if s.strip()]}


def _csv(folder: Folder, name: str, data: bytes) -> tuple[list[str], Cells]:
    csv.field_size_limit(_MAX_CELL)
    reader = csv.reader(io.StringIO(folder.text(name, data), newline=""), strict=True)
    cells: Cells = []
    start = 1
    try:
        header = [column.strip() for column in next(reader)]
        start = reader.line_num + 1
        for record in reader:
            if record:
                cells.append((start, _csv_values(name, start, header, record)))
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{name}, line {start}: not valid CSV: {error}; is a quote left open?") from None
    return header, cells


def _csv_values(name: str, line: int, header: list[str], record: list[str]) -> dict[str, object]:
    """A CSV record as values. An empty cell is missing, except that a document may have no stock."""
    if len(record) != len(header):
        raise DataError(
            f"{name}, line {line}: {len(record)} cells under {len(header)} columns; quote cells with commas."
        )
    values: dict[str, object] = {
        column: cell for column, cell in zip(header, record, strict=True) if cell or column == "mentioned_stocks"
    }
    for column, kind in (("fwd_ret", float), ("horizon_days", int)):
        if column in values:
            values[column] = _number(str(values[column]), kind)
    return values


def _number(cell: str, kind: type[int] | type[float]) -> object:
    """The cell as a number, or as it is: the shared check then quotes it."""
    try:
        return kind(cell)
    except ValueError:
        return cell


def _jsonl(folder: Folder, name: str, data: bytes) -> tuple[None, Cells]:
    lines = folder.text(name, data).split("\n")
    return None, [(n, folder.json(name, line, n)) for n, line in enumerate(lines, start=1) if line.strip()]


def _parquet(folder: Folder, name: str, data: bytes) -> tuple[list[str], Cells]:
    try:
        table = pq.read_table(pa.BufferReader(data))
        table = table.cast(pa.schema([_plain_field(name, column) for column in table.schema]))
        records: list[dict[str, object]] = table.to_pylist()
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise DataError(f"{name}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    for column in table.schema:
        if pa.types.is_timestamp(column.type):
            _refuse_midnights(name, column.name, [record[column.name] for record in records])
    values = [{column: _plain(cell) for column, cell in record.items()} for record in records]
    return table.column_names, list(enumerate(values, start=1))


def _plain_field(name: str, column: pa.Field) -> pa.Field:
    """Timestamps in microseconds (a finer part would be lost, so Arrow refuses it); zoned ones are refused here."""
    if not pa.types.is_timestamp(column.type):
        return column
    if column.type.tz is not None:
        raise DataError(
            f"{name}: column {column.name} is stamped with zone {column.type.tz}; convert it to exchange-local time "
            "and drop the zone."
        )
    return column.with_type(pa.timestamp("us"))


def _refuse_midnights(name: str, column: str, cells: list[object]) -> None:
    """A date kept as a timestamp would be known from its first second on, not from its end: a day of leak."""
    moments = [cell for cell in cells if isinstance(cell, datetime)]
    if moments and all(moment.time() == time.min for moment in moments):
        raise DataError(
            f"{name}: column {column} holds nothing but midnights; store dates as a date column or as YYYY-MM-DD text "
            "(a date counts as the end of its day)."
        )


def _plain(cell: object) -> object:
    """A Parquet cell as the JSON value it stands for."""
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ")
    if isinstance(cell, date):
        return cell.isoformat()
    return float(cell) if isinstance(cell, Decimal) else cell
