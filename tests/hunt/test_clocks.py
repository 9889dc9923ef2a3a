"""The real day in what a method sends although its world's clock shows another."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
import time_machine

from harness.clock import parse_stamp
from harness.hunt.clocks import real_day_in, real_days
from harness.hunt.trace import Asked, Trace
from harness.hunt.watching import Request
from tests.hunt.world import BENCHMARK, TZ

DAY = date(2026, 8, 3)


def traced(text: str, answer: str = "status ok") -> Trace:
    return Trace(
        {"e10": Asked("e10", datetime(2021, 3, 1, tzinfo=UTC), True, (Request("forecast", text),), answer, True)}
    )


@pytest.mark.parametrize("said", ["today is 2026-08-03", "20260803T09:30", "asof=2026/08/03."])
def test_the_real_day_is_seen_however_it_is_punctuated(said: str) -> None:
    witness = real_day_in(traced(f"Alder Pumps\n{said}"), BENCHMARK, [DAY])
    assert witness is not None
    assert (witness.catalyst, witness.place, witness.found) == ("e10", "request (forecast)", said)
    answered = real_day_in(traced("Alder Pumps", f"rationale {said}"), BENCHMARK, [DAY])
    assert answered is not None
    assert answered.place == "answer"


def test_another_day_is_none() -> None:
    assert real_day_in(traced("it was 2026-08-02, or 2021-03-11 09:30"), BENCHMARK, [DAY]) is None


@pytest.mark.parametrize("where", ["text", "stamp"])
def test_a_day_of_the_benchmark_itself_is_none(where: str) -> None:
    """A benchmark of today's cases writes today's date."""
    cases = BENCHMARK.evaluation
    first, *others = cases.corpus.documents
    new = (
        replace(first, body="Due on 2026-08-03.")
        if where == "text"
        else replace(first, time=parse_stamp("2026-08-03", TZ))
    )
    benchmark = replace(BENCHMARK, evaluation=replace(cases, corpus=replace(cases.corpus, documents=(new, *others))))
    assert real_day_in(traced("today is 2026-08-03"), benchmark, [DAY]) is None


def test_a_hunt_may_go_on_past_midnight() -> None:
    with time_machine.travel(datetime(2026, 8, 3, 12, tzinfo=UTC), tick=False):
        days = real_days()
    assert {DAY, DAY + timedelta(days=1)} <= set(days)
