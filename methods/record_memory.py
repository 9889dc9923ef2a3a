"""Base of the memory baselines: a memory that is filled with records in order of time and read as of each forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from harness.clock import Stamp
from harness.evidence import Gate
from harness.expected import ZERO, Expected, Range, Survey, key_of, tokens_a_char, tokens_of
from harness.memory import Change, State
from harness.method import LLM, Context, FedRecord, Tools
from harness.records import EMBED, Catalyst, Document, Forecast, ResolvedCase
from methods import forecasting
from methods.asking import check_answered
from methods.base import BaseMethod, render
from methods.feed import expected_vector, requests_for_vectors, retrieval_query
from methods.vectors import VectorTable


class RecordMemory(BaseMethod):
    """What the memory baselines share.

    Attributes:
        train_limit: feed the first N cases of the experience by decision time only; None for all.
        native_tokens: context budget with ``context.budget=native``.

    Class attributes:
        reading: knobs that change what is read from a memory, not what is in it: memories are shared whatever they are.
    """

    uses_embedder: ClassVar[bool] = True
    learns_from: ClassVar[Literal["forecasts", "records"]] = "records"
    reading: ClassVar[tuple[str, ...]] = ()
    train_limit: int | None = Field(None, ge=1)
    native_tokens: int = Field(6_000, ge=1)

    def instruction_sha256(self) -> str:
        return forecasting.instruction_sha256()

    def learner(self) -> Self:
        return type(self).model_validate({k: v for k, v in self.model_dump().items() if k not in self.reading})

    def scope_of(self, item: Document | ResolvedCase) -> str | None:
        return None

    async def propose(self, record: FedRecord, tools: Tools) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must implement propose()")

    async def apply(self, state: State, proposal: Any, at: datetime, tools: Tools) -> list[Change]:
        raise NotImplementedError(f"{type(self).__name__} must implement apply()")

    async def recall(self, state: State, question: Any, decision: Stamp, gate: Gate, tools: Tools) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must implement recall()")

    async def expected(self, survey: Survey) -> list[Expected]:
        """The calls of the filling, or those of the forecasts and what they look up first, and the vectors of both."""
        if survey.records:
            return self.expected_filling(survey)
        return [
            *await self._expected_forecasts(survey),
            *(one for case, _ in survey.cases for one in self.expected_reading(case, survey.context(case), survey)),
            *requests_for_vectors(survey),
        ]

    def expected_filling(self, survey: Survey) -> list[Expected]:
        """What filling a memory with ``survey.records`` will ask."""
        raise NotImplementedError(f"{type(self).__name__} must implement expected_filling()")

    def expected_reading(self, case: Catalyst, ctx: Context, survey: Survey) -> list[Expected]:
        """What is asked before the forecast itself: the vector of the query."""
        return [expected_vector(retrieval_query(case, ctx.evidence))] if survey.remembers else []

    async def _expected_forecasts(self, survey: Survey) -> list[Expected]:
        """The prompt without context, and a context of anything between nothing and the budget."""

        async def without_context(case: Catalyst, ctx: Context) -> Forecast:
            return await forecasting.ask(case, ctx, context=())

        def context_tokens(case: Catalyst, ctx: Context) -> Range:
            if not survey.remembers:
                return ZERO
            if ctx.context_chars is None:
                return Range(0, self.native_tokens)
            texts = [d.text for d in ctx.evidence.retrievable()[-20:]]
            return Range(0, ctx.context_chars * tokens_a_char(texts).high)

        return await forecasting.expected_calls(
            survey, without_context, forecasting.REASONED_TOKENS, context_tokens, owner=survey.cell
        )

    async def prepare(self, case: Catalyst, ctx: Context) -> None:
        """Nothing: no forecast is made while a memory is filled."""

    def review_times(self, first: datetime, last: datetime) -> list[datetime]:
        return []

    async def review(self, state: State, at: datetime, known: Sequence[ResolvedCase], tools: Tools) -> list[Change]:
        return []

    @cached_property
    def vectors(self) -> VectorTable:
        """The vectors that this process has met."""
        return VectorTable()


async def asked(
    llm: LLM,
    template: str,
    schema: Mapping[str, Any],
    purpose: str,
    max_tokens: int | None = None,
    essential: tuple[str, ...] | None = None,
    **values: Any,
) -> Mapping[str, Any] | None:
    """The reply to ``template`` filled with ``values``; None if it cannot be used, or lacks what is ``essential`` of ``schema``.

    Raises:
        CallFailed: see ``check_answered``.
    """
    messages = [{"role": "user", "content": render(template, **values)}]
    reply = await llm.complete(messages, schema=schema, purpose=purpose, essential=essential, max_tokens=max_tokens)
    check_answered(reply.status, reply.reason, purpose)
    return reply.value


def incidents(*what: str) -> list[Change]:
    """Entries of the log that change nothing and are counted."""
    return [Change(name, None) for name in what]


def each_record(
    survey: Survey, purpose: str, calls: Range, prompts: Sequence[str], more: Range, answer: Range, *, alone: bool
) -> list[Expected]:
    """Calls for each record of a filling.

    Args:
        survey: what is filled.
        purpose: of the calls.
        calls: a record.
        prompts: what they say, one a record, without what the memory adds.
        more: tokens that the memory adds to a prompt.
        answer: tokens of a reply.
        alone: the prompt is all there is to it, so that other memories may ask the very same.
    """
    keys = [key_of(purpose, p) if alone else key_of(survey.cell, purpose, n) for n, p in enumerate(prompts)]
    return [
        Expected.each(purpose, "memory", key, calls, tokens_of(prompt) + more, answer)
        for key, prompt in zip(keys, prompts, strict=True)
    ]


def vectors_of(survey: Survey, tokens: Range) -> list[Expected]:
    """Texts to embed: ``tokens`` a record, in at most two requests a record."""
    n = len(survey.records)
    return [Expected(EMBED, "build", key_of("embed", survey.cell), Range(1, 2 * n), tokens * n, ZERO)]
