"""What is asked of a model, the body that goes over the wire, and the key it is stored under."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.gateway.settings import Endpoint
from harness.text import clean

WORDED_SCHEMA = (
    "Reply with a single JSON object and nothing after it. No code fence. It must be valid under this JSON schema:\n"
)


def system(text: str) -> dict[str, str]:
    """A message of role ``system``."""
    return {"role": "system", "content": text}


def user(text: str) -> dict[str, str]:
    """A message of role ``user``."""
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    """A message of role ``assistant``."""
    return {"role": "assistant", "content": text}


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model.

    Attributes:
        messages: the conversation, oldest first: ``{"role": ..., "content": ...}`` each.
        schema: JSON schema that the reply must follow; None asks for plain text.
        tools: what the reply may call: ``name``, ``description``, ``parameters`` each (see ``harness.gateway.tools``).
        schema_name: name of the schema as the server sees it (letters, digits, ``_`` and ``-``).
        essential: keys a reply cannot do without; default: the schema's own ``required``. The reader uses it, the
            server never sees it.
        max_tokens: upper bound of the reply, default the endpoint's.
        temperature: default the endpoint's; not sent where the endpoint does not take one.
        sample: (seed, epoch). Two epochs ask the same question twice and must not share a stored reply.
        purpose, stage: for the ledger of calls only.
        cell: who asks, for the ledger and for the turns of requests: those of different cells leave in rotation.
        sequential: others wait for the reply, so it never goes by way of a batch.
    """

    messages: tuple[Mapping[str, str], ...]
    schema: Mapping[str, Any] | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    schema_name: str = "reply"
    essential: tuple[str, ...] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    sample: tuple[int, int] = (0, 0)
    purpose: str = "forecast"
    stage: str = "forecast"
    cell: str | None = None
    sequential: bool = False


def request_body(endpoint: Endpoint, request: ChatRequest) -> dict[str, Any]:
    """The body of ``POST /chat/completions`` for ``request``, before ``endpoint.extra_body``."""
    messages = [_on_the_wire(m) for m in request.messages]
    body: dict[str, Any] = {"model": endpoint.model, "messages": messages}
    if request.tools:
        body["tools"] = [{"type": "function", "function": dict(tool)} for tool in request.tools]
    body[endpoint.token_param] = request.max_tokens or endpoint.max_output_tokens
    if endpoint.supports_temperature:
        body["temperature"] = endpoint.temperature if request.temperature is None else request.temperature
    if request.schema is not None:
        if endpoint.structured == "json_schema":
            named = {"name": request.schema_name, "schema": request.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        else:
            messages[-1]["content"] += f"\n\n{WORDED_SCHEMA}{json.dumps(request.schema, ensure_ascii=False)}"
        if endpoint.structured == "json_object":
            body["response_format"] = {"type": "json_object"}
    return body


def _on_the_wire(message: Mapping[str, str]) -> dict[str, Any]:
    """A message as the API has it: calls of tools, and the answers to them, in a form of their own."""
    sent: dict[str, Any] = {"role": message["role"], "content": message["content"]}
    if "tool" in message:
        function = {"name": message["tool"], "arguments": message["arguments"]}
        sent["tool_calls"] = [{"id": message["call_id"], "type": "function", "function": function}]
    elif message["role"] == "tool":
        sent["tool_call_id"] = message["call_id"]
    return sent


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request as it is sent and stored: ``sha256`` is that of ``record``, the canonical JSON of all that matters."""

    body: dict[str, Any]
    record: str
    sha256: str


def prepare(endpoint: Endpoint, request: ChatRequest) -> Prepared:
    """The body and the key of ``request``.

    The record holds everything that can change the answer (the endpoint's name, the whole body, the sample) and nothing
    else, so it doubles as the readable record of the prompt.
    """
    body = {**request_body(endpoint, request), **endpoint.extra_body}
    what: dict[str, Any] = {
        "endpoint": endpoint.name,
        "body": body,
        "schema": request.schema,
        "sample": list(request.sample),
    }
    record = _canonical(what)
    try:
        encoded = record.encode()
    except UnicodeEncodeError:  # rare, so every request is not walked through for it
        what = clean(what)
        record = _canonical(what)
        encoded = record.encode()
    return Prepared(what["body"], record, hashlib.sha256(encoded).hexdigest())


def canonical_json(value: object) -> str:
    """One text for equal values: sorted keys, no spaces, no NaN, valid UTF-8."""
    return _canonical(clean(value))


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
