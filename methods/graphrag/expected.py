"""What GraphRAG will ask. Extraction is counted exactly; what is merged and reported on depends on what a model finds.

The assumptions: a unit names ``named`` entities; ``MERGED`` of the mentions change a description that is merged anew; a forecast needs
at most ``_REPORTS`` reports that no other has asked for; ``_CROWD`` entities make a community.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from harness.evidence import Gate
from harness.expected import ONCE, ZERO, Expected, Range, Survey, key_of
from harness.method import Context
from harness.records import Catalyst
from methods.base import render
from methods.expected_graphs import USABLE, Units, forecasts, frame, mentions, size_of, tables, told
from methods.feed import retrieval_query
from methods.graphrag import reports
from methods.graphrag.extraction import EXTRACT, GLEAN, SYSTEM
from methods.graphrag.index import MERGE, MERGE_SYSTEM, grid_point
from methods.graphrag.settings import IndexSettings, SearchSettings

MERGED = Range(0.03, 0.15)
_MERGE_INPUT = Range(10, 800)
"""Tokens of the descriptions in one merging question: two short ones, or those of a name often mentioned."""
_REPORTS = 6
_CROWD = 4
_REPORT_INPUT = Range(60, 3_000)
_REPORT = Range(40, 1_500)
_POINTS, _ANSWER = Range(10, 1_300), Range(20, 2_700)
_ENTITY = 350
"""Tokens of an entity with a merged description, at most."""
_TURN = Range(4, 12)
"""Tokens around a further message."""


def extraction(units: Units, settings: IndexSettings) -> list[Expected]:
    """One call a distinct unit, and each gleaning after a reply that can be used."""
    types = settings.entity_types
    first = frame(render(SYSTEM), render(EXTRACT, text="", types=types))
    more = frame("", render(GLEAN, text="", types=types))
    found = []
    for unit in units.records:
        size = size_of(unit.text)
        asked, calls = first + size, ONCE
        for number in range(1 + settings.gleanings):
            key = key_of(EXTRACT, number, types, unit.text)
            found.append(Expected.each("extract", "build", key, calls, asked, told(size)))
            asked, calls = asked + told(size) + _TURN + more, Range(USABLE, 1)
    return found


def merges(units: Units, settings: IndexSettings, share: Range) -> list[Expected]:
    """Merged descriptions: a ``share`` of all mentions of entities, and of as many of relations."""
    if len(units.records) < 2:
        return []
    named = mentions(units.records)
    head = frame(render(MERGE_SYSTEM), render(MERGE, name="", descriptions=(), words=settings.description_words))
    words = Range(10, min(1.5 * settings.description_words, 300))
    key = key_of(MERGE, share, settings.model_dump_json(), units.key)
    calls = share * Range(named.low, 2 * named.high)
    return [Expected.each("merge_descriptions", "build", key, calls, head + _MERGE_INPUT + Range(2, 30), words)]


def on_demand(survey: Survey, units: Units, settings: IndexSettings, grid: str) -> list[Expected]:
    """Reports that local search needs: at a point of the grid, so many a decision, and no more than there are communities."""
    asking = Counter(_close(survey.context(case), grid) for case, _ in survey.cases)
    high = sum(min(_REPORTS * times, _communities(units, close).high) for close, times in asking.items())
    return _reports(settings, Range(0, high), key_of("on demand", grid, units.key))


def all_of_level(survey: Survey, units: Units, settings: IndexSettings, grid: str) -> list[Expected]:
    """Reports that global search needs: every community of every point of the grid, less what did not change."""
    closes = {_close(survey.context(case), grid) for case, _ in survey.cases}
    calls = sum((_communities(units, close) for close in closes), ZERO)
    return _reports(settings, calls, key_of("all", grid, units.key))


def global_search(
    survey: Survey, units: Units, search: SearchSettings, grid: str, prompts: Sequence[tuple[str, str]]
) -> list[Expected]:
    """One call a batch of reports and one for all points. ``prompts``: (system, user) of both, without what is put in."""
    map_head, reduce_head = (frame(*prompt) for prompt in prompts)
    found = []
    for case, epoch in survey.cases:
        ctx = survey.context(case)
        reported = _communities(units, _close(ctx, grid)).high
        if not reported:
            continue
        key = key_of("global", survey.cell, survey.seed, epoch, case.catalyst_id)
        query = size_of(retrieval_query(case, ctx.evidence))
        batches = Range(0, 1 + reported * _REPORT.high / search.tokens)
        read = (map_head + query) * batches + Range(0, min(reported * _REPORT.high, batches.high * search.tokens) * 1.1)
        found.append(Expected("map", "forecast", key + "m", batches, read, _POINTS * batches))
        points = Range(0, min(batches.high * _POINTS.high, search.tokens))
        found.append(Expected.each("reduce", "forecast", key + "r", Range(0, 1), reduce_head + query + points, _ANSWER))
    return found


async def forecast_calls(survey: Survey, units: Units, search: SearchSettings, *, answer: bool) -> list[Expected]:
    """The shared prompt with the tables of local search, or with the ``answer`` of global search."""

    def context(case: Catalyst, ctx: Context) -> Range:
        found = tables(units, ctx, search.tokens)
        return Range(0, min(found.high, _ANSWER.high)) if answer else found

    return await forecasts(survey, context)


def embedded(units: Units) -> Range:
    """Tokens of entities as they are embedded: anew with every mention that some decision sees."""
    return Range(0, mentions(units.records).high * _ENTITY)


def _reports(settings: IndexSettings, calls: Range, what: str) -> list[Expected]:
    head = frame(render(reports.SYSTEM), render(reports.REPORT, tables="", words=settings.report_words))
    tables_in = Range(_REPORT_INPUT.low, min(_REPORT_INPUT.high, settings.report_tokens))
    out = Range(_REPORT.low, min(_REPORT.high, 1.5 * settings.report_words))
    key = key_of(reports.REPORT, settings.model_dump_json(), what)
    return [Expected.each("report", "build", key, calls, head + tables_in, out)]


def _close(ctx: Context, grid: str) -> datetime | None:
    """The point of the grid that a decision uses; None for the whole corpus."""
    return grid_point(ctx.evidence.decision.instant, grid) if ctx.gate is Gate.STRICT else None


def _communities(units: Units, close: datetime | None) -> Range:
    """Communities of the units known at ``close``; perhaps none, where nothing is linked."""
    known = units.records if close is None else [r for r in units.records if r.instant < close]
    return Range(0, mentions(known).high / _CROWD)
