"""Building the tiers on one view of the corpus: which documents, windows and closes there are, and in what order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from harness.evidence import EvidenceView
from harness.method import Embed
from harness.records import Document
from methods.tiem.artefacts import Artefacts
from methods.tiem.asking import Asker
from methods.tiem.concurrency import Once, bounded_map
from methods.tiem.episodes import EpisodeTier, within_reach
from methods.tiem.extraction import Extraction
from methods.tiem.records import Episode, Proposition, Theme
from methods.tiem.settings import EehSettings
from methods.tiem.theme_tier import ThemeTier, close_stamp
from methods.tiem.themes import ClusterRule, ThemeWindow, theme_windows, visible_themes
from methods.tiem.windows import MIN_DOCUMENTS, EpisodeWindow, episode_windows

AT_ONCE = 64
"""Documents or windows under way in one step of a build."""
CLOSES_AT_ONCE = 4


@dataclass(frozen=True)
class World:
    """What themes are built from: a view, the industries of its stocks, and the models."""

    view: EvidenceView
    industries: Mapping[str, str | None]
    rule: ClusterRule
    asker: Asker
    embed: Embed


class Builder:
    """The three tiers over the documents of a view; each piece of work is done once a process."""

    def __init__(self, settings: EehSettings, artefacts: Artefacts) -> None:
        self._settings = settings
        self._extraction = Extraction(settings, artefacts)
        self._episodes = EpisodeTier(settings.episode_confidence, artefacts)
        self._themes = ThemeTier(settings.theme_confidence, artefacts)
        self._found_at: Once[datetime, list[Theme]] = Once()

    async def propositions(self, documents: Sequence[tuple[Document, str]], asker: Asker) -> tuple[Proposition, ...]:
        """Propositions of (document, stock to file them under), in the given order."""

        async def of(filed: tuple[Document, str]) -> tuple[Proposition, ...]:
            return await self._extraction.of(*filed, asker)

        return tuple(p for some in await bounded_map(of, documents, AT_ONCE) for p in some)

    async def windows(self, view: EvidenceView, stocks: Sequence[str], asker: Asker) -> list[EpisodeWindow]:
        """Candidate episodes of ``stocks`` among the retrievable documents of ``view``, by (stock, time)."""
        documents = [(d, stock) for stock in stocks for run in self._runs(view, stock) for d in run]
        propositions = await self.propositions(documents, asker)
        return episode_windows(propositions, self._settings.episode_days, self._settings.max_propositions)

    async def episodes(self, windows: Sequence[EpisodeWindow], view: EvidenceView, asker: Asker) -> list[Episode]:
        """Those of ``windows`` that are episodes, in the given order."""

        async def of(window: EpisodeWindow) -> Episode | None:
            return await self._episodes.of(window, view.company(window.stock), asker)

        return [e for e in await bounded_map(of, windows, AT_ONCE) if e is not None]

    async def themes_as_of(self, close: datetime, world: World) -> list[Theme]:
        """Themes at any T whose newest close of the grid is ``close``: those of the windows that closed by then.

        No call is made once it is plain that there are too few episodes for themes.
        """
        view = world.view.as_of_earlier(close_stamp(close))
        episodes = await self._enough_episodes(view, world.asker)
        if episodes is None:
            return []

        async def found(window: ThemeWindow) -> list[Theme]:
            return await self._found_at.get(window.close, lambda: self._themes_of(window, world))

        closed = [w for w in self._theme_windows(view) if w.close <= close]
        themes = [theme for some in await bounded_map(found, closed, CLOSES_AT_ONCE) for theme in some]
        return await self._visible(themes, len(episodes), world.embed)

    async def themes_of_all(self, world: World) -> list[Theme]:
        """Themes of the whole corpus, however late: what a build without a gate would find."""
        episodes = await self._enough_episodes(world.view, world.asker)
        if episodes is None:
            return []

        async def found(window: ThemeWindow) -> list[Theme]:
            return await self._name(window, episodes, world)

        windows = self._theme_windows(world.view)
        themes = [theme for some in await bounded_map(found, windows, CLOSES_AT_ONCE) for theme in some]
        return await self._visible(themes, len(episodes), world.embed)

    async def _themes_of(self, window: ThemeWindow, world: World) -> list[Theme]:
        """Themes of ``window``, of the episodes as they stood at its close."""
        view = world.view.as_of_earlier(close_stamp(window.close))
        candidates = await self.windows(view, stocks_of(view), world.asker)
        inside = [w for w in candidates if window.start <= w.end.instant < window.close]
        return await self._name(window, await self.episodes(inside, view, world.asker), world)

    async def _name(self, window: ThemeWindow, episodes: Sequence[Episode], world: World) -> list[Theme]:
        return await self._themes.of(
            window, episodes, world.industries, world.rule, world.view.company, world.asker, world.embed
        )

    async def _enough_episodes(self, view: EvidenceView, asker: Asker) -> list[Episode] | None:
        """Episodes of all stocks, or None if there are fewer than themes need."""
        least, stocks = self._settings.min_episodes, stocks_of(view)
        if sum(len(run) // MIN_DOCUMENTS for stock in stocks for run in self._runs(view, stock)) < least:
            return None
        windows = await self.windows(view, stocks, asker)
        if len(windows) < least:
            return None
        episodes = await self.episodes(windows, view, asker)
        return episodes if len(episodes) >= least else None

    async def _visible(self, themes: Sequence[Theme], n_episodes: int, embed: Embed) -> list[Theme]:
        names = sorted({theme.name for theme in themes})
        vectors = dict(zip(names, await embed(names), strict=True)) if names else {}
        return visible_themes(
            themes,
            n_episodes,
            vectors,
            min_episodes=self._settings.min_episodes,
            max_themes=self._settings.max_themes,
            duplicate_above=self._settings.duplicate_above,
        )

    def _theme_windows(self, view: EvidenceView) -> list[ThemeWindow]:
        """Windows of the grid in which an episode may end: an episode ends with a document."""
        ends = (
            d.time.instant
            for stock in stocks_of(view)
            for run in self._runs(view, stock)
            for d in run
            if d.time is not None
        )
        return theme_windows(ends, self._settings.theme_days, self._settings.theme_step)

    def _runs(self, view: EvidenceView, stock: str) -> list[list[Document]]:
        return within_reach(view.of(stock).of_stock(), self._settings.episode_days)


def stocks_of(view: EvidenceView) -> list[str]:
    """Stocks with a document in reach of ``view``, sorted."""
    return sorted({stock for document in view.retrievable() for stock in document.stocks})
