"""Filling a memory with records, with a toy learner: whatever the width, the delays, a stop or a kill, the log is one."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from harness.calls import no_embedder
from harness.cell import CellRun
from harness.contexts import Services, shared_objects
from harness.errors import CallFailed, ConfigError, HarnessError
from harness.estimate import estimate
from harness.gateway.cache import Payment, ReplyCache
from harness.gateway.result import Stopped
from harness.ingestion import fed_records
from harness.jobs import BenchmarkIndex, CellResult, CellSpec, Job
from harness.local import LocalMemory
from harness.memory import Change, MemoryLog, State
from harness.memory_actor import MemoryActor
from harness.memory_file import read_memory, write_memory
from harness.method import FedRecord, Tools
from harness.plan import make_jobs
from harness.records import DROPPED, Document, ResolvedCase
from harness.store import CellStore, RunDirectory, write_json
from methods.record_memory import RecordMemory
from tests.memories.world import with_documents
from tests.support import benchmark_of, config_of

CONFIG = config_of("method=mem0", "memory=online")
SAMPLE = benchmark_of(config_of("benchmark=sample"))
INDEX = BenchmarkIndex.of(SAMPLE)
DELAYS = random.Random(0)


class Chaining(RecordMemory):
    """Remembers, for each record, which one it met before in its scope: so every record depends on all before it."""

    learns_from: ClassVar[Literal["forecasts", "records"]] = "records"
    by_stock: bool = False
    fail_at: str | None = None
    fail_in: str = "apply"
    error: str = "provider"

    def scope_of(self, item: Document | ResolvedCase) -> str | None:
        if not self.by_stock:
            return None
        return item.case.stock_id if isinstance(item, ResolvedCase) else item.stocks[0]

    async def propose(self, record: FedRecord, tools: Tools) -> Any:
        await asyncio.sleep(DELAYS.random() * 0.003)
        self._fail("propose", record)
        return record

    async def apply(self, state: State, record: FedRecord, at: Any, tools: Tools) -> list[Change]:
        await asyncio.sleep(DELAYS.random() * 0.002)
        self._fail("apply", record)
        name = f"last:{record.key.scope}"
        seen = json.loads(state[name])["n"] if name in state else 0
        odd = [Change("odd record", None)] if seen % 7 == 3 else []
        assert set(state) <= {name}, "the state of another scope is seen"
        return [Change("put", name, json.dumps({"n": seen + 1, "record": record.key.record_id})), *odd]

    def _fail(self, where: str, record: FedRecord) -> None:
        if record.key.record_id != self.fail_at or where != self.fail_in:
            return
        if self.error == "bug":
            raise ZeroDivisionError("a mistake in the method")
        if self.error == "stopped":
            raise Stopped("the run is stopping")
        raise CallFailed(self.error, "the endpoint is down")


def fill(
    directory: Path,
    width: int = 8,
    seed: int = 0,
    stop_after: int | None = None,
    until: datetime | None = None,
    **knobs: Any,
) -> tuple[CellResult, MemoryLog]:
    """Fill a memory with the sample, with what is known before ``until``; (how it ended, its log)."""

    async def run() -> tuple[CellResult, MemoryLog]:
        DELAYS.seed(seed)
        method = Chaining(name="chaining", **knobs)
        actor = MemoryActor(method, None, str(directory / "memory.jsonl"), None, no_embedder)
        services = Services(None, no_embedder, shared_objects(directory / "artefacts"), LocalMemory(actor))
        backbone = CONFIG.backbone.model_copy(update={"max_in_flight": width})
        config = CONFIG.model_copy(update={"backbone": backbone})
        spec = CellSpec("filling", config, {}, method, kind="memories", learns=True, fed_until=until)
        cell = CellRun(spec, INDEX, services, CellStore(directory))
        task = asyncio.create_task(cell.run())
        while stop_after is not None and sum(cell.progress.done.values()) < stop_after and not task.done():
            await asyncio.sleep(0.001)
        if stop_after is not None:
            cell.stop()
        return await asyncio.wait_for(task, 300), actor._log

    return asyncio.run(run())


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> MemoryLog:
    result, log = fill(tmp_path_factory.mktemp("alone"), width=1)
    assert result.status == "complete"
    return log


def test_every_record_is_on_file_in_order_of_time_and_id(alone: MemoryLog) -> None:
    keys = [op.key for op in alone.ops if op.op == "put"]
    assert keys == sorted(keys)
    assert len(keys) == len({k.record_id for k in keys}) > 200
    assert all(k.decision_time == k.valid_from for k in keys)
    assert json.loads(alone.final_state()["last:None"])["n"] == len(keys)
    assert alone.incidents() == {"odd record": (len(keys) + 3) // 7}


@pytest.mark.parametrize(("width", "seed"), [(2, 1), (64, 2)])
def test_any_width_and_any_delay_gives_the_same(tmp_path: Path, alone: MemoryLog, width: int, seed: int) -> None:
    assert fill(tmp_path, width, seed)[1].sha256() == alone.sha256()


def test_scopes_side_by_side_give_what_one_at_a_time_gives(tmp_path: Path) -> None:
    result, side_by_side = fill(tmp_path / "a", 64, 1, by_stock=True)
    _, one_by_one = fill(tmp_path / "b", 1, 2, by_stock=True)
    assert result.status == "complete"
    assert side_by_side.sha256() == one_by_one.sha256()
    keys = [op.key for op in side_by_side.ops]
    assert keys == sorted(keys)
    assert len({k.scope for k in keys}) > 3


@pytest.mark.parametrize("stop_after", [1, 100])
def test_stopped_and_resumed_gives_the_same(tmp_path: Path, alone: MemoryLog, stop_after: int) -> None:
    first, _ = fill(tmp_path, 8, 5, stop_after=stop_after)
    assert first.status == "incomplete"
    assert "records left" in str(first.reason)
    journal = tmp_path / "memory.jsonl"
    journal.write_bytes(journal.read_bytes()[:-9])  # as a kill may leave it
    again, log = fill(tmp_path, 8, 6)
    assert again.status == "complete"
    assert again.resumed >= stop_after - 1
    assert log.sha256() == alone.sha256()


@pytest.mark.parametrize("where", ["propose", "apply"])
@pytest.mark.parametrize(
    ("error", "status", "said"),
    [("provider", "failed", "down"), ("budget", "incomplete", "budget"), ("stopped", "incomplete", "interrupted")],
)
def test_a_record_that_cannot_be_learned_ends_the_run_and_the_next_goes_on(
    tmp_path: Path, alone: MemoryLog, where: str, error: str, status: str, said: str
) -> None:
    name = alone.ops[len(alone.ops) // 2].key.record_id
    result, log = fill(tmp_path, 8, 9, fail_at=name, fail_in=where, error=error)
    assert (result.status, said in str(result.reason)) == (status, True)
    assert name not in log
    assert ("budget" in result.counts) == (error == "budget")
    assert fill(tmp_path, 8, 10)[1].sha256() == alone.sha256()


@pytest.mark.parametrize("where", ["propose", "apply"])
def test_a_bug_ends_the_run_instead_of_letting_it_wait(tmp_path: Path, alone: MemoryLog, where: str) -> None:
    name = alone.ops[len(alone.ops) // 2].key.record_id
    with pytest.raises(ZeroDivisionError):
        fill(tmp_path, 8, 9, fail_at=name, fail_in=where, error="bug")
    assert fill(tmp_path, 8, 10)[1].sha256() == alone.sha256()


def test_a_memory_is_filled_no_further_than_it_is_read_and_further_later(tmp_path: Path, alone: MemoryLog) -> None:
    until = alone.ops[len(alone.ops) // 2].key.valid_from
    result, short = fill(tmp_path, until=until)
    assert result.status == "complete"
    assert short.ops == [op for op in alone.ops if op.key.valid_from < until], "not a prefix of the whole log"
    assert read_memory(tmp_path / "memory.parquet").filled_until == until
    again, whole = fill(tmp_path)
    assert again.resumed == result.n
    assert whole.sha256() == alone.sha256()
    assert read_memory(tmp_path / "memory.parquet").filled_until is None
    fewer, still_whole = fill(tmp_path, until=until)
    assert (fewer.n, still_whole.sha256()) == (result.n, alone.sha256()), "what is on file stays"
    assert read_memory(tmp_path / "memory.parquet").filled_until is None


def test_a_memory_may_be_read_before_there_is_a_record(tmp_path: Path, alone: MemoryLog) -> None:
    result, log = fill(tmp_path / "new", until=alone.ops[0].key.valid_from)
    assert (result.status, result.n, log.ops) == ("complete", 0, [])
    assert len(read_memory(tmp_path / "new" / "memory.parquet")) == 0


def test_a_filling_that_was_stopped_says_how_far_it_came(tmp_path: Path) -> None:
    _, log = fill(tmp_path, stop_after=5)
    (next_one,) = records(online=True)[len({op.key.record_id for op in log.ops}) :][:1]
    assert read_memory(tmp_path / "memory.parquet").filled_until == next_one.key.valid_from


def test_records_applied_out_of_order_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted violation: records in the order of their names."""
    monkeypatch.setattr(
        "harness.cell.fed_records",
        lambda *args, **kwargs: (sorted(fed_records(*args, **kwargs)[0], key=lambda r: r.key.record_id), {}),
    )
    result, _ = fill(tmp_path)
    assert result.status == "failed"
    assert "comes after" in str(result.reason)


def records(with_cases: bool = True, online: bool = False, **knobs: Any) -> list[FedRecord]:
    return fed_records(INDEX, Chaining(name="chaining", **knobs), with_cases, online)[0]


def test_what_is_fed() -> None:
    documents = [d.doc_id for d in INDEX.evidence.documents]
    assert [r.key.record_id for r in records(with_cases=False)] == documents
    frozen = [r for r in records() if isinstance(r.item, ResolvedCase)]
    online = [r for r in records(online=True) if isinstance(r.item, ResolvedCase)]
    assert SAMPLE.experience is not None
    experience = {f"case:{c.catalyst_id}" for c in SAMPLE.experience.catalysts}
    assert {r.key.record_id for r in frozen} <= experience
    assert {r.evaluated for r in frozen} == {None}
    assert {f"case:{r.evaluated}" for r in online if r.evaluated} == {r.key.record_id for r in online} - experience
    for record in online:
        assert isinstance(record.item, ResolvedCase)
        assert record.item.focal is not None
        assert record.key.valid_from >= record.item.outcome.resolve_at
        assert record.key.day is None
    assert len([r for r in records(train_limit=5) if isinstance(r.item, ResolvedCase)]) <= 5


def test_what_is_left_out_is_counted() -> None:
    untimed = Document("untimed", None, "", "No date.", ("X",))
    bench = with_documents(SAMPLE, [*SAMPLE.evaluation.corpus.documents, untimed])
    fed, left_out = fed_records(BenchmarkIndex.of(bench), Chaining(name="chaining"), True, False)
    assert "untimed" not in {r.key.record_id for r in fed}
    assert left_out["documents without a time"] == 1


def filling_of(*commands: tuple[str, ...]) -> Job:
    """The one filling that cells with these overrides wait for."""
    jobs = make_jobs([config_of("method=mem0", "benchmark=sample", *c) for c in commands], lambda text: None)
    (found,) = {id(j.memory.training): j.memory.training for j in jobs if j.memory and j.memory.training}.values()
    return found


def test_the_last_forecast_that_reads_a_memory_bounds_it() -> None:
    cases = [c for c in SAMPLE.evaluation.catalysts if SAMPLE.evaluation.outcomes[c.catalyst_id].label != DROPPED]
    ends = {n: max(c.time.instant for c in cases[:n]) for n in (2, 5, len(cases))}
    assert filling_of(("run.limit=2",)).spec.fed_until == ends[2]
    assert filling_of(("run.limit=2",), ("run.limit=5", "run.seed=1")).spec.fed_until == ends[5]
    assert filling_of(("run.limit=2",), ()).spec.fed_until == ends[len(cases)]
    for gate in ("paper", "off"):
        assert filling_of(("run.limit=2",), ("run.limit=2", f"gate={gate}")).spec.fed_until is None, gate


def test_a_memory_filled_for_few_forecasts_is_still_to_be_paid_for_more(tmp_path: Path) -> None:
    """What is left is nothing for those that it was filled for, and something for those after them."""
    directory = RunDirectory(tmp_path)
    filling = filling_of(("run.limit=2",)).spec
    assert filling.fed_until is not None
    done = {"status": "complete", "memory_filled_until": filling.fed_until.isoformat()}
    write_json(directory.store("memories", filling.name).directory / "cell.json", done)

    async def pay() -> None:
        cache = ReplyCache(directory.cache / "replies-rehearsal.sqlite")
        when = "2026-03-01T00:00:00+00:00"
        await cache.put(None, [Payment("r", when, filling.name, "mem0_facts", "memory", "m", "ok", 400, 0, 50, 0, 0.0)])
        cache.close()

    asyncio.run(pay())
    left = {}
    for limit in (2, 5):
        jobs = make_jobs([config_of("method=mem0", "benchmark=sample", f"run.limit={limit}")], lambda text: None)
        (bill,) = (row.remaining for row in estimate(jobs, directory).rows if row.cell == filling.name)
        left[limit] = bill is not None and bill.calls.high > 0
    assert left == {2: False, 5: True}


def test_a_shared_memory_that_does_not_reach_far_enough_is_refused(tmp_path: Path) -> None:
    """The planted violation: forecasts after the end of a filling would silently miss what became known in between."""
    file = tmp_path / "memory.parquet"
    log = MemoryLog()
    log.filled_until = filling_of(("run.limit=2",)).spec.fed_until
    write_memory(file, log)
    here = ("method=mem0", "benchmark=sample", f"memory_file='{file}'")
    make_jobs([config_of(*here, "run.limit=2")], lambda text: None)
    for more in (("run.limit=5",), ("run.limit=2", "gate=off")):
        with pytest.raises(ConfigError, match=r"filled up to .* only"):
            make_jobs([config_of(*here, *more)], lambda text: None)


def test_a_memory_of_another_method_is_refused_and_other_circumstances_are_told(tmp_path: Path) -> None:
    filling = filling_of(())
    log, file = MemoryLog(), tmp_path / "memory.parquet"
    log.made_by = {"run": filling.spec.name, "learner": dict(filling.spec.method.fingerprint())}
    write_memory(file, log)
    told: list[str] = []

    def made(*overrides: str) -> list[str]:
        told.clear()
        make_jobs([config_of("benchmark=sample", f"memory_file='{file}'", *overrides)], told.append)
        return [text for text in told if "memory_file" in text]

    assert made("method=mem0") == []
    with pytest.raises(ConfigError, match=r"is a memory of methods\.mem0.*method=a_mem needs one of methods\.a_mem"):
        made("method=a_mem")
    for override, said in (
        ("backbone=rehearsal_b", "with backbone=rehearsal, not rehearsal_b"),
        ("method.neighbours=10", "with other settings or prompts"),
    ):
        (text,) = made("method=mem0", override)
        assert said in text
    log.made_by = {**log.made_by, "run": filling.spec.name.replace("sample", "harbour")}
    write_memory(file, log)
    (text,) = made("method=mem0")
    assert "on benchmark=harbour, not sample" in text


def training_of(*overrides: str) -> str:
    """Name of the training that a cell reads: equal names share one memory."""
    (job,) = make_jobs([config_of("benchmark=sample", *overrides)], lambda text: None)
    assert job.memory is not None
    assert job.memory.training is not None
    return job.memory.training.spec.name


def test_a_memory_is_shared_by_all_cells_that_only_read_it_otherwise() -> None:
    plain = training_of("method=mem0")
    for same in ("gate=paper", "gate=off", "run.seed=3", "run.limit=2", "context.budget=native", "method.top_k=5"):
        assert training_of("method=mem0", same) == plain, same
    for other in (
        "method=a_mem",
        "method.neighbours=10",
        "method.scope=stock",
        "method.train_limit=3",
        "memory=online",
        "feed=docs",
        "backbone=rehearsal_b",
        "embedder.dimensions=64",
        "resolve=released",
    ):
        command = (other,) if other.startswith("method=") else ("method=mem0", other)
        assert training_of(*command) != plain, other
    assert training_of("method=mem0", "feed=docs", "memory=online") == training_of("method=mem0", "feed=docs")


def test_another_document_another_name_or_another_outcome_makes_another_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = training_of("method=mem0")
    stocks = SAMPLE.evaluation.corpus.stocks
    renamed = {k: replace(s, name=f"{s.name} Holdings") for k, s in stocks.items()}
    corpus = replace(SAMPLE.evaluation.corpus, stocks=renamed)
    assert SAMPLE.experience is not None
    first = SAMPLE.experience.catalysts[0].catalyst_id
    outcomes = dict(SAMPLE.experience.outcomes)
    outcomes[first] = replace(outcomes[first], label="positive" if outcomes[first].label == "negative" else "negative")
    for bench in (
        with_documents(SAMPLE, SAMPLE.evaluation.corpus.documents[:-1]),
        replace(SAMPLE, evaluation=replace(SAMPLE.evaluation, corpus=corpus)),
        replace(SAMPLE, experience=replace(SAMPLE.experience, outcomes=outcomes)),
    ):
        monkeypatch.setattr("harness.plan._Plan._benchmark", lambda self, config, bench=bench: bench)
        assert training_of("method=mem0") != plain


def test_concurrent_scopes_fail_together_and_keep_what_came_before(tmp_path: Path) -> None:
    async def commit() -> tuple[int, HarnessError | None, set[str]]:
        fed = [r for r in records(by_stock=True) if r.key.scope is not None]
        window: Sequence[FedRecord] = list({r.key.scope: r for r in reversed(fed)}.values())
        window = sorted(window, key=lambda r: r.key)[:4]
        learner = Chaining(name="chaining", by_stock=True, fail_at=window[2].key.record_id)
        memory = MemoryActor(learner, None, str(tmp_path / "memory.jsonl"), None, no_embedder)
        applied = await memory.commit([(r.key, r) for r in window])
        assert set(applied.calls) == {r.key.record_id for r in window}
        assert await memory.committed() == {r.key.record_id for r in window[:2]}
        return applied.committed, applied.failure, await memory.committed()

    committed, failure, _ = asyncio.run(commit())
    assert committed == 2
    assert "down" in str(failure)
