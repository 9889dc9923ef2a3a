"""Requests are made before there is room for them in the air: a place that becomes free is taken at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from harness.calls import no_embedder
from harness.cell import CellRun
from harness.contexts import Services, shared_objects
from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion
from harness.jobs import BenchmarkIndex, CellSpec
from harness.store import CellStore
from tests.support import RecordingGateway, benchmark_of, build, config_of

IN_AIR = 4


class Limited(RecordingGateway):
    """Answers ``IN_AIR`` requests at a time, each after turns of the loop in which others may ask; keeps how many were waiting then."""

    def __init__(self) -> None:
        super().__init__()
        self.room = asyncio.Semaphore(IN_AIR)
        self.asked = 0
        self.waiting: list[int] = []

    async def complete(self, request: ChatRequest) -> Completion:
        self.asked += 1
        async with self.room:
            for _ in range(20):  # turns of the loop in which the others may ask
                await asyncio.sleep(0)
            self.waiting.append(self.asked - len(self.waiting) - IN_AIR)
            return await super().complete(request)


def test_as_many_requests_wait_as_may_be_in_the_air(tmp_path: Path) -> None:
    config = config_of("method=zero_shot", f"backbone.max_in_flight={IN_AIR}")
    benchmark = benchmark_of(config)
    spec = CellSpec("cell", config, {}, build(config.method, "method"))

    async def run() -> list[int]:
        chat = Limited()
        services = Services(chat, no_embedder, shared_objects(tmp_path / "artefacts"))
        result = await CellRun(spec, BenchmarkIndex.of(benchmark), services, CellStore(tmp_path / "cell")).run()
        assert result.status == "complete"
        return chat.waiting

    waiting = asyncio.run(run())
    n = len(waiting)
    assert waiting[: n - 2 * IN_AIR] == [IN_AIR] * (n - 2 * IN_AIR)
