"""Runners of MemGPT's rules: blocks, eviction, paging, steps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from harness.method import Vectors
from methods.fed import Origin
from methods.memgpt.agent import Agent, Reply
from methods.memgpt.blocks import Blocks
from methods.memgpt.queue import NothingToEvict, evicted
from methods.memgpt.state import Held
from methods.memgpt.store import ARCHIVAL, Found, Message, Passage, page_number, paged
from methods.vectors import VectorTable

_NOW = datetime(2021, 1, 1, tzinfo=UTC)
ORIGIN = Origin(("r",), _NOW, _NOW, None)
STAMP = "2021-01-01 09:00:00"
ARCHIVED_AT = "T0"
"""What the cases call the time of a passage."""


async def alike(texts: Sequence[str]) -> Vectors:
    """One vector for all: the order of passages by vectors is not what is tested."""
    return np.ones((len(texts), 1), dtype=np.float32)


def memgpt_core(inputs: Any, expected: Any) -> None:
    limits = inputs["limits"]
    blocks = Blocks(inputs["initial"]["persona"], inputs["initial"]["human"], limits["persona"], limits["human"])
    for op, want in zip(inputs["ops"], expected["trace"], strict=True):
        args = op["args"]
        error = None
        try:
            if op["fn"] == "core_memory_append":
                blocks = blocks.append(args["name"], args["content"])
            else:
                blocks = blocks.replace(args["name"], args["old_content"], args["new_content"])
        except (KeyError, ValueError) as raised:
            error = type(raised).__name__
        found = {"ok": error is None, "error_type": error, "human": blocks.human}
        found |= {"persona_len": len(blocks.persona), "persona": blocks.persona, "human_len": len(blocks.human)}
        assert {name: found[name] for name in want} == want


def memgpt_evict(inputs: Any, expected: Any) -> None:
    for case, want in zip(inputs["cases"], expected["results"], strict=True):
        agent = Agent(Blocks("", ""))
        for message in case["messages"]:
            agent.add(message["role"], STAMP, message["content"], ORIGIN)
        roles = [m.role for m in agent.queue]
        arguments = (roles, case["token_counts"], inputs["truncate_fraction"], inputs["keep_last"])
        if "raises" in want:
            assert want["raises"] == "LLMError"
            with pytest.raises(NothingToEvict):
                evicted(*arguments)
            continue
        count = evicted(*arguments)
        agent.evict(count, "SUMMARY", STAMP, ORIGIN)
        assert count == want["n_summarized"]
        assert [_plain(m) for m in agent.queue] == want["messages_after"]
        assert agent.n_messages == want["recall_total_messages"]
        assert agent.total == want["messages_total_counter"]


def memgpt_paging(inputs: Any, expected: Any) -> None:
    asyncio.run(_paging(inputs, expected))


async def _paging(inputs: Any, expected: Any) -> None:
    messages = [Message(0, "system", "2021-01-01 00:00:00", "instructions about alpha and beta", None, None, ORIGIN)]
    for number, given in enumerate(inputs["recall_messages"], start=1):
        message = given["message"]
        messages.append(Message(number, message["role"], given["timestamp"], message["content"], None, None, ORIGIN))
    passages = [Passage(n, ARCHIVED_AT, text, ORIGIN) for n, text in enumerate(inputs["archival_passages"])]
    store = Held(messages, passages, VectorTable(), alike)
    for query, want in zip(inputs["queries"], expected["outputs"], strict=True):
        args = query["args"]
        try:
            page = page_number(args.get("page"))
            if query["fn"] == ARCHIVAL:  # by words, in the order of writing: the order by vectors is not what is tested
                found = paged([p for p in passages if args["query"] in p.content], page)
            else:
                found = await store.search(query["fn"], args, page)
        except ValueError:
            assert want == {"raises": "ValueError"}
            continue
        assert _page(found) == want


def memgpt_step(inputs: Any, expected: Any) -> None:
    asyncio.run(_step(inputs, expected))


async def _step(inputs: Any, expected: Any) -> None:
    agent = Agent(Blocks("p", "h"))
    store = Held([], [], VectorTable(), alike, agent)
    for heard, given, want in zip(inputs["inputs"], inputs["llm_replies"], expected["trace"], strict=True):
        arguments = given.get("args")
        text = arguments if arguments is None or isinstance(arguments, str) else json.dumps(arguments)
        reply = Reply(given["thought"], given.get("fn"), text, given["total_tokens"])
        step = await agent.take(heard, reply, store, 0.75 * inputs["context_window"], STAMP, (ORIGIN, ORIGIN))
        assert {
            "heartbeat_request": step.heartbeat_request,
            "function_failed": step.function_failed,
            "memory_warning": step.memory_warning,
            "next_input": step.next_input.value,
            "n_context_messages": 1 + len(agent.queue),
            "n_recall": agent.n_messages,
            "human": agent.blocks.human,
            "archival": [p.content for p in agent.new_passages],
        } == want


def _plain(message: Message) -> Sequence[Any]:
    if message.role == "user" and message.content.startswith("{"):
        alert = json.loads(message.content)
        assert alert.pop("type") == "system_alert"
        return ["user", {"summary_alert": alert}]
    return [message.role, [message.content, message.tool] if message.role == "assistant" else message.content]


def _page(found: Found) -> dict[str, Any]:
    rows = {"n_shown": len(found.hits), "rows": found.rows()}
    return {**rows, "total": found.total, "page": found.page, "last_page": found.last_page} if found.hits else rows
