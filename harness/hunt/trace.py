"""What leaves a method in one world: everything it sends, by whom it was asked for, and what it answers.

The run is a real one (``harness.local``); only the method, the gateway and the embedder are wrapped. Each piece of work carries an
errand, the forecast or the record of a memory it is done for, so a request that is sent from deep inside a build is still known
to belong to a decision at T.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from harness.calls import Embedding
from harness.clock import Stamp
from harness.errors import HarnessError
from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion
from harness.gateway.settings import Endpoint
from harness.hunt.canaries import Canary, found_in
from harness.jobs import Job
from harness.learning import commit_key
from harness.local import Ended, RehearsingGateway, run_here
from harness.memory_actor import read_memory
from harness.method import Context, Learner, Lesson, Method, Tools, Vectors
from harness.records import Call, Catalyst, Forecast, ResolvedCase, Status

WAITS = 7
"""Turns of the event loop that a reply is late by, at most, where many are under way at once."""


@dataclass(frozen=True, slots=True)
class Errand:
    """On whose behalf something is done: ``kind`` is forecast, preparation, memory or artefact; it may know what is known at ``at``."""

    kind: str
    name: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt that was sent for a forecast: ``purpose`` is what the method calls it."""

    purpose: str
    text: str


@dataclass(frozen=True)
class Asked:
    """One forecast: its own requests in the order of their texts, and what came of it. ``final``: the model has answered."""

    name: str
    at: datetime
    evaluated: bool
    requests: tuple[Request, ...]
    answer: str
    final: bool


@dataclass(frozen=True, slots=True)
class Sighting:
    """A canary where it may not be: in what was sent or stored (``place``) on behalf of ``name``."""

    canary: Canary
    place: str
    name: str
    line: str


@dataclass(frozen=True, slots=True)
class Operation:
    """A line of a memory's log: when it holds from, for which record, and what it does, hashed."""

    valid_from: datetime
    record: str
    sha256: str


@dataclass(frozen=True)
class Trace:
    """What a method did in one world.

    Attributes:
        asked: forecasts by catalyst id, those of past cases that a memory was trained on included.
        operations: the log of its memory, empty without one.
        sightings: canaries that were seen too early.
        controls: catalysts whose control canary reached a request.
        sent: number of requests and embedded texts by stage.
        failure: why the run could not be made, None if it was.
    """

    asked: Mapping[str, Asked]
    operations: tuple[Operation, ...] = ()
    sightings: tuple[Sighting, ...] = ()
    controls: frozenset[str] = frozenset()
    sent: Mapping[str, int] = field(default_factory=dict)
    failure: str | None = None

    def before(self, since: datetime | None) -> list[Operation]:
        """The operations of the memory that hold from before ``since`` (None: all)."""
        return [op for op in self.operations if since is None or op.valid_from < since]


_errand: ContextVar[Errand | None] = ContextVar("errand", default=None)


@contextmanager
def _on(errand: Errand) -> Iterator[None]:
    token = _errand.set(errand)
    try:
        yield
    finally:
        _errand.reset(token)


class _Journal:
    """Takes down what is sent, as it is sent."""

    def __init__(self, canaries: Mapping[str, Canary]) -> None:
        self.sent: Counter[str] = Counter()
        self.requests: dict[str, list[Request]] = {}
        self.answers: dict[str, Forecast] = {}
        self.cases: dict[str, Catalyst] = {}
        self.sightings: dict[tuple[str, str, str], Sighting] = {}
        self.controls: set[str] = set()
        self._canaries = canaries

    def chat(self, request: ChatRequest) -> str:
        """Take down ``request``; its text."""
        text = "\n\n".join(f"<{m['role']}>\n{m.get('content', '')}{m.get('arguments', '')}" for m in request.messages)
        errand = _errand.get()
        self.sent[request.stage] += 1
        if errand is not None and errand.kind == "forecast" and request.stage == "forecast":
            self.requests.setdefault(errand.name, []).append(Request(request.purpose, text))
        self.look(text, f"{request.stage} request ({request.purpose})", errand)
        return text

    def embedding(self, texts: Sequence[str]) -> None:
        """Take down texts that are to be embedded."""
        self.sent["embedding"] += len(texts)
        for text in texts:
            self.look(text, "embedding request", _errand.get())

    def look(self, text: str, place: str, errand: Errand | None) -> None:
        """Look for canaries in what is sent or stored for ``errand``; without an errand it may hold none at all."""
        for canary in found_in(text, self._canaries):
            if errand is None or canary.late(errand.at):
                name = errand.name if errand else "nobody"
                line = next(line for line in text.splitlines() if canary.word.lower() in line.lower())
                self.sightings.setdefault((canary.word, place, name), Sighting(canary, place, name, line))
            elif errand.name == canary.catalyst_id and canary.known_at == errand.at:
                self.controls.add(canary.catalyst_id)


class _Watched:
    """A method each of whose steps runs under the errand it belongs to; everything else is the method's own."""

    def __init__(self, method: Method, journal: _Journal) -> None:
        self._method: Any = method
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._method, name)

    def learner(self) -> Learner | None:
        learner = self._method.learner()
        return _watched(learner, self._journal) if learner is not None else None

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        self._journal.cases[case.catalyst_id] = case
        with _on(Errand("forecast", case.catalyst_id, case.time.instant)):
            forecast: Forecast = await self._method.forecast(case, ctx)
        self._journal.answers[case.catalyst_id] = forecast
        return forecast

    async def prepare(self, case: Catalyst, ctx: Context) -> None:
        with _on(Errand("preparation", case.catalyst_id, case.time.instant)):
            await self._method.prepare(case, ctx)

    async def propose(self, lesson: Any, tools: Tools) -> Any:
        key = commit_key(lesson.resolved) if isinstance(lesson, Lesson) else lesson.key
        with _on(Errand("memory", key.record_id, key.valid_from)):
            return await self._method.propose(lesson, tools)

    async def apply(self, state: Any, proposal: Any, at: datetime, tools: Tools) -> Any:
        with _on(Errand("memory", f"commit at {at}", at)):
            return await self._method.apply(state, proposal, at, tools)

    async def recall(self, state: Any, question: Any, decision: Stamp, gate: Any, tools: Tools) -> Any:
        return await self._method.recall(state, question, decision, gate, tools)

    async def review(self, state: Any, at: datetime, known: Sequence[ResolvedCase], tools: Tools) -> Any:
        with _on(Errand("memory", f"review at {at}", at)):
            return await self._method.review(state, at, known, tools)


def _watched(method: Method, journal: _Journal) -> Any:
    """``method`` under watch: it has all that the method has, which no type can say."""
    return _Watched(method, journal)


class _WatchingGateway(RehearsingGateway):
    """Takes down every request. With ``unpunctual`` replies come in another order than they were asked for."""

    def __init__(self, endpoint: Endpoint, journal: _Journal, unpunctual: bool) -> None:
        super().__init__(endpoint)
        self._journal = journal
        self._unpunctual = unpunctual

    async def complete(self, request: ChatRequest) -> Completion:
        text = self._journal.chat(request)
        if self._unpunctual:
            for _ in range(hashlib.sha256(text.encode("utf-8", "replace")).digest()[0] % WAITS):
                await asyncio.sleep(0)
        return await super().complete(request)


def traced(
    job: Job,
    scratch: Path,
    *,
    only: Sequence[str] | None = None,
    canaries: Mapping[str, Canary] | None = None,
    at_once: int = 1,
) -> Trace:
    """Run ``job`` in this process and take down everything that leaves.

    Args:
        job: the cell, its benchmark and the training of its memory; ``staged`` makes it for a world.
        scratch: empty directory.
        only: ask no other catalysts (a run that learns asks all).
        canaries: what to look for.
        at_once: forecasts (and records of a memory) under way at a time.
    """
    journal = _Journal(canaries or {})

    def chat(endpoint: Endpoint) -> _WatchingGateway:
        return _WatchingGateway(endpoint, journal, at_once > 1)

    def watch(embedding: Embedding) -> Embedding:
        async def embed(texts: Sequence[str]) -> tuple[Vectors, list[Call]]:
            journal.embedding(texts)
            return await embedding(texts)

        return embed

    try:
        (ended,) = asyncio.run(
            run_here([_under_watch(job, journal, at_once)], scratch, only=only, chat=chat, watch=watch)
        )
    except HarnessError as error:
        return Trace(_asked(journal, None), sent=dict(journal.sent), failure=str(error))
    operations = _operations(scratch, journal)
    _look_at_artefacts(scratch, journal)
    return Trace(
        asked=_asked(journal, ended),
        operations=operations,
        sightings=tuple(journal.sightings.values()),
        controls=frozenset(journal.controls),
        sent=dict(sorted(journal.sent.items())),
        failure=None if ended.rows or job.spec.ingests else f"no forecast was made: {ended.result.reason}",
    )


def _under_watch(job: Job, journal: _Journal, at_once: int) -> Job:
    def spec_of(spec: Any) -> Any:
        backbone = spec.config.backbone.model_copy(update={"max_in_flight": at_once, "transport": "online"})
        config = spec.config.model_copy(update={"backbone": backbone})
        return replace(spec, config=config, method=_watched(spec.method, journal))

    memory = job.memory
    if memory is not None and memory.training is not None:
        memory = replace(memory, training=replace(memory.training, spec=spec_of(memory.training.spec)))
    return replace(job, spec=spec_of(job.spec), memory=memory)


def _asked(journal: _Journal, ended: Ended | None) -> dict[str, Asked]:
    rows = {row["catalyst_id"]: row for row in ended.rows} if ended else {}
    found = {}
    for name in journal.cases:
        row, forecast = rows.get(name), journal.answers.get(name)
        status = row["status"] if row else forecast.status if forecast else Status.BUG
        reason = row["reason"] if row else forecast.reason if forecast else "it ended with an error"
        said = [f"prob_positive {forecast.prob_positive}", f"rationale {forecast.rationale}"] if forecast else []
        found[name] = Asked(
            name,
            journal.cases[name].time.instant,
            row is not None,
            tuple(sorted(journal.requests.get(name, []), key=lambda r: (r.purpose, r.text))),
            "\n".join([f"status {status}", *([f"reason {reason}"] if reason else []), *said]),
            Status(status).final,
        )
    return dict(sorted(found.items(), key=lambda item: (item[1].at, item[0])))


def _operations(scratch: Path, journal: _Journal) -> tuple[Operation, ...]:
    """The logs of the memories on file; canaries are looked for in every value, each as of its own operation."""
    found = []
    for path in sorted([*scratch.glob("memories/*/memory.parquet"), *scratch.glob("cells/*/memory.parquet")]):
        for op in read_memory(path).ops:
            errand = Errand("memory", op.key.record_id, op.key.valid_from)
            journal.look(op.value or "", "memory", errand)
            content = hashlib.sha256(f"{op.op}\0{op.object_id}\0{op.value}".encode("utf-8", "replace")).hexdigest()
            found.append(Operation(op.key.valid_from, op.key.record_id, content))
    return tuple(dict.fromkeys(found))


def _look_at_artefacts(scratch: Path, journal: _Journal) -> None:
    """Files that a method built: they may hold what some decision of the run may know, and nothing later."""
    last = max((case.time.instant for case in journal.cases.values()), default=None)
    if last is None:
        return
    for path in sorted(p for p in (scratch / "artefacts").rglob("*") if p.is_file()):
        content = (
            "\n".join(str(row) for row in pq.read_table(path).to_pylist())
            if path.suffix == ".parquet"
            else path.read_bytes().decode("utf-8", "replace")
        )
        journal.look(content, f"artefact {path.name}", Errand("artefact", "any decision", last))
