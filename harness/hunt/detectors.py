"""The detectors: what each sees, what it cannot see, and its judgement over the traces of a hunt."""

from __future__ import annotations

from dataclasses import dataclass

from harness.hunt import judges
from harness.hunt.judges import Finding, Hunt, Judge
from harness.hunt.stage import Change


@dataclass(frozen=True)
class Detector:
    """A kind of leak and how it is looked for. ``short`` is its name where there is little room."""

    name: str
    short: str
    sees: str
    blind_to: str
    judge: Judge

    def finding(self, hunt: Hunt) -> Finding:
        """The judgement, unless the method cannot even be run as it is."""
        if hunt.base.failure is not None:
            return judges.untestable(f"the method could not be run: {hunt.base.failure}")
        if not any(asked.final for asked in hunt.base.asked.values()):
            said = next((asked.answer.replace("\n", "; ") for asked in hunt.base.asked.values()), "nothing was asked")
            if "GateError" not in said:
                return judges.untestable(f"no forecast was answered: {said}")
        return self.judge(hunt)


DETECTORS: tuple[Detector, ...] = (
    Detector(
        "repetition",
        "again",
        "a run that is not the same twice (chance without a seed): what the other detectors say of such a method may be chance as well",
        "what two runs happen to have in common, such as the order of a set of texts where both fall to one process",
        judges.all_at_once(Change.AGAIN),
    ),
    Detector(
        "truncation",
        "trunc",
        "anything after T (documents, undated ones, outcomes not known yet) that shapes what is asked or answered at T: the future is "
        "deleted from files and memory, everything is built anew, the forecast must be the same to the byte",
        "what is known at T by the files' own stamps but was not in truth; later records that happen to change nothing in these cases; "
        "what an endpoint's model itself remembers",
        judges.one_by_one(Change.CUT),
    ),
    Detector(
        "future perturbation",
        "pert",
        "the content of later texts: they are shuffled between documents or scrambled, and others are added about the asked stock (after T, "
        "undated, with a malformed stamp, of another zone): used in any form, counted or encoded, they change a request",
        "the stamps and the stocks of the later documents that were there already (truncation sees those)",
        judges.one_by_one(Change.SHUFFLED, Change.CORRUPTED),
    ),
    Detector(
        "canaries",
        "canary",
        "a late, undated, wrongly stamped or foreign-zone document in any prompt, embedding request, answer, memory operation or artefact file, "
        "even where it changes no forecast",
        "texts that are used but not copied as they are (a count, a vector, a code, a part without the canary's word: perturbation sees "
        "those); documents of other stocks",
        judges.canaries,
    ),
    Detector(
        "evaluation labels",
        "eval",
        "the outcome of an asked case, or of another one, its sign or its size, in a prompt, an answer or a memory: all are turned round, then "
        "every other one",
        "outcomes that stand in the texts themselves, that the method reads from a file of its own, or that the model remembers; when an "
        "outcome became known",
        judges.evaluation_labels,
    ),
    Detector(
        "experience labels",
        "exper",
        "a past outcome used before it was known: labels from one moment on are turned round, everything before it must be the same and "
        "something after it must follow the labels",
        "whether a gain of the memory vanishes with wrong labels: that needs a real model; the rehearsal endpoint has no gain to lose",
        judges.experience_labels,
    ),
    Detector(
        "frozen clock",
        "clock",
        "today's date and time in a prompt, an answer or a memory: the same run on another day",
        "a clock read by the endpoint or in another process; one read in C (numpy.datetime64('today')), unless the real date is written "
        "out in digits",
        judges.frozen_clock,
    ),
    Detector(
        "row order",
        "rows",
        "the order of rows in the files: documents, securities and outcomes are shuffled",
        "the order of catalysts, which loaders fix",
        judges.all_at_once(Change.ROWS),
    ),
    Detector(
        "workers",
        "work",
        "state that one forecast leaves for another: one at a time in order against many at once, last first, replies out of order",
        "state kept outside the process; races that this order of events does not meet",
        judges.many,
    ),
    Detector(
        "near-duplicates",
        "dupl",
        "later copies and near-copies of documents visible at T that displace or multiply them",
        "copies between T and the last decision; texts that say the same in other words",
        judges.twins,
    ),
    Detector(
        "outside",
        "outs",
        "a file of the benchmark opened, a connection made or a program started by the method while it runs: it is the same in all "
        "worlds, so nothing else sees it",
        "files that C code opens (Parquet by Arrow) or that are named below an open directory, copies under another name, what was read when "
        "the module was imported",
        judges.outside,
    ),
)


def judged(hunt: Hunt) -> dict[str, Finding]:
    """The finding of every detector, by its name."""
    return {detector.name: detector.finding(hunt) for detector in DETECTORS}
