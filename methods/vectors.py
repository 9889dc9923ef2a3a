"""The vectors of texts that a process holds: fetched once, compared as one matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.method import Embed
from methods.ranking import row_cosines


class VectorTable:
    """Unit vectors by the text they belong to, float64 (n, d), so that thousands are compared without being copied.

    One table holds vectors of one embedder.
    """

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._matrix: NDArray[np.float64] = np.empty((0, 0))

    @classmethod
    def of(cls, vectors: dict[str, NDArray[np.floating[Any]]]) -> VectorTable:
        """A table of ``vectors``: text -> unit vector (d,)."""
        table = cls()
        table.add(list(vectors), list(vectors.values()))
        return table

    def __contains__(self, text: object) -> bool:
        return text in self._rows

    def __getitem__(self, text: str) -> NDArray[np.float64]:
        """The vector (d,) of ``text``."""
        row: NDArray[np.float64] = self._matrix[self._rows[text]]
        return row

    def add(self, texts: Sequence[str], vectors: Sequence[NDArray[np.floating[Any]]]) -> None:
        """Hold ``vectors``, one a text; a text that is held already keeps its vector."""
        for text, vector in zip(texts, vectors, strict=True):
            if text in self._rows:
                continue
            row = len(self._rows)
            if row == len(self._matrix):  # doubled, so that adding one by one copies each row a few times at most
                grown = np.empty((max(64, 2 * row), len(vector)))
                grown[:row] = self._matrix[:row] if row else 0
                self._matrix = grown
            self._matrix[row] = vector
            self._rows[text] = row

    async def fetch(self, texts: Iterable[str], embed: Embed) -> None:
        """Have the vectors of ``texts``; only those not held are asked for."""
        missing = [text for text in texts if text not in self._rows]
        if missing:
            distinct = list(dict.fromkeys(missing))
            self.add(distinct, list(await embed(distinct)))

    def cosines(self, texts: Sequence[str], query: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Cosines of ``texts``, all of them held, with the unit vector ``query`` (d,), rounded to 6 decimals, shape (n,)."""
        if not texts:
            return np.empty(0)
        rows = [self._rows[text] for text in texts]
        held = self._matrix[: len(self._rows)]
        # All rows at once are faster than a copy of most; a row's score does not depend on the others.
        scores: NDArray[np.float64] = (
            row_cosines(held[rows], query) if 3 * len(rows) < len(held) else row_cosines(held, query)[rows]
        )
        return scores
