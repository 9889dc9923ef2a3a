"""Learning runs with a toy learner, in one process: whatever the width, the delays, a stop or a kill, the result is one."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from harness.calls import no_embedder
from harness.cell import CellRun
from harness.clock import Stamp
from harness.contexts import Services, shared_objects
from harness.errors import CallFailed
from harness.evidence import Gate
from harness.jobs import BenchmarkIndex, CellResult, CellSpec, training_benchmark
from harness.local import LocalMemory
from harness.memory import Change, CommitKey, State
from harness.memory_actor import Applied, MemoryActor
from harness.method import Context, Lesson, Tools
from harness.records import Benchmark, Call, Catalyst, Forecast, Status
from harness.schedule import Chronology
from harness.store import CellStore
from methods.base import BaseMethod
from tests.support import benchmark_of, config_of

CONFIG = config_of("method=always_positive", "memory=online")


class Counting(BaseMethod):
    """Forecasts from how many positive outcomes it remembers; so every commit changes every later forecast."""

    uses_llm: ClassVar[bool] = False
    learns_from: ClassVar[Literal["forecasts", "records"]] = "forecasts"
    train_limit: int | None = None
    fail_at: str | None = None

    def learner(self) -> Counting:
        return self

    def scope_of(self, item: Any) -> str | None:
        return None

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        assert ctx.memory is not None
        await asyncio.sleep(DELAYS.random() * 0.003)
        seen, positive = await ctx.memory.recall(case.catalyst_type)
        prob = (positive + 1) / (seen + 2)
        return Forecast(Status.OK, prob, rationale=f"{positive} of {seen}", prompt_sha256=f"{positive}/{seen}")

    async def prepare(self, case: Catalyst, ctx: Context) -> None:
        assert ctx.memory is None
        await asyncio.sleep(DELAYS.random() * 0.003)

    async def propose(self, lesson: Lesson, tools: Tools) -> Any:
        await asyncio.sleep(DELAYS.random() * 0.003)
        name = lesson.resolved.case.catalyst_id
        if name == self.fail_at:
            raise CallFailed("provider", "the endpoint is down")
        return {"id": name, "label": lesson.resolved.outcome.label, "said": lesson.forecast.prob_positive}

    async def apply(self, state: State, proposal: Any, at: datetime, tools: Tools) -> list[Change]:
        return [Change("put", proposal["id"], json.dumps({**proposal, "before": len(state)}, sort_keys=True))]

    async def recall(self, state: State, question: Any, decision: Stamp, gate: Gate, tools: Tools) -> Any:
        values = [json.loads(v) for k, v in state.items() if not k.startswith("review")]
        return len(values), sum(v["label"] == "positive" for v in values)

    def review_times(self, first: datetime, last: datetime) -> list[datetime]:
        return [first + (last - first) / 2]

    async def review(self, state: State, at: datetime, known: Sequence[Any], tools: Tools) -> list[Change]:
        return [Change("review", f"review{at.isoformat()}", json.dumps([len(state), len(known)]))]


DELAYS = random.Random(0)


def sample() -> Benchmark:
    bench = benchmark_of(config_of("benchmark=sample"))
    assert bench.experience is not None
    return training_benchmark(bench, bench.experience)


SAMPLE = sample()
INDEX = BenchmarkIndex.of(SAMPLE)


def learn(
    directory: Path, width: int = 8, seed: int = 0, stop_after: int | None = None, **knobs: Any
) -> tuple[CellResult, str, list[tuple[Any, ...]]]:
    """Train on the sample's experience; (how it ended, hash of the log, forecasts)."""

    async def run() -> tuple[CellResult, str]:
        DELAYS.seed(seed)
        method = Counting(name="counting", **knobs)
        memory = LocalMemory(MemoryActor(method, None, str(directory / "memory.jsonl"), None, no_embedder))
        services = Services(None, no_embedder, shared_objects(directory / "artefacts"), memory)
        backbone = CONFIG.backbone.model_copy(update={"max_in_flight": width})
        config = CONFIG.model_copy(update={"backbone": backbone})
        spec = CellSpec("training", config, {}, method, kind="memories", learns=True)
        cell = CellRun(spec, INDEX, services, CellStore(directory))
        task = asyncio.create_task(cell.run())
        while stop_after is not None and sum(cell.progress.done.values()) < stop_after and not task.done():
            await asyncio.sleep(0.001)
        if stop_after is not None:
            cell.stop()
        return await task, await memory.sha256()

    result, sha = asyncio.run(run())
    rows = [(r["catalyst_id"], r["prob_positive"], r["rationale"]) for r in CellStore(directory).export()]
    return result, sha, rows


@pytest.fixture(scope="module")
def one_at_a_time(tmp_path_factory: pytest.TempPathFactory) -> tuple[CellResult, str, list[tuple[Any, ...]]]:
    return learn(tmp_path_factory.mktemp("one"), width=1)


def test_one_at_a_time_is_complete_and_learns(one_at_a_time: tuple[CellResult, str, list[tuple[Any, ...]]]) -> None:
    result, _, rows = one_at_a_time
    assert result.status == "complete"
    assert len({row[2] for row in rows}) > 20, "forecasts that never differ would prove nothing about the order of work"


@pytest.mark.parametrize(("width", "seed"), [(2, 1), (8, 2), (64, 3), (64, 4)])
def test_any_width_and_any_delay_gives_the_same(
    tmp_path: Path, one_at_a_time: tuple[CellResult, str, list[tuple[Any, ...]]], width: int, seed: int
) -> None:
    assert learn(tmp_path, width, seed)[1:] == one_at_a_time[1:]


@pytest.mark.parametrize("stop_after", [1, 20, 50])
def test_stopped_and_resumed_gives_the_same(
    tmp_path: Path, one_at_a_time: tuple[CellResult, str, list[tuple[Any, ...]]], stop_after: int
) -> None:
    first, _, _ = learn(tmp_path, 8, 5, stop_after=stop_after)
    assert first.status == "incomplete"
    again, sha, rows = learn(tmp_path, 8, 6)
    assert again.status == "complete"
    assert again.resumed > 0
    assert (sha, rows) == one_at_a_time[1:]


def test_a_journal_cut_in_the_middle_of_a_line_gives_the_same(
    tmp_path: Path, one_at_a_time: tuple[CellResult, str, list[tuple[Any, ...]]]
) -> None:
    learn(tmp_path, 8, 7, stop_after=40)
    journal = tmp_path / "memory.jsonl"
    journal.write_bytes(journal.read_bytes()[:-9])
    assert learn(tmp_path, 8, 8)[1:] == one_at_a_time[1:]


def test_a_lesson_that_fails_for_want_of_an_endpoint_stops_the_run_and_the_next_goes_on(
    tmp_path: Path, one_at_a_time: tuple[CellResult, str, list[tuple[Any, ...]]]
) -> None:
    name = one_at_a_time[2][30][0]
    failed, _, _ = learn(tmp_path, 8, 9, fail_at=name)
    assert failed.status == "failed"
    assert "the endpoint is down" in str(failed.reason)
    assert learn(tmp_path, 8, 10)[1:] == one_at_a_time[1:]


def test_a_scheduler_that_frees_forecasts_too_early_is_caught(
    tmp_path: Path, one_at_a_time: tuple[CellResult, str, list[tuple[Any, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted violation: everything is free at once. The forecasts are no longer those of one at a time."""
    whole = Chronology.free

    def everything(self: Chronology) -> list[tuple[int, str]]:
        monkeypatch.setattr(Chronology, "frontier", None)
        try:
            return whole(self)
        finally:
            monkeypatch.undo()
            monkeypatch.setattr(Chronology, "free", everything)

    monkeypatch.setattr(Chronology, "free", everything)
    assert learn(tmp_path, 64, 11)[1:] != one_at_a_time[1:]


def test_commits_by_arrival_are_refused_by_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted violation: a chronology whose steps are in another order than their keys."""
    build = Chronology.__init__

    def shuffled(self: Chronology, steps: Any, forecasts: Any) -> None:
        build(self, steps, forecasts)
        random.Random(1).shuffle(self._steps)
        self._waiting = [(datetime.min.replace(tzinfo=w[0].tzinfo), *w[1:]) for w in self._waiting]

    monkeypatch.setattr(Chronology, "__init__", shuffled)
    result, _, _ = learn(tmp_path, 64, 12)
    assert result.status == "failed"
    assert "comes after" in str(result.reason)


class Failing(Counting):
    """Embeds every lesson when it is applied; the endpoint fails at one of them."""

    async def apply(self, state: State, proposal: Any, at: datetime, tools: Tools) -> list[Change]:
        await tools.embed([proposal["id"]])
        if proposal["id"] == self.fail_at:
            raise CallFailed("provider", "the endpoint is down")
        return await super().apply(state, proposal, at, tools)


def test_a_burst_that_fails_halfway_keeps_what_was_applied_and_every_call_that_was_paid(tmp_path: Path) -> None:
    async def embed(texts: Sequence[str]) -> tuple[Any, list[Call]]:
        return np.ones((len(texts), 1)), [embedding_call(texts[0])]

    async def commit() -> tuple[Applied, set[str]]:
        memory = MemoryActor(Failing(name="failing", fail_at="c2"), None, str(tmp_path / "memory.jsonl"), None, embed)
        at = datetime(2024, 1, 5, tzinfo=UTC)
        records = [
            (CommitKey(at, at, name), {"id": name, "label": "positive", "said": 0.5}) for name in ("c1", "c2", "c3")
        ]
        return await memory.commit(records), await memory.committed()

    applied, committed = asyncio.run(commit())
    assert committed == {"c1"}
    assert {name: [c.request_sha256 for c in calls] for name, calls in applied.calls.items()} == {
        "c1": ["c1"], "c2": ["c2"],
    }  # fmt: skip
    assert "the endpoint is down" in str(applied.failure)
    again, _ = asyncio.run(commit())
    assert "c1" not in again.calls, "what is on file is not paid for again"


def embedding_call(name: str) -> Call:
    return Call(None, "embed", "memory", name, "m", None, None, 1, False, 1, 0, 0, 0, None, Status.OK, 200)
