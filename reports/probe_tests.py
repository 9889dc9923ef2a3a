"""Whether a probe exposes a backbone: one test a probe, Holm over those of a setting, and a verdict that never says leak-free.

FAIL: answers depend on who and when beyond what chance explains. PASS: nothing of the kind seen with this many cases; ``mde`` says
what would have been. NOT TESTABLE: too few cases or days for any answer to be told from chance among so many tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from reports.answers import Answers, shared
from reports.clusters import one_way
from reports.intervals import Interval
from reports.metrics import Floats
from reports.paired import holm, sign_flip
from reports.probe_effects import (
    CHANGES,
    cells_of,
    changed,
    contrary,
    identities,
    majority_hits,
    mean,
    units,
    usable,
    vars_of,
)

if TYPE_CHECKING:
    from reports.probes import Probed

ALPHA = 0.05
RECOGNISED_BY_CHANCE = 0.05
"""Share of masked cases that may be named right without it being called recognition."""
_Z = 1.959963984540054
FAIL, PASS, NOT_TESTABLE = "FAIL", "PASS", "NOT TESTABLE"


@dataclass(frozen=True)
class Finding:
    """One probe's test.

    Attributes:
        probe: its name; ``measure`` says in words what ``value`` is, ``scale`` how it is counted: a difference of ``points``, a ``share``,
            or an ``odds ratio``.
        n, n_units: cases, and the days (or cases) that count as one answer.
        p: two-sided, except for ``share``; ``p_holm`` over the tests of the setting.
        p_least: the smallest p that so many cases or days can give.
        mde: smallest difference found with power 0.8 at 0.05; None where it is not defined.
        table: for an odds ratio, right from memory and forecast right, right and wrong, not and right, not and wrong.
    """

    benchmark: str
    backbone: str
    gate: str | None
    seed: int | None
    probe: str
    measure: str
    scale: str
    n: int
    n_units: int
    value: float | None
    ci: Interval | None
    p: float | None
    mde: float | None
    cells: tuple[str, ...]
    table: tuple[int, int, int, int] | None = None
    p_least: float | None = None
    p_holm: float | None = None
    verdict: str = NOT_TESTABLE


def tests(group: Probed) -> Iterator[Finding]:
    """The tests that the cells of a setting allow."""
    nd, full = group.answers.get("nd"), group.answers.get("full")
    if nd is not None:
        yield _excess(
            group,
            "name_date",
            "Acc from name and date − Acc of the commoner class",
            nd.hits - majority_hits(nd),
            nd,
            "nd",
        )
    if full is not None:
        for change in ("masked", "swapped", "shifted"):
            after = changed(group, change)
            if after is not None:
                before, after = shared(usable(full), after)
                measure = f"Acc of the full input − Acc with {CHANGES[change]}"
                yield _excess(group, change, measure, before.hits - after.hits, before, "full", change)
    against = contrary(group)
    if against is not None:
        measure = "Acc with news of the opposite outcome − Acc of the commoner class"
        yield _excess(
            group, "contrary", measure, against.hits - majority_hits(against), against, "news_up", "news_down"
        )
    yield from _recognised(group)
    if "recall" in group.answers:
        yield from _recalled(group, group.answers["recall"], full)


def judged(found: Iterator[Finding]) -> list[Finding]:
    """With Holm over those that have a p, and a verdict."""
    every = list(found)
    testable = [test for test in every if test.p is not None]
    adjusted = dict(zip(map(id, testable), holm([t.p for t in testable if t.p is not None]), strict=True))
    return [
        replace(test, p_holm=adjusted.get(id(test)), verdict=_verdict(test, adjusted.get(id(test)), len(testable)))
        for test in every
    ]


def _verdict(test: Finding, p_holm: float | None, among: int) -> str:
    """PASS is for a test that could have failed ``among`` so many; one that could not says nothing."""
    if p_holm is None or test.value is None or test.p_least is None:
        return NOT_TESTABLE
    nothing = {"points": 0.0, "share": RECOGNISED_BY_CHANCE, "odds ratio": 1.0}[test.scale]
    if p_holm < ALPHA and test.value > nothing:
        return FAIL
    return PASS if test.p_least * among < ALPHA else NOT_TESTABLE


def _excess(group: Probed, probe: str, measure: str, values: Floats, a: Answers, *cells: str) -> Finding:
    """A mean difference of hits: interval by day, sign flips over days."""
    codes = units(a)
    count = int(codes.max()) + 1 if a.size else 0
    value, ci = mean(values, a) if a.size else (None, None)
    precision, sums = one_way(values, codes), np.bincount(codes, weights=values).astype(np.float64)
    return Finding(
        **vars_of(group), probe=probe, measure=measure, scale="points", n=a.size, n_units=count, value=value, ci=ci,
        p=sign_flip(sums) if count > 1 else None, p_least=2.0 ** (1 - count) if count > 1 else None,
        mde=precision.smallest_difference if precision and precision.se > 0 else None, cells=cells_of(group, *cells),
    )  # fmt: skip


def _recognised(group: Probed) -> Iterator[Finding]:
    for found in identities(group):
        p = stats.binomtest(round(found.who * found.n), found.n, RECOGNISED_BY_CHANCE, alternative="greater").pvalue
        yield Finding(
            **vars_of(group), probe="identify", measure="masked cases whose company or code was named exactly", scale="share",
            n=found.n, n_units=found.n, value=found.who, ci=found.who_ci, p=float(p), p_least=RECOGNISED_BY_CHANCE**found.n, mde=None, cells=found.cells,
        )  # fmt: skip


def _recalled(group: Probed, recall: Answers, full: Answers | None) -> Iterator[Finding]:
    """Whether returns said to be remembered are right, and whether forecasts are better where they are."""
    said = group.said["recall"]
    signs = np.array([_sign(said.get(key, {})) for key in recall.keys], dtype=np.float64)
    spoken = recall.at(np.flatnonzero(signs != 0))
    right = (signs > 0)[signs != 0] == spoken.truth
    majority = majority_hits(recall)[signs != 0]
    measure = "Acc of the remembered direction − Acc of the commoner class"
    yield _excess(group, "recall", measure, right - majority, spoken, "recall")
    if full is None:
        return
    known = {key for key, hit in zip(spoken.keys, right, strict=True) if hit}
    both, _ = shared(usable(full), recall)
    remembered = np.array([key in known for key in both.keys], dtype=np.bool_)
    counts = [int((remembered == a)[both.right == b].sum()) for a in (True, False) for b in (True, False)]
    yield _interaction(group, counts, both.size)


def _sign(said: object) -> float:
    """1 or -1 for a return that is said to be remembered, else 0."""
    assert isinstance(said, dict)
    value = said.get("return_percent")
    return 0.0 if not said.get("recalled") or value is None else float(np.sign(value))


def _interaction(group: Probed, counts: Sequence[int], n: int) -> Finding:
    """Fisher's exact test of the 2 × 2; odds ratio with 1/2 added to each count (Haldane, Anscombe), interval by Woolf."""
    a, b, c, d = (count + 0.5 for count in counts)
    ratio, error = a * d / (b * c), math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    rows = (counts[0] + counts[1], counts[2] + counts[3])
    testable = min(rows) > 0
    return Finding(
        **vars_of(group), probe="recall_interaction", measure="odds of a right forecast where the return was remembered ÷ elsewhere",
        scale="odds ratio", n=n, n_units=n, value=ratio if testable else None,
        ci=(ratio * math.exp(-_Z * error), ratio * math.exp(_Z * error)) if testable else None,
        p=_fisher(counts) if testable else None, p_least=_least_fisher(counts) if testable else None, mde=None,
        cells=cells_of(group, "recall", "full"), table=(counts[0], counts[1], counts[2], counts[3]),
    )  # fmt: skip


def _fisher(counts: Sequence[int]) -> float:
    return float(stats.fisher_exact([counts[:2], counts[2:]]).pvalue)


def _least_fisher(counts: Sequence[int]) -> float:
    """The p of the more extreme of the two tables with these sums of rows and columns that hold the least or the most in one corner."""
    first, second, column = counts[0] + counts[1], counts[2] + counts[3], counts[0] + counts[2]
    corners = (max(0, column - second), min(first, column))
    return min(_fisher((a, first - a, column - a, second - column + a)) for a in corners)
