"""From a question to scores of passages: how v1 and v2 set the reset vector of PageRank and read its result."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from methods.hipporag.graph import PhraseGraph, pagerank
from methods.hipporag.openie import Triple

Scores = NDArray[np.float64]


def min_max(scores: Scores) -> Scores:
    """Scores scaled to [0, 1]; all ones where they are equal."""
    if not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    scaled: Scores = (scores - low) / (high - low) if high > low else np.ones_like(scores)
    return scaled


def specificity_reset(graph: PhraseGraph, linked: Iterable[int], specificity: bool) -> Scores:
    """v1: 1 ÷ passages of the node for every linked node (1 without specificity); a node linked twice counts once."""
    reset = np.zeros(len(graph.phrases))
    for node in linked:
        reset[node] = 1 / max(1, int(graph.counts[node])) if specificity else 1.0
    return reset


def scores_by_phrases(graph: PhraseGraph, ranks: Scores) -> Scores:
    """v1: min-max of D2F · (F2P · ranks), one score a passage."""
    passages, phrases = graph.occurrences[:, 0], graph.occurrences[:, 1]
    sums: Scores = np.bincount(passages, weights=ranks[phrases], minlength=graph.passages).astype(np.float64)
    return min_max(sums)


def best_facts(scores: Scores, facts: Sequence[Triple], k: int) -> list[int]:
    """v2: indices of the ``k`` best facts; ties by the text of the fact."""
    return sorted(range(len(facts)), key=lambda i: (-scores[i], facts[i]))[:k]


def snapped(returned: Iterable[Any], candidates: Sequence[Triple], most: int) -> list[int]:
    """v2: for each returned fact, in order, the index of the candidate closest to it as a string."""
    written = [str(candidate) for candidate in candidates]
    if not written:
        return []
    closest = (difflib.get_close_matches(str(list(f)), written, n=1, cutoff=0.0)[0] for f in returned)
    return [written.index(text) for text in closest][:most]


def phrase_weights(facts: Sequence[tuple[Triple, float]], passages_with: Mapping[str, int], k: int) -> dict[str, float]:
    """v2: the ``k`` heaviest phrases of the kept facts: mean over its facts of score ÷ passages with the phrase.

    A phrase of weight 0 stays unselected; the official code stops with an assertion there.
    """
    weights: dict[str, list[float]] = defaultdict(list)
    for (subject, _, object_), score in facts:
        for name in (subject, object_):
            weights[name].append(score / max(1, passages_with.get(name, 0)))
    means = {name: sum(found) / len(found) for name, found in weights.items()}
    heaviest = sorted(means, key=lambda name: (-means[name], name))[:k]
    return {name: means[name] for name in heaviest if means[name] > 0}


def fact_reset(graph: PhraseGraph, weights: Mapping[str, float], dense: Scores, passage_weight: float) -> Scores:
    """v2: weights of the phrases, and ``passage_weight`` × ``dense`` (min-max scores) of the passages."""
    reset = np.zeros(len(graph.phrases) + graph.passages)
    node = graph.node
    for name, weight in weights.items():
        reset[node[name]] = weight
    reset[len(graph.phrases) :] = passage_weight * dense
    return reset


def passage_ranks(graph: PhraseGraph, reset: Scores, damping: float) -> Scores:
    """v2: PageRank of the passage nodes."""
    return pagerank(graph, reset, damping)[len(graph.phrases) :]
