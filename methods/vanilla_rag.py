"""Vanilla RAG: dense retrieval over what was public before T (no official code exists for this baseline).

Filter by time first, then rank: scores are exact cosines of stored vectors, one text at a time, rounded to 6 decimals;
ties go to the newer record, then to the id. So the passages at T do not depend on anything that came later.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from harness.expected import ZERO, Expected, Range, Survey, tokens_a_char
from harness.method import Context
from harness.records import Catalyst, Forecast, Passage
from methods import forecasting
from methods.base import BaseMethod
from methods.feed import (
    Record,
    case_record,
    company_of,
    document_records,
    expected_passages,
    expected_vector,
    fed_cases,
    requests_for_vectors,
    retrieval_query,
    shown_already,
)
from methods.ranking import cosines_with, rank


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
        scores = await cosines_with(retrieval_query(case, ctx.evidence), [r.embedded for r in records], ctx.embed)
        top = rank(scores, [r.instant for r in records], [r.item_id for r in records], self.k, self.min_sim)
        passages = [
            Passage(records[i].text, records[i].source, rank, float(scores[i])) for rank, i in enumerate(top, start=1)
        ]
        return forecasting.within_budget(passages, ctx, self.native_tokens)

    def _records(self, ctx: Context) -> list[Record]:
        left_out = shown_already(ctx)
        records = [
            record
            for document in ctx.evidence.retrievable()
            if document.doc_id not in left_out
            for record in document_records(
                document, company_of(document, ctx.evidence), self.chunk_tokens, self.chunk_overlap
            )
        ]
        return records + [case_record(resolved) for resolved in fed_cases(ctx)]

    async def expected(self, survey: Survey) -> list[Expected]:
        """The prompt without its context, and a context of passages between the shortest and the longest tenth of what there is.

        Embeddings: every record and query once.
        """
        rates: dict[str, Range] = {}
        embedded: dict[str, Expected] = {}

        async def without_context(case: Catalyst, ctx: Context) -> Forecast:
            return await forecasting.ask(case, ctx, context=())

        def context_tokens(case: Catalyst, ctx: Context) -> Range:
            records = self._records(ctx)
            if not records:
                return ZERO
            for text in (*(r.embedded for r in records), retrieval_query(case, ctx.evidence)):
                if text not in embedded:
                    embedded[text] = expected_vector(text)
            corpus = ctx.evidence.corpus_key
            if corpus not in rates:
                rates[corpus] = tokens_a_char(r.text for r in records[:: max(1, len(records) // 200)])
            limit = ctx.context_chars or int(self.native_tokens / rates[corpus].high)
            short, long = np.quantile([len(r.text) for r in records], [0.1, 0.9])
            return rates[corpus] * expected_passages(short, long, min(self.k, len(records)), limit)

        asks = await forecasting.expected_calls(survey, without_context, forecasting.REASONED_TOKENS, context_tokens)
        return [*asks, *embedded.values(), *requests_for_vectors(survey)]
