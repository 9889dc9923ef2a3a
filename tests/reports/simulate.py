"""Simulated answers with a known truth, to see how often intervals hold it and tests are deceived."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from reports.answers import Answers
from reports.metrics import Bools, Floats

EQUAL = (12,) * 11
FINPURE = (36, 21, 19, 17, 13, 6, 5, 5, 3, 2, 1)
"""Catalysts a decision day of the released FinPURE."""


def shares(rng: np.random.Generator, sizes: Sequence[int], mean: float, icc: float) -> Floats:
    """A probability a row; those of a day are one draw of a beta distribution, so that answers have this intra-class correlation."""
    if icc == 0:
        return np.full(sum(sizes), mean)
    strength = (1 - icc) / icc
    return np.repeat(rng.beta(mean * strength, (1 - mean) * strength, len(sizes)), sizes)


def answers(truth: Bools, predicted: Bools, sizes: Sequence[int]) -> Answers:
    """Answers by day, each about its own stock."""
    n = truth.size
    return Answers(
        keys=_keys(n),
        truth=truth,
        usable=np.ones(n, dtype=np.bool_),
        predicted=predicted,
        probs=predicted.astype(np.float64),
        days=tuple(np.repeat(np.arange(len(sizes)), sizes).tolist()),
        stocks=tuple(range(n)),
    )


@cache
def _keys(n: int) -> tuple[tuple[str, int], ...]:
    return tuple((f"c{i:04d}", 0) for i in range(n))


def one(rng: np.random.Generator, sizes: Sequence[int], acc: float, icc: float) -> Answers:
    """Answers of accuracy ``acc``, right together within a day."""
    truth = rng.random(sum(sizes)) < 0.5
    right = rng.random(sum(sizes)) < shares(rng, sizes, acc, icc)
    return answers(truth, truth == right, sizes)


def coverage(
    interval: Callable[[Answers], tuple[float, float] | None],
    value: float,
    sizes: Sequence[int],
    acc: float,
    icc: float,
    draws: int,
    seed: int = 1,
) -> float:
    """Share of ``draws`` in which ``interval`` holds ``value``."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(draws):
        found = interval(one(rng, sizes, acc, icc))
        hits += found is not None and found[0] <= value <= found[1]
    return hits / draws
