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
        self.progress.count("ok")
        return CellResult(self._name, "complete", {}, 1, 0)


def test_the_memory_of_a_cell_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        pass

    memories: list[weakref.ref[Memory]] = []

    def started(*_: Any) -> Memory:
        memory = Memory()
        memories.append(weakref.ref(memory))
        return memory

    async def index(*_: Any) -> None:
        return None

    monkeypatch.setattr(module, "CellRun", _Run)
    monkeypatch.setattr(Worker, "_memory", started)
    monkeypatch.setattr(Worker, "_index", index)
    monkeypatch.setattr(Worker, "_shared_objects", lambda *_: None)
    worker = Worker(str(tmp_path), {}, {}, 1)
    spec = CellSpec("cell", config_of("method=tiem"), {}, None)  # type: ignore[arg-type]
    result = asyncio.run(worker.run(spec, None, None, [None], None, None))
    gc.collect()
    assert result.status == "complete"
    assert [memory() for memory in memories] == [None], "the process of its memory would live as long as the session"
    assert asyncio.run(worker.progress())["cell"].done == {"ok": 1}
