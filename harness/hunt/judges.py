"""Judgements over the traces of a hunt: what is the same in two worlds, what differs, and what could not be tried.

PASS means that what was planted showed nowhere in this hunt; it never means that there is no leak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from harness.hunt.canaries import Kind
from harness.hunt.comparing import difference, operations_differ
from harness.hunt.stage import Change, Subject, World, evaluation_since, experience_since
from harness.hunt.trace import Asked, Operation, Trace
from harness.hunt.witness import Witness
from harness.records import Benchmark

Judge = Callable[["Hunt"], "Finding"]


class Verdict(StrEnum):
    """What a detector says."""

    PASS = "PASS"
    FAIL = "FAIL"
    NOT_TESTABLE = "NOT TESTABLE"


@dataclass(frozen=True)
class Hunt:
    """All that is known of one method: its traces by world."""

    subject: Subject
    benchmark: Benchmark
    traces: Mapping[World, Trace]

    @property
    def base(self) -> Trace:
        return self.traces[World(Change.NOTHING)]

    def decision(self, world: World) -> datetime:
        """T of the case that ``world`` is about."""
        cases = self.benchmark.evaluation.catalysts
        return next(c.time.instant for c in cases if c.catalyst_id == world.case)

    def of(self, change: Change) -> dict[World, Trace]:
        """The traces of the worlds of one kind."""
        return {world: trace for world, trace in self.traces.items() if world.change is change}


@dataclass(frozen=True)
class Finding:
    """The verdict of one detector with its reason in words; ``witness`` where it is FAIL."""

    verdict: Verdict
    why: str
    witness: Witness | None = None


def untestable(why: str) -> Finding:
    """Nothing can be said, and why."""
    return Finding(Verdict.NOT_TESTABLE, why)


@dataclass
class Compared:
    """Forecasts of the hunted benchmark held against those of other worlds: how many are the same, and the differences."""

    same: int = 0
    witnesses: list[Witness] = field(default_factory=list)

    def take(self, hunt: Hunt, world: World, asked: Iterable[Asked]) -> Compared:
        """Add the comparison of ``asked`` with ``world``."""
        trace = hunt.traces[world]
        said = f"{world.change} at {world.case}" if world.case else str(world.change)
        if trace.failure is not None:
            self.witnesses.append(Witness("all", said, "run", None, trace.failure))
            return self
        for one in asked:
            other = trace.asked.get(one.name)
            if not one.final and (other is None or not other.final):
                continue  # it fails in both: nothing was asked that could differ
            witness = difference(one, other, said)
            if witness is None:
                self.same += 1
            else:
                self.witnesses.append(witness)
        return self

    def log(self, one: Iterable[Operation], other: Iterable[Operation], world: str) -> None:
        """Add the comparison of two logs of a memory."""
        witness = operations_differ(one, other, world)
        if witness is not None:
            self.witnesses.append(witness)

    def finding(self, hunt: Hunt, passed: str | None = None) -> Finding:
        """FAIL with the first witness, or PASS with what was the same."""
        total = self.same + len(self.witnesses)
        if self.witnesses:
            first = self.witnesses[0]
            return Finding(
                Verdict.FAIL, f"{len(self.witnesses)} of {total} comparisons differ; the first: {first.world}", first
            )
        if not total and passed is None:
            return untestable("no forecast could be compared")
        return Finding(Verdict.PASS, passed or f"{self.same} of {self.same} forecasts the same ({_sent(hunt)})")


def _evaluated(hunt: Hunt) -> list[Asked]:
    return [asked for asked in hunt.base.asked.values() if asked.evaluated]


def one_by_one(*changes: Change) -> Judge:
    """Each asked case in a world of its own, that of what its decision may know."""

    def judge(hunt: Hunt) -> Finding:
        found = [world for change in changes for world in hunt.of(change)]
        if not found:
            return untestable("nothing in the benchmark is later than the decisions")
        compared = Compared()
        for world in found:
            compared.take(hunt, world, [a for a in _evaluated(hunt) if a.name == world.case])
            since = hunt.decision(world)
            compared.log(hunt.base.before(since), hunt.traces[world].before(since), f"{world.change} at {world.case}")
        return compared.finding(hunt)

    return judge


def all_at_once(change: Change) -> Judge:
    """All forecasts, and the memory's log, in one world."""

    def judge(hunt: Hunt) -> Finding:
        world = World(change)
        compared = Compared().take(hunt, world, hunt.base.asked.values())
        if change is not Change.TWINS:  # copies are records of a memory too, later ones
            compared.log(hunt.base.operations, hunt.traces[world].operations, str(change))
        return compared.finding(hunt)

    return judge


def _sent(hunt: Hunt) -> str:
    """What a method sends, in words: a PASS over nothing is worth less."""
    sent = hunt.base.sent
    if not sent:
        return "answers only: it sends nothing"
    return ", ".join(f"{count} {stage}" for stage, count in sent.items()) + " sent"


def frozen_clock(hunt: Hunt) -> Finding:
    """Another day changes nothing, and nowhere stands the real one."""
    finding = all_at_once(Change.CLOCK)(hunt)
    read = hunt.base.real_day
    if finding.verdict is Verdict.FAIL or read is None:
        return finding
    return Finding(
        Verdict.FAIL, f"the real day stands in a {read.place}, past the clock that was set: it was read in C", read
    )


def twins(hunt: Hunt) -> Finding:
    """Copies after every decision change no forecast."""
    if not any(d.time for d in hunt.benchmark.evaluation.corpus.documents):
        return untestable("there are no documents to copy")
    return all_at_once(Change.TWINS)(hunt)


def many(hunt: Hunt) -> Finding:
    """Forecasts do not depend on how many are under way, nor on their order."""
    if len(hunt.benchmark.evaluation.catalysts) < 2:
        return untestable("one catalyst has no order")
    return all_at_once(Change.MANY)(hunt)


def canaries(hunt: Hunt) -> Finding:
    """No canary was seen too early, and the controls were seen at all."""
    trace = hunt.traces[World(Change.CANARIES)]
    for sighting in trace.sightings:
        canary = sighting.canary
        witness = Witness(
            sighting.name, f"canary of {canary.catalyst_id}: {canary.kind}", sighting.place, None, sighting.line[:300]
        )
        return Finding(
            Verdict.FAIL,
            f"{len(trace.sightings)} sightings; the first: a canary {canary.kind} in a {sighting.place}",
            witness,
        )
    if trace.failure is not None:
        return Finding(Verdict.FAIL, f"with canaries the method fails: {trace.failure}")
    if not trace.sent:
        return untestable("it sends and stores nothing that could hold a document")
    if not trace.controls:
        return untestable("not even the control, a document at T itself, reached a request")
    asked = len(hunt.benchmark.evaluation.catalysts)
    return Finding(
        Verdict.PASS, f"{asked * (len(Kind) - 1)} canaries unseen; the control seen by {len(trace.controls)} of {asked}"
    )


def evaluation_labels(hunt: Hunt) -> Finding:
    """Labels of the evaluation set shape nothing, or, where they are learned from, nothing before they were known."""
    since = evaluation_since(hunt.subject, hunt.benchmark)
    asked = [a for a in hunt.base.asked.values() if since is None or a.at <= since]
    compared = Compared()
    for world in (World(Change.EVALUATION), World(Change.EVERY_OTHER)):
        compared.take(hunt, world, asked)
        compared.log(hunt.base.before(since), hunt.traces[world].before(since), str(world.change))
    return compared.finding(hunt)


def experience_labels(hunt: Hunt) -> Finding:
    """Past outcomes shape nothing before they were known, and something after."""
    if hunt.benchmark.experience is None:
        return untestable("the benchmark has no experience")
    since, world = experience_since(hunt.benchmark), World(Change.EXPERIENCE)
    base, turned = hunt.base, hunt.traces[world]
    early, learned_early = [a for a in base.asked.values() if a.at <= since], base.before(since)
    compared = Compared().take(hunt, world, early)
    compared.log(learned_early, turned.before(since), str(world.change))
    if compared.witnesses:
        return compared.finding(hunt)
    late = [a for a in base.asked.values() if a.at > since]
    moved = sum(difference(a, turned.asked.get(a.name), "") is not None for a in late)
    learned = operations_differ(base.operations, turned.operations, "") is not None
    if not moved and not learned:
        return untestable("past outcomes reach neither a prompt, nor an answer, nor a memory")
    if not early and not learned_early:
        return untestable(
            "all past outcomes were known before the first forecast, and no memory was trained on them in order"
        )
    return compared.finding(
        hunt,
        f"{len(early)} forecasts and {len(learned_early)} operations before {since:%Y-%m-%d} the same; after it "
        f"{moved} of {len(late)} forecasts{' and the memory' if learned else ''} follow the labels",
    )


def outside(hunt: Hunt) -> Finding:
    """Nothing was reached past the context, in any world."""
    for world, trace in hunt.traces.items():
        if trace.reached:
            witness = Witness("all", str(world.change), "outside", None, trace.reached[0])
            return Finding(Verdict.FAIL, f"reached past its context: {'; '.join(trace.reached[:3])}", witness)
    return Finding(Verdict.PASS, f"no file of the benchmark, no connection and no program in {len(hunt.traces)} worlds")
