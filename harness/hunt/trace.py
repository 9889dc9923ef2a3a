"""What leaves a method in one world: everything it sends, by whom it was asked for, and what it answers.

The run is a real one (``harness.local``); only the method, the gateway and the embedder are wrapped (``harness.hunt.watching``).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq

from harness.calls import Embedding
from harness.errors import HarnessError
from harness.gateway.settings import Endpoint
from harness.hunt.canaries import Canary
from harness.hunt.outside import watching
from harness.hunt.watching import Errand, Journal, Request, Sighting, WatchingGateway, watched
from harness.hunt.witness import Witness
from harness.jobs import CellSpec, Job
from harness.local import Ended, run_here
from harness.memory_file import read_memory
from harness.method import Vectors
from harness.records import Call, Status


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
        reached: files of the benchmark, connections and programs that it reached by itself.
        real_day: a line that holds the real day although the world's clock shows another (``harness.hunt.clocks``).
        failure: why the run could not be made, None if it was.
    """

    asked: Mapping[str, Asked]
    operations: tuple[Operation, ...] = ()
    sightings: tuple[Sighting, ...] = ()
    controls: frozenset[str] = frozenset()
    sent: Mapping[str, int] = field(default_factory=dict)
    reached: tuple[str, ...] = ()
    real_day: Witness | None = None
    failure: str | None = None

    def before(self, since: datetime | None) -> list[Operation]:
        """The operations of the memory that hold from before ``since`` (None: all)."""
        return [op for op in self.operations if since is None or op.valid_from < since]


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
        job: the cell, its benchmark and the training of its memory; ``harness.hunt.stage.Subject.on`` makes it for a world.
        scratch: empty directory.
        only: ask no other catalysts (a run that learns asks all).
        canaries: what to look for.
        at_once: forecasts (and records of a memory) under way at a time.
    """
    journal = Journal(canaries or {})

    def chat(endpoint: Endpoint) -> WatchingGateway:
        return WatchingGateway(endpoint, journal, at_once > 1)

    def watch(embedding: Embedding) -> Embedding:
        async def embed(texts: Sequence[str]) -> tuple[Vectors, list[Call]]:
            journal.embedding(texts)
            return await embedding(texts)

        return embed

    ended, failure = None, None
    watched_job = _under_watch(job, journal, at_once)
    files = [file.path for file in job.benchmark.files]
    try:
        with watching(files) as reached:
            (ended,) = asyncio.run(run_here([watched_job], scratch, only=only, chat=chat, watch=watch))
        if not ended.rows:
            failure = f"no forecast was made: {ended.result.reason}"
    except HarnessError as error:
        failure = str(error)
    operations = _operations(scratch, journal)
    _look_at_artefacts(scratch, journal)
    return Trace(
        asked=_asked(journal, ended),
        operations=operations,
        sightings=tuple(journal.sightings.values()),
        controls=frozenset(journal.controls),
        sent=dict(sorted(journal.sent.items())),
        reached=tuple(reached),
        failure=failure,
    )


def _under_watch(job: Job, journal: Journal, at_once: int) -> Job:
    def spec_of(spec: CellSpec) -> CellSpec:
        backbone = spec.config.backbone.model_copy(update={"max_in_flight": at_once, "transport": "online"})
        config = spec.config.model_copy(update={"backbone": backbone})
        return replace(spec, config=config, method=watched(spec.method, journal))

    memory = job.memory
    if memory is not None and memory.training is not None:
        memory = replace(memory, training=replace(memory.training, spec=spec_of(memory.training.spec)))
    return replace(job, spec=spec_of(job.spec), memory=memory)


def _asked(journal: Journal, ended: Ended | None) -> dict[str, Asked]:
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


def _operations(scratch: Path, journal: Journal) -> tuple[Operation, ...]:
    """The logs of the memories on file; canaries are looked for in every value, each as of its own operation."""
    found = []
    for path in sorted([*scratch.glob("memories/*/memory.parquet"), *scratch.glob("cells/*/memory.parquet")]):
        for op in read_memory(path).ops:
            errand = Errand("memory", op.key.record_id, op.key.valid_from)
            journal.look(op.value or "", "memory", errand)
            content = hashlib.sha256(f"{op.op}\0{op.object_id}\0{op.value}".encode("utf-8", "replace")).hexdigest()
            found.append(Operation(op.key.valid_from, op.key.record_id, content))
    return tuple(dict.fromkeys(found))


def _look_at_artefacts(scratch: Path, journal: Journal) -> None:
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
