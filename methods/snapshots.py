"""What a structure over many records is built from as of T, and what it is called.

A structure that mixes records (counts, neighbours, communities) is another one as soon as a later record has shaped it, however its
parts are filtered afterwards. So it is built afresh from the records visible at T; what is dear and belongs to one record alone (an
extraction, a vector) is made once and reused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from datetime import datetime

from harness.method import Context
from methods.feed import Record, case_record, company_of, document_records, fed_cases

CHUNK_TOKENS, CHUNK_OVERLAP = 1200, 100
"""A document is one record unless it is longer."""


def records_to_build_on(ctx: Context) -> list[Record]:
    """Chunks of documents and resolved cases that a structure is built from, in the order of (time, id).

    Under ``strict`` those retrievable at T; under ``paper`` and ``off`` the documents of the whole corpus.
    """
    view = ctx.evidence.build_on()
    records = [
        record
        for document in view.retrievable()
        for record in document_records(document, company_of(document, view), CHUNK_TOKENS, CHUNK_OVERLAP)
    ]
    return sorted([*records, *(case_record(resolved) for resolved in fed_cases(ctx))], key=_order)


def retrievable_ids(ctx: Context, but: Container[str] = ()) -> set[str]:
    """Ids of the records that may be retrieved at T, whatever the gate builds on; without those of the documents in ``but``."""
    documents = (
        record.item_id
        for document in ctx.evidence.retrievable()
        if document.doc_id not in but
        for record in document_records(document, company_of(document, ctx.evidence), CHUNK_TOKENS, CHUNK_OVERLAP)
    )
    return {*documents, *(case_record(resolved).item_id for resolved in fed_cases(ctx))}


def snapshot_id(records: Iterable[Record]) -> str:
    """Name of what is built from ``records``: hash of their ids in order. Equal ids have equal texts within a corpus."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(record.item_id.encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()


def _order(record: Record) -> tuple[datetime, str]:
    return record.instant, record.item_id
