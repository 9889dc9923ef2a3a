"""A-MEM: what later notes do to earlier ones, and not before their time; bad replies and odd memories."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from harness.clock import Stamp, parse_stamp
from harness.evidence import Gate
from harness.memory import MemoryLog
from harness.method import FedRecord, Tools
from harness.records import Status
from methods.a_mem.method import NO_DESCRIPTION, NO_EVOLUTION, AMem, Question, Read
from methods.a_mem.notes import UNKNOWN_POSITION, fresh_index_text, notes_of, with_linked
from methods.fed import CUT, RECORD_TOKENS
from tests.memories.feeding import TZ, fed, many, recalled, record
from tests.tiem.world import Embedder, Model, Script, vector

METHOD = AMem(name="a_mem", rebuild_every=2)
RECORDS = [record(f"d{n}", f"2021-0{n}-01 09:00", f"Harbour Pumps order {n}") for n in (1, 2, 3)]
STILL: dict[str, Any] = {
    "should_evolve": False,
    "actions": [],
    "suggested_connections": [],
    "tags_to_update": [],
    "new_context_neighborhood": [],
    "new_tags_neighborhood": [],
}
QUESTION = Question("c1", vector("order"), frozenset(), 10)


def moving(**fields: Any) -> dict[str, Any]:
    return {**STILL, "should_evolve": True, **fields}


def saying(*evolutions: Mapping[str, Any] | Status) -> Script:
    """A model that describes every record alike and gives these evolutions, record by record."""
    left = iter(evolutions)

    def script(purpose: str, prompt: str) -> Any:
        if purpose == "a_mem_note":
            return {"keywords": ["order", "pump"], "context": "An order.", "tags": ["orders"]}
        return next(left)

    return script


def after(one: FedRecord) -> Stamp:
    """A decision late on the day of a record."""
    return parse_stamp(f"{one.key.day} 23:00", TZ)


async def read(log: MemoryLog, ts: str, gate: Gate = Gate.STRICT, question: Question = QUESTION) -> dict[str, Read]:
    found: tuple[Read, ...] = await recalled(METHOD, log, question, ts, gate)
    return {r.note_id: r for r in found}


def test_a_later_note_changes_an_earlier_one_from_its_own_time_on() -> None:
    change = moving(
        actions=["update_neighbor", "strengthen"],
        suggested_connections=[0],
        tags_to_update=["linked"],
        new_context_neighborhood=["Said anew."],
        new_tags_neighborhood=[["new"]],
    )

    async def run() -> None:
        log = await fed(METHOD, RECORDS[:2], saying(STILL, change))
        before, after = await read(log, "2021-01-20"), await read(log, "2021-03-01")
        assert (before["d1"].note.context, before["d1"].note.tags) == ("An order.", ("orders",))
        assert (after["d1"].note.context, after["d1"].note.tags) == ("Said anew.", ("new",))
        assert (after["d2"].note.links, after["d2"].note.tags) == ((0,), ("linked",))
        assert after["d1"].note.origin.sources == ("d1",)
        assert after["d1"].note.origin.known_at == RECORDS[1].key.valid_from
        assert set(await read(log, "2021-01-20", Gate.PAPER)) == set(), "its only note was changed later"
        assert set(await read(log, "2021-01-20", Gate.OFF)) == {"d1", "d2"}

    asyncio.run(run())


def test_the_index_follows_only_when_it_is_rebuilt() -> None:
    anew = moving(actions=["update_neighbor"], new_context_neighborhood=["Anew."], new_tags_neighborhood=[["new"]])

    async def run() -> None:
        log = await fed(METHOD, RECORDS, saying(STILL, anew, moving()))
        fresh = fresh_index_text("", "An order.", ["order", "pump"])
        first, second, third = (notes_of(log.state_at(log.length_at(after(r)))) for r in RECORDS)
        assert first["d1"].index_text == second["d1"].index_text == fresh
        assert second["d1"].context == "Anew."
        assert third["d1"].index_text == f"{third['d1'].content} , Anew. order pump new"
        assert third["d3"].index_text.startswith(third["d3"].content)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("script", "incident"),
    [
        (lambda purpose, prompt: Status.INVALID if purpose == "a_mem_note" else STILL, NO_DESCRIPTION),
        (saying(Status.REFUSED), NO_EVOLUTION),
        (saying(moving(actions=["strengthen"], suggested_connections=[0], tags_to_update=["x"])), UNKNOWN_POSITION),
        (saying(moving(actions=["strengthen"], suggested_connections=[-1])), UNKNOWN_POSITION),
    ],
)
def test_a_bad_reply_is_counted_and_the_note_stays(script: Script, incident: str) -> None:
    async def run() -> None:
        log = await fed(METHOD, RECORDS[:1], script)
        assert log.incidents() == {incident: 1}
        found = (await read(log, "2022-01-01"))["d1"].note
        assert found.links == ()
        assert found.index_text

    asyncio.run(run())


def test_more_tags_than_neighbours_and_fewer_contexts_than_tags() -> None:
    change = moving(
        actions=["update_neighbor"], new_context_neighborhood=[], new_tags_neighborhood=[["a"], ["b"], ["c"]]
    )

    async def run() -> None:
        found = await read(await fed(METHOD, RECORDS[:2], saying(STILL, change)), "2022-01-01")
        assert (found["d1"].note.context, found["d1"].note.tags) == ("An order.", ("a",))

    asyncio.run(run())


def test_an_empty_memory_still_asks_how_to_evolve_and_answers_nothing() -> None:
    async def run() -> None:
        assert await read(MemoryLog(), "2021-01-01") == {}
        model = Model(saying(STILL))
        tools = Tools(model, Embedder())
        await METHOD.apply({}, await METHOD.propose(RECORDS[0], tools), RECORDS[0].key.valid_from, tools)
        assert model.purposes() == ["a_mem_note", "a_mem_evolve"]

    asyncio.run(run())


def test_a_record_that_is_shown_anyway_is_neither_found_nor_read_along() -> None:
    link = moving(actions=["strengthen"], suggested_connections=[0])

    async def run() -> None:
        log = await fed(METHOD, RECORDS[:2], saying(STILL, link))
        question = Question("c1", vector("order"), frozenset({"d1"}), 10)
        assert set(await read(log, "2022-01-01", question=question)) == {"d2"}

    asyncio.run(run())


def test_a_chinese_record_longer_than_the_window_is_cut_and_counted() -> None:
    async def run() -> None:
        log = await fed(METHOD, [record("d1", "2021-01-04", "水泵订单" * 2 * RECORD_TOKENS)], saying(STILL))
        assert log.incidents() == {CUT: 1}
        assert "水泵订单" in (await read(log, "2022-01-01"))["d1"].note.content

    asyncio.run(run())


def test_a_memory_of_fifty_thousand_notes() -> None:
    state = many(
        50_000, position=..., content="order {n}", stamp="2020-01-01", keywords=[], context="", tags=[], links=[],
        index_text="order {n}", evolved=False, stock=None,
    )  # fmt: skip
    change = moving(actions=["strengthen"], suggested_connections=[49_999])

    async def run() -> None:
        tools = Tools(Model(saying(change)), Embedder())
        changes = await METHOD.apply(state, await METHOD.propose(RECORDS[0], tools), RECORDS[0].key.valid_from, tools)
        assert [(c.op, c.object_id) for c in changes] == [("add", "d1")]
        new = notes_of({"d1": str(changes[0].value)})["d1"]
        assert (new.position, new.links) == (50_000, (49_999,))

    asyncio.run(run())


def test_linked_notes_share_one_counter() -> None:
    class Linked:
        def __init__(self, *links: int) -> None:
            self.links = links

    notes: Any = {0: Linked(), 1: Linked(0, 0, 0), 2: Linked(0, 1), 3: Linked(1, 9)}
    assert with_linked(notes, [1, 2, 3], 2) == [1, 0, 0, 0, 2, 0, 3, 1]
    assert with_linked(notes, [3], 2) == [3, 1], "a link to a note that is not seen does not count"


def test_a_reply_may_leave_out_what_its_actions_do_not_need() -> None:
    async def run() -> None:
        script = saying(STILL, {"should_evolve": True, "actions": ["strengthen"], "suggested_connections": [0]})
        log = await fed(METHOD, RECORDS[:2], script)
        assert (await read(log, "2022-01-01"))["d2"].note.links == (0,)
        assert log.incidents() == {}

    asyncio.run(run())
