"""A process that runs cells, several at a time: the Ray side of ``harness.cell``."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.calls import no_embedder
from harness.cell import CellRun
from harness.config import digest
from harness.contexts import Services, shared_objects
from harness.gateway.client import GatewayClient
from harness.jobs import BenchmarkIndex, CellResult, CellSpec, Progress
from harness.memory_actor import MemoryClient, start_memory
from harness.method import Shared
from harness.store import RunDirectory
from harness.vectors import EmbedClient, VectorsAtHand


class Worker:
    """Runs cells, several at a time, in one process."""

    def __init__(
        self, run_dir: str, gateways: Mapping[str, GatewayClient], embedders: Mapping[str, EmbedClient], at_once: int
    ) -> None:
        self._run_dir = RunDirectory(run_dir)
        self._gateways = gateways
        self._embedders = embedders
        self._slots = asyncio.Semaphore(at_once)
        self._indexes: dict[str, asyncio.Task[BenchmarkIndex]] = {}
        self._vectors: dict[str, VectorsAtHand] = {}
        self._shared: dict[str, Shared] = {}
        self._memories: dict[str, MemoryClient] = {}
        self._users: Counter[str] = Counter()
        """Cells that run now or wait for their turn, by what they share: it goes with the last of them."""
        self._runs: dict[str, CellRun] = {}
        self._ended: dict[str, Progress] = {}
        self._stopping = False

    async def run(
        self,
        spec: CellSpec,
        gateway: str | None,
        embedder: str | None,
        benchmark: Sequence[Any],
        trained: str | None,
        training: CellResult | None,
    ) -> CellResult:
        """Run one cell.

        Args:
            spec: the cell.
            gateway: key of its gateway; None for a method that says it makes no call.
            embedder: key of its embedder; None for a method that says it embeds nothing.
            benchmark: holds a reference, so that each benchmark is fetched and indexed once a worker.
            trained: path of the trained memory to start from.
            training: how the training of it ended, where it was trained in this session.
        """
        if training is not None and training.status != "complete":
            why = f"its memory {training.cell} is {training.status}: {training.reason}"
            return CellResult(spec.name, training.status, {}, 0, 0, why, training.remedy, training.budget)
        memory, scope = _memory_key(spec, trained), digest(spec.sharing)[:16]
        self._users.update(filter(None, (memory, scope)))
        try:
            async with self._slots:
                index = await self._index(benchmark[0])
                services = Services(
                    chat=self._gateways[gateway] if gateway else None,
                    embed=self._embed(embedder) if embedder else no_embedder,
                    shared=self._shared_objects(scope),
                    memory=self._memory(memory, spec, gateway, embedder, trained) if memory else None,
                )
                run = self._runs[spec.name] = CellRun(spec, index, services, self._run_dir.store(spec.kind, spec.name))
                if self._stopping:
                    run.stop()
                try:
                    return await run.run()
                finally:
                    self._ended[spec.name] = self._runs.pop(spec.name).progress
        finally:
            self._leave(memory, scope)

    async def progress(self) -> dict[str, Progress]:
        """Counts by cell."""
        return {**self._ended, **{name: run.progress for name, run in self._runs.items()}}

    async def stop(self) -> None:
        """No new forecast in any cell."""
        self._stopping = True
        for run in self._runs.values():
            run.stop()

    def _embed(self, embedder: str) -> VectorsAtHand:
        if embedder not in self._vectors:
            self._vectors[embedder] = VectorsAtHand(self._embedders[embedder])
        return self._vectors[embedder]

    def _shared_objects(self, scope: str) -> Shared:
        if scope not in self._shared:
            self._shared[scope] = shared_objects(self._run_dir.path / "artefacts" / scope)
        return self._shared[scope]

    def _memory(
        self, key: str, spec: CellSpec, gateway: str | None, embedder: str | None, trained: str | None
    ) -> MemoryClient:
        learner = spec.method.learner()
        assert learner is not None
        if key not in self._memories:
            journal = self._run_dir.store(spec.kind, spec.name).directory / "memory.jsonl" if spec.learns else None
            chat = self._gateways[gateway] if gateway else None
            embed = self._embedders[embedder] if embedder else no_embedder
            self._memories[key] = start_memory(
                learner, Path(trained) if trained else None, journal, chat, embed, spec.name
            )
        return self._memories[key]

    def _leave(self, memory: str | None, scope: str) -> None:
        """A cell has ended: what nobody else uses goes, the process of a memory above all."""
        for key in filter(None, (memory, scope)):
            self._users[key] -= 1
            if self._users[key]:
                continue
            del self._users[key]
            self._shared.pop(key, None)
            if (client := self._memories.pop(key, None)) is not None:
                client.end()

    async def _index(self, reference: Any) -> BenchmarkIndex:
        async def load() -> BenchmarkIndex:
            return await asyncio.to_thread(BenchmarkIndex.of, await reference)

        key = reference.hex()
        if key not in self._indexes:
            self._indexes[key] = asyncio.create_task(load())
        return await self._indexes[key]


def _memory_key(spec: CellSpec, trained: str | None) -> str | None:
    """A frozen memory is read by all cells here through one actor; one that learns belongs to its cell."""
    learner = spec.method.learner()
    if learner is None or spec.config.memory == "none":
        return None
    return spec.name if spec.learns else digest([learner.fingerprint(), trained])
