"""SCMR: the weighted vote of skills that were each judged on their own evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.records import NEGATIVE, POSITIVE
from methods.tiem.stability import STABILITY_WEIGHTS, Stability


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one skill says about the case. ``support`` is in [0, 1]."""

    positive: bool
    support: float


def judgement(reply: Mapping[str, Any] | None) -> Judgement | None:
    """The judgement in a parsed reply ``{"direction", "support"}``; None if it abstains or is malformed.

    A support outside [0, 1] is clamped. A support that is missing or no number makes the reply malformed: it is not
    read as a weight that nobody gave.
    """
    if not isinstance(reply, Mapping) or reply.get("direction") not in (POSITIVE, NEGATIVE):
        return None
    support = reply.get("support")
    if isinstance(support, bool) or not isinstance(support, int | float) or math.isnan(support):
        return None
    return Judgement(reply["direction"] == POSITIVE, min(1.0, max(0.0, float(support))))


def vote(
    paths: Iterable[tuple[Stability, Judgement | None]], weights: Mapping[Stability, float] = STABILITY_WEIGHTS
) -> float | None:
    """P(positive): share of the positive paths in the weight of all valid ones; weight = stability weight × support.

    Args:
        paths: stability of the skill, and its judgement (None: abstained, malformed, or no predicate was found).
        weights: weight of each stability.

    Returns:
        A probability, or None if no path carries weight: then the joint HEFR call decides.
    """
    valid = [(found, weights[stability] * found.support) for stability, found in paths if found is not None]
    total = math.fsum(weight for _, weight in valid)
    if total == 0:
        return None
    return math.fsum(weight for found, weight in valid if found.positive) / total
