"""What all forecasts of a process share: extracts of passages, close phrases, and the few newest snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from harness.method import Context
from methods.asking import Asker, content_key
from methods.base import template_sha256
from methods.concurrency import Once
from methods.feed import Record
from methods.hipporag.graph import PhraseGraph, Version, build_graph
from methods.hipporag.openie import KINDS, SYSTEM, TEMPLATES, OpenIE, Triple, normalised
from methods.hipporag.synonyms import SynonymIndex, SynonymRule
from methods.snapshots import records_to_build_on, snapshot_id
from methods.tally import Tally

KEPT = 4
"""Snapshots kept: decisions come in the order of time, those of one T at once."""
GRAPHS_AT_ONCE = 2
"""Graphs built and searched at a time: what bounds the memory of forecasts under way."""


def library_of(ctx: Context, rule: SynonymRule) -> Library:
    """The library of the corpus behind ``ctx``: one for all cells of a process with its backbone and embedder."""
    prompts = {name: template_sha256(name) for name in TEMPLATES}
    key = content_key(ctx.evidence.corpus_key, prompts, rule.threshold, rule.nearest, rule.most, rule.normalise)
    return ctx.shared(f"hipporag-{key}", lambda _: Library(rule))


@dataclass(frozen=True, slots=True)
class Visible:
    """The passages that a graph is built from and their normalised triples, in the order of time."""

    records: Sequence[Record]
    triples: Sequence[Sequence[Triple]]

    @property
    def facts(self) -> list[Triple]:
        """The distinct facts, oldest first."""
        return list(dict.fromkeys(triple for passage in self.triples for triple in passage))


class Library:
    """Extracts and snapshots of one corpus."""

    def __init__(self, rule: SynonymRule) -> None:
        self.tally = Tally(KINDS)
        self._rule = rule
        self._openie = OpenIE(self.tally)
        self._synonyms = SynonymIndex(rule.threshold)
        self._clean: dict[Sequence[Triple], tuple[Triple, ...]] = {}
        self._graphs: Once[tuple[str, Version], PhraseGraph] = Once(most=KEPT)
        self._turns = asyncio.Semaphore(GRAPHS_AT_ONCE)

    async def visible(self, ctx: Context, version: Version) -> Visible:
        """The passages as of ``ctx``, extracted. Only v2 drops the repeats within a passage.

        Raises:
            CallFailed: the model could not be asked.
        """
        records = records_to_build_on(ctx)
        extracts = await self._openie.of(records, Asker(ctx.build_llm, SYSTEM))
        self.tally.tell(ctx.warn)
        stated = (e.triples if version is Version.V1 else tuple(dict.fromkeys(e.triples)) for e in extracts)
        return Visible(records, [self._normalised(triples) for triples in stated])

    @asynccontextmanager
    async def graph(self, visible: Visible, version: Version, ctx: Context) -> AsyncIterator[PhraseGraph]:
        """The graph of ``visible``, built without a call; to be searched before this context is left."""
        await self._synonyms.add((n for passage in visible.triples for s, _, o in passage for n in (s, o)), ctx.embed)

        async def build() -> PhraseGraph:
            return await asyncio.to_thread(build_graph, visible.triples, self._synonyms.neighbours, self._rule, version)

        async with self._turns:
            yield await self._graphs.get((snapshot_id(visible.records), version), build)

    def _normalised(self, triples: tuple[Triple, ...]) -> tuple[Triple, ...]:
        if triples not in self._clean:
            self._clean[triples] = normalised(triples, self._rule.normalise)
        return self._clean[triples]
