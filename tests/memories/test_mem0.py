"""Mem0: what an update does to the past, and what bad replies and odd memories come to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.evidence import Gate
from harness.memory import MemoryLog
from harness.method import Tools
from harness.records import Status
from methods.fed import CUT, RECORD_TOKENS
from methods.mem0.method import CASES, NO_DECISION, NO_FACTS, Hit, Mem0, Question, chosen
from methods.mem0.operations import EMPTY_TEXT, UNKNOWN_EVENT, UNKNOWN_ID, decide, decoded, facts_of, memories_of
from tests.memories.feeding import fed, many, recalled, record
from tests.parity.memories import Scripted
from tests.tiem.world import Embedder, Model, Script, vector

METHOD = Mem0(name="mem0")
FIRST = record("d1", "2021-01-04 09:00", "Harbour Pumps guides profit up 20%")
SECOND = record("d2", "2021-02-01 09:00", "Harbour Pumps guides profit up 35%")
QUESTION = Question("c1", vector("profit guidance"), "600001", 30, "global")


def saying(*replies: tuple[list[Any], list[dict[str, str]]]) -> Script:
    """A model that gives, record by record, these facts and these decisions."""
    facts, decisions = iter([f for f, _ in replies]), iter([d for _, d in replies])

    def script(purpose: str, prompt: str) -> dict[str, Any]:
        return {"facts": next(facts)} if purpose == "mem0_facts" else {"memory": next(decisions)}

    return script


def decision(event: str, text: str, number: str = "0") -> dict[str, str]:
    return {"id": number, "text": text, "event": event}


async def texts(log: MemoryLog, ts: str, gate: Gate = Gate.STRICT) -> list[tuple[str, str]]:
    hits: tuple[Hit, ...] = await recalled(METHOD, log, QUESTION, ts, gate)
    return [(h.memory.updated_at, h.memory.text) for h in hits]


def test_an_update_after_t_leaves_the_old_fact_with_its_old_date() -> None:
    async def run() -> None:
        script = saying((["up 20%"], [decision("ADD", "up 20%")]), (["up 35%"], [decision("UPDATE", "up 35%")]))
        log = await fed(METHOD, [FIRST, SECOND], script)
        assert await texts(log, "2021-02-01 09:00") == [("2021-01-04 09:00", "up 20%")]
        assert await texts(log, "2021-02-01 09:01") == [("2021-02-01 09:00", "up 35%")]
        assert await texts(log, "2021-02-01") == [("2021-01-04 09:00", "up 20%")], "the day of T is not known yet"
        assert await texts(log, "2021-01-04 09:00") == []
        (memory,) = memories_of(log.final_state()).values()
        assert (memory.created_at, memory.updated_at) == ("2021-01-04 09:00", "2021-02-01 09:00")
        assert memory.origin.first == FIRST.key.valid_from
        assert memory.origin.known_at == SECOND.key.valid_from
        assert await texts(log, "2021-01-20", Gate.PAPER) == [], "what a later record shaped is left out"
        assert await texts(log, "2021-01-20", Gate.OFF) == [("2021-02-01 09:00", "up 35%")]

    asyncio.run(run())


def test_a_deletion_after_t_hides_nothing_at_t() -> None:
    script = saying((["up"], [decision("ADD", "up")]), (["no more"], [decision("DELETE", "up")]))

    async def run() -> None:
        log = await fed(METHOD, [FIRST, SECOND], script)
        assert await texts(log, "2021-01-20") == [("2021-01-04 09:00", "up")]
        assert await texts(log, "2021-03-01") == []

    asyncio.run(run())


@pytest.mark.parametrize(
    ("script", "incident"),
    [
        (lambda purpose, prompt: Status.INVALID, NO_FACTS),
        (lambda purpose, prompt: {"facts": ["up"]} if purpose == "mem0_facts" else Status.TRUNCATED, NO_DECISION),
        (saying((["up"], [decision("UPDATE", "ghost", "7")])), UNKNOWN_ID),
        (saying((["up"], [decision("DELETE", "ghost", "²")])), UNKNOWN_ID),
        (saying((["up"], [decision("DELETE", "ghost", "-1")])), UNKNOWN_ID),
        (saying((["up"], [decision("ADD", "")])), EMPTY_TEXT),
        (saying((["up"], [decision("FORGET", "up")])), UNKNOWN_EVENT),
        (saying((["up"], ["nonsense"])), EMPTY_TEXT),  # type: ignore[list-item]
    ],
)
def test_a_bad_reply_is_counted_and_the_memory_goes_on(script: Script, incident: str) -> None:
    async def run() -> None:
        log = await fed(METHOD, [FIRST], script)
        assert log.incidents() == {incident: 1}
        assert await texts(log, "2022-01-01") == []
        await fed(METHOD, [SECOND], saying((["up"], [decision("ADD", "up")])), log)
        assert len(await texts(log, "2022-01-01")) == 1

    asyncio.run(run())


def test_a_record_longer_than_the_window_is_cut_and_counted() -> None:
    long = record("d1", "2021-01-04", "水泵" * 2 * RECORD_TOKENS)

    async def run() -> None:
        log = await fed(METHOD, [long], saying((["水泵"], [decision("ADD", "水泵利润增长")])))
        assert log.incidents() == {CUT: 1}
        assert await texts(log, "2022-01-01") == [("2021-01-04", "水泵利润增长")]

    asyncio.run(run())


def test_a_record_without_facts_makes_one_call_and_leaves_its_mark() -> None:
    async def run() -> None:
        model = Model(saying(([], [])))
        tools = Tools(model, Embedder())
        assert await METHOD.apply({}, await METHOD.propose(FIRST, tools), FIRST.key.valid_from, tools) == []
        assert model.purposes() == ["mem0_facts"]

    asyncio.run(run())


def test_no_prompt_holds_another_date_than_the_records() -> None:
    async def run() -> list[str]:
        model = Model(saying((["up"], [decision("ADD", "up")])))
        tools = Tools(model, Embedder())
        await METHOD.apply({}, await METHOD.propose(FIRST, tools), FIRST.key.valid_from, tools)
        return [prompt for _, prompt in model.prompts]

    for prompt in asyncio.run(run()):
        assert "2021-01-04 09:00" in prompt
        assert not any(str(year) in prompt for year in range(2022, 2040))


def test_a_memory_of_fifty_thousand_facts() -> None:
    fields = {"created_at": "2020-01-01", "updated_at": "2020-01-01", "scope": None, "stock": None}
    state = many(50_000, text="fact {n}", **fields)

    async def run() -> None:
        script = saying((["fact 7"], [decision("UPDATE", "fact seven")]))
        tools = Tools(Model(script), Embedder())
        changes = await METHOD.apply(state, await METHOD.propose(FIRST, tools), FIRST.key.valid_from, tools)
        assert [(c.op, c.object_id) for c in changes] == [("update", "r000007")]

    asyncio.run(run())


def test_facts_are_taken_out_of_whatever_form_they_come_in() -> None:
    assert facts_of({"facts": ["a", {"fact": "b"}, {"text": "c"}, {"other": "d"}, "", 3, None]}) == ["a", "b", "c"]
    assert facts_of({"facts": "a"}) == facts_of(None) == facts_of({}) == []


def test_a_memory_deleted_by_the_same_reply_cannot_be_updated() -> None:
    state = many(1, text="up", created_at="x", updated_at="x", scope=None, stock=None)
    memories = memories_of(state)
    found = decide(
        memories,
        ["r000000"],
        [decision("DELETE", "up"), decision("UPDATE", "up again"), decision("ADD", "new")],
        lambda text: decoded(next(iter(state.values()))),
        lambda n: f"new{n}",
    )
    assert [(c.op, c.object_id) for c in found.changes] == [("delete", "r000000"), (UNKNOWN_ID, None), ("add", "new0")]


def test_one_scope_a_stock_reads_half_from_the_stock_half_from_the_cases_and_fills_up() -> None:
    scopes = ["stock:A"] * 6 + [CASES] * 1 + ["stock:B"] * 6
    fields: dict[str, Any] = {"created_at": "x", "updated_at": "x", "stock": None}
    memories = {
        f"m{i}": next(iter(memories_of(many(1, text=f"t{i}", scope=scope, **fields)).values()))
        for i, scope in enumerate(scopes)
    }
    best = [(name, 1 - i / 100) for i, name in enumerate(reversed(memories))]
    found = chosen(best, memories, Question("c", vector("q"), "A", 6, "stock"))
    assert len(found) == 6
    assert found == sorted(found, key=lambda hit: -hit[1])
    assert sum(memories[name].scope == CASES for name, _ in found) == 1
    assert sum(memories[name].scope == "stock:A" for name, _ in found) >= 3
    alone = chosen(best, memories, Question("c", vector("q"), "Z", 4, "stock"))
    assert [name for name, _ in alone][:1] == ["m12"], "an unknown stock is filled up from all"
    assert len(alone) == 4


def test_one_odd_entry_of_a_reply_costs_that_entry() -> None:
    """Through the gateway's own parser: the schema asks for texts and known events, the reader takes any object."""
    model = Scripted(
        {
            "mem0_facts": {"facts": ["up", {"fact": "down"}, {"text": "left"}, {"odd": 1}]},
            "mem0_update": {
                "memory": [
                    {"id": 7, "text": "ghost", "event": "UPDATE"},
                    {"text": "odd", "event": "MERGE"},
                    {},
                    {"id": "0", "text": "up", "event": "ADD"},
                ]
            },
        }
    )

    async def run() -> None:
        tools = Tools(model, Embedder())
        proposal = await METHOD.propose(FIRST, tools)
        assert proposal.facts == ("up", "down", "left")
        changes = await METHOD.apply({}, proposal, FIRST.key.valid_from, tools)
        assert [c.op for c in changes] == [UNKNOWN_ID, UNKNOWN_EVENT, EMPTY_TEXT, "add"]

    asyncio.run(run())


@pytest.mark.parametrize("number", ["00", "+0", " 0", "0.0", "-1", "1", "²"])
def test_an_id_is_one_of_those_shown_or_none(number: str) -> None:
    state = many(1, text="up", created_at="x", updated_at="x", scope=None, stock=None)
    memories = memories_of(state)
    found = decide(memories, ["r000000"], [decision("DELETE", "up", number)], lambda text: memories["r000000"], str)
    assert [c.op for c in found.changes] == [UNKNOWN_ID]
