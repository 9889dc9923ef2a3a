"""Communities of a graph: hierarchical Leiden as the official code calls it.

``graspologic-native`` is pinned: its releases number communities differently and, on weak structure, cut them differently
at the same seed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import graspologic_native

from methods.graphrag.extraction import title

SEED = 0xDEADBEEF
ROOT = -1
"""Parent of a community of level 0."""

Edge = tuple[str, str, float]


@dataclass(frozen=True, slots=True)
class Community:
    """A community: ``level`` 0 is the coarsest; ``nodes`` are titles, sorted."""

    level: int
    number: int
    parent: int
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Communities:
    """The communities of a graph by number."""

    by_number: dict[int, Community]

    @cached_property
    def of_node(self) -> dict[str, list[int]]:
        """Numbers of the communities that a title is in, coarsest first."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, community in sorted(self.by_number.items()):
            for node in community.nodes:
                found[node].append(number)
        return dict(found)

    def at_most(self, level: int, node: str) -> list[int]:
        """Communities of ``node`` no finer than ``level``."""
        return [number for number in self.of_node.get(node, ()) if self.by_number[number].level <= level]

    def reported(self, level: int) -> set[int]:
        """Communities that have a report: of every node the finest one at or above ``level``."""
        return {max(numbers) for node in self.of_node if (numbers := self.at_most(level, node))}


def communities_of(
    edges: Iterable[Edge], max_cluster_size: int = 10, use_lcc: bool = True, seed: int = SEED
) -> Communities:
    """Cluster a graph given by (source, target, weight). Direction is dropped: of reversed duplicates the last counts.

    Args:
        edges: in the order of the relation table.
        max_cluster_size: a community of this size or more is split at the next level, if it can be.
        use_lcc: cluster the largest connected component alone; nothing outside has a community.
        seed: of the clustering.
    """
    weights: dict[tuple[str, str], float] = {}
    for source, target, weight in edges:
        pair = (min(source, target), max(source, target))
        weights.pop(pair, None)  # the last row counts, in its own place
        weights[pair] = weight
    if use_lcc:
        weights = _largest_component(weights)
    if not weights:
        return Communities({})
    found = graspologic_native.hierarchical_leiden(
        edges=sorted((a, b, float(weight)) for (a, b), weight in weights.items()),
        starting_communities=None,
        resolution=1.0,
        randomness=0.001,
        iterations=1,
        use_modularity=True,
        max_cluster_size=max_cluster_size,
        seed=seed,
    )
    nodes: dict[tuple[int, int, int], list[str]] = defaultdict(list)
    for row in found:
        parent = ROOT if row.parent_cluster is None else int(row.parent_cluster)
        nodes[row.level, int(row.cluster), parent].append(row.node)
    return Communities(
        {
            number: Community(level, number, parent, tuple(sorted(titles)))
            for (level, number, parent), titles in nodes.items()
        }
    )


def _largest_component(weights: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """The pairs of the largest component (ties: the one met first), names cleaned, the lesser name first."""
    named: dict[tuple[str, str], float] = {}
    for (a, b), weight in weights.items():
        one, two = sorted((title(a), title(b)))
        named.setdefault((one, two), weight)
    parent = {node: node for node in [*(a for a, _ in named), *(b for _, b in named)]}

    def root(node: str) -> str:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for a, b in named:
        parent[root(a)] = root(b)
    members: dict[str, list[str]] = defaultdict(list)
    for node in parent:
        members[root(node)].append(node)
    if not members:
        return {}
    largest = root(max(members.values(), key=len)[0])  # max keeps the first of equals
    return {pair: weight for pair, weight in named.items() if root(pair[0]) == largest}
