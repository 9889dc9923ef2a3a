"""Cells in this process, without Ray and without HTTP: the rehearsal endpoint's own answers, memories as plain objects.

The same code runs as in a session (``harness.cell``, ``harness.learning``, the memory's actor class); only what carries it is
different. Tests and the leak hunt use it: thousands of small runs, each from nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.calls import Chat, Embedding
from harness.cell import CellRun
from harness.clock import Stamp
from harness.config import build
from harness.contexts import Services, shared_objects
from harness.errors import ConfigError, HarnessError
from harness.evidence import Gate
from harness.gateway.reply import read_reply
from harness.gateway.request import ChatRequest, prepare
from harness.gateway.result import Completion
from harness.gateway.settings import Endpoint
from harness.jobs import BenchmarkIndex, CellResult, Job, trainings_of
from harness.memory_actor import MemoryActor, MemoryClient
from harness.records import Benchmark, Call, Row
from harness.rehearsal.answerer import answer, tool_call
from harness.store import RunDirectory
from harness.vectors import VectorsAtHand, VectorService, VectorStore


class RehearsingGateway:
    """The rehearsal endpoint's own answers, without HTTP: a function of the request. Counts the distinct requests by purpose."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._variant = "b" if endpoint.model.endswith("_b") else "a"
        self.asked: dict[str, set[str]] = {}

    def text(self, request: ChatRequest, body: Mapping[str, Any]) -> str:
        """What is answered."""
        return answer(body, self._variant)

    async def complete(self, request: ChatRequest) -> Completion:
        prepared = prepare(self._endpoint, request)
        self.asked.setdefault(request.purpose, set()).add(prepared.sha256)
        text, tool = self.text(request, prepared.body), tool_call(prepared.body, self._variant)
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


@dataclass(frozen=True)
class Ended:
    """A cell that was run: how it ended, and its rows in order of decision time."""

    method: str
    result: CellResult
    rows: list[Row]


async def run_here(
    jobs: Sequence[Job],
    scratch: Path,
    *,
    only: Sequence[str] | None = None,
    chat: Callable[[Endpoint], Chat] = RehearsingGateway,
    watch: Callable[[Embedding], Embedding] = lambda embedding: embedding,
) -> list[Ended]:
    """Run jobs as a session would, trainings first, one after the other.

    Args:
        jobs: what to run.
        scratch: directory for everything that is written; an empty one makes the run start from nothing.
        only: leave out all other catalysts of cells that do not learn: their forecasts depend on nothing else.
        chat: answers for a backbone.
        watch: put between the methods and the embedder.

    Raises:
        ConfigError: the embedder has an endpoint, which would have to be asked.
        HarnessError: a training did not end well.
    """
    directory = RunDirectory(scratch)
    vectors: dict[str, Embedding] = {}
    shared: dict[str, Any] = {}
    indexes: dict[int, BenchmarkIndex] = {}
    trained: dict[str, Path] = {}

    def embedding(job: Job) -> Embedding:
        component = job.spec.config.embedder
        if component.name not in vectors:
            embedder = build(component, "embedder")
            if embedder.endpoint is not None:
                raise ConfigError(f"embedder={component.name} has an endpoint; without one use embedder=hashing")
            stored = VectorService(embedder, VectorStore(scratch / f"vectors-{component.name}.sqlite"), None)
            vectors[component.name] = watch(VectorsAtHand(stored.vectors))
        return vectors[component.name]

    async def run(job: Job, memory_file: Path | None) -> Ended:
        spec = job.spec
        store = directory.store(spec.kind, spec.name)
        gateway, embed = chat(spec.config.backbone), embedding(job)
        learner = spec.method.learner()
        memory = None
        if learner is not None and spec.config.memory != "none":
            journal = str(store.directory / "memory.jsonl") if spec.learns else None
            memory = LocalMemory(
                MemoryActor(learner, str(memory_file) if memory_file else None, journal, gateway, embed)
            )
        index = indexes.setdefault(id(job.benchmark), BenchmarkIndex.of(job.benchmark))
        scope = repr(sorted(spec.identity["backbone"].items())) + spec.identity["gate"] + str(id(job.benchmark))
        objects = shared.setdefault(scope, shared_objects(scratch / "artefacts" / str(len(shared))))
        asked = job.benchmark if only is None or spec.learns else asking_only(job.benchmark, only)
        cell = CellRun(spec, replace(index, benchmark=asked), Services(gateway, embed, objects, memory), store)
        result = await cell.run()
        trained[spec.name] = store.directory / "memory.parquet"
        return Ended(spec.method.name, result, store.export())

    for training in trainings_of(jobs):
        ended = await run(training, None)
        if ended.result.status != "complete":
            raise HarnessError(f"the memory {training.spec.name} is {ended.result.status}: {ended.result.reason}")
    return [
        await run(job, (trained[job.memory.name] if job.memory.training else job.memory.file) if job.memory else None)
        for job in jobs
    ]


def asking_only(benchmark: Benchmark, names: Sequence[str]) -> Benchmark:
    """``benchmark`` with no other catalysts than ``names``."""
    cases = benchmark.evaluation
    kept = tuple(c for c in cases.catalysts if c.catalyst_id in names)
    return replace(benchmark, evaluation=replace(cases, catalysts=kept))
