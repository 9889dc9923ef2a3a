"""LightRAG's search: from entities to their relations, from relations to their ends, from both to chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from methods.entity_graph import ChunkText, Limits, Node, chunks_of_edges, chunks_of_entities, cut, cut_chunks, union
from methods.lightrag.graph import Edge, GraphState, Pair


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of the three tables, best first; chunks by number."""

    entities: tuple[Node, ...] = ()
    relations: tuple[Edge, ...] = ()
    chunks: tuple[int, ...] = ()


def by_entities(state: GraphState, hits: Sequence[str], limits: Limits, content: ChunkText) -> Found:
    """*Local*: the entities ``hits`` (best first), all their relations, their chunks."""
    nodes = [node for name in hits if (node := state.node(name))]
    pairs = union(*(state.pairs_of(node.name) for node in nodes))
    edges = _ranked(state, pairs)
    about = [
        (
            state.node_chunks(node.name),
            [state.node_chunks(_other(pair, node.name)) for pair in state.pairs_of(node.name)],
        )
        for node in nodes
    ]
    return Found(
        tuple(nodes),
        tuple(cut(edges, lambda edge: edge.description, limits.edges, limits.size)),
        cut_chunks(chunks_of_entities(about), limits, content),
    )


def by_relations(state: GraphState, hits: Sequence[Pair], limits: Limits, content: ChunkText) -> Found:
    """*Global*: the relations ``hits`` (most similar first), the entities at their ends, their chunks."""
    edges = cut(_ranked(state, hits), lambda edge: edge.description, limits.edges, limits.size)
    ends = [node for name in union(*(edge.pair for edge in edges)) if (node := state.node(name))]
    return Found(
        tuple(cut(ends, lambda node: node.description, limits.entities, limits.size)),
        tuple(edges),
        cut_chunks(chunks_of_edges(state.edge_chunks(edge.pair) for edge in edges), limits, content),
    )


def both(high: Found, low: Found) -> Found:
    """*Hybrid*: rows found through relations first, then those found through entities, each once."""
    return Found(
        tuple(union(high.entities, low.entities)),
        tuple(union(high.relations, low.relations)),
        tuple(union(high.chunks, low.chunks)),
    )


def _ranked(state: GraphState, pairs: Iterable[Pair]) -> list[Edge]:
    """Relations by (degrees of both ends, weight), the greatest first; equals stay in the order given."""
    edges = [edge for pair in pairs if (edge := state.edge(pair))]
    return sorted(edges, key=lambda e: (-(state.degree(e.pair[0]) + state.degree(e.pair[1])), -e.weight))


def _other(pair: Pair, name: str) -> str:
    return pair[1] if pair[0] == name else pair[0]
