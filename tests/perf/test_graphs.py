"""`make bench`: what a decision costs the graph methods once its documents are extracted."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from statistics import median

import pytest

from harness.cell import CellRun
from harness.config import build
from harness.contexts import Services, shared_objects
from harness.jobs import BenchmarkIndex, CellSpec
from harness.local import RehearsingGateway
from harness.store import CellStore
from harness.vectors import VectorsAtHand, VectorService, VectorStore
from tests.support import benchmark_of, config_of

pytestmark = pytest.mark.perf
DECISIONS = 10


@pytest.mark.parametrize(("method", "limit"), [("hipporag", 1.0), ("hipporag2", 1.0), ("graphrag", 3.0)])
def test_a_snapshot_and_a_question(data_root: Path, tmp_path: Path, method: str, limit: float) -> None:
    """The last distinct decisions of edt, one after the other, each with a graph of its own; calls are answered in-process."""
    config = config_of(f"method={method}", "benchmark=edt", "feed=docs", f"benchmark.root='{data_root}'")
    bench = benchmark_of(config)
    service = VectorService(build(config.embedder, "embedder"), VectorStore(tmp_path / "v.sqlite"), None)
    chat = RehearsingGateway(config.backbone)
    services = Services(chat, VectorsAtHand(service.vectors), shared_objects(tmp_path / "artefacts"))
    spec = CellSpec("cell", config, {}, build(config.method, "method"))
    index = BenchmarkIndex.of(bench)
    cell = CellRun(spec, index, services, CellStore(tmp_path / "cell"))
    by_time = {case.time.instant: case for case in bench.evaluation.catalysts}
    last = [by_time[at] for at in sorted(by_time)][-DECISIONS - 1 :]
    seconds = []

    async def run() -> None:
        for case in last:  # the first one pays for the extraction of all documents before it
            started = time.perf_counter()
            await spec.method.forecast(case, cell.contexts.of(case, 0, [], []))
            seconds.append(time.perf_counter() - started)

    asyncio.run(run())
    documents = len(index.evidence.as_of("", last[-1].time, config.gate).retrievable())
    print(
        f"\n  {method}: {median(seconds[1:]):.2f} s a distinct T (at most {max(seconds[1:]):.2f}) on {documents} documents, "
        f"first build {seconds[0]:.1f} s",
        flush=True,
    )
    assert median(seconds[1:]) < limit
