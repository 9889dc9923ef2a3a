"""What a method is given: the world as of one decision, and the endpoints it may call."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness.calls import CallingLLM, Chat, Embedding
from harness.clock import Stamp
from harness.evidence import Deferred, Gate
from harness.jobs import BenchmarkIndex, CellSpec
from harness.memory_actor import MemoryClient
from harness.method import Context, Shared, Tools, Vectors
from harness.records import Call, Catalyst


@dataclass(frozen=True)
class Services:
    """What a cell's forecasts may call."""

    chat: Chat | None
    embed: Embedding
    shared: Shared
    memory: MemoryClient | None = None


@dataclass(frozen=True, slots=True)
class _MemoryAsOf:
    """``harness.method.MemoryView``: a memory as of one decision."""

    memory: MemoryClient
    decision: Stamp
    gate: Gate

    async def recall(self, question: Any) -> Any:
        return await self.memory.recall(question, self.decision, self.gate)


class Notes:
    """What is to be said of a run in cell.json, each thing once, with its newest detail."""

    def __init__(self) -> None:
        self.met: dict[str, str] = {}

    def warn(self, what: str, detail: str = "", /) -> None:
        """See ``harness.method.Context.warn``."""
        self.met[what] = detail

    def lines(self) -> list[str]:
        """One a thing, sorted."""
        return [f"{what}: {detail}" if detail else what for what, detail in sorted(self.met.items())]


class Contexts:
    """Builds the contexts of one run's forecasts and lessons."""

    def __init__(self, spec: CellSpec, index: BenchmarkIndex, services: Services, notes: Notes) -> None:
        self._spec = spec
        self._index = index
        self._services = services
        self._notes = notes

    def of(
        self,
        case: Catalyst,
        epoch: int,
        calls: list[Call],
        shared: list[Call],
        index: BenchmarkIndex | None = None,
    ) -> Context:
        """The world as of ``case``, a case of ``index`` (the cell's own by default).

        Calls of this forecast are appended to ``calls``, those that others share to ``shared``.
        """
        spec, config, services, index = self._spec, self._spec.config, self._services, index or self._index

        def llm(sample: tuple[int, int], made: list[Call], purpose: str) -> CallingLLM:
            return CallingLLM(services.chat, sample, made, purpose, spec.name, spec.learns)

        return Context(
            benchmark=index.benchmark.name,
            gate=config.gate,
            evidence=index.evidence.as_of(case.stock_id, case.time, config.gate),
            experience=Deferred(partial(index.experience[config.memory].as_of, case, config.gate)),
            memory=_MemoryAsOf(services.memory, case.time, config.gate) if services.memory else None,
            llm=llm((config.run.seed, epoch), calls, "forecast"),
            build_llm=llm((0, 0), shared, "build"),
            embed=partial(self._embed, shared),
            shared=services.shared,
            feed_cases=config.feed_cases,
            context_chars=config.context_chars,
            rng=lambda: np.random.default_rng(_seed(config.run.seed, epoch, case.catalyst_id)),
            warn=self._notes.warn,
        )

    def tools(self, calls: list[Call]) -> Tools:
        """For learning from a case or a record; calls are appended to ``calls``."""
        llm = CallingLLM(self._services.chat, (0, 0), calls, "memory", self._spec.name, sequential=True)
        return Tools(llm, partial(self._embed, calls))

    async def _embed(self, calls: list[Call], texts: Sequence[str]) -> Vectors:
        vectors, made = await self._services.embed(texts)
        calls.extend(made)
        return vectors


def shared_objects(directory: Path) -> Callable[..., Any]:
    """``harness.method.Shared`` for one process: an object a key, made once, with a directory of its own for artefacts."""
    objects: dict[str, Any] = {}

    def shared(key: str, make: Callable[[Path], Any]) -> Any:
        if key not in objects:
            objects[key] = make(directory / key)
        return objects[key]

    return shared


def _seed(run_seed: int, epoch: int, catalyst_id: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{run_seed}/{epoch}/{catalyst_id}".encode()).digest()[:8], "big")
