"""A worker keeps nothing of a cell that has ended but its counts."""

from __future__ import annotations

import asyncio
import gc
import weakref
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from harness import worker as module
from harness.calls import no_embedder
from harness.cell import CellRun
from harness.config import build
from harness.contexts import Services, shared_objects
from harness.jobs import BenchmarkIndex, CellResult, CellSpec, Progress
from harness.store import CellStore
from harness.worker import Worker
from tests.support import RecordingGateway, benchmark_of, config_of


class _Run:
    """Stands for a cell's run: holds its services, and counts."""

    def __init__(self, spec: CellSpec, index: Any, services: Any, store: Any) -> None:
        self.services, self.progress, self._name = services, Progress(total=1), spec.name

    async def run(self) -> CellResult:
        await asyncio.sleep(0)  # others begin and wait for their turn
        self.progress.count("ok")
        return CellResult(self._name, "complete", {}, 1, 0)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No benchmark, and a run that does nothing."""

    async def index(*_: Any) -> None:
        return None

    monkeypatch.setattr(module, "CellRun", _Run)
    monkeypatch.setattr(Worker, "_index", index)


def spec(name: str, scope: str = "", **changes: Any) -> CellSpec:
    config = config_of("method=tiem", "benchmark=sample", "run.limit=2", "embedder=hashing")
    identity = dict.fromkeys(("backbone", "embedder", "gate", "benchmark"), scope)
    return CellSpec(name, config, identity, build(config.method, "method"), **changes)


@dataclass
class _Memory:
    """Stands for a memory's process."""

    of: str
    ended: int = 0

    def end(self) -> None:
        self.ended += 1


async def all_of(worker: Worker, cells: list[CellSpec], trained: str | None = None) -> list[CellResult]:
    return await asyncio.gather(*(worker.run(cell, None, None, [None], trained, None) for cell in cells))


def test_what_cells_share_goes_with_the_last_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: None
) -> None:
    """Cells that wait for their turn count: an index is not built anew for each."""
    made: list[weakref.ref[Any]] = []

    def shared(directory: Path) -> Any:
        def get(*_: Any) -> None:
            return None

        made.append(weakref.ref(get))
        return get

    monkeypatch.setattr(module, "shared_objects", shared)
    monkeypatch.setattr(module, "start_memory", lambda *_: _Memory(""))
    worker = Worker(str(tmp_path), {}, {}, 1)
    asyncio.run(all_of(worker, [spec(name, scope) for name, scope in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "x"))]))
    assert len(made) == 2
    assert [one() for one in made] == [None, None]


@pytest.mark.parametrize("at_once", [1, 3])
def test_the_process_of_a_memory_ends_with_its_last_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: None, at_once: int
) -> None:
    memories: list[_Memory] = []

    def started(*arguments: Any) -> _Memory:
        memories.append(_Memory(arguments[-1]))
        return memories[-1]

    monkeypatch.setattr(module, "start_memory", started)
    worker = Worker(str(tmp_path), {}, {}, at_once)
    learning = [spec("online", learns=True), spec("training", kind="memories", learns=True)]
    results = asyncio.run(all_of(worker, [spec("a", "x"), *learning, spec("b", "y")], "memory.parquet"))
    assert {result.status for result in results} == {"complete"}
    assert sorted((memory.of, memory.ended) for memory in memories) == [("a", 1), ("online", 1), ("training", 1)]
    assert asyncio.run(worker.progress())["a"].done == {"ok": 1}


def test_memories_that_learn_otherwise_are_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: None
) -> None:
    started: list[str] = []
    monkeypatch.setattr(module, "start_memory", lambda *a: (started.append(a[-1]), _Memory(a[-1]))[1])
    other = config_of("method=mem0")
    cells = [spec("a"), replace(spec("b"), config=other, method=build(other.method, "method"))]
    asyncio.run(all_of(Worker(str(tmp_path), {}, {}, 2), cells))
    assert started == ["a", "b"]


def test_a_cell_that_has_ended_is_gone_without_the_garbage_collector(tmp_path: Path) -> None:
    """What it holds (rows, an index, the handle of a memory) must not wait for a collection that may never come."""
    config = config_of("method=zero_shot", "benchmark=sample", "run.limit=2")
    cell = CellSpec("cell", config, {}, build(config.method, "method"))
    services = Services(RecordingGateway(), no_embedder, shared_objects(tmp_path))
    run = CellRun(cell, BenchmarkIndex.of(benchmark_of(config)), services, CellStore(tmp_path / "cell"))
    gone = weakref.ref(run)
    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(run.run()).status == "complete"
        del run
        assert gone() is None
    finally:
        gc.enable()
