"""A model that says what a test wants, and vectors that spell."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from harness.embed import HashingEmbedder, unit
from harness.evidence import RETRIEVED
from harness.gateway.result import Completion
from harness.method import Message, Vectors
from harness.records import Source, Status
from methods.feed import Record


@dataclass
class StubLLM:
    """Answers with ``say(purpose, messages)``; None is a reply that cannot be used. Keeps what it was asked."""

    say: Callable[[str, Sequence[Message]], Mapping[str, Any] | None]
    asked: list[tuple[str, list[Message]]] = field(default_factory=list)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None,
        purpose: str,
        essential: tuple[str, ...] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        self.asked.append((purpose, list(messages)))
        value = self.say(purpose, messages)
        if value is None:
            return Completion(Status.INVALID, None, "prose", "no object", "r", "s", "m", calls=())
        return Completion(Status.OK, dict(value), json.dumps(value), None, "r", "s", "m", calls=())


async def embed(texts: Sequence[str]) -> Vectors:
    """Unit vectors of character n-grams."""
    return unit(np.asarray(HashingEmbedder(name="hashing", dimensions=256).encode(list(texts))))


def record(name: str, text: str = "", day: int = 0) -> Record:
    """A record known ``day`` days after the first of 2021."""
    known = datetime(2021, 1, 1, tzinfo=UTC) + timedelta(days=day)
    source = Source("chunk", name, "S", known, known, known, known, RETRIEVED)
    return Record(name, known, known.date().isoformat(), text or name, text or name, source)
