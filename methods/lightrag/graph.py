"""LightRAG's graph: entities and relations merged insert by insert, readable as of any insert."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from methods.entity_graph import SEPARATOR, UNKNOWN, EntityGraph, EntityRecord, EntityState, Node, joined, merged_node
from methods.prefix_log import Summarise
from methods.versions import Links, Versions

Pair = tuple[str, str]
"""Names of a relation's ends, sorted."""


@dataclass(frozen=True, slots=True)
class RelationRecord:
    """What one chunk says of two entities; ``weight`` is the strength it states."""

    source: str
    target: str
    description: str
    keywords: str
    weight: float

    @property
    def pair(self) -> Pair:
        first, second = sorted((self.source, self.target))
        return first, second


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one chunk says."""

    entities: tuple[EntityRecord, ...] = ()
    relations: tuple[RelationRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation as of an insert; ``first`` and ``last`` are the inserts that created it and shaped it last."""

    pair: Pair
    weight: float
    description: str
    keywords: str
    last: int
    first: int

    @property
    def text(self) -> str:
        """What is embedded."""
        return self.keywords + self.pair[0] + self.pair[1] + self.description


class RelationGraph(EntityGraph):
    """The graph as of every insert."""

    def __init__(self) -> None:
        super().__init__()
        self.edges: Versions[Pair, Edge] = Versions()
        self.neighbours: Links[str, str] = Links()
        self.edge_chunks: Links[Pair, int] = Links()

    async def insert(self, insert: int, extracted: Sequence[tuple[int, Extraction]], summarise: Summarise) -> None:
        """Merge what the chunks of one insert say. Nothing is written before every summary is there."""
        entities: dict[str, list[tuple[int, EntityRecord]]] = defaultdict(list)
        relations: dict[Pair, list[tuple[int, RelationRecord]]] = defaultdict(list)
        for chunk, extraction in extracted:
            for entity in extraction.entities:
                entities[entity.name].append((chunk, entity))
            for relation in extraction.relations:
                relations[relation.pair].append((chunk, relation))
        nodes = await asyncio.gather(
            *(
                merged_node(name, [r for _, r in found], self.nodes.latest(name), insert, summarise)
                for name, found in entities.items()
            )
        )
        edges = [
            _merged_edge(pair, [r for _, r in found], self.edges.latest(pair), insert)
            for pair, found in relations.items()
        ]
        summaries = await asyncio.gather(*(summarise(f"{e.pair[0]}, {e.pair[1]}", e.description) for e in edges))
        for node, found in zip(nodes, entities.values(), strict=True):
            self.put_node(node, [chunk for chunk, _ in found])
        for edge, summary, said in zip(edges, summaries, relations.values(), strict=True):
            self._put_edge(edge, summary, [chunk for chunk, _ in said])

    def _put_edge(self, edge: Edge, summary: str, chunks: Sequence[int]) -> None:
        """Write a relation; an end that no chunk has described becomes an entity of unknown type, described by it."""
        insert = edge.last
        for name in edge.pair:
            if self.nodes.latest(name) is None:
                self.put_node(Node(name, UNKNOWN, edge.description, insert, insert, embedded=False), chunks)
        if edge.first == insert:
            for name, other in dict.fromkeys([edge.pair, edge.pair[::-1]]):
                self.neighbours.add(name, other, insert)
        stored = Edge(edge.pair, edge.weight, summary, edge.keywords, insert, edge.first)
        self.edges.put(edge.pair, stored, insert)
        for chunk in sorted(set(chunks)):
            self.edge_chunks.add(edge.pair, chunk, insert)


def _merged_edge(pair: Pair, records: Sequence[RelationRecord], stored: Edge | None, insert: int) -> Edge:
    """The relation after ``records``: weights summed, descriptions joined as an entity's, keywords fragment by fragment."""
    known = [stored] if stored else []
    keywords = [r.keywords for r in records] + [k for edge in known for k in edge.keywords.split(SEPARATOR)]
    return Edge(
        pair=pair,
        weight=sum([r.weight for r in records] + [edge.weight for edge in known]),
        description=joined([r.description for r in records] + [edge.description for edge in known]),
        keywords=joined(keywords),
        last=insert,
        first=stored.first if stored else insert,
    )


class GraphState(EntityState[RelationGraph]):
    """The graph as of an insert."""

    def edge(self, pair: Pair) -> Edge | None:
        """The relation between the two of ``pair``."""
        edge = self._graph.edges.at(pair, self.n)
        return edge if edge and edge.last < self.admitted else None

    def pairs_of(self, name: str) -> list[Pair]:
        """The relations of ``name``, in the order in which they came."""
        return [(name, other) if name <= other else (other, name) for other in self._graph.neighbours.at(name, self.n)]

    def degree(self, name: str) -> int:
        """Number of ends of relations at ``name``."""
        return self._graph.neighbours.count(name, self.n) + (self._graph.edges.at((name, name), self.n) is not None)

    def edge_chunks(self, pair: Pair) -> Sequence[int]:
        """Chunks that state the relation, oldest first."""
        return self._graph.edge_chunks.at(pair, self.n)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Entities that similarity can find."""
        return tuple(v for _, v in self._graph.nodes.items_at(self.n) if v.embedded and v.last < self.admitted)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """All relations."""
        return tuple(v for _, v in self._graph.edges.items_at(self.n) if v.last < self.admitted)
