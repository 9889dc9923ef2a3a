"""Prompts without an endpoint: run a method on a loaded benchmark and keep what it would have sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from harness.calls import Chat
from harness.cell import CellRun, Services, shared_objects
from harness.clock import Stamp
from harness.config import CellConfig, build, validate
from harness.evidence import Gate
from harness.gateway.reply import read_reply
from harness.gateway.request import ChatRequest, prepare
from harness.gateway.result import Completion
from harness.gateway.settings import Endpoint
from harness.jobs import BenchmarkIndex, CellSpec, Job, planned
from harness.memory_actor import MemoryActor, MemoryClient
from harness.plan import make_jobs
from harness.records import Benchmark, Call, Forecast, Status
from harness.rehearsal.answerer import answer, tool_call
from harness.rows import Row
from harness.store import CellStore, RunDirectory
from harness.vectors import VectorsAtHand, VectorService, VectorStore

ROOT = Path(__file__).resolve().parent.parent
CONF = ROOT / "conf"


def config_of(*overrides: str) -> CellConfig:
    """The configuration that ``launch.py`` would compose from ``overrides``."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        raw = OmegaConf.to_container(compose("config", overrides=list(overrides)), resolve=True)
    assert isinstance(raw, dict)
    return validate({str(k): v for k, v in raw.items()})


def benchmark_of(config: CellConfig) -> Benchmark:
    loaded: Benchmark = build(config.benchmark, "benchmark", resolve=config.resolve)
    return loaded


@dataclass
class RecordingGateway:
    """Keeps every request and answers 0.6, with a reason."""

    requests: list[ChatRequest] = field(default_factory=list)
    value: Mapping[str, Any] = field(default_factory=lambda: {"reasoning": "because", "prob_positive": 0.6})

    async def complete(self, request: ChatRequest) -> Completion:
        self.requests.append(request)
        call = Call(
            None, request.purpose, request.stage, "r", "m", None, None, 1, False, 10, 0, 5, 0, None, Status.OK, 200
        )
        return Completion(Status.OK, dict(self.value), json.dumps(self.value), None, "r", "s", "m", calls=(call,))


class RehearsingGateway:
    """The rehearsal endpoint's own answers, without HTTP: a function of the request. Counts the distinct requests by purpose."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.asked: dict[str, set[str]] = {}

    def text(self, request: ChatRequest, body: Mapping[str, Any]) -> str:
        """What is answered."""
        return answer(body, "a")

    async def complete(self, request: ChatRequest) -> Completion:
        prepared = prepare(self._endpoint, request)
        self.asked.setdefault(request.purpose, set()).add(prepared.sha256)
        text, tool = self.text(request, prepared.body), tool_call(prepared.body, "a")
        message = {"content": text, "tool_calls": [tool] if tool else None}
        reply = {"choices": [{"message": message, "finish_reason": "stop"}]}
        reading = read_reply(reply, request.schema, request.essential)
        call = Call(
            None, request.purpose, request.stage, prepared.sha256, "m", None, None, 1, False, 10, 0, 5, 0, None,
            reading.status, 200,
        )  # fmt: skip
        return Completion(reading.status, reading.value, text, reading.reason, prepared.sha256, "r", "m", calls=(call,))


class LocalMemory(MemoryClient):
    """A memory without Ray: the actor's own code in this process."""

    def __init__(self, actor: MemoryActor) -> None:
        object.__setattr__(self, "actor", actor)

    async def recall(self, question: Any, decision: Stamp, gate: Gate) -> Any:
        return await self.actor.recall(question, decision, gate)

    async def commit(self, records: Any) -> Any:
        return await self.actor.commit(records)

    async def review(self, key: Any, known: Any) -> Any:
        return await self.actor.review(key, known)

    async def committed(self) -> set[str]:
        records: set[str] = await self.actor.committed()
        return records

    async def sha256(self) -> str:
        value: str = await self.actor.sha256()
        return value

    async def incidents(self) -> dict[str, int]:
        counts: dict[str, int] = await self.actor.incidents()
        return counts

    async def export(self, path: Path, filled_until: datetime | None) -> None:
        await self.actor.export(str(path), filled_until)


def run_cells(configs: Sequence[CellConfig], scratch: Path, only: Sequence[str] | None = None) -> dict[str, list[Row]]:
    """Run cells as a session would, trainings first, in this process; rows by method.

    ``only`` leaves out all other catalysts of cells that do not learn: their forecasts depend on nothing else.
    """
    return asyncio.run(run_jobs(make_jobs(configs, lambda text: None), scratch, only))


async def run_jobs(jobs: Sequence[Job], scratch: Path, only: Sequence[str] | None) -> dict[str, list[Row]]:
    """As ``run_cells``, for jobs that are made already."""
    directory = RunDirectory(scratch)
    vectors: dict[str, VectorsAtHand] = {}
    shared: dict[str, Any] = {}
    indexes: dict[int, BenchmarkIndex] = {}
    trained: dict[str, Path] = {}
    found: dict[str, list[Row]] = {}

    async def run(job: Job, memory_file: Path | None) -> None:
        spec = job.spec
        name = spec.config.embedder.name
        if name not in vectors:
            on_disk = VectorStore(scratch / "vectors.sqlite")
            vectors[name] = VectorsAtHand(VectorService(build(spec.config.embedder, "embedder"), on_disk, None).vectors)
        store = directory.store(spec.kind, spec.name)
        chat = RehearsingGateway(spec.config.backbone)
        learner = spec.method.learner()
        memory = None
        if learner is not None and spec.config.memory != "none":
            journal = str(store.directory / "memory.jsonl") if spec.learns else None
            file = str(memory_file) if memory_file else None
            memory = LocalMemory(MemoryActor(learner, file, journal, chat, vectors[name]))
        benchmark = job.benchmark
        if only is not None and not spec.learns:
            cases = benchmark.evaluation
            kept = tuple(c for c in cases.catalysts if c.catalyst_id in only)
            benchmark = replace(benchmark, evaluation=replace(cases, catalysts=kept))
        index = indexes.setdefault(id(job.benchmark), BenchmarkIndex.of(job.benchmark))
        scope = repr(sorted(spec.identity["backbone"].items())) + spec.identity["gate"] + str(id(job.benchmark))
        objects = shared.setdefault(scope, shared_objects(scratch / "artefacts" / str(len(shared))))
        services = Services(chat, vectors[name], objects, memory)
        cell = CellRun(spec, replace(index, benchmark=benchmark), services, store)
        result = await cell.run()
        assert result.status == "complete", result
        trained[spec.name] = store.directory / "memory.parquet"
        if spec.kind == "cells":
            found[spec.method.name] = store.export()

    for training in {j.memory.name: j.memory.training for j in jobs if j.memory and j.memory.training}.values():
        await run(training, None)
    for job in jobs:
        await run(job, trained[job.memory.name] if job.memory and job.memory.training else None)
    return found


def forecasts_of(
    config: CellConfig,
    benchmark: Benchmark,
    scratch: Path,
    only: Sequence[str] | None = None,
    gateway: Chat | None = None,
    warnings: list[str] | None = None,
) -> dict[str, Forecast]:
    """What the method answers for each catalyst (those named in ``only``), prompts included, without Ray or HTTP.

    ``gateway`` answers; by default one that says 0.6 to everything. ``warnings`` gets what cell.json would say.
    """
    told = warnings if warnings is not None else []
    return asyncio.run(_forecasts(config, benchmark, scratch, only, gateway or RecordingGateway(), told))


async def _forecasts(
    config: CellConfig,
    benchmark: Benchmark,
    scratch: Path,
    only: Sequence[str] | None,
    gateway: Chat,
    warnings: list[str],
) -> dict[str, Forecast]:
    scratch.mkdir(parents=True, exist_ok=True)
    service = VectorService(build(config.embedder, "embedder"), VectorStore(scratch / "vectors.sqlite"), None)
    spec = CellSpec("cell", config, {}, build(config.method, "method"))
    services = Services(gateway, VectorsAtHand(service.vectors), shared_objects(scratch / "artefacts"))
    run = CellRun(spec, BenchmarkIndex.of(benchmark), services, CellStore(scratch / "cell"))
    found: dict[str, Forecast] = {}
    for case, epoch in planned(benchmark, spec):
        if only is None or case.catalyst_id in only:
            found[case.catalyst_id] = await spec.method.forecast(case, run.context(case, epoch, [], []))
    warnings += run.warnings
    return found
