"""What a method is, and the one object through which it sees the world."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.evidence import EvidenceView
from harness.gateway.result import Completion
from harness.records import Catalyst, Forecast, ResolvedCase

Vectors = NDArray[np.float32]
Message = Mapping[str, str]

MATCHED_CONTEXT_CHARS = 8_000
"""``context.budget=matched``: characters of a method's context (the paper's B_char)."""


class LLM(Protocol):
    """Chat calls on behalf of one catalyst: cached, rate-limited, retried, recorded."""

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None,
        purpose: str,
        stage: str = "forecast",
        essential: tuple[str, ...] | None = None,
    ) -> Completion:
        """Ask the cell's backbone. The result has a status; ``value`` is the parsed object if that is ok.

        ``essential`` names the keys without which a reply is invalid (default: all that ``schema`` requires).
        """
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """The world as of one catalyst's decision. Methods reach documents, outcomes and models only through this.

    Attributes:
        evidence: documents as of (stock, T).
        experience: past cases whose outcome was known before T, oldest first; empty with ``memory=none``.
        llm: the cell's backbone.
        embed: texts -> unit vectors, float32 of shape (n texts, dimensions), cached by content.
        feed_cases: whether resolved cases are part of what a method may retrieve (``feed=docs+cases``).
        context_chars: characters that the method's context may take; None for the method's native budget.
        rng: seeded by (run seed, epoch, catalyst id): independent of the order of work.
    """

    evidence: EvidenceView
    experience: Sequence[ResolvedCase]
    llm: LLM
    embed: Callable[[Sequence[str]], Awaitable[Vectors]]
    feed_cases: bool
    context_chars: int | None
    rng: np.random.Generator


class Method(Protocol):
    """A forecasting method. Add one as a file in ``methods/`` and a YAML in ``conf/method/``."""

    name: str
    uses_llm: bool
    uses_embedder: bool

    def fingerprint(self) -> Mapping[str, Any]:
        """Knobs and prompt hashes: all that is part of the cell's identity."""
        ...

    def instruction_sha256(self) -> str | None:
        """Hash of the forecast instruction it uses; None without a prompt."""
        ...

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        """Answer one catalyst. An unusable reply is a Forecast with that status, never an exception."""
        ...
