"""Themes: which episodes of several stocks belong together, and which themes a decision may see.

Windows lie on one grid for all benchmarks: a start every 30 days from 2000-01-01 00:00 UTC, 90 days long, the close not
included. A theme is made of the episodes as they stood at the close of its window. Everything that counts over themes (the
rule of 50 episodes, the de-duplication, the cap) is applied to those visible at T, never to the whole period.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.clock import Stamp
from methods.ranking import cosine_scores
from methods.tiem.records import Episode, Theme

Vector = NDArray[np.floating[Any]]

GRID_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)
WINDOW_DAYS = 90
STEP_DAYS = 30
MIN_EPISODES = 50
MAX_THEMES = 200
DUPLICATE_ABOVE = 0.85


@dataclass(frozen=True, slots=True)
class ThemeWindow:
    """Episodes with ``start <= τ_e < close`` (UTC). What is found in it exists from ``close`` on."""

    start: datetime
    close: datetime


@dataclass(frozen=True, slots=True)
class ClusterRule:
    """Size of a cluster in episodes (a larger one is capped), and how many stocks and known industries it must span."""

    min_size: int = 2
    max_size: int = 20
    min_stocks: int = 2
    min_industries: int = 1


def theme_windows(
    episode_ends: Iterable[datetime], days: int = WINDOW_DAYS, step: int = STEP_DAYS
) -> list[ThemeWindow]:
    """The windows of the grid that contain one of ``episode_ends`` (UTC) or more, oldest first."""
    span, stride = timedelta(days=days), timedelta(days=step)
    numbers = {
        number
        for end in episode_ends
        for number in range((end - GRID_ORIGIN - span) // stride + 1, (end - GRID_ORIGIN) // stride + 1)
    }
    return [ThemeWindow(start, start + span) for start in (GRID_ORIGIN + n * stride for n in sorted(numbers))]


def members(window: ThemeWindow, episodes: Iterable[Episode]) -> list[Episode]:
    """The ``episodes`` that end in ``window``, ordered by (τ_e, episode id): the order in which later ties are broken."""
    inside = (e for e in episodes if window.start <= e.end.instant < window.close)
    return sorted(inside, key=lambda e: (e.end.instant, e.episode_id))


def cluster(vectors: Vector, min_size: int = 2) -> list[tuple[int, ...]]:
    """HDBSCAN clusters (EOM, Euclidean) of unit ``vectors`` (n, d), as ascending row numbers; noise is in none.

    Rows are clustered in the order of their values, so the partition does not depend on the order they are given in (only
    identical rows are told apart by it). Clusters are ordered by their first row.

    scikit-learn counts a point among its own neighbours, the original library does not: ``min_samples`` is one more here
    for the same core distance.
    """
    from sklearn.cluster import HDBSCAN  # takes over a second to load, and most processes never cluster

    if len(vectors) < min_size:
        return []
    order = np.lexsort(vectors.T[::-1])
    model = HDBSCAN(
        min_cluster_size=min_size,
        min_samples=min(min_size + 1, len(vectors)),
        metric="euclidean",
        cluster_selection_method="eom",
        copy=True,
    )
    labels = np.empty(len(vectors), dtype=np.int64)
    labels[order] = model.fit_predict(vectors[order].astype(np.float64))
    found = (tuple(np.flatnonzero(labels == name).tolist()) for name in range(int(labels.max()) + 1))
    return sorted(found)


def known_industries(stocks: Iterable[str], industries: Mapping[str, str | None]) -> tuple[str, ...]:
    """The industries of ``stocks``, sorted; empty, missing and "unknown" are none."""
    named = ((industries.get(stock) or "").strip() for stock in stocks)
    return tuple(sorted({name for name in named if name and name.casefold() != "unknown"}))


def auto_min_industries(industries: Mapping[str, str | None]) -> int:
    """``min_industries: auto``: 1 where any stock of the benchmark has a known industry, else 0."""
    return 1 if known_industries(industries, industries) else 0


def keep(
    cluster_members: Sequence[Episode], industries: Mapping[str, str | None], rule: ClusterRule
) -> tuple[Episode, ...] | None:
    """The episodes of a cluster that may form a theme, in the given order; None if it is rejected.

    A cluster beyond ``max_size`` keeps the episodes with most propositions (ties: the earlier in the given order); stocks
    and industries are counted over what is kept.
    """
    richest = sorted(range(len(cluster_members)), key=lambda i: -len(cluster_members[i].propositions))[: rule.max_size]
    kept = tuple(cluster_members[i] for i in sorted(richest))
    stocks = {e.stock for e in kept}
    wide = len(stocks) >= rule.min_stocks and len(known_industries(stocks, industries)) >= rule.min_industries
    return kept if wide and len(kept) >= rule.min_size else None


def visible_themes(
    themes: Iterable[Theme],
    n_episodes: int,
    name_vectors: Mapping[str, Vector],
    *,
    min_episodes: int = MIN_EPISODES,
    max_themes: int = MAX_THEMES,
    duplicate_above: float = DUPLICATE_ABOVE,
) -> list[Theme]:
    """What is left of ``themes``, all visible at one T, after the rules that count over them.

    Args:
        themes: those that T allows, in any order.
        n_episodes: episodes visible at T; below ``min_episodes`` there are no themes.
        name_vectors: unit vector of each theme's name.
        min_episodes: the rule of 50.
        max_themes: the cap.
        duplicate_above: cosine of names beyond which two themes are one.
    """
    if n_episodes < min_episodes:
        return []
    ordered = sorted(themes, key=lambda t: (t.known_at, t.end.instant, t.theme_id))
    return most_connected(deduplicate(ordered, name_vectors, duplicate_above), max_themes)


def deduplicate(
    themes: Sequence[Theme], name_vectors: Mapping[str, Vector], above: float = DUPLICATE_ABOVE
) -> list[Theme]:
    """Merge near-duplicates into the more confident one: cosine of their names strictly ``above`` the threshold.

    Greedy over descending confidence (ties: the earlier in the given order); a theme goes to the first survivor it is
    close to. The survivor keeps its words and confidence; stocks, industries, episodes and extent are united, and it is
    known when both are. Returned by descending confidence.
    """
    survivors: list[Theme] = []
    for theme in sorted(themes, key=lambda t: -t.confidence):
        close = _first_close(survivors, theme, name_vectors, above)
        if close is None:
            survivors.append(theme)
        else:
            survivors[close] = _united(survivors[close], theme)
    return survivors


def most_connected(themes: Sequence[Theme], limit: int = MAX_THEMES) -> list[Theme]:
    """The ``limit`` themes with the largest stocks × episodes (ties: the earlier in the given order), largest first."""
    return sorted(themes, key=lambda t: -len(t.stocks) * len(t.episodes))[:limit]


def _first_close(
    survivors: Sequence[Theme], theme: Theme, name_vectors: Mapping[str, Vector], above: float
) -> int | None:
    if not survivors:
        return None
    scores = cosine_scores(np.stack([name_vectors[s.name] for s in survivors]), name_vectors[theme.name])
    hits = np.flatnonzero(scores > above)
    return int(hits[0]) if len(hits) else None


def _united(survivor: Theme, other: Theme) -> Theme:
    return replace(
        survivor,
        stocks=tuple(sorted({*survivor.stocks, *other.stocks})),
        industries=tuple(sorted({*survivor.industries, *other.industries})),
        episodes=tuple(sorted({*survivor.episodes, *other.episodes})),
        start=min(survivor.start, other.start, key=_instant),
        end=max(survivor.end, other.end, key=_instant),
        known_at=max(survivor.known_at, other.known_at),
    )


def _instant(stamp: Stamp) -> datetime:
    return stamp.instant
