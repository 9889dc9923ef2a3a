"""The day tier: documents become propositions, chunk by chunk, each chunk once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from harness.records import Document
from harness.tokens import split_to_tokens
from methods.asking import Asker, content_key
from methods.concurrency import Once, bounded_map
from methods.schemas import TEXT, json_object
from methods.tiem.artefacts import Artefacts, Failure, proposition_row
from methods.tiem.records import Entity, Proposition, Relation

TEMPLATE = "tiem_extract.j2"
ENTITY_TYPES = (
    "company", "subsidiary", "person", "regulator", "product", "sector", "financial_metric", "event", "institution",
    "other",
)  # fmt: skip
RELATION_TYPES = (
    "supplier_of", "customer_of", "subsidiary_of", "invests_in", "competes_with", "regulates", "rates", "partners_with",
    "affects", "belongs_to_sector", "related",
)  # fmt: skip
CHUNKS_AT_ONCE = 8

_ENTITY = json_object(name=TEXT, type={"type": "string", "enum": list(ENTITY_TYPES)})
_RELATION = json_object(src=TEXT, dst=TEXT, type={"type": "string", "enum": list(RELATION_TYPES)})
_PROPOSITION = json_object(
    sentence=TEXT,
    entities={"type": "array", "items": _ENTITY},
    relations={"type": "array", "items": _RELATION},
)
SCHEMA = json_object(propositions={"type": "array", "items": _PROPOSITION})


class ExtractionKnobs(Protocol):
    """What extraction depends on besides the text."""

    @property
    def chunk_tokens(self) -> int: ...
    @property
    def chunk_overlap(self) -> int: ...
    @property
    def extract_max_tokens(self) -> int | None: ...


class Extraction:
    """Propositions of documents, from disk, from this process, or from the model."""

    def __init__(self, knobs: ExtractionKnobs, artefacts: Artefacts) -> None:
        self._knobs = knobs
        self._artefacts = artefacts
        self._chunks: Once[str, tuple[Proposition, ...]] = Once()
        self._filed: dict[tuple[Document, str], tuple[Proposition, ...]] = {}
        for key, propositions in artefacts.extracted():
            self._chunks.put(key, tuple(propositions))

    async def of(self, document: Document, stock: str, asker: Asker) -> tuple[Proposition, ...]:
        """Propositions of ``document`` in the order of its text, filed under ``stock``: the same for every stock.

        A chunk whose answer is unusable has none; that is recorded as a failure.

        Raises:
            CallFailed: the model could not be asked.
        """
        if (document, stock) not in self._filed:
            texts = split_to_tokens(document.text, self._knobs.chunk_tokens, self._knobs.chunk_overlap)

            async def chunk(number: int) -> tuple[Proposition, ...]:
                key = content_key(document.doc_id, number, texts[number])
                return await self._chunks.get(key, lambda: self._extract(document, number, texts[number], key, asker))

            found = await bounded_map(chunk, range(len(texts)), CHUNKS_AT_ONCE)
            self._filed[document, stock] = tuple(
                replace(p, stock=stock, time=document.time) for chunk in found for p in chunk
            )
        return self._filed[document, stock]

    async def _extract(
        self, document: Document, number: int, text: str, key: str, asker: Asker
    ) -> tuple[Proposition, ...]:
        reply = await asker.ask(
            TEMPLATE,
            SCHEMA,
            "extract",
            self._knobs.extract_max_tokens,
            passage=text,
            entity_types=ENTITY_TYPES,
            relation_types=RELATION_TYPES,
        )
        if reply.value is None:
            item = f"{document.doc_id}#{number}"
            self._artefacts.fail(Failure(key, "extract", item, reply.status, reply.reason))
            return ()
        found = _propositions(document, number, reply.value["propositions"])
        self._artefacts.add(
            propositions=[proposition_row(key, p) for p in found],
            chunks=[
                {
                    "key": key,
                    "doc_id": document.doc_id,
                    "chunk": number,
                    "text_sha256": hashlib.sha256(document.text.encode("utf-8", "surrogatepass")).hexdigest(),
                    "propositions": len(found),
                }
            ],
        )
        return found


def _propositions(document: Document, chunk: int, raw: Sequence[dict[str, Any]]) -> tuple[Proposition, ...]:
    """The stated facts; an item whose sentence is blank states none."""
    stated = [item for item in raw if item["sentence"].strip()]
    return tuple(
        Proposition(
            document.doc_id,
            chunk,
            index,
            "",
            document.time,
            " ".join(item["sentence"].split()),
            tuple(Entity(e["name"].strip(), e["type"]) for e in item["entities"] if e["name"].strip()),
            tuple(Relation(r["src"].strip(), r["dst"].strip(), r["type"]) for r in item["relations"]),
        )
        for index, item in enumerate(stated)
    )
