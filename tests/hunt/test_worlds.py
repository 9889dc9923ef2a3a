"""Each world differs from the hunted benchmark in what it says, and in nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import parse_stamp
from harness.evidence import EvidenceIndex, Gate
from harness.hunt import worlds
from harness.hunt.canaries import Canary, Kind, found_in, plant
from harness.hunt.stage import Change, experience_since, worlds_of
from harness.records import Benchmark, Catalyst, Document
from tests.hunt.world import BENCHMARK, STOCKS, TZ
from tests.support import benchmark_of, config_of

CASES = BENCHMARK.evaluation.catalysts
SECOND = CASES[1]


def documents(benchmark: Benchmark) -> tuple[Document, ...]:
    return benchmark.evaluation.corpus.documents


def early(benchmark: Benchmark, case: Catalyst) -> set[Document]:
    return {d for d in documents(benchmark) if d.time and d.time.instant <= case.time.instant}


@pytest.mark.parametrize("change", [worlds.cut, worlds.shuffled_future, worlds.corrupted_future])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.catalyst_id)
def test_what_is_known_at_the_decision_stays(change: object, case: Catalyst) -> None:
    changed = change(BENCHMARK, case)  # type: ignore[operator]
    assert early(changed, case) == early(BENCHMARK, case)
    assert documents(changed) != documents(BENCHMARK)


def test_a_cut_leaves_nothing_later() -> None:
    undated = Document("undated", None, "", "text", ("600000",))
    changed = worlds.cut(worlds.with_documents(BENCHMARK, [undated]), SECOND)
    assert set(documents(changed)) == early(BENCHMARK, SECOND)
    for cases in (changed.evaluation, changed.experience):
        assert cases is not None
        for case in cases.catalysts:
            assert case == SECOND or cases.outcomes[case.catalyst_id].resolve_at < SECOND.time.instant


def test_a_shuffled_future_says_the_same_elsewhere() -> None:
    changed = worlds.shuffled_future(BENCHMARK, SECOND)
    assert Counter(d.body for d in documents(changed)) == Counter(d.body for d in documents(BENCHMARK))
    assert {(d.doc_id, d.time, d.stocks) for d in documents(changed)} == {
        (d.doc_id, d.time, d.stocks) for d in documents(BENCHMARK)
    }


def test_a_corrupted_future_says_nothing_it_said() -> None:
    changed = set(documents(worlds.corrupted_future(BENCHMARK, SECOND))) - early(BENCHMARK, SECOND)
    assert changed
    assert not {d.text for d in changed} & {d.text for d in documents(BENCHMARK)}


def test_turned_labels_are_all_turned_from_the_moment_on() -> None:
    since = SECOND.time.instant
    turned = worlds.experience_turned(BENCHMARK, since)
    assert turned.evaluation == BENCHMARK.evaluation
    assert turned.experience is not None
    assert BENCHMARK.experience is not None
    for name, old in BENCHMARK.experience.outcomes.items():
        new = turned.experience.outcomes[name]
        assert (new.label != old.label) == (old.resolve_at >= since)
        assert (new.fwd_ret == -1.25 * (old.fwd_ret or 0)) == (old.resolve_at >= since), "another sign and another size"
    every = worlds.evaluation_turned(BENCHMARK, None)
    assert all(o.label != BENCHMARK.evaluation.outcomes[n].label for n, o in every.evaluation.outcomes.items())
    assert every.experience == BENCHMARK.experience
    half = worlds.evaluation_turned(BENCHMARK, None, step=2).evaluation.outcomes
    assert [half[c.catalyst_id] != BENCHMARK.evaluation.outcomes[c.catalyst_id] for c in CASES] == [
        True,
        False,
        True,
        False,
    ]


def test_a_return_cannot_lose_more_than_everything() -> None:
    doubled = {n: replace(o, fwd_ret=2.0) for n, o in BENCHMARK.evaluation.outcomes.items()}
    high = replace(BENCHMARK, evaluation=replace(BENCHMARK.evaluation, outcomes=doubled))
    turned = worlds.evaluation_turned(high, None).evaluation.outcomes
    assert {o.fwd_ret for o in turned.values()} == {-0.99}


def test_past_labels_are_turned_from_the_last_decision_that_does_not_know_them_all() -> None:
    assert worlds.unknown_outcomes(BENCHMARK, CASES[2].time.instant) == 1
    assert worlds.unknown_outcomes(BENCHMARK, CASES[3].time.instant) == 0
    assert experience_since(BENCHMARK) == CASES[2].time.instant
    later = replace(BENCHMARK, evaluation=replace(BENCHMARK.evaluation, catalysts=CASES[3:]))
    assert BENCHMARK.experience is not None
    known = sorted(o.resolve_at for o in BENCHMARK.experience.outcomes.values())
    assert experience_since(later) == known[len(known) // 2]


def test_shuffled_rows_are_the_same_rows() -> None:
    changed = worlds.rows_shuffled(BENCHMARK)
    assert documents(changed) != documents(BENCHMARK)
    assert sorted(documents(changed), key=lambda d: d.doc_id) == sorted(documents(BENCHMARK), key=lambda d: d.doc_id)
    assert changed.evaluation.outcomes == BENCHMARK.evaluation.outcomes
    assert changed.evaluation.catalysts == CASES


def test_twins_come_after_every_decision() -> None:
    new = set(documents(worlds.with_twins(BENCHMARK))) - set(documents(BENCHMARK))
    assert {d.stocks[0] for d in new} == {c.stock_id for c in CASES}
    assert all(d.time and d.time.instant > CASES[-1].time.instant for d in new)
    old = {d.body for d in documents(BENCHMARK)}
    assert {d.body.removesuffix(" (updated)") for d in new} <= old
    assert {d.body for d in new} & old, "no exact copy"


def test_hunted_is_spread_over_the_evaluation_set() -> None:
    whole = benchmark_of(config_of("benchmark=sample"))
    small = worlds.hunted(whole, None, 5, 10, 60)
    asked = small.evaluation.catalysts
    known = [c for c in whole.evaluation.catalysts if whole.evaluation.outcomes[c.catalyst_id].teaches]
    assert (asked[0], asked[-1], len(asked)) == (known[0], known[-1], 5)
    assert len(documents(small)) == 60
    assert small.experience is not None
    assert len(small.experience.catalysts) == 10
    first = worlds.hunted(whole, 6, 3, 10, None)
    assert set(first.evaluation.catalysts) <= set(known[:6])
    assert documents(first) == documents(whole)


def test_every_case_is_cut_and_perturbed() -> None:
    found = worlds_of(BENCHMARK)
    assert len(found) == len(set(found))
    assert {w.case for w in found if w.change is Change.CUT} == {c.catalyst_id for c in CASES}
    assert {w.case for w in found if w.change in (Change.SHUFFLED, Change.CORRUPTED)} == {c.catalyst_id for c in CASES}


@given(
    st.datetimes(datetime(2015, 1, 1), datetime(2030, 1, 1)),
    st.sampled_from(["Asia/Shanghai", "America/New_York"]),
    st.sampled_from(["%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"]),
)
def test_canaries_are_stamped_as_they_say(when: datetime, tz: str, form: str) -> None:
    """Whatever the decision's granularity and zone: late ones are late, the control is not."""
    stamp = parse_stamp(when.strftime(form), tz)
    case = replace(SECOND, time=stamp)
    cases = replace(
        BENCHMARK.evaluation, catalysts=(case,), outcomes={case.catalyst_id: BENCHMARK.evaluation.outcomes["e14"]}
    )
    benchmark, canaries = plant(replace(BENCHMARK, evaluation=cases))
    planted = {canaries[d.doc_id[1:].lower()].kind: d for d in documents(benchmark) if d.doc_id.startswith("~")}
    assert planted.keys() == set(Kind)
    for kind, document in planted.items():
        canary = next(c for c in canaries.values() if c.kind is kind)
        assert canary.known_at == (document.time.instant if document.time else None)
        assert canary.late(stamp.instant) == (kind is not Kind.CONTROL)
    assert planted[Kind.UNDATED].time is planted[Kind.MALFORMED].time is None
    foreign = planted[Kind.OTHER_ZONE].time
    assert foreign is not None
    assert foreign.text < f"{stamp.text} 99", "it does not look earlier than it is"
    assert foreign.instant - stamp.instant <= timedelta(hours=1, seconds=1)
    assert (
        EvidenceIndex(benchmark.evaluation.corpus, True).as_of(case.stock_id, stamp, Gate.STRICT).focal()
        == planted[Kind.CONTROL]
    )


def test_canaries_are_found_whatever_was_done_to_the_text() -> None:
    _, canaries = plant(BENCHMARK)
    one = next(iter(canaries.values()))
    assert one.word.isalpha()
    for text in (f'"{one.word.upper()}"', f"x\n{one.word.lower()}.", f"{{'a': '{one.word}'}}"):
        assert list(found_in(text, canaries)) == [one]
    assert not list(found_in("A canary sang, Canaryabc too.", canaries))
    assert len({c.word for c in canaries.values()}) == len(Kind) * len(CASES)


def test_a_canary_is_late_before_it_is_known() -> None:
    known = datetime(2021, 3, 1, tzinfo=UTC)
    canary = Canary("Canary", Kind.SECOND_LATER, "e1", known)
    assert canary.late(known - timedelta(seconds=1))
    assert not canary.late(known)
    assert Canary("Canary", Kind.UNDATED, "e1", None).late(datetime.max.replace(tzinfo=UTC))


def test_the_invented_benchmark_is_of_one_market() -> None:
    assert all(c.stock_id in STOCKS and parse_stamp(c.time.text, TZ) == c.time for c in CASES)
