"""Tool calls: over the endpoint's own interface where it has one, else as a choice put into a JSON schema.

A caller sees neither. It offers tools (``name``, ``description``, ``parameters``: a JSON schema), and a reply that calls one has
the value ``{"tool": name, "arguments": JSON text}``. In a conversation, an assistant's message that made a call holds ``tool``,
``arguments`` and ``call_id``; the tool's answer has the role ``tool`` and the same ``call_id``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion
from harness.records import Status


def as_choice(request: ChatRequest) -> ChatRequest:
    """``request`` for an endpoint without tool calls: the tools become alternatives of a schema, calls and answers text."""
    described = "\n".join(f"- {tool['name']}: {tool['description']}" for tool in request.tools)
    messages = [_worded(m) for m in request.messages]
    messages[-1]["content"] += (
        f"\n\nYou may call one tool. Think first, in `thought`; then put the call into `call`, or null for none.\n{described}"
    )
    return dataclasses.replace(request, messages=tuple(messages), schema=choice_schema(request.tools), tools=())


def choice_schema(tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The schema of a thought and one call; every parameter is required, as strict schemas want it."""
    calls = [
        _object(tool={"type": "string", "enum": [tool["name"]]}, arguments=_object(**tool["parameters"]["properties"]))
        for tool in tools
    ]
    return _object(thought={"type": "string"}, call={"anyOf": [*calls, {"type": "null"}]})


def chosen(completion: Completion) -> Completion:
    """A completion of ``as_choice`` as if it had come over the interface for tool calls."""
    if completion.status is not Status.OK or completion.value is None:
        return completion
    call, thought = completion.value["call"], completion.value["thought"]
    value = call and {"tool": call["tool"], "arguments": json.dumps(call["arguments"], ensure_ascii=False)}
    return dataclasses.replace(completion, value=value, text=thought)


def _worded(message: Mapping[str, str]) -> dict[str, str]:
    if message["role"] == "tool":
        return {"role": "user", "content": message["content"]}
    if "tool" in message:
        call = {"tool": message["tool"], "arguments": json.loads(message["arguments"])}
        said = json.dumps({"thought": message["content"], "call": call}, ensure_ascii=False)
        return {"role": "assistant", "content": said}
    return {"role": message["role"], "content": message["content"]}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
