"""What a method is, and the one object through which it sees the world."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.clock import Stamp
from harness.evidence import EvidenceView, Gate
from harness.gateway.result import Completion
from harness.memory import Change, CommitKey, State
from harness.records import Catalyst, Document, Forecast, ResolvedCase

if TYPE_CHECKING:
    from harness.expected import Expected, Survey

Vectors = NDArray[np.float32]
Message = Mapping[str, str]
Embed = Callable[[Sequence[str]], Awaitable[Vectors]]
T = TypeVar("T")

MATCHED_CONTEXT_CHARS = 8_000
"""``context.budget=matched``: characters of a method's context (the paper's B_char)."""


class LLM(Protocol):
    """Chat calls: cached, rate-limited, retried, recorded."""

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None,
        purpose: str,
        essential: tuple[str, ...] | None = None,
        max_tokens: int | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Completion:
        """Ask the cell's backbone. The result has a status; ``value`` is the parsed object if that is ok.

        Args:
            messages: the conversation.
            schema: JSON schema of the reply; None for plain text.
            purpose: what the call is for, in one word, for the ledger.
            essential: keys without which a reply is invalid (default: all that ``schema`` requires).
            max_tokens: upper bound of the reply (default: the backbone's).
            tools: what the reply may call instead of saying something (see ``harness.gateway.tools``).
        """
        ...


class MemoryView(Protocol):
    """The memory as of one decision. Reading changes nothing."""

    async def recall(self, question: Any) -> Any:
        """What the method's ``recall`` answers on the state as of the decision."""
        ...


class Shared(Protocol):
    """Objects that a process builds once for all cells on the same data with the same backbone and embedder."""

    def __call__(self, key: str, make: Callable[[Path], T]) -> T:
        """The object of ``key`` (a content key), made on first use; ``make`` gets a directory for its artefacts."""
        ...


class Warn(Protocol):
    """Says something of a run, once. ``detail`` is how often and where so far: the newest replaces what was said before."""

    def __call__(self, what: str, detail: str = "", /) -> None: ...


@dataclass(frozen=True, slots=True)
class Context:
    """The world as of one catalyst's decision. Methods reach documents, outcomes and models only through this.

    Attributes:
        benchmark: name of the benchmark that the catalyst belongs to.
        gate: how strictly time is enforced; views enforce it, methods with structures of their own must too.
        evidence: documents as of (stock, T).
        experience: past cases whose outcome was known before T, oldest first; empty with ``memory=none``.
        memory: what the method learned before T; None with ``memory=none`` and for methods that do not learn.
        llm: the cell's backbone, for calls that belong to this forecast.
        build_llm: the same, for artefacts that other forecasts share (documents, episodes, ...): their calls belong to no
            catalyst, and their sample index is always the first.
        embed: texts -> unit vectors, float32 of shape (n texts, dimensions), cached by content.
        shared: artefacts shared by cells.
        feed_cases: whether resolved cases are part of what a method may retrieve (``feed=docs+cases``).
        context_chars: characters that the method's context may take; None for the method's native budget.
        rng: makes a generator seeded by (run seed, epoch, catalyst id): independent of the order of work. To make one takes as long
            as a prompt, so it is left to methods that draw.
        warn: say something in cell.json (failed extractions, a benchmark without industries).
    """

    benchmark: str
    gate: Gate
    evidence: EvidenceView
    experience: Sequence[ResolvedCase]
    memory: MemoryView | None
    llm: LLM
    build_llm: LLM
    embed: Embed
    shared: Shared
    feed_cases: bool
    context_chars: int | None
    rng: Callable[[], np.random.Generator]
    warn: Warn


@dataclass(frozen=True, slots=True)
class Tools:
    """What changing a memory may use: the backbone and the embedder."""

    llm: LLM
    embed: Embed


@dataclass(frozen=True, slots=True)
class Lesson:
    """A case whose outcome is known, with the method's own forecast of it: what a memory learns from."""

    resolved: ResolvedCase
    forecast: Forecast


@dataclass(frozen=True, slots=True)
class FedRecord:
    """Something that a memory is fed without a forecast: a document when it is out, or a case once its outcome is known.

    Attributes:
        key: its place in the order of (time it became known, id).
        item: the document, or the case with its focal document.
        company: name of the securities it is about.
        evaluated: the id of its case if that is one of those that the memory's readers forecast (``memory=online``).
    """

    key: CommitKey
    item: Document | ResolvedCase
    company: str
    evaluated: str | None = None


class Method(Protocol):
    """A forecasting method. Add one as a file in ``methods/`` and a YAML in ``conf/method/``."""

    name: str
    uses_llm: ClassVar[bool]
    uses_embedder: ClassVar[bool]

    def fingerprint(self) -> Mapping[str, Any]:
        """Knobs and prompt hashes: all that is part of the cell's identity."""
        ...

    def instruction_sha256(self) -> str | None:
        """Hash of the forecast instruction it uses; None without a prompt."""
        ...

    def chosen(self, cases: Sequence[Catalyst], seed: int) -> Sequence[Catalyst]:
        """Those of ``cases`` that it is run on, in the same order: all but for a probe, which asks a sample drawn by ``seed``."""
        ...

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        """Answer one catalyst. An unusable reply is a Forecast with that status, never an exception."""
        ...

    async def expected(self, survey: Survey) -> list[Expected] | None:
        """What the calls of a run will be, without making one; None if the method cannot tell."""
        ...

    def learner(self) -> Learner | None:
        """The method whose forecasts and lessons train this one's memory; None for a method without memory.

        Variants that share a trained memory return equal learners.
        """
        ...


class Learner(Method, Protocol):
    """A method with a memory.

    Learning is in two steps: ``propose`` does what can be done without the memory (calls, embeddings) and runs in parallel
    and early; ``apply`` gets the state and runs in the order of the records' keys.

    Attributes:
        learns_from: ``forecasts``: what it is taught is a ``Lesson``, a case with its own forecast of it, in the order of
            (resolve time, decision time, catalyst id). ``records``: it is a ``FedRecord``, documents and resolved cases in the
            order of (time it became known, id); the memory is filled before any forecast and read as of each.
        train_limit: learn from the first N experience cases by decision time only; None for all.
    """

    learns_from: ClassVar[Literal["forecasts", "records"]]
    train_limit: int | None

    def scope_of(self, item: Document | ResolvedCase) -> str | None:
        """The part of the memory that a fed record reads and writes; None for all of it.

        Records of different scopes are applied side by side, each to the state of its own scope.
        """
        ...

    async def prepare(self, case: Catalyst, ctx: Context) -> None:
        """Do early what the forecast of ``case`` will need and the memory has no part in (``ctx.memory`` is None).

        It must leave nothing behind but what is cached by content: a forecast is the same whether or not it was prepared.
        """
        ...

    async def propose(self, lesson: Any, tools: Tools) -> Any:
        """What a lesson or a fed record teaches, whatever is in the memory; picklable. None if it teaches nothing.

        Raises:
            CallFailed: the endpoint could not be asked; learning stops here and goes on with the next run.
        """
        ...

    async def apply(self, state: State, proposal: Any, at: datetime, tools: Tools) -> list[Change]:
        """The changes that ``proposal`` makes to ``state`` (known from ``at`` on)."""
        ...

    async def recall(self, state: State, question: Any, decision: Stamp, gate: Gate, tools: Tools) -> Any:
        """Answer ``question`` from ``state``; picklable, no side effects."""
        ...

    def review_times(self, first: datetime, last: datetime) -> list[datetime]:
        """Fixed times in (first, last] at which the memory reviews itself."""
        ...

    async def review(self, state: State, at: datetime, known: Sequence[ResolvedCase], tools: Tools) -> list[Change]:
        """The changes of the review at ``at``, from cases resolved before it.

        Raises:
            CallFailed: as ``propose``.
        """
        ...
