"""LightRAG (Guo et al. 2024), the algorithm of lightrag-hku 1.0.9, gated in time: the graph at T is a prefix of its log."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Literal

from harness.expected import Expected, Range, Survey
from harness.method import Context
from harness.records import Catalyst, Forecast, Passage
from methods import forecasting, graph_context, graph_reading
from methods.base import render
from methods.entity_graph import Searchable, nearest, shown
from methods.expected_graphs import frame, questions
from methods.feed import retrieval_query
from methods.graph_context import Table
from methods.graph_method import GraphMethod, Grown
from methods.graph_reading import Form
from methods.lightrag import reading, retrieve
from methods.lightrag.graph import Edge, Extraction, GraphState, RelationGraph
from methods.lightrag.retrieve import Found

AsOf = Grown[Extraction, RelationGraph]


class LightRAG(GraphMethod):
    """Entities, relations and chunks found by keywords of two levels.

    Attributes:
        mode: ``hybrid``, or one half of it: ``local`` (low-level keywords find entities), ``global`` (high-level keywords find
            relations).
    """

    build_templates: ClassVar[tuple[str, ...]] = (reading.EXTRACT, *graph_reading.TEMPLATES)
    templates: ClassVar[tuple[str, ...]] = (
        *forecasting.TEMPLATES, *build_templates, reading.KEYWORDS, graph_context.TEMPLATE,
    )  # fmt: skip
    mode: Literal["hybrid", "local", "global"] = "hybrid"

    async def expected(self, survey: Survey) -> list[Expected]:
        """See ``GraphMethod``; the keywords of every question."""
        asked = questions(survey, "keywords", frame(render(reading.KEYWORDS), ""), Range(10, 150))
        return await self._expected(survey, self._form(), 2, asked)

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        shelf = self._shelf(ctx, self._form(), RelationGraph)
        tally = shelf.texts.tally
        at, (high, low) = await asyncio.gather(
            shelf.grown(ctx, self.chunk_tokens, self.chunk_overlap),
            reading.keywords(retrieval_query(case, ctx.evidence), ctx.llm, tally),
        )
        state = GraphState(at.log.graph, at.n, at.admitted)
        found = await self._found(state, at, high, low, ctx)
        tally.tell(ctx.warn)
        return await graph_context.ask(case, ctx, self._tables(state, at, found))

    def _form(self) -> Form[Extraction]:
        return reading.form(self.entity_types, self.gleanings, self.summary_tokens)

    async def _found(self, state: GraphState, at: AsOf, high: str, low: str, ctx: Context) -> Found:
        entries, limits = at.log.entries, self._limits()
        by_relations = by_entities = Found()
        if self.mode != "local":
            among = Searchable.of([(e.pair, e.text, entries[e.last].instant) for e in state.edges])
            pairs = [pair for pair, _ in await nearest(high, among, self.top_k, ctx.embed)]
            by_relations = retrieve.by_relations(state, pairs, limits, at.content)
        if self.mode != "global":
            among = Searchable.of([(v.name, v.text, entries[v.last].instant) for v in state.nodes])
            names = [name for name, _ in await nearest(low, among, self.top_k, ctx.embed)]
            by_entities = retrieve.by_entities(state, names, limits, at.content)
        return retrieve.both(by_relations, by_entities)

    def _tables(self, state: GraphState, at: AsOf, found: Found) -> list[Table]:
        entities = tuple(at.entity_row(node, state.node_chunks(node.name)) for node in found.entities)
        relations = tuple(_relation_row(edge, state, at) for edge in found.relations)
        chunks = tuple(at.chunk_row(chunk) for chunk in found.chunks)
        return [
            Table("Entities:", entities, 0.25, self.entity_tokens),
            Table("Relations:", relations, 0.35, self.relation_tokens),
            Table("Sources:", chunks, 0.40, self.source_tokens),
        ]


def _relation_row(edge: Edge, state: GraphState, at: AsOf) -> Passage:
    first, second = edge.pair
    source = at.log.source("relation", f"{first} -- {second}", state.edge_chunks(edge.pair), edge.last)
    about = f"{first} -- {second} [{shown(edge.keywords)}; weight {edge.weight:g}]"
    return Passage(f"{about}: {shown(edge.description)}", source)
