"""HippoRAG v1 and v2 as forecasting methods: passages of the graph as of T in front of the shared prompt."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from harness.expected import Expected, Range, Survey
from harness.method import Context
from harness.records import Catalyst, Forecast, Passage
from harness.tokens import count_tokens
from methods import forecasting
from methods.asking import Asker
from methods.base import BaseMethod, render
from methods.expected_graphs import Units, frame, queries, questions, size_of, vectors
from methods.feed import Record, retrieval_query, shown_already
from methods.hipporag import expected, openie, search
from methods.hipporag.graph import Version, pagerank
from methods.hipporag.library import Library, Visible, library_of
from methods.hipporag.openie import ENTITY_SCHEMA, FACT, QUERY, SYSTEM, Triple
from methods.hipporag.phrases import Normalise, phrase
from methods.hipporag.search import Scores, min_max
from methods.hipporag.synonyms import SynonymRule
from methods.ranking import cosine_scores, cosines_with, rank
from methods.schemas import json_object
from methods.snapshots import records_to_build_on, retrievable_ids

FILTER = "hipporag_filter.j2"
FILTER_SCHEMA = json_object(facts={"type": "array", "items": FACT})
RANK_DECIMALS = 10


class _HippoRAG(BaseMethod):
    """What both versions share.

    Attributes:
        passages: passages shown, best first.
        damping: of PageRank (the authors' commands; the class default of v1 is 0.1).
        synonym_threshold: τ, least cosine of a synonym edge.
        synonym_nearest: length of a phrase's list of nearest phrases, itself among them.
        synonym_most: synonym edges of a phrase at most.
        normalise: which letters of a phrase are kept.
        native_tokens: context budget with ``context.budget=native``; None: whatever the passages take.
    """

    uses_embedder: ClassVar[bool] = True
    version: ClassVar[Version]
    passages: int = Field(5, ge=1)
    damping: float = Field(0.5, gt=0, lt=1)
    synonym_threshold: float = Field(0.8, gt=0, le=1)
    synonym_nearest: int = Field(2047, ge=1)
    synonym_most: int = Field(101, ge=0)
    normalise: Normalise = Normalise.UNICODE
    native_tokens: int | None = Field(None, ge=1)

    def instruction_sha256(self) -> str:
        return forecasting.instruction_sha256()

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        library = library_of(
            ctx, SynonymRule(self.synonym_threshold, self.synonym_nearest, self.synonym_most, self.normalise)
        )
        query = retrieval_query(case, ctx.evidence)
        visible = await library.visible(ctx, self.version)
        scores = await self._scores(query, visible, library, ctx) if visible.records else np.empty(0)
        return await forecasting.ask(case, ctx, context=self._shown(visible.records, scores, ctx))

    async def expected(self, survey: Survey) -> list[Expected]:
        """Exactly two calls a passage that some decision reaches, the question, the forecast; vectors of what is said and asked.

        Version 1 compares passages themselves only where it has no entity to start from.
        """
        units = Units.of(survey, records_to_build_on)
        read = expected.extraction(units)
        texts = [*queries(survey), *(unit.embedded for unit in units.records)]
        more = 2 * sum(one.tokens_out.high for one in read)
        if self.version is Version.V1:
            more, texts = more + sum(size_of(text).high for text in texts), []
        return [
            *read,
            *self._expected_questions(survey, units),
            *await expected.forecast_calls(survey, units, self.passages, self.native_tokens),
            *vectors(survey, texts, Range(0, more)),
        ]

    @abstractmethod
    def _expected_questions(self, survey: Survey, units: Units) -> list[Expected]:
        """What is asked about the query of every case."""

    @abstractmethod
    async def _scores(self, query: str, visible: Visible, library: Library, ctx: Context) -> Scores:
        """Scores of the visible passages, of which there is at least one."""

    def _shown(self, records: Sequence[Record], scores: Scores, ctx: Context) -> list[Passage]:
        allowed = retrievable_ids(ctx, but=shown_already(ctx))
        eligible = [i for i, record in enumerate(records) if record.item_id in allowed]
        top = rank(
            scores[eligible].round(RANK_DECIMALS),
            [records[i].instant for i in eligible],
            [records[i].item_id for i in eligible],
            self.passages,
        )
        found = [
            records[eligible[i]].passage("passage", place, float(scores[eligible[i]]))
            for place, i in enumerate(top, start=1)
        ]
        if ctx.context_chars is not None:
            return forecasting.fit(found, ctx.context_chars)
        return found if self.native_tokens is None else forecasting.fit(found, self.native_tokens, count_tokens)


class HippoRAG(_HippoRAG):
    """Version 1: the entities of the question are linked to phrases, from which PageRank starts.

    Attributes:
        specificity: a phrase of few passages weighs more.
        ensemble: where a link is weak (at or below ``weak_link``), average with dense retrieval.
    """

    version: ClassVar[Version] = Version.V1
    templates: ClassVar[tuple[str, ...]] = (*forecasting.TEMPLATES, *openie.TEMPLATES, QUERY)
    specificity: bool = True
    ensemble: bool = False
    weak_link: float = Field(0.9, ge=-1, le=1)

    def _expected_questions(self, survey: Survey, units: Units) -> list[Expected]:
        head = frame(render(SYSTEM), render(QUERY, question=""))
        return questions(survey, "query_entities", head, Range(8, 200), units.sure)

    async def _scores(self, query: str, visible: Visible, library: Library, ctx: Context) -> Scores:
        reply = await Asker(ctx.llm, SYSTEM).ask(QUERY, ENTITY_SCHEMA, "query_entities", question=query)
        listed = openie.names(reply.value, library.tally, "question")
        entities = [name for name in dict.fromkeys(phrase(n, self.normalise) for n in listed) if name]
        async with library.graph(visible, self.version, ctx) as graph:
            if not entities or not graph.phrases:
                ctx.warn("questions without an entity, or before the first phrase, are answered by dense retrieval")
                return await _dense(query, visible, ctx)
            vectors = await ctx.embed([*entities, *graph.phrases])
            links = [cosine_scores(vectors[len(entities) :], vector) for vector in vectors[: len(entities)]]
            reset = search.specificity_reset(graph, (int(np.argmax(link)) for link in links), self.specificity)
            ranks = await asyncio.to_thread(pagerank, graph, reset, self.damping)
            scores = search.scores_by_phrases(graph, ranks)
        if self.ensemble and min(link.max() for link in links) <= self.weak_link:
            return 0.5 * scores + 0.5 * await _dense(query, visible, ctx)
        return scores


class HippoRAG2(_HippoRAG):
    """Version 2: the model filters the facts closest to the question; their phrases and all passages start PageRank.

    Attributes:
        facts: facts shown to the filter, and phrases kept after it.
        passage_weight: weight of a passage's dense score in the reset vector.
    """

    version: ClassVar[Version] = Version.V2
    templates: ClassVar[tuple[str, ...]] = (*forecasting.TEMPLATES, *openie.TEMPLATES, FILTER)
    facts: int = Field(5, ge=1)
    passage_weight: float = Field(0.05, gt=0)

    def _expected_questions(self, survey: Survey, units: Units) -> list[Expected]:
        facts = expected.FACT * Range(1, self.facts)
        head = frame(render(SYSTEM), render(FILTER, question="", facts=()))
        return questions(survey, "filter_facts", head, Range(8, 300), units.sure, facts)

    async def _scores(self, query: str, visible: Visible, library: Library, ctx: Context) -> Scores:
        dense = await _dense(query, visible, ctx)
        kept = await self._kept(query, visible.facts, ctx)
        if not kept:
            return dense
        async with library.graph(visible, self.version, ctx) as graph:
            counts = dict(zip(graph.phrases, graph.counts.tolist(), strict=True))
            weights = search.phrase_weights(kept, counts, self.facts)
            reset = search.fact_reset(graph, weights, dense, self.passage_weight)
            return await asyncio.to_thread(search.passage_ranks, graph, reset, self.damping)

    async def _kept(self, query: str, facts: Sequence[Triple], ctx: Context) -> list[tuple[Triple, float]]:
        """The facts that the model keeps, with their min-max scores."""
        if not facts:
            return []
        scores = min_max(await cosines_with(query, [str(fact) for fact in facts], ctx.embed))
        best = search.best_facts(scores, facts, self.facts)
        candidates = [facts[i] for i in best]
        asker = Asker(ctx.llm, SYSTEM)
        reply = await asker.ask(FILTER, FILTER_SCHEMA, "filter_facts", question=query, facts=candidates)
        if reply.value is None:
            ctx.warn("questions whose filter reply is unusable are answered by dense retrieval")
            return []
        kept = search.snapped(map(_parts, reply.value["facts"]), candidates, self.facts)
        return [(candidates[i], float(scores[best[i]])) for i in kept]


async def _dense(query: str, visible: Visible, ctx: Context) -> Scores:
    return min_max(await cosines_with(query, [record.embedded for record in visible.records], ctx.embed))


def _parts(fact: Any) -> list[Any]:
    return [fact["subject"], fact["relation"], fact["object"]]
