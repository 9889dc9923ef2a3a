"""A process that runs cells, several at a time: the Ray side of ``harness.cell``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from harness.cell import BenchmarkIndex, CellResult, CellRun, CellSpec, Progress
from harness.embed import VectorsAtHand
from harness.gateway.client import GatewayClient
from harness.store import RunDirectory


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

    async def run(self, spec: CellSpec, gateway: str, embedder: str, benchmark: Sequence[Any]) -> CellResult:
        """Run one cell. ``benchmark`` holds a reference, so that each benchmark is fetched and indexed once a worker."""
        async with self._slots:
            index = await self._index(benchmark[0])
            vectors = self._vectors.setdefault(embedder, VectorsAtHand(self._embedders[embedder].vectors.remote))
            store = self._run_dir.cell(spec.name)
            run = CellRun(spec, index, self._gateways[gateway], vectors, store)
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

    async def _index(self, reference: Any) -> BenchmarkIndex:
        async def load() -> BenchmarkIndex:
            return await asyncio.to_thread(BenchmarkIndex.of, await reference)

        key = reference.hex()
        if key not in self._indexes:
            self._indexes[key] = asyncio.create_task(load())
        return await self._indexes[key]
