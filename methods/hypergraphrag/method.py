"""HyperGraphRAG (Luo et al. 2025), the released code's algorithm, gated in time: the graph at T is a prefix of its log."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Literal

from harness.expected import Expected, Range, Survey
from harness.method import Context
from harness.records import Catalyst, Forecast, Passage
from methods import forecasting, graph_context, graph_reading
from methods.entity_graph import Searchable, nearest
from methods.expected_graphs import frame, questions
from methods.feed import retrieval_query
from methods.graph_context import Table
from methods.graph_method import GraphMethod, Grown
from methods.graph_reading import Form
from methods.hypergraphrag import reading, retrieve
from methods.hypergraphrag.graph import Extraction, Hyperedge, HyperGraph, HyperState
from methods.hypergraphrag.retrieve import Found

AsOf = Grown[Extraction, HyperGraph]

PAPER_ENTITY_FLOOR, PAPER_HYPEREDGE_FLOOR = 50.0, 5.0
"""The paper's thresholds of cosine x key score and of cosine x completeness."""
PAPER_CHUNKS, PAPER_CHUNK_FLOOR = 6, 0.5
"""The paper's number of chunks, and their least cosine."""


class HyperGraphRAG(GraphMethod):
    """Entities, hyperedges and chunks found by the entities and segments of the question.

    Attributes:
        scoring: ``code``: by similarity and degrees, as the released code does; ``paper``: by similarity times the scores that
            the model gave, with thresholds, and chunks by similarity, as the paper says.
    """

    build_templates: ClassVar[tuple[str, ...]] = (reading.EXTRACT, *graph_reading.TEMPLATES)
    templates: ClassVar[tuple[str, ...]] = (*forecasting.TEMPLATES, *build_templates, graph_context.TEMPLATE)
    scoring: Literal["code", "paper"] = "code"
    gleanings: int = 2

    async def expected(self, survey: Survey) -> list[Expected]:
        """See ``GraphMethod``; every question read as a text is, without gleanings."""
        form = self._form()
        asked = questions(survey, "question", frame(form.instructions, ""), Range(15, 800))
        return await self._expected(survey, form, 1, asked)

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        form = self._form()
        shelf = self._shelf(ctx, form, HyperGraph)
        tally, question = shelf.texts.tally, retrieval_query(case, ctx.evidence)
        at, (by_text, by_name) = await asyncio.gather(
            shelf.grown(ctx, self.chunk_tokens, self.chunk_overlap),
            reading.queries(question, form, ctx.llm, tally),
        )
        state = HyperState(at.log.graph, at.n, at.admitted)
        if self.scoring == "code":
            found = await self._found(state, at, by_text, by_name, ctx)
        else:
            found = await self._found_by_paper(state, at, by_text, by_name, question, ctx)
        tally.tell(ctx.warn)
        return await graph_context.ask(case, ctx, self._tables(state, at, found))

    def _form(self) -> Form[Extraction]:
        return reading.form(self.entity_types, self.gleanings, self.summary_tokens)

    async def _found(self, state: HyperState, at: AsOf, by_text: str, by_name: str, ctx: Context) -> Found:
        limits = self._limits()
        hyperedges = await nearest(by_text, _hyperedges(state, at), self.top_k, ctx.embed)
        entities = await nearest(by_name, _entities(state, at), self.top_k, ctx.embed)
        return retrieve.both(
            retrieve.by_hyperedges(state, hyperedges, limits, at.content),
            retrieve.by_entities(state, [name for name, _ in entities], limits, at.content),
        )

    async def _found_by_paper(
        self, state: HyperState, at: AsOf, by_text: str, by_name: str, question: str, ctx: Context
    ) -> Found:
        completeness = [h.best for h in state.hyperedges]
        scores = [state.score(node.name) for node in state.nodes]
        hyperedges = await nearest(
            by_text, _hyperedges(state, at), self.top_k, ctx.embed, PAPER_HYPEREDGE_FLOOR, completeness
        )
        entities = await nearest(by_name, _entities(state, at), self.top_k, ctx.embed, PAPER_ENTITY_FLOOR, scores)
        chunks = [n for n in range(len(at.log.chunks)) if at.log.insert_of(n) < at.admitted]
        among = Searchable.of([(n, at.log.chunks[n].embedded, at.log.chunks[n].instant) for n in chunks])
        nearby = await nearest(question, among, PAPER_CHUNKS, ctx.embed, PAPER_CHUNK_FLOOR)
        return retrieve.by_paper(
            state,
            [name for name, _ in entities],
            [name for name, _ in hyperedges],
            [number for number, _ in nearby],
            self._limits(),
            at.content,
        )

    def _tables(self, state: HyperState, at: AsOf, found: Found) -> list[Table]:
        entities = tuple(at.entity_row(node, state.node_chunks(node.name)) for node in found.entities)
        hyperedges = tuple(_hyperedge_row(hyperedge, state, at) for hyperedge in found.hyperedges)
        chunks = tuple(at.chunk_row(chunk) for chunk in found.chunks)
        return [
            Table("Entities:", entities, 0.25, self.entity_tokens),
            Table("Statements and what they are about:", hyperedges, 0.35, self.relation_tokens),
            Table("Sources:", chunks, 0.40, self.source_tokens),
        ]


def _entities(state: HyperState, at: AsOf) -> Searchable:
    return Searchable.of([(node.name, node.text, at.log.entries[node.last].instant) for node in state.nodes])


def _hyperedges(state: HyperState, at: AsOf) -> Searchable:
    return Searchable.of([(h.name, h.name, at.log.entries[h.last].instant) for h in state.hyperedges])


def _hyperedge_row(hyperedge: Hyperedge, state: HyperState, at: AsOf) -> Passage:
    source = at.log.source("hyperedge", hyperedge.text, state.hyperedge_chunks(hyperedge.name), hyperedge.last)
    members = " | ".join(state.members(hyperedge.name))
    return Passage(f"{hyperedge.text} [{members}]", source)
