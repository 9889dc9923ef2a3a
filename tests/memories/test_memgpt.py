"""MemGPT: its context stays within bounds, forks leave nothing behind, bad replies and odd memories are defined."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.clock import parse_stamp
from harness.evidence import Gate
from harness.memory import MemoryLog
from harness.memory_file import read_memory, write_memory
from harness.method import Tools
from harness.records import Status
from harness.tokens import count_tokens
from methods.fed import CUT, Origin
from methods.memgpt.agent import FAILED_TOOL, UNKNOWN_TOOL, Agent, Reply
from methods.memgpt.blocks import Blocks
from methods.memgpt.method import Fork, ForkQuestion, MemGPT, SearchQuestion
from methods.memgpt.mind import CUT_EVENT, NO_REPLY, NO_SUMMARY, OVERFLOW, Bounds, Mind
from methods.memgpt.state import Held
from methods.memgpt.store import ARCHIVAL, BY_DATE, CONVERSATION, Found
from methods.memgpt.tools import APPEND, INSERT, REPLACE, SEND
from methods.vectors import VectorTable
from tests.memories.feeding import TZ, fed, many, recalled, record
from tests.tiem.world import Embedder, Model, Script

METHOD = MemGPT(name="memgpt", window=2_048)
FIRST = record("d1", "2021-01-04 09:00", "Harbour Pumps wins an order")
SECOND = record("d2", "2021-02-01 09:00", "Harbour Pumps loses the order")


def call(tool: str, again: bool = False, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": json.dumps({**arguments, "request_heartbeat": again}, ensure_ascii=False)}


def saying(*replies: Any) -> Script:
    """A model that gives these calls, step by step, then stops; and summaries whenever they are asked for."""
    left = iter(replies)

    def script(purpose: str, prompt: str) -> Any:
        return {"summary": "Old orders."} if purpose == "memgpt_summary" else next(left, call(SEND, message=""))

    return script


async def forked(log: MemoryLog, ts: str, gate: Gate = Gate.STRICT) -> Fork:
    found: Fork = await recalled(METHOD, log, ForkQuestion("c1"), ts, gate)
    return found


async def found(log: MemoryLog, ts: str, kind: str, gate: Gate = Gate.STRICT, **arguments: str) -> list[str]:
    page: Found = await recalled(METHOD, log, SearchQuestion("c1", kind, arguments, 0), ts, gate)
    return page.rows()


def test_what_the_agent_wrote_later_is_not_there_yet() -> None:
    script = saying(
        call(APPEND, True, name="human", content="An order came."), call(INSERT, content="Order of January."),
        call(REPLACE, True, name="human", old_content="came", new_content="went"), call(INSERT, content="Lost in February."),
    )  # fmt: skip

    async def run() -> None:
        log = await fed(METHOD, [FIRST, SECOND], script)
        early, late = await forked(log, "2021-01-20"), await forked(log, "2021-03-01")
        assert early.blocks is not None
        assert late.blocks is not None
        assert (early.blocks.human, late.blocks.human) == ("\nAn order came.", "\nAn order went.")
        assert (early.n_passages, late.n_passages) == (1, 2)
        assert late.origin is not None
        assert (late.origin.first, late.origin.known_at) == (FIRST.key.valid_from, SECOND.key.valid_from)
        assert await found(log, "2021-01-20", ARCHIVAL, query="order") == [
            "timestamp: 2021-01-04 09:00, memory: Order of January."
        ]
        assert len(await found(log, "2021-03-01", ARCHIVAL, query="order")) == 2
        assert await found(log, "2021-01-20", CONVERSATION, query="LOSES") == []
        assert len(await found(log, "2021-03-01", CONVERSATION, query="LOSES")) == 1
        assert await found(log, "2021-03-01", BY_DATE, start_date="2021-02-01", end_date="2021-02-01")
        paper = await forked(log, "2021-01-20", Gate.PAPER)
        assert (paper.blocks, paper.queue, paper.origin) == (None, (), None)
        assert len(await found(log, "2021-01-20", ARCHIVAL, Gate.PAPER, query="order")) == 1
        off = await forked(log, "2021-01-20", Gate.OFF)
        assert off.blocks == late.blocks

    asyncio.run(run())


@pytest.mark.parametrize(
    ("replies", "incidents"),
    [
        ([Status.INVALID], {NO_REPLY: 1}),
        ([call("sing")], {UNKNOWN_TOOL: 1}),
        ([{"tool": SEND, "arguments": "{oops"}], {FAILED_TOOL: 1}),
        ([{"tool": SEND, "arguments": "[]"}], {FAILED_TOOL: 1}),
        ([call(SEND)], {FAILED_TOOL: 1}),
        ([call(SEND, message="x", loud=True)], {FAILED_TOOL: 1}),
        ([call(APPEND, name="human", content=7)], {FAILED_TOOL: 1}),
        ([call(APPEND, name="notes", content="x")], {FAILED_TOOL: 1}),
        ([call(APPEND, name="human", content="x" * 3000)], {FAILED_TOOL: 1}),
        ([call(REPLACE, name="human", old_content="absent", new_content="x")], {FAILED_TOOL: 1}),
        ([call(ARCHIVAL, query="x", page=-1)], {FAILED_TOOL: 1}),
        ([call(BY_DATE, start_date="January", end_date="2021-01-01")], {FAILED_TOOL: 1}),
        ([{"tool": ARCHIVAL, "arguments": '{"query": "x", "page": 1e999}'}], {FAILED_TOOL: 1}),
        ([{"tool": ARCHIVAL, "arguments": '{"query": "x", "page": Infinity}'}], {FAILED_TOOL: 1}),
        ([call(ARCHIVAL, query="x")], {}),
        ([{}], {}),
    ],
)
def test_a_bad_reply_is_answered_counted_and_heard_of(replies: list[Any], incidents: dict[str, int]) -> None:
    async def run() -> None:
        log = await fed(METHOD, [FIRST], saying(*replies))
        assert log.incidents() == incidents
        assert len(await found(log, "2022-01-01", CONVERSATION, query="wins an order")) == 1, "the record is kept"
        if FAILED_TOOL in incidents or UNKNOWN_TOOL in incidents:
            queue = (await forked(log, "2022-01-01")).queue
            assert [m.role for m in queue] == ["user", "assistant", "function"] * 2
            assert json.loads(queue[2].content)["status"] == "failed"
            assert json.loads(queue[3].content)["type"] == "heartbeat"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (INSERT, '{"content": "up \\ud83d"}'),
        (APPEND, '{"name": "human", "content": "up \\ud83d"}'),
        (SEND, '{"message": "", "\\ud83d": "x"}'),
    ],
)
def test_half_a_character_in_an_argument_is_replaced_so_that_the_memory_can_be_stored(
    tool: str, arguments: str, tmp_path: Path
) -> None:
    async def run() -> None:
        log = await fed(METHOD, [FIRST, SECOND], saying({"tool": tool, "arguments": arguments}))
        write_memory(tmp_path / "memory.parquet", log)
        assert read_memory(tmp_path / "memory.parquet").sha256() == log.sha256()

    asyncio.run(run())


def test_what_goes_back_to_the_server_is_what_any_server_takes() -> None:
    """Some check the names of tools, and decode arguments again, in every conversation that is continued."""
    said = (
        ("functions.sing it", "{}"),
        ("", "{}"),
        (SEND, "{oops"),
        (SEND, '{"message": NaN}'),
        (SEND, '{"a": "\\ud83d"}'),
    )
    agent = Agent(Blocks("", ""))
    conversations: list[Sequence[Any]] = []

    class Overheard(Model):
        async def complete(self, messages: Sequence[Any], *, purpose: str, **more: Any) -> Any:
            conversations.append(messages)
            return await super().complete(messages, purpose=purpose, **more)

    model = Overheard(saying(*({"tool": tool, "arguments": arguments} for tool, arguments in said)))
    mind = Mind(model, Bounds(8_192, 0.75, 0.75, 3))
    store = Held([], [], VectorTable(), Embedder(), agent)
    asyncio.run(mind.attend(agent, "event", store, "2021-01-04", (ORIGIN, ORIGIN), 1 + len(said)))
    assert mind.incidents == [UNKNOWN_TOOL] * 2 + [FAILED_TOOL] * 3
    sent = conversations[-1]
    assert [m["tool"] for m in sent if "tool" in m] == [SEND] * 3
    assert [json.loads(m["arguments"]) for m in sent if "tool" in m] == [{}, {}, {"a": "\ufffd"}]
    assert any("functions.sing it" in m["content"] for m in sent), "what it did is told in words"
    assert [m["role"] for m in sent].count("tool") == 3


def test_the_steps_on_a_record_are_bounded() -> None:
    async def run() -> None:
        model = Model(lambda *_: call(SEND, True, message=""))
        tools = Tools(model, Embedder())
        await METHOD.apply({}, await METHOD.propose(FIRST, tools), FIRST.key.valid_from, tools)
        assert len(model.prompts) == METHOD.record_steps

    asyncio.run(run())


def test_the_context_never_exceeds_the_window_and_what_left_it_can_be_found() -> None:
    records = [
        record(f"d{n:02}", f"2021-01-{n:02} 09:00", f"水泵公司第{n}号订单 " + "订单增长。" * 40) for n in range(1, 29)
    ]

    class Sized(Model):
        async def complete(self, messages: Sequence[Any], *, purpose: str, **more: Any) -> Any:
            if purpose == "memgpt_step":
                sizes.append(sum(count_tokens(m["content"]) for m in messages))
            return await super().complete(messages, purpose=purpose, **more)

    sizes: list[int] = []

    async def run() -> None:
        log = MemoryLog()
        tools = Tools(Sized(saying()), Embedder())
        for one in records:
            proposal = await METHOD.propose(one, tools)
            log.commit(one.key, await METHOD.apply(log.final_state(), proposal, one.key.valid_from, tools))
        assert max(sizes) <= METHOD.window
        fork = await forked(log, "2022-01-01")
        alert = json.loads(fork.queue[0].content)
        assert (alert["type"], alert["summary"]) == ("system_alert", "Old orders.")
        assert alert["hidden"] >= alert["n_summarized"] >= 2
        assert len(await found(log, "2022-01-01", CONVERSATION, query="第1号")) == 1
        assert log.incidents() == {}

    asyncio.run(run())


ORIGIN = Origin(("r",), FIRST.key.valid_from, FIRST.key.valid_from, None)


def attend(
    agent: Agent, event: str, script: Script, window: int = 2_048, tokens: int | None = None
) -> tuple[Mind, list[str]]:
    """One event; the mind with its incidents, and the purposes asked."""
    model = Model(script)

    class Used(Model):
        async def complete(self, *args: Any, **more: Any) -> Any:
            reply = await super().complete(*args, **more)
            used = replace(reply.calls[0], prompt_tokens=tokens, completion_tokens=0)
            return replace(reply, calls=(used,))

    model = Used(script)
    mind = Mind(model, Bounds(window, 0.75, 0.75, 3))
    store = Held([], [], VectorTable(), Embedder(), agent)
    asyncio.run(mind.attend(agent, event, store, "2021-01-04", (ORIGIN, ORIGIN), 4))
    return mind, model.purposes()


def test_an_event_that_nothing_makes_room_for_is_cut_and_the_run_goes_on() -> None:
    agent = Agent(Blocks("人" * 1_900, "司" * 1_900))
    agent.add("user", "2021-01-04", "旧" * 1_000, ORIGIN)
    mind, _ = attend(agent, "新" * 3_000, saying())
    assert mind.incidents[:2] == [OVERFLOW, CUT_EVENT]
    assert agent.new_messages[1].content.startswith("新")


def test_a_summary_that_cannot_be_used_is_counted() -> None:
    agent = Agent(Blocks("", ""))
    for n in range(40):
        agent.add("assistant" if n % 2 else "user", "2021-01-04", f"{n} " + "order " * 60, ORIGIN)

    def script(purpose: str, prompt: str) -> Any:
        return Status.INVALID if purpose == "memgpt_summary" else call(SEND, message="")

    mind, purposes = attend(agent, "new", script)
    assert NO_SUMMARY in mind.incidents
    assert purposes.count("memgpt_summary") >= 2, "what is too long for one summary is summarised in parts"
    assert json.loads(agent.queue[0].content)["summary"] == ""


def test_the_agent_is_warned_once_until_messages_leave() -> None:
    agent = Agent(Blocks("", ""))
    attend(agent, "first", saying({}), tokens=1_600)
    attend(agent, "second", saying({}), tokens=1_600)
    alerts = [m for m in agent.queue if "system_alert" in m.content]
    assert len(alerts) == 1
    agent.evict(2, "gone", "2021-01-04", ORIGIN)
    assert not agent.alerted


def test_tool_results_are_bounded_but_searches_are_not() -> None:
    agent = Agent(Blocks("", ""))
    for n in range(5):
        agent.add("user", "2021-01-04", f"order {n} " + "x" * 900, ORIGIN)
    attend(agent, "look", saying({"tool": CONVERSATION, "arguments": '{"query": "order"}'}), window=8_192)
    (answer,) = [m for m in agent.queue if m.role == "function"][:1]
    assert len(answer.content) > 4_000


def test_a_fork_leaves_nothing_behind() -> None:
    async def run() -> None:
        log = await fed(METHOD, [FIRST], saying(call(INSERT, content="kept")))
        before = log.sha256()
        fork = await forked(log, "2022-01-01")
        agent = fork.agent(Blocks("", ""))
        store = Held([], [], VectorTable(), Embedder(), agent)
        reply = Reply("", INSERT, '{"content": "of the fork"}', 1)
        await agent.take("question", reply, store, 1_000, "2022-01-01", (ORIGIN, ORIGIN))
        assert agent.n_passages == fork.n_passages + 1
        assert log.sha256() == before
        assert (await forked(log, "2022-01-01")).n_passages == fork.n_passages
        assert len(await found(log, "2022-01-01", ARCHIVAL, query="fork")) == 1

    asyncio.run(run())


def test_a_record_longer_than_its_share_of_the_window_is_cut_and_counted() -> None:
    async def run() -> None:
        log = await fed(METHOD, [record("d1", "2021-01-04", "水泵" * 5_000)], saying())
        assert log.incidents() == {CUT: 1}

    asyncio.run(run())


def test_a_memory_of_fifty_thousand_messages_and_passages() -> None:
    stamp = parse_stamp("2020-01-01 09:00", TZ)
    origin = Origin(("r",), stamp.instant, stamp.instant, stamp.day)
    fields: dict[str, Any] = {"number": ..., "stamp": "2020-01-01", "content": "order {n}"}
    messages = many(50_000, **fields, role="user", tool=None, arguments=None)
    state = {f"message:{k}": v for k, v in messages.items()}
    state |= {f"passage:{k}": v for k, v in many(1_000, **fields).items()}
    context = {"queue": [], "n_messages": 50_000, "n_passages": 1_000, "alerted": False, "total": 50_000}
    state["context"] = json.dumps({**context, "origin": origin.plain()})

    async def run() -> None:
        script = saying(call(CONVERSATION, True, query="order 49999"), call(ARCHIVAL, query="order 3"))
        tools = Tools(Model(script), Embedder())
        changes = await METHOD.apply(state, await METHOD.propose(FIRST, tools), FIRST.key.valid_from, tools)
        assert [c.op for c in changes] == ["message"] * 6 + ["context"]
        assert "Showing 1 of 1" in json.loads(json.loads(str(changes[2].value))["content"])["message"]

    asyncio.run(run())
