"""What HippoRAG will ask: two calls a distinct passage, one a question, and the forecast."""

from __future__ import annotations

from harness.expected import ONCE, ZERO, Expected, Range, Survey, key_of
from harness.method import Context
from harness.records import Catalyst
from methods.base import render
from methods.expected_graphs import Units, forecasts, frame, size_of, told
from methods.feed import expected_passages
from methods.hipporag.openie import ENTITIES, SYSTEM, TRIPLES

FACT = Range(5, 60)
"""Tokens of a fact as the filter is shown it."""


def named(size: Range) -> Range:
    """Tokens of the entities that are listed of a text of ``size`` tokens: from one to nearly all it says."""
    return Range(2, 20 + 0.8 * size.high)


def extraction(units: Units) -> list[Expected]:
    """Both versions ask the same of a passage."""
    system = render(SYSTEM)
    first = frame(system, render(ENTITIES, passage=""))
    second = frame(system, render(TRIPLES, passage="", entities=()))
    found = []
    for unit in units.records:
        size = size_of(unit.text)
        key = key_of(ENTITIES, unit.text)
        found.append(Expected.each("extract", "build", key, ONCE, first + size, named(size) + Range(6, 20)))
        key = key_of(TRIPLES, unit.text)
        found.append(Expected.each("extract", "build", key, ONCE, second + size + named(size), told(size)))
    return found


async def forecast_calls(survey: Survey, units: Units, passages: int, native_tokens: int | None) -> list[Expected]:
    """The shared prompt, with up to ``passages`` passages."""

    def context(case: Catalyst, ctx: Context) -> Range:
        known = units.known(ctx)
        if not known:
            return ZERO
        native = native_tokens / units.rate.high if native_tokens else float("inf")
        return units.rate * expected_passages(*units.lengths(ctx), min(passages, known), ctx.context_chars or native)

    return await forecasts(survey, context)
