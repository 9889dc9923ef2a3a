"""A worker keeps nothing of a cell that has ended but its counts."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

from harness import worker as module
from harness.jobs import CellResult, CellSpec, Progress
from harness.worker import Worker
from tests.support import config_of


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


def spec(name: str, scope: str = "") -> CellSpec:
    identity = dict.fromkeys(("backbone", "embedder", "gate", "benchmark"), scope)
    return CellSpec(name, config_of("method=tiem"), identity, None)  # type: ignore[arg-type]


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
    monkeypatch.setattr(Worker, "_memory", lambda *_: None)

    async def run() -> None:
        worker = Worker(str(tmp_path), {}, {}, 1)
        cells = [spec(name, scope) for name, scope in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "x"))]
        await asyncio.gather(*(worker.run(cell, None, None, [None], None, None) for cell in cells))

    asyncio.run(run())
    gc.collect()
    assert len(made) == 2
    assert [one() for one in made] == [None, None]


def test_the_memory_of_a_cell_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: None) -> None:
    class Memory:
        pass

    memories: list[weakref.ref[Memory]] = []

    def started(*_: Any) -> Memory:
        memory = Memory()
        memories.append(weakref.ref(memory))
        return memory

    monkeypatch.setattr(Worker, "_memory", started)
    worker = Worker(str(tmp_path), {}, {}, 1)
    result = asyncio.run(worker.run(spec("cell"), None, None, [None], None, None))
    gc.collect()
    assert result.status == "complete"
    assert [memory() for memory in memories] == [None], "the process of its memory would live as long as the session"
    assert asyncio.run(worker.progress())["cell"].done == {"ok": 1}
