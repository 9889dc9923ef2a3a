"""The graph of one snapshot, and personalised PageRank over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from methods.hipporag.openie import Triple
from methods.hipporag.synonyms import Neighbours, SynonymRule

Edges = dict[tuple[int, int], float]
CONVERGED = 1e-13
MOST_STEPS = 1000
"""An error shrinks by the damping factor a step: reached for factors near 1 only."""


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
        walk: where a step from each node leads: symmetric weights with columns summing to 1, shape (nodes, nodes); a node without
            edges has a column of zeros.
    """

    phrases: tuple[str, ...]
    passages: int
    counts: NDArray[np.int64]
    occurrences: NDArray[np.int64]
    edges: Edges
    walk: csr_array

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
    return PhraseGraph(tuple(phrases), len(triples), counts, pairs, edges, walk_matrix(size, edges))


def walk_matrix(size: int, edges: Mapping[tuple[int, int], float]) -> csr_array:
    """Column-stochastic matrix of an undirected graph whose pairs weigh the sum of both directions."""
    pairs = np.array(list(edges), dtype=np.int64).reshape(-1, 2)
    directed = csr_array(
        (np.fromiter(edges.values(), np.float64, len(edges)), (pairs[:, 0], pairs[:, 1])), (size, size)
    )
    weights = csr_array(directed + directed.T)
    totals = weights.sum(axis=0)
    return csr_array(weights.multiply(np.divide(1.0, totals, out=np.zeros(size), where=totals > 0)))


def pagerank(graph: PhraseGraph, reset: NDArray[np.float64], damping: float) -> NDArray[np.float64]:
    """Personalised PageRank of every node, undirected and weighted; ``reset`` need not sum to 1 but must not be all zero.

    The same fixed point as prpack's, which the official code calls: a walk stuck in a node without edges restarts by ``reset``.
    """
    start: NDArray[np.float64] = reset / reset.sum()
    walk = graph.walk
    stuck = walk.sum(axis=0) == 0
    ranks = start
    for _ in range(MOST_STEPS):
        stepped: NDArray[np.float64] = damping * (walk @ ranks + ranks[stuck].sum() * start) + (1 - damping) * start
        change = np.abs(stepped - ranks).sum()
        ranks = stepped
        if change < CONVERGED:
            break
    return ranks
