"""What LightRAG and HyperGraphRAG will ask to grow their graphs: rounds of reading, summaries of long descriptions."""

from __future__ import annotations

from typing import Any

from harness.expected import ONCE, Expected, Range, Survey, key_of
from harness.method import Context
from methods.base import render
from methods.expected_graphs import USABLE, Units, frame, mentions, size_of, told
from methods.feed import Record
from methods.graph_reading import DONE, GLEAN, ROUNDS, SUMMARISE, Form
from methods.prefix_log import feed_as_of

SUMMARISED = 0.08
"""Share of the mentions that come to a description so long that it is summarised (again), at most; of few texts none does."""
_TURN = Range(10, 28)
"""Tokens around a reply and around what the user says next, that word included."""
_YES_NO = Range(4, 20)


def units_of(survey: Survey, chunk_tokens: int, chunk_overlap: int) -> Units:
    """Chunks that the log holds for some decision."""

    def fed(ctx: Context) -> list[Record]:
        return [chunk for entry in feed_as_of(ctx, chunk_tokens, chunk_overlap).entries for chunk in entry.chunks]

    return Units.of(survey, fed)


def reading(units: Units, form: Form[Any]) -> list[Expected]:
    """One extraction a distinct chunk, its gleanings, and between two of them the question whether anything is missing.

    After a reply that cannot be used nothing is gleaned; after "nothing is missing" neither.
    """
    rounds = f"\n\n{render(ROUNDS)}" if form.gleanings else ""
    head = frame(form.instructions + rounds, "")
    found = []
    for unit in units.records:
        size = size_of(unit.text)
        key = key_of(form.instructions, form.gleanings, unit.text)
        found.append(Expected.each("extract", "build", key, ONCE, head + size, told(size)))
        asked = head + size + told(size) + _TURN
        calls = Range(USABLE, 1)
        for number in range(form.gleanings):
            if number:
                check = key_of(DONE, key, number)
                found.append(Expected.each("glean_check", "build", check, calls, asked, _YES_NO))
                calls = Range(0, 1)
            found.append(Expected.each("glean", "build", key_of(GLEAN, key, number), calls, asked, told(size)))
            asked, calls = asked + told(size) + _TURN, Range(USABLE * calls.low, calls.high)
    return found


def summaries(units: Units, form: Form[Any], kinds: int) -> list[Expected]:
    """Descriptions of the length at which they are summarised, up to about twice that.

    ``kinds``: whether relations have descriptions too (2) or not (1).
    """
    tokens = form.summary_tokens
    calls = Range(0, SUMMARISED * kinds * mentions(units.records).high)
    one = frame(render(SUMMARISE, tokens=tokens), "") + Range(0.7 * tokens, 2.2 * tokens)
    return [
        Expected.each(
            "summarise",
            "build",
            key_of(SUMMARISE, tokens, form.instructions, form.gleanings, units.key),
            calls,
            one,
            Range(10, tokens),
        )
    ]


def embedded(units: Units, tokens: int, kinds: int) -> Range:
    """Tokens of what is searched: every version of an item that some decision sees, with its description of that time."""
    return Range(0, kinds * mentions(units.records).high * tokens)
