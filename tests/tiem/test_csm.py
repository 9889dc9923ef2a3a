"""The memory as a learner: what a case teaches, how it enters the memory, what a forecast sees, how skills are reviewed."""

from __future__ import annotations

import asyncio
import pickle
import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import CallFailed
from harness.evidence import Gate
from harness.memory import State
from harness.method import Tools
from harness.records import Status
from methods.tiem import recall
from methods.tiem.csm import Recollection, SkillMemory, SkillQuestion, gate_of
from methods.tiem.distil import Proposal
from methods.tiem.method import Tiem
from methods.tiem.recall import admit
from methods.tiem.skill_json import decoded, decoded_state, encoded
from methods.tiem.skills import Skill
from methods.tiem.stability import Stability
from methods.vectors import VectorTable
from tests.tiem.memory import QUERY, VECTORS, ancestor, day, decision, memories
from tests.tiem.test_recall import NAIVE
from tests.tiem.world import MEMORY, SKILLS, Embedder, Model, lesson, resolved, skill, vector

ITEM = {
    "name": "Doubling profit", "description": "IF profit doubles THEN positive because of orders",
    "domain": "earnings_preann", "stability_hint": "sector_specific", "tags": ["Profit ", "", "profit"],
}  # fmt: skip


def learner(**knobs: Any) -> Tiem:
    return Tiem.model_validate({"name": "tiem", **knobs})


def tools(value: Mapping[str, Any] | Status) -> Tools:
    return Tools(Model(lambda purpose, prompt: value), Embedder())


def propose(value: Mapping[str, Any] | Status, *args: Any, **kwargs: Any) -> Proposal | None:
    return asyncio.run(learner().propose(lesson(*args, **kwargs), tools(value)))


def skills_of(state: State) -> dict[str, Skill]:
    return decoded_state(state)[0]


QUESTION = vector("profit is expected to double")


def question(**changes: Any) -> SkillQuestion:
    base = SkillQuestion("c100", QUESTION, "earnings_preann", 5, -1.0, 0.0, False)
    return replace(base, **changes)


def recalled(state: State, n: int, gate: Gate, **changes: Any) -> Recollection:
    return asyncio.run(learner().recall(state, question(**changes), decision(n), gate, tools({})))


# What a case teaches


def test_a_case_teaches_skills_that_know_where_they_come_from() -> None:
    proposal = propose({"skills": [ITEM]}, 5)
    assert proposal is not None
    assert proposal.reason is None
    (new,) = proposal.skills
    assert (new.advantage, new.tags, new.provenance) == (0.2, ("profit", "sector_specific"), ("c5",))
    assert new.time == new.ancestors[0].resolve_time == resolved(5).outcome.resolve_at
    assert recall.ancestry(new, decision(20)) is recall.Ancestry.OK
    assert pickle.loads(pickle.dumps(proposal)) == proposal


@pytest.mark.parametrize(("label", "prob", "advantage"), [("positive", 0.5, 0.2), ("negative", 0.5, -0.1)])
def test_the_start_advantage_says_whether_the_forecast_was_right(label: str, prob: float, advantage: float) -> None:
    proposal = propose({"skills": [ITEM]}, 5, label, prob)
    assert proposal is not None
    assert proposal.skills[0].advantage == advantage


def test_a_proposal_brings_its_vectors_so_a_commit_asks_for_none() -> None:
    given_tools = tools({"skills": [ITEM]})
    proposal = pickle.loads(pickle.dumps(asyncio.run(learner().propose(lesson(5), given_tools))))
    assert len(given_tools.embed.asked) == 1  # type: ignore[attr-defined]
    assert len(asyncio.run(learner().apply({}, proposal, day(12), given_tools))) == 1
    assert len(given_tools.embed.asked) == 1  # type: ignore[attr-defined]


def test_long_texts_are_cut_and_a_third_skill_is_not_asked_for() -> None:
    proposal = propose({"skills": [{**ITEM, "name": "n" * 200, "description": "d " * 900, "tags": ["t" * 99] * 30}]}, 5)
    assert proposal is not None
    (new,) = proposal.skills
    assert len(new.name) == 80
    assert len(new.description) <= 500
    assert all(len(tag) <= 40 for tag in new.tags)


@pytest.mark.parametrize("status", [Status.INVALID, Status.TRUNCATED, Status.REFUSED])
def test_an_unusable_reply_teaches_nothing_and_says_why(status: Status) -> None:
    proposal = propose(status, 5)
    assert proposal == Proposal("c5", (), f"{status}: distill is {status}")
    assert asyncio.run(learner().apply(MEMORY, proposal, day(12), tools({}))) == []


def test_a_skill_without_words_is_none() -> None:
    proposal = propose({"skills": [{**ITEM, "name": " \n "}, {**ITEM, "description": ""}]}, 5)
    assert proposal is not None
    assert proposal.skills == ()
    assert proposal.reason is not None
    assert "name and a description" in proposal.reason


@pytest.mark.parametrize("status", [s for s in Status if not s.final])
def test_no_reply_stops_learning(status: Status) -> None:
    with pytest.raises(CallFailed) as error:
        propose(status, 5)
    assert error.value.status == status


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.OK])
def test_a_forecast_without_an_answer_teaches_nothing(status: Status) -> None:
    assert propose({"skills": [ITEM]}, 5, prob=None, status=status) is None


def test_a_case_without_a_document_teaches_nothing() -> None:
    case = replace(lesson(5), resolved=resolved(5, focal=None))
    assert asyncio.run(learner().propose(case, tools({"skills": [ITEM]}))) is None


# How it enters the memory


def test_apply_adds_and_merges_in_order() -> None:
    twice = propose({"skills": [ITEM, {**ITEM, "tags": ["again"]}]}, 5)
    memory, given_tools = learner(), tools({})
    changes = asyncio.run(memory.apply({}, twice, day(12), given_tools))
    assert [c.op for c in changes] == ["evoke", "merge"]
    assert changes[0].object_id == changes[1].object_id
    assert changes[1].value is not None
    merged = decoded(changes[1].value)
    assert (merged.merge_count, merged.tags) == (1, ("again", "profit", "sector_specific"))
    other = propose({"skills": [{**ITEM, "domain": "ma"}]}, 6)
    (added,) = asyncio.run(memory.apply({"sk": changes[1].value}, other, day(13), given_tools))
    assert added.op == "evoke"


# JSON


@given(memories())
def test_a_skill_survives_its_json(state: dict[str, Skill]) -> None:
    for found in state.values():
        assert decoded(encoded(found)) == found
        assert encoded(decoded(encoded(found))) == encoded(found)


def test_equal_instants_are_equal_texts_and_a_time_without_zone_stays_one() -> None:
    found = SKILLS["sk_1"]
    assert found.time is not None
    elsewhere = replace(found, time=found.time.astimezone(datetime.now().astimezone().tzinfo))
    assert encoded(elsewhere) == encoded(found)
    naive = replace(found, time=NAIVE)
    assert decoded(encoded(naive)) == naive


# What a forecast sees


@given(memories(), st.integers(0, 32), st.integers(1, 5), st.floats(-1, 1))
def test_the_gate_may_be_asked_after_ranking(state: dict[str, Skill], n: int, k: int, min_sim: float) -> None:
    knobs: dict[str, Any] = {"k": k, "min_sim": min_sim}
    first = recall.recall(admit(state, decision(n)).skills, QUERY, "ma", VECTORS, **knobs)
    after = recall.recall(state, QUERY, "ma", VECTORS, admits=gate_of(Gate.STRICT, decision(n), "c99"), **knobs)
    assert after == first


@pytest.mark.parametrize("gate", [Gate.STRICT, Gate.PAPER])
def test_a_late_or_incomplete_skill_is_refused(gate: Gate) -> None:
    broken = encoded(replace(SKILLS["sk_1"], ancestors=()))
    state = {**MEMORY, "sk_3": broken}
    found = recalled(state, 15, gate)
    assert [r.skill_id for r in found.skills] == ["sk_1"]
    assert found.unverifiable == 1
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_label_judged_on_a_late_case_makes_the_skill_late() -> None:
    state = {"sk_1": encoded(replace(SKILLS["sk_1"], label_ancestors=(ancestor(15),)))}
    assert recalled(state, 15, Gate.PAPER).skills == ()
    assert len(recalled(state, 16, Gate.PAPER).skills) == 1


def test_without_a_gate_all_is_seen_but_what_the_case_itself_taught() -> None:
    own = replace(SKILLS["sk_1"], label_ancestors=(replace(ancestor(200), source_catalyst_id="c100"),))
    state = {**MEMORY, "own": encoded(own), "broken": encoded(replace(SKILLS["sk_1"], ancestors=()))}
    found = recalled(state, 1, Gate.OFF)
    assert {r.skill_id for r in found.skills} == {"sk_1", "sk_2", "broken"}


def test_only_unknown_vectors_are_asked_for() -> None:
    memory, given_tools = learner(), tools({})
    for _ in range(3):
        asyncio.run(memory.recall(MEMORY, question(), decision(30), Gate.STRICT, given_tools))
    asked = given_tools.embed.asked  # type: ignore[attr-defined]
    assert len(asked) == 1, "the skills once; a question brings its vector"
    assert memory == learner(), "what a memory has looked up is no part of what it is"


@given(st.permutations([f"w{n}. w{n}" for n in range(12)]), st.integers(1, 12))
def test_a_table_scores_each_text_by_itself(texts: list[str], held: int) -> None:
    some = VectorTable.of({text: VECTORS[text] for text in texts[:held]})
    assert list(some.cosines(texts[:held], QUERY)) == list(VECTORS.cosines(texts[:held], QUERY))


# Review


def verdicts(**given_verdicts: str) -> dict[str, Any]:
    return {"verdicts": [{"id": name, "verdict": verdict} for name, verdict in given_verdicts.items()]}


KNOWN = [resolved(n, "negative" if n % 3 else "positive") for n in range(8)]
QUARTER = datetime(2020, 4, 1, tzinfo=UTC)


def review(state: State, said: Mapping[str, Any] | Status, at: datetime = QUARTER, known: Any = KNOWN) -> list[Any]:
    return asyncio.run(learner().review(state, at, known, tools(said)))


ALL = [f"c{n}" for n in range(8)]


@pytest.mark.parametrize(
    ("said", "op", "label"),
    [
        (verdicts(**dict.fromkeys(ALL, "APPLY")), "stability", Stability.STABLE),
        (verdicts(c0="APPLY", c1="MISAPPLY", c2="APPLY", c3="MISAPPLY", c9="APPLY"), "stability", Stability.UNSTABLE),
        (verdicts(), "stability", Stability.UNEVALUABLE),
        (Status.INVALID, "stability", Stability.UNEVALUABLE),
        (verdicts(**dict.fromkeys(ALL, "MISAPPLY")), "retire", None),
    ],
)
def test_a_review_labels_or_retires(said: Any, op: str, label: Stability | None) -> None:
    (change,) = review({"sk_1": MEMORY["sk_1"]}, said)
    assert change.op == op
    if label is None:
        assert change.value is None
        return
    found = decoded(change.value)
    assert found.stability is label
    assert {a.source_catalyst_id for a in found.label_ancestors} == set(ALL)


def test_only_what_changed_since_the_last_quarter_is_judged() -> None:
    assert review(MEMORY, verdicts(), datetime(2020, 7, 1, tzinfo=UTC)) == []
    assert [c.object_id for c in review(MEMORY, verdicts())] == ["sk_1", "sk_2"]
    on_the_day = replace(SKILLS["sk_1"], ancestors=(ancestor(1, resolve=QUARTER),))
    assert review({"sk": encoded(on_the_day)}, verdicts()) == []
    assert len(review({"sk": encoded(on_the_day)}, verdicts(), datetime(2020, 7, 1, tzinfo=UTC))) == 1


def test_a_skill_is_not_judged_on_its_sources_nor_on_what_is_not_yet_known() -> None:
    own = {"sk": encoded(replace(SKILLS["sk_1"], provenance=("c0", "c1")))}
    late = [*KNOWN, resolved(90)]
    (change,) = review(own, verdicts(), known=late)
    assert {a.source_catalyst_id for a in decoded(change.value).label_ancestors} == {f"c{n}" for n in range(2, 8)}
    assert review(own, verdicts(), known=KNOWN[:6]) == []  # four cases are too few


def test_no_reply_stops_the_review() -> None:
    with pytest.raises(CallFailed):
        review(MEMORY, Status.RATE_LIMITED)


@given(st.randoms(use_true_random=False))
def test_the_order_of_a_review_does_not_matter(rng: random.Random) -> None:
    many = {f"sk_{n}": encoded(skill(n, f"name {n}", f"IF {n} THEN positive")) for n in range(6)}
    keys, known = list(many), list(KNOWN)
    rng.shuffle(keys)
    rng.shuffle(known)
    said = verdicts(**dict.fromkeys(ALL[:5], "APPLY"))
    assert review({key: many[key] for key in keys}, said, known=known) == review(many, said)


def test_reviews_are_at_the_starts_of_quarters() -> None:
    times = learner().review_times(QUARTER, datetime(2021, 1, 1, tzinfo=UTC))
    assert [t.strftime("%Y-%m-%d %H:%M %Z") for t in times] == [
        "2020-07-01 00:00 UTC", "2020-10-01 00:00 UTC", "2021-01-01 00:00 UTC",
    ]  # fmt: skip
    assert learner().review_times(QUARTER - timedelta(days=1), QUARTER) == [QUARTER]
    assert learner(stability=False).review_times(QUARTER, day(900)) == []


def test_a_memory_holds_no_skills_of_its_own() -> None:
    memory, given_tools = learner(), tools({"skills": [ITEM]})
    proposal = asyncio.run(memory.propose(lesson(5), given_tools))
    asyncio.run(memory.apply(MEMORY, proposal, day(12), given_tools))
    fresh = SkillMemory(memory._memory._settings)
    ask = (question(), decision(30), Gate.STRICT, given_tools)
    assert asyncio.run(fresh.recall(MEMORY, *ask)) == asyncio.run(memory.recall(MEMORY, *ask))
