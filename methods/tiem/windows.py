"""Episode windows: which propositions of a stock may form one causal chain."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from harness.clock import Stamp
from methods.tiem.records import Proposition

MIN_PROPOSITIONS = 2
MIN_DOCUMENTS = 2
MAX_PROPOSITIONS = 7


@dataclass(frozen=True, slots=True)
class EpisodeWindow:
    """A candidate episode. ``start`` and ``end`` (τ_s, τ_e) are those of the window before the cap."""

    stock: str
    propositions: tuple[Proposition, ...]
    start: Stamp
    end: Stamp


def episode_windows(
    propositions: Iterable[Proposition], days: int, max_propositions: int = MAX_PROPOSITIONS
) -> list[EpisodeWindow]:
    """Greedy windows that do not overlap, per stock, oldest first.

    A window opens at the first proposition that is in none yet and takes all up to ``days`` days (of 24 hours, that
    instant included) after it. It is kept with at least 2 propositions from at least 2 documents. Propositions of one
    instant are ordered by (doc_id, chunk, index), so the result does not depend on the order of the input. A window
    depends on nothing after its end: later propositions only append windows, or extend the last one.

    Args:
        propositions: of any stocks, in any order; those without a time are left out.
        days: Δ_ep.
        max_propositions: cap of a window.

    Returns:
        Windows ordered by (stock, time).
    """
    by_stock: dict[str, list[Proposition]] = defaultdict(list)
    for proposition in propositions:
        if proposition.time is not None:
            by_stock[proposition.stock].append(proposition)
    return [
        EpisodeWindow(stock, _capped(window, max_propositions), _stamp(window[0]), _stamp(window[-1]))
        for stock in sorted(by_stock)
        for window in _greedy(sorted(by_stock[stock], key=_order), timedelta(days=days))
        if len(window) >= MIN_PROPOSITIONS and len({p.doc_id for p in window}) >= MIN_DOCUMENTS
    ]


def _greedy(ordered: Sequence[Proposition], span: timedelta) -> Iterator[Sequence[Proposition]]:
    first = 0
    while first < len(ordered):
        end = bisect_right(ordered, _instant(ordered[first]) + span, lo=first, key=_instant)
        yield ordered[first:end]
        first = end


def _capped(window: Sequence[Proposition], limit: int) -> tuple[Proposition, ...]:
    """The ``limit`` propositions with most entities (ties: the earlier), back in order of time."""
    richest = sorted(range(len(window)), key=lambda i: -len(window[i].entities))[:limit]
    return tuple(window[i] for i in sorted(richest))


def _order(proposition: Proposition) -> tuple[datetime, str, int, int]:
    return _instant(proposition), proposition.doc_id, proposition.chunk, proposition.index


def _instant(proposition: Proposition) -> datetime:
    return _stamp(proposition).instant


def _stamp(proposition: Proposition) -> Stamp:
    assert proposition.time is not None
    return proposition.time
