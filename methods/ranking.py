"""Exact search over stored vectors: scores that depend on nothing but their own text, and one rule for ties."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.method import Embed

DECIMALS = 6
"""Scores are rounded before they are ranked or held against a threshold: the last bits vary with batch and machine."""

_ROWS_AT_ONCE = 4096  # bounds the copy in float64 to a few tens of MB


def cosine_scores(vectors: NDArray[np.floating[Any]], query: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Cosines of unit ``vectors`` (n, d) with unit ``query`` (d,), rounded to 6 decimals, shape (n,)."""
    parts = [
        row_cosines(vectors[i : i + _ROWS_AT_ONCE].astype(np.float64), query)
        for i in range(0, len(vectors), _ROWS_AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.empty(0)


async def cosines_with(query: str, texts: Sequence[str], embed: Embed) -> NDArray[np.float64]:
    """Cosines of ``texts`` with ``query``, shape (n,). The vectors are gone when it returns: a forecast that waits holds none."""
    vectors = await embed([query, *texts])
    return cosine_scores(vectors[1:], vectors[0])


def row_cosines(rows: NDArray[np.float64], query: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """As ``cosine_scores``, for ``rows`` that are float64 already: nothing is copied.

    Every row is summed by itself: its score does not change when other rows come or go, as a matrix product's may.
    """
    cosines: NDArray[np.float64] = np.vecdot(rows, query.astype(np.float64))
    return cosines.round(DECIMALS)


def rank(
    scores: NDArray[np.float64], instants: Sequence[datetime], ids: Sequence[str], k: int, min_sim: float | None = None
) -> list[int]:
    """Indices of the ``k`` best of already filtered records: score, then newer, then id."""
    least = -np.inf if min_sim is None else min_sim
    if 0 < k < len(scores):  # of very many, only those as good as the k-th are sorted
        least = max(least, np.partition(scores, -k)[-k])
    eligible = np.flatnonzero(scores >= least).tolist()
    return sorted(eligible, key=lambda i: (-scores[i], -instants[i].timestamp(), ids[i]))[:k]
