"""GraphRAG as a forecasting method: the context of local search, or the answer of global search, in front of the shared prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from pydantic import model_validator

from harness.evidence import RETRIEVED, Gate
from harness.expected import Expected, Range, Survey
from harness.method import Context
from harness.records import Catalyst, Forecast, Passage, Source
from harness.tokens import count_tokens, cut_to_tokens
from methods import forecasting
from methods.asking import Asker
from methods.base import BaseMethod, render
from methods.concurrency import bounded_map
from methods.expected_graphs import Units, queries, vectors
from methods.feed import retrieval_query, shown_already
from methods.graphrag import expected, globally, index, local
from methods.graphrag import reports as reporting
from methods.graphrag.index import Index, Partition, Snapshot, index_of, newest
from methods.graphrag.settings import IndexSettings, SearchSettings
from methods.ranking import cosines_with, rank
from methods.schemas import TEXT, json_object
from methods.snapshots import records_to_build_on, retrievable_ids

MAP_SYSTEM, MAP = "graphrag_map_system.j2", "graphrag_map.j2"
REDUCE_SYSTEM, REDUCE = "graphrag_reduce_system.j2", "graphrag_reduce.j2"
_POINT = json_object(description=TEXT, score={"type": "integer", "minimum": 0, "maximum": 100})
MAP_SCHEMA = json_object(points={"type": "array", "items": _POINT})
REDUCE_SCHEMA = json_object(answer=TEXT)
MAPS_AT_ONCE = 16
AS_OF = "as of"
"""Further column of entities and relations: when the newest of their units became known."""


class GraphRAG(BaseMethod):
    """Entities and relations exact as of T, communities and reports of the last grid point.

    Attributes:
        mode: local search, or global search (tens of calls a forecast; it ignores the stock).
        report_grid: communities and reports are those of the last point of this grid before T.
        reports: off: no communities; their share of the context goes to the text units. Not for global search.
        graph: how the graph is made.
        search: how it is searched.
    """

    uses_embedder: ClassVar[bool] = True
    templates: ClassVar[tuple[str, ...]] = (
        *forecasting.TEMPLATES, *index.TEMPLATES, MAP_SYSTEM, MAP, REDUCE_SYSTEM, REDUCE,
    )  # fmt: skip
    mode: Literal["local", "global"] = "local"
    report_grid: Literal["exact", "day", "week"] = "week"
    reports: Literal["on", "off"] = "on"
    graph: IndexSettings = IndexSettings.model_validate({})
    search: SearchSettings = SearchSettings.model_validate({})

    @model_validator(mode="after")
    def _global_needs_reports(self) -> GraphRAG:
        if self.mode == "global" and self.reports == "off":
            raise ValueError("mode: global search reads the reports and nothing else; use reports=on")
        return self

    def instruction_sha256(self) -> str:
        return forecasting.instruction_sha256()

    async def expected(self, survey: Survey) -> list[Expected]:
        """Extraction of every unit that some decision reaches; merged descriptions, reports and a context within bounds."""
        units = Units.of(survey, records_to_build_on)
        asked = expected.extraction(units, self.graph)
        if self.mode == "local":
            asked += expected.merges(units, self.graph, expected.MERGED)
            if self.reports == "on":
                asked += expected.on_demand(survey, units, self.graph, self.report_grid)
            asked += vectors(survey, queries(survey), expected.embedded(units))
        else:
            words = {"question": "", "reports": "", "points": "", "words": self.search.map_words}
            heads = [(render(MAP_SYSTEM), render(MAP, **words)), (render(REDUCE_SYSTEM), render(REDUCE, **words))]
            asked += expected.merges(units, self.graph, Range(0, expected.MERGED.high))
            asked += expected.all_of_level(survey, units, self.graph, self.report_grid)
            asked += expected.global_search(survey, units, self.search, self.report_grid, heads)
        return asked + await expected.forecast_calls(survey, units, self.search, answer=self.mode == "global")

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        found = index_of(ctx, self.graph)
        snapshot = await found.snapshot(ctx)
        query = retrieval_query(case, ctx.evidence)
        answer = self._local if self.mode == "local" else self._global
        passages = await answer(query, found, snapshot, ctx) if snapshot.tables.entities else []
        found.tally.tell(ctx.warn)
        return await forecasting.ask(case, ctx, context=passages)

    async def _local(self, query: str, found: Index, snapshot: Snapshot, ctx: Context) -> list[Passage]:
        tables, allowed = snapshot.tables, retrievable_ids(ctx)
        titles = await self._nearest(query, found, snapshot, allowed, ctx)
        groups = [tables.entities[tables.number[title]] for title in titles]
        reported, of_entity = {}, {title: list[int]() for title in titles}
        if self.reports == "on":
            partition = await found.partition(snapshot, self.report_grid, ctx)
            level = self.graph.community_level
            of_entity = {title: partition.communities.at_most(level, title) for title in titles}
            wanted = {number for numbers in of_entity.values() for number in numbers}
            reported = await self._reports(wanted, found, partition, allowed, ctx)
        entities = [
            local.Entity(
                group.title,
                str(tables.number[group.title]),
                group.title,
                text,
                tuple(map(str, of_entity[group.title])),
                group.units,
                tables.degree.get(group.title, 0),
                {AS_OF: newest(group.units, snapshot.records).when},
            )
            for group, text in zip(groups, await found.entity_texts(groups, ctx.build_llm), strict=True)
        ]
        relations = await self._relations(titles, found, snapshot, allowed, ctx)
        showable = retrievable_ids(ctx, but=shown_already(ctx))
        units = {
            record.item_id: local.TextUnit(record.item_id, str(number), record.text)
            for number, record in enumerate(snapshot.records.values())
            if record.item_id in showable
        }
        by_community = {str(number): report for number, (report, _) in reported.items()}
        context = local.mixed_context(entities, relations, units, by_community, self._budget(ctx), _counter(ctx))
        shaped = {str(number): shaping for number, (_, shaping) in reported.items()}
        return _passages(context, snapshot, shaped)

    async def _nearest(
        self, query: str, found: Index, snapshot: Snapshot, allowed: set[str], ctx: Context
    ) -> list[str]:
        """Titles of the entities nearest to ``query``: twice ``top_k``."""
        tables = snapshot.tables
        groups = [e for e in tables.entities if ctx.gate is not Gate.PAPER or tables.shaped_by([e.title]) <= allowed]
        if not groups:
            return []
        texts = await found.entity_texts(groups, ctx.build_llm)
        listed = [f"{group.title}:{text}" for group, text in zip(groups, texts, strict=True)]
        scores = await cosines_with(query, listed, ctx.embed)
        known = [newest(group.units, snapshot.records).instant for group in groups]
        most = local.OVERSAMPLING * self.search.top_k
        top = rank(scores, known, [g.title for g in groups], most)
        return [groups[i].title for i in top]

    async def _relations(
        self, titles: Sequence[str], found: Index, snapshot: Snapshot, allowed: set[str], ctx: Context
    ) -> list[local.Relation]:
        """Relations at ``titles``, in the order of their table."""
        tables = snapshot.tables
        numbers = sorted({number for title in titles for number in tables.touching.get(title, ())})
        if ctx.gate is Gate.PAPER:
            numbers = [number for number in numbers if set(tables.relations[number].units) <= allowed]
        groups = [tables.relations[number] for number in numbers]
        texts = await found.relation_texts(groups, ctx.build_llm)
        return [
            local.Relation(
                str(number),
                str(number),
                group.source,
                group.target,
                text,
                group.weight,
                tables.rank(group),
                group.units,
                {AS_OF: newest(group.units, snapshot.records).when},
            )
            for number, group, text in zip(numbers, groups, texts, strict=True)
        ]

    async def _reports(
        self, wanted: Iterable[int], found: Index, partition: Partition, allowed: set[str], ctx: Context
    ) -> dict[int, tuple[local.Report, set[str]]]:
        """Reports on the ``wanted`` communities that have one, with the units that shaped them."""
        by_number, earlier = partition.communities.by_number, partition.snapshot
        having = partition.communities.reported(self.graph.community_level) & set(wanted)
        shaping = {n: reporting.shaped_by([by_number[n]], earlier.tables) for n in having}
        if ctx.gate is Gate.PAPER:
            shaping = {n: units for n, units in shaping.items() if units <= allowed}
        written = await found.reports(shaping, partition, ctx.build_llm)
        made = {}
        for number, report in written.items():
            title = f"{report.title} [{AS_OF} {newest(shaping[number], earlier.records).when}]"
            community = str(number)
            made[number] = (
                local.Report(community, community, title, community, report.content, report.rating),
                shaping[number],
            )
        return made

    async def _global(self, query: str, found: Index, snapshot: Snapshot, ctx: Context) -> list[Passage]:
        partition = await found.partition(snapshot, self.report_grid, ctx)
        level, communities = self.graph.community_level, partition.communities
        reported = await self._reports(communities.reported(level), found, partition, retrievable_ids(ctx), ctx)
        listed = [report for report, _ in reported.values()]
        entities = [
            local.Entity(e.title, "", e.title, "", tuple(map(str, communities.at_most(level, e.title))), e.units, 0)
            for e in snapshot.tables.entities
        ]
        weights = globally.occurrence_weights(listed, entities)
        batches = globally.report_batches(listed, weights, self.search.tokens, count_tokens)
        points = await self._points(query, [text for _, text in batches], ctx)
        data = globally.best_points(points, self.search.tokens, count_tokens)
        if not data:
            return []
        asker = Asker(ctx.llm, REDUCE_SYSTEM)
        reply = await asker.ask(
            REDUCE, REDUCE_SCHEMA, "reduce", question=query, points=data, words=self.search.reduce_words
        )
        if reply.value is None:
            ctx.warn("questions without an answer of global search, the reply being unusable")
            return []
        text = reply.value["answer"]
        text = cut_to_tokens(text, self.search.tokens) if ctx.context_chars is None else text[: ctx.context_chars]
        units = {unit for _, shaping in reported.values() for unit in shaping}
        return [Passage(text, _source("community", "all reports", units, snapshot), 1)]

    async def _points(self, query: str, batches: Sequence[str], ctx: Context) -> list[list[globally.Point]]:
        asker = Asker(ctx.llm, MAP_SYSTEM)

        async def one(batch: str) -> list[globally.Point]:
            words = self.search.map_words
            reply = await asker.ask(MAP, MAP_SCHEMA, "map", question=query, reports=batch, words=words)
            return globally.points_of(reply.value)

        return await bounded_map(one, batches, MAPS_AT_ONCE)

    def _budget(self, ctx: Context) -> local.Budget:
        size = self.search.tokens if ctx.context_chars is None else ctx.context_chars
        units, shown = self.search.unit_share, self.search.report_share
        if self.reports == "off":
            units, shown = units + shown, 0.0
        return local.Budget(size, units, shown, self.search.top_k_relations)


def _counter(ctx: Context) -> local.Count:
    """What the budget is counted in: tokens with the method's own, characters with the one all methods share."""
    return count_tokens if ctx.context_chars is None else len


def _passages(context: local.MixedContext, snapshot: Snapshot, shaped: dict[str, set[str]]) -> list[Passage]:
    """The rows of the context, each with its source; the head of a table stands before its first row."""
    tables = snapshot.tables
    found = []
    for kind, table in context.tables:
        for place, row in enumerate(table.rows):
            match kind:
                case "community":
                    units = shaped[row.id]
                case "entity":
                    units = tables.shaped_by([row.id])
                case "relation":
                    units = set(tables.relations[int(row.id)].units)
                case _:
                    units = {row.id}
            text = ((table.head if place == 0 else "") + row.line).rstrip("\n")
            found.append(Passage(text, _source(kind, row.id, units, snapshot), place + 1))
    return found


def _source(kind: str, item_id: str, units: Iterable[str], snapshot: Snapshot) -> Source:
    """A source known when the newest of everything that shaped it was."""
    records = [snapshot.records[unit] for unit in units]
    known = max(record.instant for record in records)
    stocks = {record.source.stock for record in records}
    stock = stocks.pop() if len(stocks) == 1 else None
    return Source(kind, item_id, stock, min(record.instant for record in records), known, known, known, RETRIEVED)
