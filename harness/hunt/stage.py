"""The worlds of a hunt, and a run of one method in one of them."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import time_machine

from harness.hunt import worlds
from harness.hunt.canaries import plant, with_late
from harness.hunt.clocks import real_day_in, real_days
from harness.hunt.trace import Trace, traced
from harness.jobs import CellSpec, Job, TrainedMemory, training_benchmark
from harness.records import Benchmark, Catalyst

MANY = 16
"""Forecasts under way at a time in the world of many workers."""
TODAY = datetime(2026, 2, 27, 12, 30, 15, tzinfo=UTC)
ANOTHER_DAY = datetime(2003, 5, 6, 7, 8, 9, tzinfo=UTC)
"""The clock stands still in every world, at the same time in all but one: else a slow run would look like a leak."""


class Change(StrEnum):
    """In what a world differs from the hunted benchmark, or a run in it from the first."""

    NOTHING = "as it is"
    AGAIN = "as it is, once more"
    CUT = "the future deleted"
    SHUFFLED = "later texts shuffled, others added"
    CORRUPTED = "later texts corrupted, others added"
    CANARIES = "canaries planted"
    EVALUATION = "evaluation labels turned"
    EVERY_OTHER = "every other evaluation label turned"
    EXPERIENCE = "experience labels turned"
    CLOCK = "another day on the clock"
    ROWS = "rows shuffled"
    MANY = "many at once, last first"
    TWINS = "copies planted after every decision"


ONE_CASE: Mapping[Change, Callable[[Benchmark, Catalyst], Benchmark]] = {
    Change.CUT: worlds.cut,
    Change.SHUFFLED: lambda benchmark, case: with_late(worlds.shuffled_future(benchmark, case), case),
    Change.CORRUPTED: lambda benchmark, case: with_late(worlds.corrupted_future(benchmark, case), case),
}
"""Worlds in which one case is asked, as of whose decision the benchmark is changed."""


@dataclass(frozen=True, slots=True)
class World:
    """A change, and the case it is about where it is about one."""

    change: Change
    case: str | None = None


@dataclass(frozen=True)
class Subject:
    """What is hunted: a cell without its benchmark, the training of its memory or the file it comes from."""

    spec: CellSpec
    training: CellSpec | None = None
    file: Path | None = None

    @classmethod
    def of(cls, job: Job) -> Subject:
        """The subject of a planned job."""
        memory = job.memory
        training = memory.training.spec if memory and memory.training else None
        return cls(job.spec, training, memory.file if memory else None)

    @property
    def online(self) -> bool:
        """Whether outcomes of the evaluation set may be learned from."""
        return self.spec.config.memory == "online"

    def on(self, benchmark: Benchmark) -> Job:
        """The job on ``benchmark``, its memory trained on the same."""
        memory = TrainedMemory(None, self.file) if self.file else None
        if self.training is not None:
            past = benchmark.experience
            taught = benchmark if self.training.ingests or past is None else training_benchmark(benchmark, past)
            memory = TrainedMemory(Job(self.training, taught), None)
        return Job(self.spec, benchmark, memory)


def worlds_of(benchmark: Benchmark) -> list[World]:
    """All worlds of a hunt through ``benchmark``; those that are the hunted one all over again are left out."""
    found = [World(change) for change in Change if change not in ONE_CASE]
    if benchmark.experience is None:
        found.remove(World(Change.EXPERIENCE))
    for number, case in enumerate(benchmark.evaluation.catalysts):
        later = worlds.later_documents(benchmark, case.time.instant)
        if later or worlds.unknown_outcomes(benchmark, case.time.instant):
            found.append(World(Change.CUT, case.catalyst_id))
        if later:
            other = Change.SHUFFLED if number % 2 == 0 and later > 1 else Change.CORRUPTED
            found.append(World(other, case.catalyst_id))
    return found


def evaluation_since(subject: Subject, benchmark: Benchmark) -> datetime | None:
    """From when on evaluated outcomes are turned: always (None), or those unknown in the middle where they are learned from."""
    cases = benchmark.evaluation.catalysts
    return cases[len(cases) // 2].time.instant if subject.online else None


def experience_since(benchmark: Benchmark) -> datetime:
    """From when on past outcomes are turned: the last decision that does not know all of them, else the middle of them."""
    decisions = [c.time.instant for c in benchmark.evaluation.catalysts]
    between = [at for at in decisions if worlds.unknown_outcomes(benchmark, at)]
    if between:
        return max(between)
    past = benchmark.experience
    assert past is not None
    known = sorted(past.outcomes[c.catalyst_id].resolve_at for c in past.catalysts)
    return known[len(known) // 2]


def run_world(subject: Subject, benchmark: Benchmark, world: World) -> Trace:
    """Run ``subject`` in ``world``, made of the hunted ``benchmark``, from nothing.

    What the method object kept of an earlier run stays behind: each run has a copy of its own.
    """
    subject = copy.deepcopy(subject)
    canaries = None
    only = None
    if world.case is not None:
        case = next(c for c in benchmark.evaluation.catalysts if c.catalyst_id == world.case)
        benchmark = ONE_CASE[world.change](benchmark, case)
        only = [world.case]
    elif world.change is Change.CANARIES:
        benchmark, canaries = plant(benchmark)
    elif world.change is Change.EVALUATION:
        benchmark = worlds.evaluation_turned(benchmark, evaluation_since(subject, benchmark))
    elif world.change is Change.EVERY_OTHER:
        benchmark = worlds.evaluation_turned(benchmark, evaluation_since(subject, benchmark), step=2)
    elif world.change is Change.EXPERIENCE:
        benchmark = worlds.experience_turned(benchmark, experience_since(benchmark))
    elif world.change is Change.ROWS:
        benchmark = worlds.rows_shuffled(benchmark)
    elif world.change is Change.TWINS:
        benchmark = worlds.with_twins(benchmark)
    elif world.change is Change.MANY:
        benchmark = worlds.last_first(benchmark)
    days = real_days()
    at_once = MANY if world.change is Change.MANY else 1
    clock = time_machine.travel(ANOTHER_DAY if world.change is Change.CLOCK else TODAY, tick=False)
    with tempfile.TemporaryDirectory(prefix="hunt-") as scratch, clock:
        job = _unlimited(subject).on(benchmark)
        trace = traced(job, Path(scratch), only=only, canaries=canaries, at_once=at_once)
    return replace(trace, real_day=real_day_in(trace, benchmark, days)) if world.change is Change.NOTHING else trace


def _unlimited(subject: Subject) -> Subject:
    """``subject`` asked about every catalyst of the world once: the hunted benchmark has been limited already."""
    run = subject.spec.config.run.model_copy(update={"limit": None, "epochs": 1})
    config = subject.spec.config.model_copy(update={"run": run})
    return replace(subject, spec=replace(subject.spec, config=config))
