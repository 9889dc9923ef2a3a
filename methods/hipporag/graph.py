"""The graph of one snapshot and PageRank over it, as ``igraph`` (prpack) computes it for the official code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import igraph
import numpy as np
from numpy.typing import NDArray

from methods.hipporag.openie import Triple
from methods.hipporag.synonyms import Neighbours, SynonymRule

Edges = dict[tuple[int, int], float]


class Version(StrEnum):
    """v1: phrases are nodes. v2: passages are nodes as well."""

    V1 = "v1"
    V2 = "v2"


@dataclass(frozen=True)
class PhraseGraph:
    """Nodes, weights and counts of one snapshot.

    Attributes:
        phrases: names of the phrase nodes, sorted; node ``i`` is ``phrases[i]``. In v2 passage ``d`` is node ``len(phrases) + d``.
        passages: number of passages.
        counts: passages that a phrase occurs in, shape (phrases,).
        occurrences: (passage, phrase) of every phrase in every distinct fact of a passage, shape (n, 2): D2F · F2P.
        edges: directed entries; a pair's weight is the sum of both directions.
        graph: the same for PageRank.
    """

    phrases: tuple[str, ...]
    passages: int
    counts: NDArray[np.int64]
    occurrences: NDArray[np.int64]
    edges: Edges
    graph: igraph.Graph

    @property
    def node(self) -> dict[str, int]:
        """Node number by phrase."""
        return {name: number for number, name in enumerate(self.phrases)}


def build_graph(
    triples: Sequence[Sequence[Triple]], neighbours: Neighbours, rule: SynonymRule, version: Version
) -> PhraseGraph:
    """The graph of passages with these normalised ``triples``. A loop is no edge; a synonym replaces a fact's weight.

    A triple that a passage states twice counts twice.
    """
    phrases = sorted({name for passage in triples for s, _, o in passage for name in (s, o)})
    node = {name: number for number, name in enumerate(phrases)}
    weights: Counter[tuple[int, int]] = Counter()
    occurrences: list[tuple[int, int]] = []
    counts = np.zeros(len(phrases), dtype=np.int64)
    for number, passage in enumerate(triples):
        for s, _, o in passage:
            weights[node[s], node[o]] += 1
            weights[node[o], node[s]] += 1
        own = sorted({node[name] for s, _, o in passage for name in (s, o)})
        counts[own] += 1
        occurrences += [(number, node[name]) for s, _, o in dict.fromkeys(passage) for name in {s, o}]
        if version is Version.V2:
            weights.update({(len(phrases) + number, name): 1 for name in own})
    edges: Edges = {pair: float(weight) for pair, weight in weights.items() if pair[0] != pair[1]}
    edges.update({(node[a], node[b]): score for a, b, score in rule.edges(phrases, neighbours)})
    size = len(phrases) + (len(triples) if version is Version.V2 else 0)
    pairs = np.array(sorted(occurrences), dtype=np.int64).reshape(-1, 2)
    return PhraseGraph(tuple(phrases), len(triples), counts, pairs, edges, weighted_graph(size, edges))


def weighted_graph(size: int, edges: Mapping[tuple[int, int], float]) -> igraph.Graph:
    """An undirected graph of ``size`` nodes; both directions of a pair are two parallel edges."""
    return igraph.Graph(n=size, edges=list(edges), edge_attrs={"weight": list(edges.values())})


def pagerank(graph: PhraseGraph, reset: NDArray[np.float64], damping: float) -> NDArray[np.float64]:
    """Personalised PageRank of every node, undirected and weighted; ``reset`` need not sum to 1 but not be all zero."""
    ranks = graph.graph.personalized_pagerank(
        directed=False, damping=damping, reset=reset.tolist(), weights="weight", implementation="prpack"
    )
    return np.asarray(ranks, dtype=np.float64)
