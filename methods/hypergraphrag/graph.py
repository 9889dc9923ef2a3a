"""HyperGraphRAG's bipartite graph: hyperedges (segments of text) and the entities named in them, as of any insert."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from methods.entity_graph import EntityGraph, EntityRecord, EntityState, Node, merged_node
from methods.prefix_log import Summarise
from methods.versions import Links, Versions

TAG = "<hyperedge>"
"""Before the text of a hyperedge, in its name and in what is embedded."""


@dataclass(frozen=True, slots=True)
class Member:
    """An entity named in a segment; ``score`` (0-100) says how much it matters there."""

    entity: EntityRecord
    score: float


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of knowledge in a chunk: its text, how complete it is (0-10), and whom it names."""

    text: str
    completeness: float
    members: tuple[Member, ...]

    @property
    def name(self) -> str:
        return TAG + self.text


Extraction = tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Hyperedge:
    """A segment as of an insert.

    Attributes:
        name: the tag and the text; the key, and what is embedded.
        weight: completeness summed over all that state it.
        best: the greatest completeness that was stated.
        last, first: inserts that shaped it last and created it.
    """

    name: str
    weight: float
    best: float
    last: int
    first: int

    @property
    def text(self) -> str:
        return self.name.removeprefix(TAG)


class HyperGraph(EntityGraph):
    """The graph as of every insert."""

    def __init__(self) -> None:
        super().__init__()
        self.scores: Versions[str, float] = Versions()
        self.hyperedges: Versions[str, Hyperedge] = Versions()
        self.weights: Versions[tuple[str, str], float] = Versions()
        self.members: Links[str, str] = Links()
        self.hyperedges_of: Links[str, str] = Links()
        self.hyperedge_chunks: Links[str, int] = Links()

    async def insert(self, insert: int, extracted: Sequence[tuple[int, Extraction]], summarise: Summarise) -> None:
        """Merge what the chunks of one insert say. Nothing is written before every summary is there."""
        stated: dict[str, list[tuple[int, Segment]]] = defaultdict(list)
        naming: dict[str, list[tuple[int, str, Member]]] = defaultdict(list)
        for chunk, segments in extracted:
            for segment in segments:
                stated[segment.name].append((chunk, segment))
                for member in segment.members:
                    naming[member.entity.name].append((chunk, segment.name, member))
        nodes = await asyncio.gather(
            *(
                merged_node(name, [m.entity for *_, m in found], self.nodes.latest(name), insert, summarise)
                for name, found in naming.items()
            )
        )
        for name, said in stated.items():
            self._put_hyperedge(name, said, insert)
        for node, found in zip(nodes, naming.values(), strict=True):
            self._put_scored_node(node, found)
        for name, found in naming.items():
            for _, hyperedge, member in found:
                self._put_membership(hyperedge, name, member.score, insert)

    def _put_hyperedge(self, name: str, said: Sequence[tuple[int, Segment]], insert: int) -> None:
        stored = self.hyperedges.latest(name)
        known = [stored] if stored else []
        values = [segment.completeness for _, segment in said]
        hyperedge = Hyperedge(
            name=name,
            weight=sum(values + [h.weight for h in known]),
            best=max(values + [h.best for h in known]),
            last=insert,
            first=stored.first if stored else insert,
        )
        self.hyperedges.put(name, hyperedge, insert)
        for chunk in sorted({chunk for chunk, _ in said}):
            self.hyperedge_chunks.add(name, chunk, insert)

    def _put_scored_node(self, node: Node, found: Sequence[tuple[int, str, Member]]) -> None:
        known = self.scores.latest(node.name)
        scores = [member.score for *_, member in found]
        self.scores.put(node.name, max([*scores, known] if known is not None else scores), node.last)
        self.put_node(node, [chunk for chunk, *_ in found])

    def _put_membership(self, hyperedge: str, entity: str, score: float, insert: int) -> None:
        known = self.weights.latest((hyperedge, entity))
        if known is None:
            self.members.add(hyperedge, entity, insert)
            self.hyperedges_of.add(entity, hyperedge, insert)
        self.weights.put((hyperedge, entity), score + (known or 0.0), insert)


class HyperState(EntityState[HyperGraph]):
    """The graph as of an insert."""

    def score(self, name: str) -> float:
        """The greatest key score that the entity ``name`` was given."""
        score = self._graph.scores.at(name, self.n)
        assert score is not None
        return score

    def hyperedge(self, name: str) -> Hyperedge | None:
        """The hyperedge ``name``."""
        hyperedge = self._graph.hyperedges.at(name, self.n)
        return hyperedge if hyperedge and hyperedge.last < self.admitted else None

    def weight(self, hyperedge: str, entity: str) -> float:
        """Sum of the key scores of ``entity`` in ``hyperedge``, which it is a member of."""
        weight = self._graph.weights.at((hyperedge, entity), self.n)
        assert weight is not None
        return weight

    def members(self, hyperedge: str) -> Sequence[str]:
        """Entities named in ``hyperedge``, in the order in which they came."""
        return self._graph.members.at(hyperedge, self.n)

    def hyperedges_of(self, entity: str) -> Sequence[str]:
        """Hyperedges that name ``entity``, in the order in which they came."""
        return self._graph.hyperedges_of.at(entity, self.n)

    def degrees(self, hyperedge: str, entity: str) -> int:
        """Members of the one and hyperedges of the other."""
        return self._graph.members.count(hyperedge, self.n) + self._graph.hyperedges_of.count(entity, self.n)

    def hyperedge_chunks(self, name: str) -> Sequence[int]:
        """Chunks that state the hyperedge, oldest first."""
        return self._graph.hyperedge_chunks.at(name, self.n)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All entities."""
        return tuple(v for _, v in self._graph.nodes.items_at(self.n) if v.last < self.admitted)

    @cached_property
    def hyperedges(self) -> tuple[Hyperedge, ...]:
        """All hyperedges."""
        return tuple(v for _, v in self._graph.hyperedges.items_at(self.n) if v.last < self.admitted)
