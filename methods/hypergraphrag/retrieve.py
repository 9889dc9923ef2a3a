"""HyperGraphRAG's search: from entities to the hyperedges that name them, from hyperedges to their members, from both to chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from methods.entity_graph import ChunkText, Limits, Node, chunks_of_edges, chunks_of_entities, cut, cut_chunks, union
from methods.hypergraphrag.graph import Hyperedge, HyperState


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of the three tables, best first; chunks by number."""

    entities: tuple[Node, ...] = ()
    hyperedges: tuple[Hyperedge, ...] = ()
    chunks: tuple[int, ...] = ()


def by_entities(state: HyperState, hits: Sequence[str], limits: Limits, content: ChunkText) -> Found:
    """The entities ``hits`` (most similar first), the hyperedges that name them, their chunks.

    A hyperedge comes once for each of the entities, by (degrees of both, weight of the membership).
    """
    nodes = [node for name in hits if (node := state.node(name))]
    pairs = [
        (hyperedge, node.name)
        for node in nodes
        for name in state.hyperedges_of(node.name)
        if (hyperedge := state.hyperedge(name))
    ]
    pairs.sort(key=lambda pair: (-state.degrees(pair[0].name, pair[1]), -state.weight(pair[0].name, pair[1])))
    about = [
        (state.node_chunks(node.name), [state.hyperedge_chunks(name) for name in state.hyperedges_of(node.name)])
        for node in nodes
    ]
    return Found(
        tuple(nodes),
        tuple(hyperedge for hyperedge, _ in cut(pairs, lambda pair: pair[0].name, limits.edges, limits.size)),
        cut_chunks(chunks_of_entities(about), limits, content),
    )


def by_hyperedges(state: HyperState, hits: Sequence[tuple[str, float]], limits: Limits, content: ChunkText) -> Found:
    """The hyperedges ``hits`` with their similarities, by (similarity, weight), their members, their chunks."""
    scored = [(hyperedge, score) for name, score in hits if (hyperedge := state.hyperedge(name))]
    ranked = [h for h, _ in sorted(scored, key=lambda item: (-item[1], -item[0].weight))]
    hyperedges = cut(ranked, lambda hyperedge: hyperedge.name, limits.edges, limits.size)
    members = [node for name in union(*(state.members(h.name) for h in hyperedges)) if (node := state.node(name))]
    return Found(
        tuple(cut(members, lambda node: node.description, limits.entities, limits.size)),
        tuple(hyperedges),
        cut_chunks(chunks_of_edges(state.hyperedge_chunks(h.name) for h in hyperedges), limits, content),
    )


def both(high: Found, low: Found) -> Found:
    """Rows found through hyperedges first, then those found through entities, each once."""
    return Found(
        tuple(union(high.entities, low.entities)),
        tuple(union(high.hyperedges, low.hyperedges)),
        tuple(union(high.chunks, low.chunks)),
    )


def by_paper(
    state: HyperState,
    entities: Sequence[str],
    hyperedges: Sequence[str],
    chunks: Sequence[int],
    limits: Limits,
    content: ChunkText,
) -> Found:
    """The paper's fact set: hyperedges found, then all that name an entity found; chunks are found by themselves."""
    nodes = [node for name in entities if (node := state.node(name))]
    names = union(hyperedges, *(state.hyperedges_of(node.name) for node in nodes))
    facts = [hyperedge for name in names if (hyperedge := state.hyperedge(name))]
    return Found(
        tuple(cut(nodes, lambda node: node.description, limits.entities, limits.size)),
        tuple(cut(facts, lambda hyperedge: hyperedge.name, limits.edges, limits.size)),
        cut_chunks(chunks, limits, content),
    )
