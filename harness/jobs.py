"""What is to be run: cells and the trainings they wait for, with the benchmark they run on; how each is doing, how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from harness.config import CellConfig
from harness.evidence import EvidenceIndex, ExperienceIndex, Gate
from harness.method import Method
from harness.records import DROPPED, Benchmark, Call, CaseSet, Catalyst, Document, total


@dataclass(frozen=True)
class CellSpec:
    """A cell, or the training of a memory: its name, configuration, identity and method.

    Attributes:
        kind: ``cells`` or ``memories``: the directory it is stored in, below the run directory.
        learns: whether this run commits what it learns (training, and ``memory=online``).
        starts_empty: whether it starts without a trained memory.
        fed_until: records that become known then or later are not fed to a memory: no forecast that waits for it may know
            them. None: all are. A smaller bound gives a prefix of the same log, so it is no part of what the memory is.
    """

    name: str
    config: CellConfig
    identity: Mapping[str, Any]
    method: Method
    kind: Literal["cells", "memories"] = "cells"
    learns: bool = False
    starts_empty: bool = True
    fed_until: datetime | None = None

    @property
    def sharing(self) -> list[Any]:
        """What cells must have in common to share what is built from their data."""
        return [self.identity[key] for key in ("backbone", "embedder", "gate", "benchmark")]

    @property
    def ingests(self) -> bool:
        """Whether this run fills a memory with records, and forecasts nothing."""
        learner = self.method.learner()
        return self.kind == "memories" and learner is not None and learner.learns_from == "records"


@dataclass(frozen=True)
class TrainedMemory:
    """Where a cell's memory comes from: a training of this session, or a file that someone shared."""

    training: Job | None
    file: Path | None

    @property
    def name(self) -> str:
        if self.training:
            return self.training.spec.name
        return str(self.file)


@dataclass(frozen=True)
class Job:
    """A cell with the benchmark it runs on, and the memory it starts from (None for a method that does not learn)."""

    spec: CellSpec
    benchmark: Benchmark
    memory: TrainedMemory | None = None

    @cached_property
    def plan(self) -> list[tuple[Catalyst, int]]:
        """The (catalyst, epoch) pairs to forecast."""
        return planned(self.benchmark, self.spec)

    @property
    def reads_until(self) -> datetime | None:
        """No forecast of it knows a record that becomes known then or later; None where it may know all.

        Without the strict gate a memory is read as it is in the end.
        """
        if self.spec.config.gate is not Gate.STRICT:
            return None
        return max(case.time.instant for case, _ in self.plan)


@dataclass(frozen=True)
class CellResult:
    """How a cell ended: ``complete``, ``incomplete`` or ``failed``, why, what to do, and whether it was for want of money.

    ``met``: what else the user should know of it, each with how often and where.
    """

    cell: str
    status: str
    counts: Mapping[str, int]
    n: int
    resumed: int
    reason: str | None = None
    remedy: str | None = None
    budget: bool = False
    met: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Progress:
    """Counts of one cell, read by the session while it runs. ``frontier`` and ``front`` are of runs that learn.

    ``in_flight`` forecasts are under way: some of their calls are in the air, others wait for their turn.
    ``cost_usd`` is None from the first call on whose cost is not known; ``backbone`` None for a method without calls.
    """

    total: int = 0
    resumed: int = 0
    in_flight: int = 0
    done: Counter[str] = field(default_factory=Counter)
    cost_usd: float | None = 0.0
    state: str = "waiting"
    backbone: str | None = None
    frontier: datetime | None = None
    front: int = 0

    @property
    def answered(self) -> int:
        return self.resumed + sum(self.done.values())

    def count(self, status: str) -> None:
        """One more is done."""
        self.done[str(status)] += 1

    def pay(self, calls: Sequence[Call]) -> None:
        """Add what ``calls`` have cost."""
        self.cost_usd = total((self.cost_usd, *(call.cost_usd for call in calls)))


@dataclass(frozen=True)
class BenchmarkIndex:
    """A benchmark ready to be viewed as of any catalyst; built once a process."""

    benchmark: Benchmark
    evidence: EvidenceIndex
    experience: Mapping[str, ExperienceIndex] = field(default_factory=dict)

    @classmethod
    def of(cls, benchmark: Benchmark) -> BenchmarkIndex:
        """Sort, remove copies, and find every past case's focal document."""
        evaluation = EvidenceIndex(benchmark.evaluation.corpus, benchmark.drop_copies)
        past = benchmark.experience
        learned = [(past, EvidenceIndex(past.corpus, benchmark.drop_copies))] if past else []
        experience = {
            "none": ExperienceIndex(),
            "frozen": ExperienceIndex(*learned),
            "online": ExperienceIndex(*learned, (benchmark.evaluation, evaluation)),
        }
        return cls(benchmark, evaluation, experience)

    @cached_property
    def past(self) -> BenchmarkIndex | None:
        """The experience split as something to be run; None where there is none."""
        experience = self.benchmark.experience
        return BenchmarkIndex.of(training_benchmark(self.benchmark, experience)) if experience else None

    def focal(self, case: Catalyst) -> Document | None:
        """The focal document of ``case``."""
        return self.evidence.as_of(case.stock_id, case.time, Gate.STRICT).focal()


def trainings_of(jobs: Sequence[Job]) -> list[Job]:
    """The trainings that ``jobs`` wait for, each once."""
    return list({job.memory.name: job.memory.training for job in jobs if job.memory and job.memory.training}.values())


def planned(benchmark: Benchmark, spec: CellSpec) -> list[tuple[Catalyst, int]]:
    """The forecasts of a run in order of decision time: the first ``run.limit`` catalysts, each ``run.epochs`` times.

    Catalysts inside the deadband are never scored, so they are not asked. Of the others a probe chooses its sample before the
    limit counts. A training forecasts the cases that it learns from; one that is fed records forecasts nothing.
    """
    if spec.ingests:
        return []
    if spec.kind == "memories":
        return [(case, 0) for case in taught(BenchmarkIndex.of(benchmark), spec.method)]
    cases = benchmark.evaluation
    asked = [c for c in cases.catalysts if cases.outcomes[c.catalyst_id].label != DROPPED]
    chosen = spec.method.chosen(asked, spec.config.run.seed)
    return [(case, epoch) for case in chosen[: spec.config.run.limit] for epoch in range(spec.config.run.epochs)]


def taught(index: BenchmarkIndex, method: Method) -> list[Catalyst]:
    """The cases of an experience split that ``method`` learns from: with a focal document, up to its ``train_limit``."""
    learner = method.learner()
    cases = index.benchmark.evaluation
    known = [c for c in cases.catalysts if cases.outcomes[c.catalyst_id].teaches]
    return [c for c in known[: learner.train_limit if learner else None] if index.focal(c) is not None]


def training_benchmark(benchmark: Benchmark, experience: CaseSet) -> Benchmark:
    """The experience split as something to be run: its cases are forecast and learned from, nothing precedes them."""
    return Benchmark(
        name=experience.name,
        evaluation=experience,
        experience=None,
        drop_copies=benchmark.drop_copies,
        files=benchmark.files,
    )
