"""What a method expects to ask, before anything is asked: calls and tokens, each between a low and a high bound.

The formulas of each method stand in its ``expected``, and in docs/cost.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.method import Context, FedRecord, Message
from harness.records import Catalyst, ResolvedCase
from harness.tokens import count_tokens

_FEWEST, _MOST = 0.8, 1.1
_FRAME = 4, 12
"""Tokens around each message, at least and at most."""


@dataclass(frozen=True, slots=True)
class Range:
    """Between ``low`` and ``high``, both possible."""

    low: float = 0.0
    high: float = 0.0

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __mul__(self, times: float | Range) -> Range:
        by = times if isinstance(times, Range) else Range(times, times)
        return Range(self.low * by.low, self.high * by.high)

    def widened(self, share: float) -> Range:
        """With ``share`` more at the high end."""
        return Range(self.low, self.high * (1 + share))


ZERO = Range()
ONCE = Range(1, 1)


@dataclass(frozen=True, slots=True)
class Expected:
    """Calls of one kind that a method expects to make.

    Attributes:
        key: calls with equal keys to one backbone are the same requests: they are made once, whoever needs them.
        calls: how many.
        tokens_in, tokens_out: of all of them together.
    """

    purpose: str
    stage: str
    key: str
    calls: Range
    tokens_in: Range
    tokens_out: Range

    @classmethod
    def each(cls, purpose: str, stage: str, key: str, calls: Range, one_in: Range, one_out: Range) -> Expected:
        """From the tokens of one call."""
        return cls(purpose, stage, key, calls, one_in * calls, one_out * calls)


@dataclass(frozen=True)
class Survey:
    """What a method may look at to say what it will ask: evidence and experience as of each case, no model, no vectors.

    Attributes:
        cell: name of the run.
        cases: (case, epoch) of every forecast.
        context: the world as of a case. Its models refuse; ``ctx.memory`` is None.
        lessons: cases that the run learns from, in the order in which they become known.
        records: what the run fills a memory with, in order; such a run forecasts nothing.
        remembers: whether forecasts may find something learned.
        seed: of the run.
    """

    cell: str
    cases: Sequence[tuple[Catalyst, int]]
    context: Callable[[Catalyst], Context]
    lessons: Sequence[ResolvedCase]
    remembers: bool
    seed: int
    records: Sequence[FedRecord] = ()


def tokens_of(text: str) -> Range:
    """Tokens of ``text`` for whatever tokenizer the model has.

    Between 0.8 times the smaller and 1.1 times the larger of two counts: cl100k_base, and a token every four bytes. The first is
    high for Chinese (recent models need about 0.6 tokens a character), the second about right for both languages.
    """
    counts = count_tokens(text), len(text.encode(errors="replace")) / 4
    return Range(_FEWEST * min(counts), _MOST * max(counts))


def tokens_of_messages(messages: Iterable[Message]) -> Range:
    """Tokens of a conversation, with the frame of each message."""
    total = ZERO
    for message in messages:
        total += tokens_of(message["content"]) + Range(*_FRAME)
    return total


def tokens_a_char(texts: Iterable[str]) -> Range:
    """Tokens a character of ``texts`` taken together; of English where there is no text."""
    sample = "\n".join(texts) or "The company reported higher earnings. " * 20
    return tokens_of(sample) * (1 / len(sample))


class Noted(Exception):
    """A call that was written down instead of being made."""

    def __init__(self, messages: Sequence[Message]) -> None:
        super().__init__("noted")
        self.messages = tuple(messages)


class Scribe:
    """``harness.method.LLM`` that writes down what it is asked and ends the forecast there."""

    async def complete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None, purpose: str, **_: Any
    ) -> Any:
        raise Noted(messages)


async def noted(asking: Awaitable[Any]) -> tuple[Message, ...]:
    """The messages of the first call that ``asking`` would make.

    Raises:
        ValueError: it makes none.
    """
    try:
        await asking
    except Noted as call:
        return call.messages
    raise ValueError("no call was made")


def key_of(*parts: object) -> str:
    """A key of what ``parts`` say."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()
