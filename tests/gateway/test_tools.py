"""Tool calls: over the interface of an endpoint that has one, in a JSON schema elsewhere; the caller sees no difference."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from harness.gateway.cache import ReplyCache
from harness.gateway.core import Gateway
from harness.gateway.reply import read_reply
from harness.gateway.request import ChatRequest, prepare, user
from harness.gateway.result import Completion
from harness.gateway.settings import Endpoint
from harness.gateway.tools import as_choice, chosen
from harness.records import Status
from harness.rehearsal import start_rehearsal
from harness.rehearsal.answerer import tool_call

TOOLS = (
    {
        "name": "look_up",
        "description": "Look something up.",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}, "page": {"type": "integer", "minimum": 0, "maximum": 9}},
            "required": ["query"],
        },
    },
    {
        "name": "note",
        "description": "Write a note.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
)
CALLED = {"role": "assistant", "content": "", "tool": "note", "arguments": '{"text": "订单"}', "call_id": "call_1"}
ANSWERED = {"role": "tool", "content": "done", "call_id": "call_1"}
REQUEST = ChatRequest((user("The company wins an order."), CALLED, ANSWERED, user("Go on.")), tools=TOOLS)


def endpoint(**settings: Any) -> Endpoint:
    return Endpoint(name="e", model="rehearsal", base_url="http://127.0.0.1:1/v1", **settings)


def reply(message: dict[str, Any], finish: str = "tool_calls") -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish}]}


def calling(arguments: Any, name: str = "note") -> dict[str, Any]:
    return {"content": None, "tool_calls": [{"id": "x", "function": {"name": name, "arguments": arguments}}]}


def test_over_the_interface_calls_and_answers_have_their_own_form() -> None:
    body = prepare(endpoint(), REQUEST).body
    assert [t["function"]["name"] for t in body["tools"]] == ["look_up", "note"]
    assert body["messages"][1]["tool_calls"][0]["function"] == {"name": "note", "arguments": '{"text": "订单"}'}
    assert body["messages"][2] == {"role": "tool", "content": "done", "tool_call_id": "call_1"}
    assert "response_format" not in body


def test_without_the_interface_everything_is_text_and_a_schema() -> None:
    body = prepare(endpoint(), as_choice(REQUEST)).body
    assert "tools" not in body
    assert {m["role"] for m in body["messages"]} == {"user", "assistant"}
    assert json.loads(body["messages"][1]["content"])["call"] == {"tool": "note", "arguments": {"text": "订单"}}
    assert "look_up: Look something up." in body["messages"][-1]["content"]
    calls = body["response_format"]["json_schema"]["schema"]["properties"]["call"]["anyOf"]
    assert calls[0]["properties"]["arguments"]["required"] == ["query", "page"]
    assert calls[-1] == {"type": "null"}


@pytest.mark.parametrize(
    ("message", "finish", "status", "value"),
    [
        (calling('{"text": "a"}'), "tool_calls", Status.OK, {"tool": "note", "arguments": '{"text": "a"}'}),
        (calling({"text": "a"}), "stop", Status.OK, {"tool": "note", "arguments": '{"text": "a"}'}),
        (calling("{oops"), "tool_calls", Status.OK, {"tool": "note", "arguments": "{oops"}),
        (calling("{}", name="sing"), "tool_calls", Status.OK, {"tool": "sing", "arguments": "{}"}),
        (calling('{"text": "a'), "length", Status.TRUNCATED, None),
        (calling('{"text": "a"}'), "length", Status.OK, {"tool": "note", "arguments": '{"text": "a"}'}),
        ({"content": "In words."}, "stop", Status.OK, None),
        ({"content": "In words.", "tool_calls": []}, "stop", Status.OK, None),
        ({"content": "In words.", "tool_calls": [{"id": "x"}]}, "stop", Status.OK, None),
        ({"content": ""}, "stop", Status.INVALID, None),
        ({"content": None, "refusal": "No."}, "stop", Status.REFUSED, None),
    ],
)
def test_what_a_reply_calls(message: dict[str, Any], finish: str, status: Status, value: Any) -> None:
    reading = read_reply(reply(message, finish), None, None)
    assert (reading.status, reading.value) == (status, value)


def test_a_choice_reads_as_a_call() -> None:
    def read(call: Any) -> Completion:
        return chosen(Completion(Status.OK, {"thought": "So.", "call": call}, "{...}", None, "r"))

    assert read({"tool": "note", "arguments": {"text": "订单"}}).value == {
        "tool": "note",
        "arguments": '{"text": "订单"}',
    }
    assert (read(None).value, read(None).text) == (None, "So.")
    failed = Completion(Status.INVALID, None, "{", "no JSON", "r")
    assert chosen(failed) is failed


def test_the_rehearsal_endpoint_calls_tools_by_a_function_of_the_request() -> None:
    body = prepare(endpoint(), REQUEST).body
    assert tool_call(body, "a") == tool_call(body, "a")
    assert tool_call({**body, "tools": []}, "a") is None
    bodies = [prepare(endpoint(), ChatRequest((user(f"Order {n} comes in."),), tools=TOOLS)).body for n in range(60)]
    calls = [tool_call(b, "a") for b in bodies]
    assert {c["function"]["name"] for c in calls if c} == {"look_up", "note"}
    assert any(c is None for c in calls), "it never answers in words"
    for call in filter(None, calls):
        assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert calls != [tool_call(b, "b") for b in bodies]


@pytest.mark.parametrize("has_interface", [True, False])
def test_both_ways_through_the_gateway(tmp_path: Path, has_interface: bool) -> None:
    requests = [ChatRequest((user(f"Order {n} comes in."),), tools=TOOLS) for n in range(12)]

    async def ask(url: str) -> list[Completion]:
        gateway = Gateway(
            endpoint(tool_calls=has_interface).model_copy(update={"base_url": url}), ReplyCache(tmp_path / "r.sqlite")
        )
        try:
            return await asyncio.gather(*(gateway.complete(r) for r in requests))
        finally:
            await gateway.close()

    server = start_rehearsal()
    try:
        first, again = asyncio.run(ask(server.base_url)), asyncio.run(ask(server.base_url))
    finally:
        server.stop()
    assert {c.status for c in first} == {Status.OK}
    assert [c.value for c in first] == [c.value for c in again]
    assert all(c.cache_hit for c in again)
    called = [c.value for c in first if c.value]
    assert {v["tool"] for v in called} == {"look_up", "note"}
    assert all(isinstance(json.loads(v["arguments"]), dict) for v in called)


@pytest.mark.parametrize(
    ("fault", "status"), [("truncated", Status.TRUNCATED), ("refused", Status.REFUSED), ("malformed", Status.OK)]
)
def test_faults_spoil_calls_too(tmp_path: Path, fault: str, status: Status) -> None:
    server = start_rehearsal(fault=f"{fault}=1")

    async def ask() -> list[Completion]:
        gateway = Gateway(
            endpoint(retries=1).model_copy(update={"base_url": server.base_url}), ReplyCache(tmp_path / "r.sqlite")
        )
        try:
            requests = (ChatRequest((user(f"Order {n} comes in."),), tools=TOOLS) for n in range(6))
            return [await gateway.complete(r) for r in requests]
        finally:
            await gateway.close()

    try:
        found = asyncio.run(ask())
    finally:
        server.stop()
    assert status in {c.status for c in found}
