"""The detectors: what each sees, what it cannot see, and its judgement over the traces of a hunt.

A detector says PASS, FAIL or NOT TESTABLE. PASS means that the difference it plants showed nowhere in this hunt; it never means
that there is no leak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from harness.hunt.canaries import Kind
from harness.hunt.comparing import Witness, difference, operations_differ
from harness.hunt.stage import Change, Subject, World, evaluation_since, experience_since
from harness.hunt.trace import Asked, Trace
from harness.records import Benchmark


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


def _untestable(why: str) -> Finding:
    return Finding(Verdict.NOT_TESTABLE, why)


@dataclass(frozen=True)
class Detector:
    """A kind of leak and how it is looked for. ``short`` is its name where there is little room."""

    name: str
    short: str
    sees: str
    blind_to: str
    judge: Callable[[Hunt], Finding]

    def finding(self, hunt: Hunt) -> Finding:
        """The judgement, unless the method cannot even be run as it is."""
        if hunt.base.failure is not None:
            return _untestable(f"the method could not be run: {hunt.base.failure}")
        if not any(asked.final for asked in hunt.base.asked.values()):
            said = next((asked.answer.replace("\n", "; ") for asked in hunt.base.asked.values()), "nothing was asked")
            if "GateError" not in said:
                return _untestable(f"no forecast was answered: {said}")
        return self.judge(hunt)


def _compared(hunt: Hunt, world: World, names: Iterable[Asked]) -> tuple[int, Finding | None]:
    """How many forecasts of the hunted benchmark are the same in ``world``, and the finding against the first that is not."""
    trace, same = hunt.traces[world], 0
    said = f"{world.change} at {world.case}" if world.case else str(world.change)
    if trace.failure is not None:
        return 0, Finding(
            Verdict.FAIL,
            f"with {said} the method fails: {trace.failure}",
            Witness("all", said, "run", None, trace.failure),
        )
    for asked in names:
        other = trace.asked.get(asked.name)
        if not asked.final and (other is None or not other.final):
            continue  # it fails in both: nothing was asked that could differ
        witness = difference(asked, other, said)
        if witness is not None:
            return same, Finding(Verdict.FAIL, f"the forecast of {asked.name} depends on it ({said})", witness)
        same += 1
    return same, None


def _evaluated(hunt: Hunt) -> list[Asked]:
    return [asked for asked in hunt.base.asked.values() if asked.evaluated]


def _one_by_one(*changes: Change) -> Callable[[Hunt], Finding]:
    """Each asked case in a world of its own."""

    def judge(hunt: Hunt) -> Finding:
        found = [world for change in changes for world in hunt.of(change)]
        if not found:
            return _untestable("nothing in the benchmark is later than the decisions")
        total = 0
        for world in found:
            same, finding = _compared(hunt, world, [a for a in _evaluated(hunt) if a.name == world.case])
            if finding is not None:
                return finding
            total += same
            since = hunt.decision(world)
            witness = operations_differ(hunt.base.before(since), hunt.traces[world].before(since), str(world.change))
            if witness is not None:
                return Finding(Verdict.FAIL, f"the memory as of {since} depends on it ({world.change})", witness)
        return Finding(Verdict.PASS, f"{total} of {total} forecasts the same ({_sent(hunt)})")

    return judge


def _all_at_once(change: Change) -> Callable[[Hunt], Finding]:
    """All forecasts, and the memory's log, in one world."""

    def judge(hunt: Hunt) -> Finding:
        world = World(change)
        same, finding = _compared(hunt, world, hunt.base.asked.values())
        if finding is not None:
            return finding
        witness = operations_differ(hunt.base.operations, hunt.traces[world].operations, str(change))
        if witness is not None and change is not Change.TWINS:  # copies are records of a memory too, later ones
            return Finding(Verdict.FAIL, f"the memory depends on it ({change})", witness)
        return Finding(Verdict.PASS, f"{same} of {same} forecasts the same ({_sent(hunt)})")

    return judge


def _sent(hunt: Hunt) -> str:
    """What a method sends, in words: a PASS over nothing is worth less."""
    sent = hunt.base.sent
    if not sent:
        return "answers only: it sends nothing"
    return ", ".join(f"{count} {stage}" for stage, count in sent.items()) + " sent"


def _twins(hunt: Hunt) -> Finding:
    if not any(d.time for d in hunt.benchmark.evaluation.corpus.documents):
        return _untestable("there are no documents to copy")
    return _all_at_once(Change.TWINS)(hunt)


def _many(hunt: Hunt) -> Finding:
    if len(hunt.benchmark.evaluation.catalysts) < 2:
        return _untestable("one catalyst has no order")
    return _all_at_once(Change.MANY)(hunt)


def _canaries(hunt: Hunt) -> Finding:
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
        return _untestable("it sends and stores nothing that could hold a document")
    if not trace.controls:
        return _untestable("not even the control, a document at T itself, reached a request")
    asked = len(hunt.benchmark.evaluation.catalysts)
    return Finding(
        Verdict.PASS, f"{asked * (len(Kind) - 1)} canaries unseen; the control seen by {len(trace.controls)} of {asked}"
    )


def _evaluation_labels(hunt: Hunt) -> Finding:
    since, world = evaluation_since(hunt.subject, hunt.benchmark), World(Change.EVALUATION)
    same, finding = _compared(hunt, world, [a for a in hunt.base.asked.values() if since is None or a.at <= since])
    if finding is not None:
        return finding
    witness = operations_differ(hunt.base.before(since), hunt.traces[world].before(since), str(world.change))
    if witness is not None:
        return Finding(Verdict.FAIL, "the memory holds an outcome of the evaluation set", witness)
    return Finding(Verdict.PASS, f"{same} of {same} forecasts the same ({_sent(hunt)})")


def _experience_labels(hunt: Hunt) -> Finding:
    if hunt.benchmark.experience is None:
        return _untestable("the benchmark has no experience")
    since, world = experience_since(hunt.benchmark), World(Change.EXPERIENCE)
    base, turned = hunt.base, hunt.traces[world]
    before = base.before(since)
    early = [a for a in base.asked.values() if a.at <= since]
    same, finding = _compared(hunt, world, early)
    if finding is not None:
        return finding
    witness = operations_differ(before, turned.before(since), str(world.change))
    if witness is not None:
        return Finding(Verdict.FAIL, "the memory holds an outcome before it was known", witness)
    late = [a for a in base.asked.values() if a.at > since]
    moved = sum(difference(a, turned.asked.get(a.name), "") is not None for a in late)
    learned = operations_differ(base.operations, turned.operations, "") is not None
    if not moved and not learned:
        return _untestable("past outcomes reach neither a prompt, nor an answer, nor a memory")
    if not early and not before:
        return _untestable(
            "every past outcome was known before the first forecast, and no memory was trained on them in order"
        )
    return Finding(
        Verdict.PASS,
        f"{same} forecasts and {len(before)} operations before {since:%Y-%m-%d} the same; after it "
        f"{moved} of {len(late)} forecasts{' and the memory' if learned else ''} follow the labels",
    )


DETECTORS: tuple[Detector, ...] = (
    Detector(
        "truncation",
        "trunc",
        "anything after T (documents, undated ones, outcomes not known yet) that shapes what is asked or answered at T: the future is "
        "deleted from files and memory, everything is built anew, the forecast must be the same to the byte",
        "what is known at T by the files' own stamps but was not in truth; later records that happen to change nothing in these cases; "
        "what an endpoint's model itself remembers",
        _one_by_one(Change.CUT),
    ),
    Detector(
        "future perturbation",
        "pert",
        "the content of later texts: they are shuffled between documents or scrambled, their number and stamps stay",
        "leaks of the number, the stamps or the stocks of later documents (truncation sees those)",
        _one_by_one(Change.SHUFFLED, Change.CORRUPTED),
    ),
    Detector(
        "canaries",
        "canary",
        "a late, undated, wrongly stamped or foreign-zone document in any prompt, embedding request, memory operation or artefact file, "
        "even where it changes no forecast",
        "texts that are used but not copied (a count, a vector, a paraphrase that drops the canary's word); documents of other stocks",
        _canaries,
    ),
    Detector(
        "evaluation labels",
        "eval",
        "the outcome of an asked case, or of another one, in a prompt, an answer or a memory: all labels are turned round",
        "outcomes that stand in the texts themselves, and what the model remembers of them",
        _evaluation_labels,
    ),
    Detector(
        "experience labels",
        "exper",
        "a past outcome used before it was known: labels from one moment on are turned round, everything before it must be the same and "
        "something after it must follow the labels",
        "whether a gain of the memory vanishes with wrong labels: that needs a real model; the rehearsal endpoint has no gain to lose",
        _experience_labels,
    ),
    Detector(
        "frozen clock",
        "clock",
        "today's date and time in a prompt, an answer or a memory: the same run on another day",
        "a clock read in another process or by the endpoint",
        _all_at_once(Change.CLOCK),
    ),
    Detector(
        "row order",
        "rows",
        "the order of rows in the files: documents, securities and outcomes are shuffled",
        "the order of catalysts, which loaders fix",
        _all_at_once(Change.ROWS),
    ),
    Detector(
        "workers",
        "work",
        "state that one forecast leaves for another: one at a time in order against many at once, last first, replies out of order",
        "state kept outside the process; races that this order of events does not meet",
        _many,
    ),
    Detector(
        "near-duplicates",
        "dupl",
        "later copies and near-copies of documents visible at T that displace or multiply them",
        "copies between T and the last decision; texts that say the same in other words",
        _twins,
    ),
)


def judged(hunt: Hunt) -> dict[str, Finding]:
    """The finding of every detector, by its name."""
    return {detector.name: detector.finding(hunt) for detector in DETECTORS}
