"""What LightRAG and its fork HyperGraphRAG have in common: how records are read, merged, searched and cut.

Rules of lightrag-hku 1.0.9, written anew. A merged description is the distinct fragments, sorted and joined; what is stored
already counts as one fragment and its type as one vote, so that inserts of single documents differ from one insert of all.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import numpy as np

from harness.method import Embed
from harness.tokens import count_tokens
from methods.asking import NAME_CHARS
from methods.prefix_log import Summarise
from methods.ranking import cosines_with, rank
from methods.versions import Links, Versions

SEPARATOR = "<SEP>"
"""Between the fragments of a merged text; it is part of what is embedded."""
UNKNOWN = '"UNKNOWN"'
"""Type of an entity that only a relation speaks of."""
MIN_COSINE = 0.2
"""Similarity below which nothing is found (the published storage threshold)."""
PLACEHOLDERS = frozenset({"", "NONE", "NULL", "N/A", "NAN", "UNNAMED"})
"""What models write where there is no name."""

T = TypeVar("T")
ChunkText = Callable[[int], str | None]
"""Content of a chunk; None for one that is not to be shown."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FLOAT = re.compile(r"[-+]?[0-9]*\.?[0-9]+")


def clean(text: str) -> str:
    """``text`` without HTML escapes, control characters and surrounding white space."""
    return _CONTROL.sub("", html.unescape(text.strip())).strip()


def name_of(text: str) -> str:
    """An entity's name or type: upper case, then cleaned; quotes that the model wrote stay, and so does every script."""
    return clean(text.upper())


def is_name(name: str) -> bool:
    """Whether ``name`` (as from ``name_of``) names anything."""
    return name.strip("\"'“”") not in PLACEHOLDERS and len(name) <= NAME_CHARS


def weight_of(value: Any, default: float) -> float:
    """A number as the model wrote it; ``default`` for anything else."""
    if isinstance(value, str):
        return float(value) if _FLOAT.fullmatch(value) else default
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """What one chunk says of one entity."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class Node:
    """An entity as of an insert.

    Attributes:
        name: upper case; the key.
        type: the majority of the types it was given.
        description: merged fragments, or their summary.
        last: the insert that shaped it last.
        first: the insert that created it.
        embedded: whether it can be found by similarity; an entity that only a relation speaks of cannot.
    """

    name: str
    type: str
    description: str
    last: int
    first: int
    embedded: bool = True

    @property
    def text(self) -> str:
        """What is embedded."""
        return self.name + self.description


def joined(fragments: Iterable[str]) -> str:
    """Distinct ``fragments``, sorted."""
    return SEPARATOR.join(sorted(set(fragments)))


def majority(types: Iterable[str]) -> str:
    """The most frequent; among equals the first given."""
    return Counter(types).most_common(1)[0][0]


async def merged_node(
    name: str, records: Sequence[EntityRecord], stored: Node | None, insert: int, summarise: Summarise
) -> Node:
    """The entity after ``records``, new ones first in every vote."""
    known = [stored] if stored else []
    description = joined([r.description for r in records] + [node.description for node in known])
    return Node(
        name=name,
        type=majority([r.type for r in records] + [node.type for node in known]),
        description=await summarise(name, description),
        last=insert,
        first=stored.first if stored else insert,
    )


class EntityGraph:
    """The entities of a graph as of every insert."""

    def __init__(self) -> None:
        self.nodes: Versions[str, Node] = Versions()
        self.node_chunks: Links[str, int] = Links()

    def put_node(self, node: Node, chunks: Iterable[int]) -> None:
        """Write an entity as its last insert has left it; ``chunks`` speak of it."""
        self.nodes.put(node.name, node, node.last)
        for chunk in sorted(set(chunks)):
            self.node_chunks.add(node.name, chunk, node.last)


G = TypeVar("G", bound=EntityGraph)


class EntityState(Generic[G]):
    """A graph after ``n`` inserts, without what an insert from ``admitted`` on has shaped.

    Under the strict gate the two are equal and nothing is left out. Degrees are those of the whole state.
    """

    def __init__(self, graph: G, n: int, admitted: int) -> None:
        self._graph = graph
        self.n = n
        self.admitted = admitted

    def node(self, name: str) -> Node | None:
        """The entity ``name``."""
        node = self._graph.nodes.at(name, self.n)
        return node if node and node.last < self.admitted else None

    def node_chunks(self, name: str) -> Sequence[int]:
        """Chunks that speak of the entity, oldest first."""
        return self._graph.node_chunks.at(name, self.n)


def shown(text: str) -> str:
    """A merged text as it stands in a prompt."""
    return " / ".join(text.split(SEPARATOR))


@dataclass(frozen=True, slots=True)
class Limits:
    """Where lists are cut, in units of ``size``: the longest prefix within the limit, ended by the first item that overflows.

    Attributes:
        edges: descriptions of relations, names of hyperedges.
        entities: descriptions of the entities at the ends of relations.
        chunks: contents of chunks.
    """

    edges: int = 4000
    entities: int = 4000
    chunks: int = 4000
    size: Callable[[str], int] = count_tokens


def cut(items: Sequence[T], text: Callable[[T], str], limit: int, size: Callable[[str], int]) -> list[T]:
    """The longest prefix of ``items`` whose texts sum up to at most ``limit``."""
    used = 0
    for number, item in enumerate(items):
        used += size(text(item))
        if used > limit:
            return list(items[:number])
    return list(items)


def cut_chunks(chunks: Sequence[int], limits: Limits, content: ChunkText) -> tuple[int, ...]:
    """The longest prefix of the ``chunks`` to be shown whose contents fit."""
    known = [(number, text) for number in chunks if (text := content(number)) is not None]
    return tuple(number for number, _ in cut(known, lambda item: item[1], limits.chunks, limits.size))


def chunks_of_entities(entities: Sequence[tuple[Sequence[int], Iterable[Sequence[int]]]]) -> list[int]:
    """Chunks of entities given best first as (own chunks, chunks of each neighbour).

    Ordered by the first entity that a chunk belongs to, then by how many neighbours of all its entities share it, then by time.
    """
    order: dict[int, int] = {}
    shared: Counter[int] = Counter()
    for number, (own, neighbours) in enumerate(entities):
        theirs: Counter[int] = Counter()
        for chunks in neighbours:
            theirs.update(set(chunks))
        for chunk in own:
            order.setdefault(chunk, number)
            shared[chunk] += theirs[chunk]
    return sorted(order, key=lambda chunk: (order[chunk], -shared[chunk], chunk))


def chunks_of_edges(edges: Iterable[Sequence[int]]) -> list[int]:
    """Chunks of relations given best first; those of one relation in order of time."""
    return list(dict.fromkeys(chunk for chunks in edges for chunk in sorted(chunks)))


def union(*lists: Iterable[T]) -> list[T]:
    """Items of all lists, each once."""
    return list(dict.fromkeys(item for items in lists for item in items))


@dataclass(frozen=True, slots=True)
class Searchable:
    """What is searched by similarity: keys, the texts embedded for them, and since when they are as they are."""

    keys: tuple[Any, ...]
    texts: tuple[str, ...]
    instants: tuple[datetime, ...]

    @classmethod
    def of(cls, items: Iterable[tuple[Any, str, datetime]]) -> Searchable:
        """From (key, text, instant) each."""
        listed = list(items)
        return cls(
            tuple(key for key, _, _ in listed),
            tuple(text for _, text, _ in listed),
            tuple(instant for _, _, instant in listed),
        )


async def nearest(
    query: str,
    among: Searchable,
    k: int,
    embed: Embed,
    floor: float = MIN_COSINE,
    weights: Sequence[float] | None = None,
) -> list[tuple[Any, float]]:
    """The ``k`` keys of the greatest cosine with ``query`` (times their ``weights``), with it; none below ``floor``.

    Cosines are rounded to 6 decimals; ties go to the newer, then by key.
    """
    if not among.keys:
        return []
    scores = await cosines_with(query, among.texts, embed)
    if weights is not None:
        scores = scores * np.asarray(weights)
    found = rank(scores, among.instants, [str(key) for key in among.keys], k, floor)
    return [(among.keys[i], float(scores[i])) for i in found]


def texts_of(values: Mapping[str, Any], key: str) -> list[str]:
    """The strings of a list in a reply, cleaned, blanks left out."""
    return [text for item in values[key] if (text := clean(item))]
