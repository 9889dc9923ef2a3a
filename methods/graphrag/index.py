"""What all forecasts of a process share: extracts, merged descriptions, communities and reports, each made once for its content."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache

from harness.evidence import Gate
from harness.method import LLM, Context
from harness.tokens import count_tokens
from methods.asking import Asker, content_key
from methods.base import render, template_sha256
from methods.concurrency import Once, bounded_map
from methods.feed import Record
from methods.graphrag import extraction, reports
from methods.graphrag.communities import Communities, Community, communities_of
from methods.graphrag.extraction import Extraction
from methods.graphrag.reports import Written
from methods.graphrag.settings import IndexSettings
from methods.graphrag.summaries import merge_descriptions
from methods.graphrag.tables import EntityGroup, RelationGroup, Tables, distinct
from methods.schemas import TEXT, json_object
from methods.snapshots import records_to_build_on, snapshot_id
from methods.tally import Tally

MERGE_SYSTEM, MERGE = "graphrag_merge_system.j2", "graphrag_merge.j2"
MERGE_SCHEMA = json_object(description=TEXT)
TEMPLATES = (*extraction.TEMPLATES, MERGE_SYSTEM, MERGE, *reports.TEMPLATES)
KINDS = {
    **extraction.KINDS,
    "unmerged": "descriptions that are one of several, because the answer that merges them could not be used",
    "large": "communities too large for one report: their tables are cut",
    "unreported": "communities without a report, because the model's answer could not be used",
}
AT_ONCE = 64
TABLES_KEPT, COMMUNITIES_KEPT = 6, 6


def index_of(ctx: Context, settings: IndexSettings) -> Index:
    """The index of the corpus behind ``ctx``: one for all cells of a process with its backbone and embedder."""
    prompts = {name: template_sha256(name) for name in TEMPLATES}
    key = content_key(ctx.evidence.corpus_key, prompts, settings.model_dump(mode="json"))
    return ctx.shared(f"graphrag-{key}", lambda _: Index(settings))


@dataclass(frozen=True)
class Snapshot:
    """The graph of ``records``, which are in the order of time."""

    records: dict[str, Record]
    tables: Tables


@dataclass(frozen=True)
class Partition:
    """The communities of the last grid point, and the graph they are of."""

    snapshot: Snapshot
    communities: Communities


def grid_point(instant: datetime, grid: str) -> datetime:
    """The last point of ``grid`` at or before ``instant``: weeks start on Monday, days at 00:00, both in UTC."""
    if grid == "exact":
        return instant
    day = datetime.combine(instant.astimezone(UTC).date(), time(), UTC)
    return day - timedelta(days=day.weekday()) if grid == "week" else day


class Index:
    """The graph of one corpus as of any decision."""

    def __init__(self, settings: IndexSettings) -> None:
        self.settings = settings
        self.tally = Tally(KINDS)
        self._extraction = Extraction(settings.entity_types, settings.gleanings, self.tally)
        self._tables: Once[str, Tables] = Once(most=TABLES_KEPT)
        self._partitions: Once[str, Communities] = Once(most=COMMUNITIES_KEPT)
        self._merged: Once[str, str] = Once()
        self._written: Once[str, Written | None] = Once()
        head = render(MERGE, name="", descriptions=[], words=settings.description_words)
        self._merge_room = settings.description_tokens - count_tokens(render(MERGE_SYSTEM) + head)

    async def snapshot(self, ctx: Context) -> Snapshot:
        """The graph as of ``ctx``: entities, relations, ranks and units are exact at T.

        Raises:
            CallFailed: the model could not be asked. So for all methods of this class.
        """
        return await self._snapshot(records_to_build_on(ctx), ctx.build_llm)

    async def partition(self, snapshot: Snapshot, grid: str, ctx: Context) -> Partition:
        """Communities as of the last point of ``grid`` at or before T; under gates that build on the whole corpus, those of all of it."""
        earlier = snapshot
        if ctx.gate is Gate.STRICT:
            close = grid_point(ctx.evidence.decision.instant, grid)
            known = [r for r in snapshot.records.values() if r.instant < close]
            earlier = await self._snapshot(known, ctx.build_llm)

        async def cluster() -> Communities:
            edges = [(r.source, r.target, r.weight) for r in earlier.tables.relations]
            return await asyncio.to_thread(communities_of, edges, self.settings.max_cluster_size, self.settings.use_lcc)

        found = await self._partitions.get(snapshot_id(earlier.records.values()), cluster)
        return Partition(earlier, found)

    async def entity_texts(self, entities: Sequence[EntityGroup], llm: LLM) -> list[str]:
        """Merged descriptions of ``entities``."""
        return await self._merge([(entity.title, entity.descriptions) for entity in entities], llm)

    async def relation_texts(self, relations: Sequence[RelationGroup], llm: LLM) -> list[str]:
        """Merged descriptions of ``relations``."""
        return await self._merge([(f"{r.source} -> {r.target}", r.descriptions) for r in relations], llm)

    async def reports(self, numbers: Iterable[int], partition: Partition, llm: LLM) -> dict[int, Written]:
        """Reports on the communities of ``numbers``; one whose reply is unusable has none, and is counted."""
        listed = sorted(numbers)

        async def one(number: int) -> Written | None:
            return await self._report(partition.communities.by_number[number], partition.snapshot.tables, llm)

        found = await bounded_map(one, listed, AT_ONCE)
        return {number: report for number, report in zip(listed, found, strict=True) if report is not None}

    async def _snapshot(self, records: Sequence[Record], llm: LLM) -> Snapshot:
        extracts = await self._extraction.of(records, Asker(llm, extraction.SYSTEM))

        async def build() -> Tables:
            by_unit = {record.item_id: extract for record, extract in zip(records, extracts, strict=True)}
            return await asyncio.to_thread(Tables.of, by_unit)

        tables = await self._tables.get(snapshot_id(records), build)
        return Snapshot({record.item_id: record for record in records}, tables)

    async def _merge(self, named: Sequence[tuple[str, Sequence[str]]], llm: LLM) -> list[str]:
        asker = Asker(llm, MERGE_SYSTEM)
        different = [(name, distinct(descriptions)) for name, descriptions in named]
        several = [item for item in different if len(item[1]) > 1]
        merged = await self._merged.get_all(
            several, lambda item: content_key(*item), lambda item: self._merge_one(*item, asker), AT_ONCE
        )
        texts = iter(merged)
        return [next(texts) if len(descriptions) > 1 else descriptions[0] for _, descriptions in different]

    async def _merge_one(self, name: str, descriptions: Sequence[str], asker: Asker) -> str:
        async def summarise(batch: Sequence[str]) -> str:
            words = self.settings.description_words
            reply = await asker.ask(
                MERGE, MERGE_SCHEMA, "merge_descriptions", name=name, descriptions=batch, words=words
            )
            if reply.value is None:
                self.tally.count("unmerged", name)
                return batch[0]
            text: str = reply.value["description"]
            return text

        return await merge_descriptions(descriptions, summarise, self._merge_room, _tokens)

    async def _report(self, community: Community, tables: Tables, llm: LLM) -> Written | None:
        inside = reports.relations_inside(community, tables, self.settings.report_tokens)
        shown = [tables.relations[number] for number in inside]
        titles = sorted({title for r in shown for title in (r.source, r.target)})
        entity_texts = await self.entity_texts([tables.entities[tables.number[title]] for title in titles], llm)
        relation_texts = await self.relation_texts(shown, llm)
        text, fitting = reports.input_tables(
            inside,
            tables,
            dict(zip(titles, entity_texts, strict=True)),
            dict(zip(inside, relation_texts, strict=True)),
            self.settings.report_tokens,
            count_tokens,
        )
        asker = Asker(llm, reports.SYSTEM)
        cut = fitting < len(inside)
        return await self._written.get(content_key(text), lambda: self._write(text, community, cut, asker))

    async def _write(self, tables: str, community: Community, cut: bool, asker: Asker) -> Written | None:
        if cut:
            self.tally.count("large", community.nodes[0])
        words = self.settings.report_words
        reply = await asker.ask(reports.REPORT, reports.SCHEMA, "report", tables=tables, words=words)
        if reply.value is None:
            self.tally.count("unreported", community.nodes[0])
            return None
        return reports.written(reply.value)


@lru_cache(maxsize=50_000)
def _tokens(description: str) -> int:
    """Tokens of a description: those of a name often mentioned are counted anew with every mention."""
    return count_tokens(description)


def newest(units: Iterable[str], records: Mapping[str, Record]) -> Record:
    """The record among ``units`` that became known last."""
    return max((records[unit] for unit in units), key=lambda r: (r.instant, r.item_id))
