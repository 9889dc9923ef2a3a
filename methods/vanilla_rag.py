"""Vanilla RAG: dense retrieval over what was public before T (no official code exists for this baseline).

Filter by time first, then rank: scores are exact cosines of stored vectors, one text at a time, rounded to 6 decimals;
ties go to the newer record, then to the id. So the passages at T do not depend on anything that came later.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import ClassVar

from pydantic import Field

from harness.evidence import EvidenceView, case_source, document_source
from harness.method import Context
from harness.records import Catalyst, Document, Forecast, Passage, ResolvedCase, Source
from harness.tokens import count_tokens, split_to_tokens
from methods import forecasting
from methods.base import BaseMethod
from methods.ranking import cosine_scores, rank

FOCAL_QUERY_CHARS = 400


@dataclass(frozen=True, slots=True)
class Record:
    """A retrievable text: a document chunk or a resolved case. ``text`` is shown, ``embedded`` is what is searched."""

    item_id: str
    instant: datetime
    text: str
    embedded: str
    source: Source


class VanillaRAG(BaseMethod):
    """Top-k passages by cosine, best first, until the context budget is full.

    Attributes:
        k: passages at most.
        min_sim: cosine below which nothing is shown; None for no floor.
        chunk_tokens: tokens a chunk.
        chunk_overlap: tokens shared by neighbouring chunks.
        native_tokens: context budget with ``context.budget=native``.
    """

    uses_embedder: ClassVar[bool] = True
    templates: ClassVar[tuple[str, ...]] = forecasting.TEMPLATES
    k: int = Field(10, ge=1)
    min_sim: float | None = None
    chunk_tokens: int = Field(1200, ge=1)
    chunk_overlap: int = Field(100, ge=0)
    native_tokens: int = Field(12_000, ge=1)

    def instruction_sha256(self) -> str:
        return forecasting.instruction_sha256()

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        return await forecasting.ask(case, ctx, context=await self._passages(case, ctx))

    async def _passages(self, case: Catalyst, ctx: Context) -> list[Passage]:
        records = self._records(ctx)
        if not records:
            return []
        vectors = await ctx.embed([retrieval_query(case, ctx.evidence), *(r.embedded for r in records)])
        scores = cosine_scores(vectors[1:], vectors[0])
        top = rank(scores, [r.instant for r in records], [r.item_id for r in records], self.k, self.min_sim)
        passages = [
            Passage(records[i].text, records[i].source, rank, float(scores[i])) for rank, i in enumerate(top, start=1)
        ]
        if ctx.context_chars is None:
            return forecasting.fit(passages, self.native_tokens, count_tokens)
        return forecasting.fit(passages, ctx.context_chars)

    def _records(self, ctx: Context) -> list[Record]:
        focal, concurrent = ctx.evidence.focal(), ctx.evidence.concurrent()
        left_out = {d.doc_id for d in [*([focal] if focal else []), *concurrent[: forecasting.MAX_CONCURRENT]]}
        records = [
            record
            for document in ctx.evidence.retrievable()
            if document.doc_id not in left_out
            for record in document_records(document, _company(document, ctx), self.chunk_tokens, self.chunk_overlap)
        ]
        if ctx.feed_cases:
            records += [case_record(r) for r in ctx.experience if r.focal is not None]
        return records


def retrieval_query(case: Catalyst, evidence: EvidenceView) -> str:
    """q(c): topic of the catalyst type, company, stock id, first 400 characters of the focal text."""
    focal = evidence.focal()
    return " ".join([case.topic, case.company, case.stock_id, focal.text[:FOCAL_QUERY_CHARS] if focal else ""]).strip()


def _company(document: Document, ctx: Context) -> str:
    return " / ".join(ctx.evidence.company(stock) for stock in document.stocks)


@lru_cache(maxsize=200_000)
def document_records(document: Document, company: str, tokens: int, overlap: int) -> tuple[Record, ...]:
    """The chunks of ``document`` as records; one per ``tokens`` tokens, neighbours sharing ``overlap``."""
    assert document.time is not None  # the view never returns a document without a time
    chunks = split_to_tokens(document.text, tokens, overlap)
    about = " ".join([document.time.text, company, ",".join(document.stocks)]).strip()
    source = document_source(document, "chunk")
    records = []
    for number, chunk in enumerate(chunks):
        text = f"[{about}] {chunk}"
        item_id = document.doc_id if len(chunks) == 1 else f"{document.doc_id}#{number}"
        records.append(Record(item_id, document.time.instant, text, text, _renamed(source, item_id)))
    return tuple(records)


@lru_cache(maxsize=200_000)
def case_record(resolved: ResolvedCase) -> Record:
    """A resolved case as one text: date, company, type, first 400 characters of its focal text, what happened."""
    case, outcome = resolved.case, resolved.outcome
    assert resolved.focal is not None
    text = (
        f"[{case.time.text} {case.company} {case.stock_id}] Past case, {case.topic}: "
        f"{resolved.focal.text[:FOCAL_QUERY_CHARS]} "
        f"Return over the following {case.horizon} trading days: {outcome.label} (known {outcome.resolve_session})."
    )
    source = case_source(resolved, "chunk")
    return Record(source.item_id, outcome.resolve_at, text, text, source)


def _renamed(source: Source, item_id: str) -> Source:
    return Source(
        source.kind,
        item_id,
        source.stock,
        source.ts_start,
        source.ts_end,
        source.known_at,
        source.visible_from,
        source.gate_rule,
    )
