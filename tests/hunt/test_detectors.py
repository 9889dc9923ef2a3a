"""Every detector catches the leak that is planted for it, and passes the methods that are clean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest

from harness.hunt.detectors import DETECTORS
from harness.hunt.judges import Finding, Verdict
from harness.hunt.stage import Change, World, run_world
from methods.base import BaseMethod
from methods.naive import AlwaysPositive
from tests.hunt import leaky
from tests.hunt.world import BENCHMARK, hunted, subject

PASS, FAIL, NOT_TESTABLE = Verdict
ONLINE = ("memory=online",)

PLANTED: list[tuple[type[BaseMethod], set[str], tuple[str, ...]]] = [
    (leaky.Rolling, {"repetition"}, ()),
    (leaky.FilteringAfterwards, {"truncation", "future perturbation", "canaries"}, ()),
    (leaky.EmbeddingAhead, {"canaries"}, ()),
    (leaky.ShowingUndated, {"canaries"}, ()),
    (leaky.CopyingTheEnd, {"future perturbation"}, ()),
    (leaky.Reasoning, {"canaries"}, ()),
    (leaky.ComparingText, {"canaries"}, ()),
    (leaky.FeelingTheFuture, {"truncation", "future perturbation"}, ()),
    (leaky.KnowingTheEnd, {"evaluation labels"}, ()),
    (leaky.KnowingTheSize, {"evaluation labels"}, ()),
    (leaky.KnowingWhatIsAlike, {"evaluation labels"}, ()),
    (leaky.KnowingAllPast, {"truncation", "experience labels"}, ()),
    (leaky.LookingAtTheClock, {"frozen clock"}, ()),
    (leaky.LookingPastTheClock, {"frozen clock"}, ()),
    (leaky.ReadingInFileOrder, {"row order"}, ()),
    (leaky.KeepingTheNewest, {"near-duplicates"}, ()),
    (leaky.Counting, {"workers"}, ()),
    (leaky.ReadingTheFile, {"outside"}, ()),
    (leaky.Dialling, {"outside"}, ()),
    (leaky.FollowingALink, {"outside"}, ()),
    (leaky.Telegraphing, {"outside"}, ()),
    (leaky.LookingUp, {"outside"}, ()),
    (leaky.Starting, {"outside"}, ()),
    (leaky.NeverForgetting, {"truncation", "experience labels"}, ()),
]
"""A leaking method, the detectors that are meant for its leak, and overrides."""


@cache
def findings(method: type[BaseMethod], overrides: tuple[str, ...] = ()) -> Mapping[str, Finding]:
    """What the detectors say of a planted leak, computed once."""
    return hunted(method(name="leaky"), *overrides)


@pytest.mark.parametrize(("method", "meant", "overrides"), PLANTED, ids=lambda v: getattr(v, "__name__", ""))
def test_a_planted_leak_is_caught(method: type[BaseMethod], meant: set[str], overrides: tuple[str, ...]) -> None:
    found = findings(method, overrides)
    assert {name for name, finding in found.items() if finding.verdict is FAIL} >= meant, found
    for name in meant:
        assert found[name].witness is not None


def test_every_detector_has_a_planted_leak() -> None:
    assert set().union(*(meant for _, meant, _ in PLANTED)) == {detector.name for detector in DETECTORS}


@pytest.mark.parametrize("overrides", [(), ONLINE], ids=["frozen", "online"])
@pytest.mark.parametrize("method", [leaky.Asking, leaky.Retrieving, leaky.Remembering])
def test_a_clean_method_passes(method: type[BaseMethod], overrides: tuple[str, ...]) -> None:
    found = hunted(method(name="clean"), *overrides)
    assert not {name: f for name, f in found.items() if f.verdict is FAIL}
    untestable = {name for name, finding in found.items() if finding.verdict is NOT_TESTABLE}
    assert untestable <= {"experience labels"}
    if method is leaky.Remembering:
        assert not untestable


def test_a_leak_that_shows_in_one_detector_alone() -> None:
    """Nothing else must fail for a method whose only fault is this one, or a table of verdicts would say nothing."""
    for method, meant, overrides in PLANTED:
        if meant & {"frozen clock", "row order", "evaluation labels", "outside"} or method is leaky.EmbeddingAhead:
            found = findings(method, overrides)
            assert {name for name, f in found.items() if f.verdict is FAIL} == meant, method


def test_the_witness_of_a_prompt_quotes_both_lines() -> None:
    witness = findings(leaky.KnowingTheEnd)["evaluation labels"].witness
    assert witness is not None
    assert witness.catalyst == "e10"
    assert witness.place == "request (forecast)"
    assert {witness.expected, witness.found} == {"hint negative", "hint positive"}


def test_the_witness_of_a_canary_says_which_and_where() -> None:
    finding = findings(leaky.ShowingUndated)["canaries"]
    assert finding.witness is not None
    assert "undated" in finding.witness.world or "malformed" in finding.witness.world
    assert finding.witness.place == "forecast request (forecast)"
    assert "Canary" in (finding.witness.found or "")


def test_what_cannot_be_tested_is_said() -> None:
    """A method that sends nothing has no channel for a canary; a benchmark that ends at the decision has no future."""
    found = hunted(AlwaysPositive(name="always_positive"))
    assert found["canaries"].verdict is NOT_TESTABLE
    assert found["experience labels"].verdict is NOT_TESTABLE
    last = BENCHMARK.evaluation.catalysts[-1]
    cases = BENCHMARK.evaluation
    documents = tuple(d for d in cases.corpus.documents if d.time and d.time.instant <= last.time.instant)
    alone = replace(cases, catalysts=(last,), corpus=replace(cases.corpus, documents=documents))
    found = hunted(leaky.Asking(name="clean"), benchmark=replace(BENCHMARK, evaluation=alone, experience=None))
    for name in ("truncation", "future perturbation", "experience labels", "workers"):
        assert found[name].verdict is NOT_TESTABLE, name


def test_a_method_that_never_answers_is_not_passed() -> None:
    class Broken(leaky.Asking):
        async def extra(self, case: object, ctx: object) -> list[str]:
            raise ValueError("broken")

    found = hunted(Broken(name="broken"))
    assert {f.verdict for f in found.values()} == {NOT_TESTABLE}
    assert "broken" in found["truncation"].why


def test_runs_leave_nothing_in_the_method_they_were_given() -> None:
    one = subject(leaky.Counting(name="counting"))
    first, again = (run_world(one, BENCHMARK, World(Change.NOTHING)) for _ in range(2))
    assert first == again
