"""Base of the memory baselines: a memory that is filled with records in order of time and read as of each forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from harness.clock import Stamp
from harness.errors import CallFailed
from harness.evidence import Gate
from harness.memory import Change, State
from harness.method import LLM, Context, FedRecord, Tools
from harness.records import Catalyst, Document, ResolvedCase, Status
from methods import forecasting
from methods.base import BaseMethod, render
from methods.vectors import VectorTable


class RecordMemory(BaseMethod):
    """What the memory baselines share.

    Attributes:
        train_limit: feed the first N cases of the experience by decision time only; None for all.

    Class attributes:
        reading: knobs that change what is read from a memory, not what is in it: memories are shared whatever they are.
    """

    uses_embedder: ClassVar[bool] = True
    learns_from: ClassVar[Literal["forecasts", "records"]] = "records"
    reading: ClassVar[tuple[str, ...]] = ()
    train_limit: int | None = Field(None, ge=1)

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
    llm: LLM, template: str, schema: Mapping[str, Any], purpose: str, max_tokens: int | None = None, **values: Any
) -> Mapping[str, Any] | None:
    """The reply to ``template`` filled with ``values``; None if it cannot be used.

    Raises:
        CallFailed: there was no reply. A memory without it would be another memory.
    """
    messages = [{"role": "user", "content": render(template, **values)}]
    reply = await llm.complete(messages, schema=schema, purpose=purpose, max_tokens=max_tokens)
    if not Status(reply.status).final:
        raise CallFailed(reply.status, reply.reason or f"{purpose}: no reply")
    return reply.value


def incidents(*what: str) -> list[Change]:
    """Entries of the log that change nothing and are counted."""
    return [Change(name, None) for name in what]
