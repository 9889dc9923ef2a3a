"""Synonyms: pairs of phrases whose vectors are close. A pair is compared once, however many snapshots hold it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.method import Embed
from methods.hipporag.phrases import Normalise, has_synonyms

DECIMALS = 9
"""Cosines are rounded: an edge must not depend on how many phrases were compared at once."""

_MARGIN = 1e-3  # single precision finds candidates, double precision decides
_ROWS_AT_ONCE = 512

Neighbours = Mapping[str, Sequence[tuple[str, float]]]


@dataclass(frozen=True, slots=True)
class SynonymRule:
    """Which neighbours of a phrase are its synonyms.

    Attributes:
        threshold: least cosine.
        nearest: neighbours looked at, the phrase itself among them (kNN list of the official code).
        most: synonyms at most.
        normalise: how phrases are written; the length a phrase needs depends on it.
    """

    threshold: float = 0.8
    nearest: int = 2047
    most: int = 101
    normalise: Normalise = Normalise.UNICODE

    def edges(self, phrases: Sequence[str], neighbours: Neighbours) -> Iterator[tuple[str, str, float]]:
        """(phrase, synonym, cosine) among ``phrases``, directed, in their order, nearest first."""
        among: Container[str] = set(phrases)
        most = min(self.most, self.nearest - 1)
        for name in phrases:
            if not has_synonyms(name, self.normalise):
                continue
            kept = 0
            for other, score in neighbours.get(name, ()):
                if kept == most:
                    break
                if other in among:
                    yield name, other, score
                    kept += 1


def close_pairs(
    new: NDArray[np.floating[Any]], known: NDArray[np.floating[Any]], threshold: float
) -> Iterator[tuple[int, int, float]]:
    """(row of ``new``, row of ``known``, cosine) of all pairs of unit vectors at or above ``threshold``."""
    single = known.astype(np.float32, copy=False)
    for start in range(0, len(new), _ROWS_AT_ONCE):
        block = new[start : start + _ROWS_AT_ONCE]
        i, j = np.nonzero(block.astype(np.float32, copy=False) @ single.T >= threshold - _MARGIN)
        for first in range(0, len(i), 4096):
            rows, columns = i[first : first + 4096], j[first : first + 4096]
            exact = np.vecdot(block[rows].astype(np.float64), known[columns].astype(np.float64)).round(DECIMALS)
            for row, column, score in zip(rows.tolist(), columns.tolist(), exact.tolist(), strict=True):
                if score >= threshold:
                    yield start + row, column, score


class SynonymIndex:
    """Close pairs of all phrases met so far. A snapshot takes those among its own phrases."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._known: dict[str, None] = {}
        self._found: dict[str, list[tuple[str, float]]] = defaultdict(list)
        self._turn = asyncio.Lock()

    @property
    def neighbours(self) -> Neighbours:
        """Close phrases of each phrase, nearest first, ties by name."""
        return self._found

    async def add(self, phrases: Iterable[str], embed: Embed) -> None:
        """Compare the phrases not met yet with one another and with all others."""
        async with self._turn:
            new = sorted({name for name in phrases if name not in self._known})
            if not new:
                return
            names = [*self._known, *new]
            vectors = await embed(names)
            pairs = await asyncio.to_thread(
                lambda: list(close_pairs(vectors[len(self._known) :], vectors, self._threshold))
            )
            self._take(new, names, pairs)

    def _take(self, new: Sequence[str], names: Sequence[str], pairs: Iterable[tuple[int, int, float]]) -> None:
        old = len(self._known)
        touched: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for i, j, score in pairs:
            if j != old + i:
                touched[new[i]].append((names[j], score))
                if j < old:
                    touched[names[j]].append((new[i], score))
        for name, close in touched.items():
            self._found[name] = sorted([*self._found.get(name, ()), *close], key=lambda pair: (-pair[1], pair[0]))
        self._known.update(dict.fromkeys(new))
