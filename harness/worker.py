"""A process that runs cells, several at a time: the Ray side of ``harness.cell``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from harness.cell import BenchmarkIndex, CellResult, CellRun, CellSpec, Progress
from harness.errors import HarnessError
from harness.gateway.client import GatewayClient
from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion
from harness.method import Vectors
from harness.records import Call
from harness.remote import unwrapped
from harness.store import RunDirectory
from harness.vectors import VectorsAtHand


class Worker:
    """Runs cells, several at a time, in one process."""

    def __init__(
        self, run_dir: str, gateways: Mapping[str, GatewayClient], embedders: Mapping[str, Any], cells_at_once: int
    ) -> None:
        self._run_dir = RunDirectory(run_dir)
        self._gateways = gateways
        self._embedders = embedders
        self._slots = asyncio.Semaphore(cells_at_once)
        self._indexes: dict[str, asyncio.Task[BenchmarkIndex]] = {}
        self._vectors: dict[str, VectorsAtHand] = {}
        self._runs: dict[str, CellRun] = {}
        self._stopping = False

    async def run(
        self, spec: CellSpec, gateway: str | None, embedder: str | None, benchmark: Sequence[Any]
    ) -> CellResult:
        """Run one cell. ``benchmark`` holds a reference, so that each benchmark is fetched and indexed once a worker.

        ``gateway`` and ``embedder`` are None for a method that says it uses none.
        """
        async with self._slots:
            index = await self._index(benchmark[0])
            chat = self._gateways[gateway] if gateway else _Undeclared("uses_llm")
            embed = self._embed(embedder) if embedder else _Undeclared("uses_embedder")
            run = CellRun(spec, index, chat, embed, self._run_dir.cell(spec.name))
            self._runs[spec.name] = run
            if self._stopping:
                run.stop()
            return await run.run()

    async def progress(self) -> dict[str, Progress]:
        return {name: run.progress for name, run in self._runs.items()}

    async def stop(self) -> None:
        """No new forecast in any cell."""
        self._stopping = True
        for run in self._runs.values():
            run.stop()

    def _embed(self, embedder: str) -> VectorsAtHand:
        if embedder not in self._vectors:
            actor = self._embedders[embedder]
            self._vectors[embedder] = VectorsAtHand(lambda texts: unwrapped(actor.vectors.remote(list(texts))))
        return self._vectors[embedder]

    async def _index(self, reference: Any) -> BenchmarkIndex:
        async def load() -> BenchmarkIndex:
            return await asyncio.to_thread(BenchmarkIndex.of, await reference)

        key = reference.hex()
        if key not in self._indexes:
            self._indexes[key] = asyncio.create_task(load())
        return await self._indexes[key]


class _Undeclared:
    """In place of a service that the method says it does not use."""

    def __init__(self, declaration: str) -> None:
        self._message = f"the method makes a call that it did not declare: set {declaration} = True in its class"

    async def complete(self, request: ChatRequest) -> Completion:
        raise HarnessError(self._message)

    async def __call__(self, texts: Sequence[str]) -> tuple[Vectors, list[Call]]:
        raise HarnessError(self._message)
