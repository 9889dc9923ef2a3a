"""From the two formats a benchmark may come in to rows with the same field names: after this there is one path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.files import Folder, number_rows, object_in, rows_in
from benchmarks.params import CaseFiles
from benchmarks.problems import quote
from benchmarks.rows import Row
from benchmarks.tables import read_table
from harness.errors import DataError


@dataclass(frozen=True)
class EvidenceRows:
    """Rows of the documents and stocks of a set of cases.

    Attributes:
        documents: None where the benchmark has no event file.
        stocks: empty where no file lists any.
        stocks_file: the file that lists the stocks, None if none does.
        partial: the file says of itself that it is not complete.
    """

    documents: Sequence[Row] | None
    stocks: Sequence[Row]
    stocks_file: str | None
    partial: bool


def catalyst_rows(folder: Folder, files: CaseFiles, name: str) -> Sequence[Row]:
    """Rows of the catalysts in file ``name``."""
    if files.format == "table":
        return read_table(folder, name, "prospective" if files.pending_allowed else "catalysts")
    return json_rows(folder, name, "catalysts", "catalyst_id")


def price_rows(folder: Folder, files: CaseFiles, key: str) -> Sequence[Row]:
    """Rows of the price paths (JSON in either format); empty where the benchmark has none."""
    name = folder.find(files.prices, f"{key}.prices")
    return json_rows(folder, name, "prices", "doc_id") if name else ()


def evidence_rows(folder: Folder, files: CaseFiles, key: str) -> EvidenceRows:
    """Rows of documents and stocks; ``key`` is the path of ``files`` in the configuration."""
    event = folder.find(files.event, f"{key}.event")
    if files.format == "table":
        stocks = folder.find(files.stocks, f"{key}.stocks")
        return EvidenceRows(
            documents=read_table(folder, event, "documents") if event else None,
            stocks=read_table(folder, stocks, "stocks") if stocks else (),
            stocks_file=stocks,
            partial=False,
        )
    return _released_evidence(folder, event) if event else EvidenceRows(None, (), None, partial=False)


def _released_evidence(folder: Folder, name: str) -> EvidenceRows:
    data = folder.read(name)
    content = object_in(name, folder.json(name, folder.text(name, data)), "text")
    documents = rows_in(name, content, "text", "doc_id")
    folder.record(name, data, len(documents))
    listed = content.get("stocks")
    if not isinstance(listed, dict):
        found = "is missing" if listed is None else f"is {quote(listed)}"
        raise DataError(f'{name}: "stocks" {found}; expected {{"stocks": {{id: {{"name": …}}, … }}}}.')
    stocks = [{**entry, "stock_id": key} if isinstance(entry, dict) else entry for key, entry in listed.items()]
    meta = content.get("meta")
    partial = isinstance(meta, dict) and meta.get("partial") is True
    return EvidenceRows(documents, number_rows(f"{name} (stocks)", stocks, "stock_id"), name, partial)


def json_rows(folder: Folder, name: str, key: str, id_field: str) -> list[Row]:
    """Rows of the array ``key`` in the JSON file ``name``."""
    data = folder.read(name)
    rows = rows_in(name, folder.json(name, folder.text(name, data)), key, id_field)
    folder.record(name, data, len(rows))
    return rows
