"""What a forecast takes from the hypergraph: the nearest propositions, episodes and themes, and their sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.clock import Stamp
from harness.evidence import PUBLISHED, RETRIEVED, Gate
from harness.method import Embed
from harness.records import Catalyst, Source
from methods.ranking import cosine_scores, rank
from methods.tiem.records import Episode, Proposition, Theme

Vectors = NDArray[np.floating[Any]]
R = TypeVar("R")
PRIOR_K, EPISODE_K, THEME_K = 6, 3, 2
FOCAL_QUERY_CHARS = 200
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Hit(Generic[R]):
    """A retrieved record and its cosine with the query."""

    record: R
    score: float


def prior_query(case: Catalyst) -> str:
    """What prior propositions are ranked by."""
    return f"{case.topic} {case.company}"


def tier_query(case: Catalyst, focal_text: str) -> str:
    """What episodes and themes are ranked by; ``focal_text`` is empty without a focal document."""
    return f"{case.topic} {case.company} {focal_text[:FOCAL_QUERY_CHARS]}".strip()


def theme_text(theme: Theme) -> str:
    """The text a theme is searched by."""
    return f"{theme.name}. {theme.description}"


def top_propositions(
    propositions: Sequence[Proposition], query: Vectors, vectors: Vectors, k: int = PRIOR_K
) -> list[Hit[Proposition]]:
    """The ``k`` nearest; ``vectors`` (n, d) are those of the sentences. Ties: the newer, then the id."""
    return _top(propositions, query, vectors, k, lambda p: _instant(p.time), lambda p: p.prop_id)


def top_episodes(
    episodes: Sequence[Episode], query: Vectors, vectors: Vectors, k: int = EPISODE_K
) -> list[Hit[Episode]]:
    """The ``k`` nearest; ``vectors`` (n, d) are those of the summaries. Ties: the later τ_e, then the id."""
    return _top(episodes, query, vectors, k, lambda e: e.end.instant, lambda e: e.episode_id)


def top_themes(themes: Sequence[Theme], query: Vectors, vectors: Vectors, k: int = THEME_K) -> list[Hit[Theme]]:
    """The ``k`` nearest; ``vectors`` (n, d) are those of ``theme_text``. Ties: the later τ_e, then the id."""
    return _top(themes, query, vectors, k, lambda t: t.end.instant, lambda t: t.theme_id)


async def nearest_propositions(
    propositions: Sequence[Proposition], query: str, embed: Embed, k: int = PRIOR_K
) -> list[Hit[Proposition]]:
    """``top_propositions`` for a query as text."""
    own, vectors = await _vectors(query, [p.sentence for p in propositions], embed)
    return top_propositions(propositions, own, vectors, k)


async def nearest_episodes(
    episodes: Sequence[Episode], query: str, embed: Embed, k: int = EPISODE_K
) -> list[Hit[Episode]]:
    """``top_episodes`` for a query as text."""
    own, vectors = await _vectors(query, [e.summary for e in episodes], embed)
    return top_episodes(episodes, own, vectors, k)


async def nearest_themes(
    themes: Sequence[Theme], stock: str, query: str, embed: Embed, k: int = THEME_K
) -> list[Hit[Theme]]:
    """``top_themes`` among those of ``stock``, for a query as text."""
    own = [t for t in themes if stock in t.stocks]
    query_vector, vectors = await _vectors(query, [theme_text(t) for t in own], embed)
    return top_themes(own, query_vector, vectors, k)


def proposition_source(proposition: Proposition, kind: str) -> Source:
    """``kind`` is focal, concurrent or prior; a prior proposition must be from before T, the others by T."""
    instant = proposition.time.instant if proposition.time else None
    rule = RETRIEVED if kind == "prior" else PUBLISHED
    return Source(kind, proposition.prop_id, proposition.stock, instant, instant, instant, instant, rule)


def episode_source(episode: Episode) -> Source:
    """An episode is known when its last document is."""
    start, end = episode.start.instant, episode.end.instant
    return Source("episode", episode.episode_id, episode.stock, start, end, end, end, RETRIEVED)


def theme_source(theme: Theme, gate: Gate) -> Source:
    """``strict``: known from the close of its window on. Otherwise the claim is τ_e, which is all that ``paper`` filters by."""
    end = theme.end.instant
    known = theme.known_at if gate is Gate.STRICT else end
    return Source("theme", theme.theme_id, None, theme.start.instant, end, known, known, RETRIEVED)


async def _vectors(query: str, texts: Sequence[str], embed: Embed) -> tuple[Vectors, Vectors]:
    vectors = await embed([query, *texts])
    return vectors[0], vectors[1:]


def _top(
    records: Sequence[R],
    query: Vectors,
    vectors: Vectors,
    k: int,
    instant: Callable[[R], datetime],
    identity: Callable[[R], str],
) -> list[Hit[R]]:
    scores = cosine_scores(vectors, query)
    best = rank(scores, [instant(r) for r in records], [identity(r) for r in records], k)
    return [Hit(records[i], float(scores[i])) for i in best]


def _instant(stamp: Stamp | None) -> datetime:
    return stamp.instant if stamp else _BEFORE_ALL
