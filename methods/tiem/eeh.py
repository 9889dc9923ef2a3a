"""The Event-Evidence Hypergraph (EEH) of one corpus: propositions, episodes and themes as of any decision.

Under ``strict`` each tier at T is what a build on the corpus cut at T would give. Nothing is built per decision for that:
a chunk, a window and a cluster are judged once for what they say, so two decisions that see the same windows share their
verdicts, and only the newest window of a stock, which may still be open, is asked about anew as it grows. Under ``paper``
and ``off`` the tiers are built once over the whole corpus, and ``paper`` leaves out what ends at T or later.

The rule that there are no themes below 50 episodes counts, under ``strict``, the episodes as they stood at the newest close of
the grid before T: like the themes themselves it changes at closes only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from harness.clock import retrievable_at
from harness.evidence import EvidenceView, Gate
from harness.method import Context
from harness.records import Document
from methods.asking import Asker, content_key
from methods.base import template_sha256
from methods.concurrency import Once
from methods.tiem import episodes, extraction, theme_tier
from methods.tiem.artefacts import Artefacts
from methods.tiem.build import Builder, World
from methods.tiem.records import Episode, Proposition, Theme
from methods.tiem.settings import EehSettings
from methods.tiem.theme_tier import newest_close
from methods.tiem.themes import ClusterRule, auto_min_industries

SYSTEM = "tiem_build_system.j2"
TEMPLATES = (
    SYSTEM, extraction.TEMPLATE, episodes.TEST, episodes.DESCRIBE, theme_tier.TEST, theme_tier.CLASSIFY,
)  # fmt: skip
"""Prompts of the build: part of the identity of a method that uses it."""


def eeh_of(ctx: Context, settings: EehSettings) -> Eeh:
    """The hypergraph of the corpus behind ``ctx``: one for all cells of a process with its backbone and embedder."""
    prompts = {name: template_sha256(name) for name in TEMPLATES}
    settings = settings.of_benchmark(ctx.benchmark)
    key = content_key(ctx.evidence.corpus_key, settings.model_dump(mode="json"), prompts)
    return ctx.shared(f"eeh-{key}", lambda directory: Eeh(settings, directory))


class Eeh:
    """The hypergraph. Every method takes the context of a decision and answers as of its T under its gate."""

    def __init__(self, settings: EehSettings, directory: Path) -> None:
        """Take up what is in ``directory`` (Parquet parts of earlier builds with the same content key)."""
        self.artefacts = Artefacts(directory)
        self._settings = settings
        self._builder = Builder(settings, self.artefacts)
        self._visible: Once[datetime | None, list[Theme]] = Once()
        self._auto: int | None = None
        self._active = 0

    async def propositions(self, document: Document, stock: str, ctx: Context) -> tuple[Proposition, ...]:
        """Propositions of ``document`` filed under ``stock``, in the order of its text.

        The caller is to ask only for documents that ``ctx.evidence`` gave it.

        Raises:
            CallFailed: the model could not be asked. So for all methods of this class.
        """
        return await self.propositions_of([document], stock, ctx)

    async def propositions_of(self, documents: Sequence[Document], stock: str, ctx: Context) -> tuple[Proposition, ...]:
        """As ``propositions``, of several documents in the given order."""
        async with self._working(ctx) as asker:
            return await self._builder.propositions([(document, stock) for document in documents], asker)

    async def episodes(self, stock: str, ctx: Context) -> list[Episode]:
        """Episodes of ``stock`` that a forecast at T may retrieve, oldest first."""
        view = ctx.evidence.build_on()
        async with self._working(ctx) as asker:
            windows = await self._builder.windows(view, [stock], asker)
            found = await self._builder.episodes(windows, view, asker)
        if ctx.gate is Gate.PAPER:
            return [e for e in found if retrievable_at(e.end, ctx.evidence.decision)]
        return found

    async def themes(self, ctx: Context) -> list[Theme]:
        """Themes that a forecast at T may retrieve, of whatever stocks; those of most stocks × episodes first."""
        view, decision = ctx.evidence.build_on(), ctx.evidence.decision
        async with self._working(ctx) as asker:
            world = self._world(view, asker, ctx)
            if ctx.gate is Gate.STRICT:
                close = newest_close(decision, self._settings.theme_days, self._settings.theme_step)
                return list(await self._visible.get(close, lambda: self._builder.themes_as_of(close, world)))
            found = await self._visible.get(None, lambda: self._builder.themes_of_all(world))
        return [t for t in found if ctx.gate is Gate.OFF or retrievable_at(t.end, decision)]

    def _world(self, view: EvidenceView, asker: Asker, ctx: Context) -> World:
        industries = view.index.industries
        least = self._settings.min_industries
        if least == "auto":
            if self._auto is None:
                self._auto = auto_min_industries(industries)
            least = self._auto
            if least == 0:
                ctx.warn("no stock of this benchmark has an industry: themes need none here (min_industries: auto)")
        rule = ClusterRule(
            max_size=self._settings.max_theme_episodes, min_stocks=self._settings.min_stocks, min_industries=least
        )
        return World(view, industries, rule, asker, ctx.embed)

    @asynccontextmanager
    async def _working(self, ctx: Context) -> AsyncIterator[Asker]:
        """The way to the model. Whoever ends last writes what is not yet on disk; everyone hears of the failures so far."""
        self._active += 1
        try:
            yield Asker(ctx.build_llm, SYSTEM)
        finally:
            self._active -= 1
            if not self._active:
                self.artefacts.flush()
            for notice in self.artefacts.notices:
                ctx.warn(notice)
