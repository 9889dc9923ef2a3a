"""LightRAG (Guo et al. 2024), the algorithm of lightrag-hku 1.0.9, gated in time: the graph at T is a prefix of its log."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from harness.method import Context
from harness.records import Catalyst, Forecast, Passage
from methods import forecasting, graph_context, graph_reading
from methods.base import BaseMethod, template_sha256
from methods.entity_graph import Limits, Node, Searchable, nearest, shown
from methods.feed import retrieval_query, shown_already
from methods.graph_context import Table
from methods.graph_reading import Reading
from methods.lightrag import reading, retrieve
from methods.lightrag.graph import Edge, Extraction, GraphState, RelationGraph
from methods.lightrag.retrieve import Found
from methods.prefix_log import Log, Logs, feed_as_of
from methods.tiem.asking import content_key

BUILD_TEMPLATES = (reading.EXTRACT, *graph_reading.TEMPLATES)
GraphLog = Log[Extraction, RelationGraph]


class Shelf:
    """What cells share: texts read, and the logs made of them."""

    def __init__(self, texts: Reading[Extraction]) -> None:
        self.texts = texts
        self.logs: Logs[Extraction, RelationGraph] = Logs(RelationGraph)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The graph as of a decision."""

    state: GraphState
    log: GraphLog
    hidden: frozenset[str]

    def content(self, chunk: int) -> str | None:
        """Text of ``chunk``; None if every prompt shows its document anyway."""
        record = self.log.chunks[chunk]
        return None if record.item_id.partition("#")[0] in self.hidden else record.text


class LightRAG(BaseMethod):
    """Entities, relations and chunks found by keywords of two levels.

    Attributes:
        mode: ``hybrid``, or one half of it: ``local`` (low-level keywords find entities), ``global`` (high-level keywords find
            relations).
        top_k: entities, and relations, found by similarity.
        chunk_tokens: tokens a chunk.
        chunk_overlap: tokens shared by neighbouring chunks.
        gleanings: rounds in which the model is asked for what it missed in a chunk.
        entity_types: types the model chooses from.
        summary_tokens: tokens from which on a merged description is summarised.
        entity_tokens, relation_tokens, source_tokens: where the tables are cut.
    """

    uses_embedder: ClassVar[bool] = True
    templates: ClassVar[tuple[str, ...]] = (
        *forecasting.TEMPLATES, *BUILD_TEMPLATES, reading.KEYWORDS, graph_context.TEMPLATE,
    )  # fmt: skip
    mode: Literal["hybrid", "local", "global"] = "hybrid"
    top_k: int = Field(60, ge=1)
    chunk_tokens: int = Field(1200, ge=1)
    chunk_overlap: int = Field(100, ge=0)
    gleanings: int = Field(1, ge=0)
    entity_types: tuple[str, ...] = Field(("organization", "person", "geo", "event", "category"), min_length=1)
    summary_tokens: int = Field(500, ge=1)
    entity_tokens: int = Field(4000, ge=1)
    relation_tokens: int = Field(4000, ge=1)
    source_tokens: int = Field(4000, ge=1)

    def instruction_sha256(self) -> str:
        return forecasting.instruction_sha256()

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        question = retrieval_query(case, ctx.evidence)
        shelf = self._shelf(ctx)
        snapshot, (high, low) = await asyncio.gather(
            self._snapshot(ctx, shelf), reading.keywords(question, ctx.llm, shelf.texts.tally)
        )
        found = await self._found(snapshot, high, low, ctx)
        shelf.texts.tally.tell(ctx.warn)
        return await graph_context.ask(case, ctx, self._tables(snapshot, found))

    def _shelf(self, ctx: Context) -> Shelf:
        built_with = [self.chunk_tokens, self.chunk_overlap, self.gleanings, self.entity_types, self.summary_tokens]
        hashes = [template_sha256(name) for name in BUILD_TEMPLATES]
        key = f"lightrag-{content_key(ctx.evidence.corpus_key, built_with, hashes)[:16]}"
        form = reading.form(self.entity_types, self.gleanings, self.summary_tokens)
        return ctx.shared(key, lambda directory: Shelf(Reading(form)))

    async def _snapshot(self, ctx: Context, shelf: Shelf) -> Snapshot:
        feed = feed_as_of(ctx, self.chunk_tokens, self.chunk_overlap)
        log = shelf.logs.of(feed.entries)
        await log.reach(feed.entries, shelf.texts.by(ctx.build_llm))
        state = GraphState(log.graph, len(feed.entries), feed.admitted)
        return Snapshot(state, log, frozenset(shown_already(ctx)))

    async def _found(self, at: Snapshot, high: str, low: str, ctx: Context) -> Found:
        limits = Limits(self.relation_tokens, self.entity_tokens, self.source_tokens)
        state, entries = at.state, at.log.entries
        by_relations = by_entities = Found()
        if self.mode != "local":
            edges = state.edges
            among = Searchable(
                tuple(e.pair for e in edges),
                tuple(e.text for e in edges),
                tuple(entries[e.last].instant for e in edges),
            )
            hits = [pair for pair, _ in await nearest(high, among, self.top_k, ctx.embed)]
            by_relations = retrieve.by_relations(state, hits, limits, at.content)
        if self.mode != "global":
            nodes = state.nodes
            among = Searchable(
                tuple(n.name for n in nodes),
                tuple(n.text for n in nodes),
                tuple(entries[n.last].instant for n in nodes),
            )
            hits = [name for name, _ in await nearest(low, among, self.top_k, ctx.embed)]
            by_entities = retrieve.by_entities(state, hits, limits, at.content)
        return retrieve.both(by_relations, by_entities)

    def _tables(self, at: Snapshot, found: Found) -> list[Table]:
        entities = tuple(_entity_row(node, at) for node in found.entities)
        relations = tuple(_relation_row(edge, at) for edge in found.relations)
        chunks = tuple(Passage(at.log.chunks[c].text, at.log.chunk_source(c)) for c in found.chunks)
        return [
            Table("Entities:", entities, 0.25, self.entity_tokens),
            Table("Relations:", relations, 0.35, self.relation_tokens),
            Table("Sources:", chunks, 0.40, self.source_tokens),
        ]


def _entity_row(node: Node, at: Snapshot) -> Passage:
    source = at.log.source("entity", node.name, at.state.node_chunks(node.name), node.last)
    return Passage(f"{node.name} ({node.type.lower()}): {shown(node.description)}", source)


def _relation_row(edge: Edge, at: Snapshot) -> Passage:
    first, second = edge.pair
    source = at.log.source("relation", f"{first} -- {second}", at.state.edge_chunks(edge.pair), edge.last)
    about = f"{first} -- {second} [{shown(edge.keywords)}; weight {edge.weight:g}]"
    return Passage(f"{about}: {shown(edge.description)}", source)
