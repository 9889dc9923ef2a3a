"""What the graph methods will ask, as far as they have it in common: the units of a run, and what stands in a forecast's prompt.

Which units are read is known exactly: it depends on times alone. What a model finds in them is not. The assumptions about it stand
here and in docs/cost.md, and every number that rests on one is a range.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from harness.evidence import Gate
from harness.expected import ONCE, ZERO, Expected, Range, Survey, key_of, tokens_a_char, tokens_of, tokens_of_messages
from harness.method import Context
from harness.records import EMBED, Catalyst, Forecast
from methods import forecasting
from methods.feed import Record, expected_vector, requests_for_vectors, retrieval_query

ENOUGH = 10
"""Units from which on something is certain to be found in them."""
USABLE = 0.95
"""Share of the replies that can be used, at least: only such a one is followed by the next question about its unit."""
_MOST_NAMED = 40
_LONGEST_REPLY = 4_000
_RATE_SAMPLE = 200
_CAPITALS = 1.15
"""Tokens of a row of a graph for those of as much plain text, at most: its names stand in capitals."""


@dataclass(frozen=True)
class Units:
    """The records that some decision of a run builds on, oldest first.

    Attributes:
        records: each once.
        rate: tokens a character, of the tenth with the fewest to the tenth with the most: a corpus may have two languages.
        key: of what is built from them, as of all decisions.
    """

    records: tuple[Record, ...]
    rate: Range
    key: str

    @classmethod
    def of(cls, survey: Survey, feed: Callable[[Context], Iterable[Record]]) -> Units:
        """Those that ``feed`` gives as of a decision, for all decisions of ``survey``.

        What the latest decision reaches holds what an earlier one does: once among those with a time of day, once among those
        without. With ``gate=off`` all see the same but for their own outcome, so the first is looked at as well.
        """
        ordered = sorted((case for case, _ in survey.cases), key=lambda case: case.time.instant)
        ends = {case.time.date_only: case for case in ordered}.values()
        found = {r.item_id: r for case in [*ordered[:1], *ends] for r in feed(survey.context(case))}
        records = tuple(sorted(found.values(), key=lambda r: (r.instant, r.item_id)))
        gates = {survey.context(case).gate for case in ordered[:1]}
        return cls(records, _rate(records), key_of(*gates, *(r.text for r in records)))

    def known(self, ctx: Context) -> int:
        """How many the graph as of ``ctx`` holds (where T is a whole day, with those of that day's hours)."""
        if ctx.gate is not Gate.STRICT:
            return len(self.records)
        return bisect_left(self.records, ctx.evidence.decision.instant, key=lambda r: r.instant)

    def sure(self, ctx: Context) -> Range:
        """A question that is asked as soon as the graph as of ``ctx`` has anything in it."""
        known = self.known(ctx)
        return Range(float(known >= ENOUGH), float(known > 0))

    def lengths(self, ctx: Context) -> tuple[float, float]:
        """Characters of the shortest and of the longest tenth of the units that are known."""
        short, long = np.quantile([len(r.text) for r in self.records[: self.known(ctx)]], [0.1, 0.9])
        return float(short), float(long)


def _rate(records: Sequence[Record]) -> Range:
    sample = records[:: max(1, len(records) // _RATE_SAMPLE)]
    if not sample:
        return tokens_a_char(())
    rates = [size_of(r.text) * (1 / len(r.text)) for r in sample]
    low, high = np.quantile([r.low for r in rates], 0.1), np.quantile([r.high for r in rates], 0.9)
    return Range(float(low), float(high))


@lru_cache(maxsize=50_000)
def size_of(text: str) -> Range:
    """Tokens of a unit, counted once for all methods that read it."""
    return tokens_of(text)


def frame(system: str, user: str) -> Range:
    """Tokens of a question without the text that it is about."""
    return tokens_of_messages([{"role": "system", "content": system}, {"role": "user", "content": user}])


def named(size: Range) -> Range:
    """Entities that a reading of a unit of ``size`` tokens names, and relations likewise; gleanings included."""
    return Range(1, min(_MOST_NAMED, 3 + size.high / 20))


def told(size: Range) -> Range:
    """Tokens of one reply about a unit of ``size`` tokens: from empty lists to its text three times over, as descriptions."""
    return Range(10, min(_LONGEST_REPLY, 250 + 3 * size.high))


def mentions(units: Sequence[Record]) -> Range:
    """Entities named in ``units``, each counted in every unit."""
    return sum((named(size_of(unit.text)) for unit in units), ZERO)


async def forecasts(survey: Survey, context: Callable[[Catalyst, Context], Range]) -> list[Expected]:
    """One forecast a case: the prompt without its context, and ``context`` tokens more."""

    async def without_context(case: Catalyst, ctx: Context) -> Forecast:
        return await forecasting.ask(case, ctx, context=())

    return await forecasting.expected_calls(
        survey, without_context, forecasting.REASONED_TOKENS, context, owner=survey.cell
    )


def tables(units: Units, ctx: Context, native_tokens: int) -> Range:
    """Tokens of a context of entities, relations and units.

    From a quarter of the budget, or five short units, once there are ``ENOUGH``; up to the budget, with names in capitals.
    """
    if not units.known(ctx):
        return ZERO
    limit = ctx.context_chars or native_tokens / units.rate.high
    least = min(limit / 4, 5 * units.lengths(ctx)[0]) if units.known(ctx) >= ENOUGH else 0.0
    most = native_tokens if ctx.context_chars is None else limit * units.rate.high * _CAPITALS
    return Range(units.rate.low * least, most)


def questions(
    survey: Survey,
    purpose: str,
    head: Range,
    answer: Range,
    calls: Callable[[Context], Range] = lambda ctx: ONCE,
    more: Range = ZERO,
) -> list[Expected]:
    """One question a case about its query: ``head`` tokens around it, and ``more`` that the graph brings."""
    found = []
    for case, epoch in survey.cases:
        ctx = survey.context(case)
        query = retrieval_query(case, ctx.evidence)
        key = key_of(purpose, survey.seed, epoch, query, survey.cell if more.high else "")
        one = head + size_of(query) + more
        found.append(Expected.each(purpose, "forecast", key, calls(ctx), one, answer))
    return found


def vectors(survey: Survey, texts: Iterable[str], more: Range) -> list[Expected]:
    """What is embedded: ``texts``, each once, ``more`` tokens that the model's replies bring, and the requests for both."""
    learned = Expected(EMBED, "build", key_of("embed", "learned", survey.cell), ZERO, more, ZERO)
    return [*(expected_vector(text) for text in dict.fromkeys(texts)), learned, *requests_for_vectors(survey)]


def queries(survey: Survey) -> list[str]:
    """The query of every case."""
    return [retrieval_query(case, survey.context(case).evidence) for case, _ in survey.cases]
