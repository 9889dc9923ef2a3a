"""The rehearsal endpoint: ``/v1/chat/completions``, ``/v1/embeddings``, ``/v1/models`` and ``/stats`` on loopback; see also ``batches``."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from aiohttp import web

from harness.rehearsal import FINGERPRINT, vectors
from harness.rehearsal.answerer import answer, tool_call
from harness.rehearsal.batches import BatchDesk
from harness.rehearsal.faults import Faults
from harness.rehearsal.limits import Limits

_MODELS = ("rehearsal", "rehearsal_b", "rehearsal-embedding")
ACCEPTED = ("json_schema", "object_schema", "json_object", "none")
"""Forms of ``response_format``, best first: a schema, an object with a schema beside it, an object, none at all."""
NAMED = ("all", "wait", "none")
"""What headers tell of the limits: everything, only how long to wait after a 429, nothing."""
_HANG_S = 120.0
_FAULT_WAIT_S = 0.1
_BODY_LIMIT = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line sets. ``latency`` in seconds; limits a minute; ``key`` None lets everybody in.

    ``accepts`` is the best form of ``response_format`` that is taken; what is better is answered with status ``refusal``.
    ``names`` is what headers tell of the limits.
    """

    rpm: float | None = None
    tpm: float | None = None
    latency: float = 0.0
    faults: Faults = field(default_factory=Faults)
    variant: str = "a"
    key: str | None = None
    accepts: str = ACCEPTED[0]
    refusal: int = 500
    names: str = NAMED[0]


@dataclass(slots=True)
class Counts:
    """``repeated``: requests whose body had been answered 200 before."""

    requests: int = 0
    ok: int = 0
    n429: int = 0
    repeated: int = 0


class Desk:
    """Limits, counts and memory of one kind of call."""

    def __init__(self, options: Options, now: float) -> None:
        self.limits = Limits(options.rpm, options.tpm, now)
        self.counts = Counts()
        self.seen: Counter[bytes] = Counter()
        self.answered: set[bytes] = set()


class Server:
    """Handlers of the endpoint. One event loop, no locks."""

    def __init__(self, options: Options) -> None:
        now = asyncio.get_running_loop().time()
        self._options = options
        self._desks = {"chat": Desk(options, now), "embeddings": Desk(options, now)}

    def app(self) -> web.Application:
        app = web.Application(client_max_size=_BODY_LIMIT)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/stats", self._stats)
        BatchDesk(self._of_batch, self._options.latency).add_to(app, self._may_enter)
        return app

    async def _stats(self, _: web.Request) -> web.Response:
        return _json({name: asdict(desk.counts) for name, desk in self._desks.items()})

    async def _models(self, request: web.Request) -> web.Response:
        if not self._may_enter(request):
            return _unauthorized()
        return _json(
            {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "rehearsal"} for name in _MODELS]}
        )

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        if body is None or not isinstance(body.get("messages"), list) or not body["messages"]:
            return _error(400, "invalid_request_error", "the body must be a JSON object with a list of messages")
        if ACCEPTED.index(_form(body)) < ACCEPTED.index(self._options.accepts):
            self._desks["chat"].counts.requests += 1
            return _error(self._options.refusal, "server_error", f"response_format {_form(body)} is not supported")
        whole = self._completion(body)
        used = whole["usage"]["total_tokens"]
        return await self._serve(request, "chat", body, used, lambda fault: _spoilt(whole, fault))

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        """The chat completion that answers ``body``."""
        content, call = answer(body, self._variant(body)), tool_call(body, self._variant(body))
        said = content + call["function"]["arguments"] if call else content
        prompt, completion = _tokens(json.dumps(body["messages"], ensure_ascii=False)), _tokens(said)
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if call is not None:
            message["tool_calls"] = [call]
        return {
            "id": f"chatcmpl-{_digest(body).hex()}",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model"),
            "system_fingerprint": FINGERPRINT,
            "choices": [
                {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if call else "stop"}
            ],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
                "prompt_tokens_details": {"cached_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0},
            },
        }

    def _of_batch(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """(status, body) for one line of a batch, after faults; None for a line that the batch never came to."""
        desk = self._desks["chat"]
        desk.counts.requests += 1
        digest = _digest(body)
        desk.counts.repeated += digest in desk.answered
        fault = self._options.faults.choose(digest, desk.seen[digest])
        desk.seen[digest] += 1
        if fault in ("reset", "hang"):
            return None
        if fault is not None and fault.isdecimal():
            return int(fault), {"error": {"message": "a fault on purpose", "code": "server_error"}}
        desk.counts.ok += 1
        desk.answered.add(digest)
        return 200, _spoilt(self._completion(body), fault)

    async def _embeddings(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        texts = body.get("input") if body is not None else None
        texts = [texts] if isinstance(texts, str) else texts
        if body is None or not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t for t in texts):
            return _error(400, "invalid_request_error", "input must be a text or a list of texts, none of them empty")
        used = sum(_tokens(text) for text in texts)

        def reply(_: str | None) -> dict[str, Any]:
            size = int(body.get("dimensions") or vectors.DIMENSIONS)
            rows = [vectors.embed(text, size, self._variant(body)) for text in texts]
            as_text = body.get("encoding_format") == "base64"
            data = [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": base64.b64encode(row.astype("<f4").tobytes()).decode() if as_text else row.tolist(),
                }
                for index, row in enumerate(rows)
            ]
            usage = {"prompt_tokens": used, "total_tokens": used}
            return {"object": "list", "model": body.get("model"), "data": data, "usage": usage}

        return await self._serve(request, "embeddings", body, used, reply)

    async def _serve(
        self,
        request: web.Request,
        kind: str,
        body: dict[str, Any],
        tokens: int,
        reply: Callable[[str | None], dict[str, Any]],
    ) -> web.StreamResponse:
        """Door, limits, faults, latency, then ``reply(fault)``."""
        desk = self._desks[kind]
        desk.counts.requests += 1
        if not self._may_enter(request):
            return _unauthorized()
        digest = _digest(body)
        desk.counts.repeated += digest in desk.answered
        verdict = desk.limits.admit(tokens, asyncio.get_running_loop().time())
        named = verdict.headers if self._options.names == "all" else {}
        fault = self._options.faults.choose(digest, desk.seen[digest])
        desk.seen[digest] += 1
        if verdict.wait_s > 0 or fault == "429":
            desk.counts.n429 += 1
            return self._too_many(verdict.wait_s or _FAULT_WAIT_S, named)
        await asyncio.sleep(_HANG_S if fault == "hang" else self._options.latency)
        if fault in ("reset", "hang"):
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        if fault is not None and fault.isdecimal():
            return _error(int(fault), "server_error", "a fault on purpose")
        desk.counts.ok += 1
        desk.answered.add(digest)
        return _json(reply(fault), named)

    def _too_many(self, wait_s: float, named: Mapping[str, str]) -> web.Response:
        waits = {"retry-after": str(math.ceil(wait_s)), "retry-after-ms": str(math.ceil(wait_s * 1000))}
        if self._options.names == "none":
            return _error(429, "rate_limit_exceeded", "Rate limit reached.")
        return _error(
            429, "rate_limit_exceeded", f"Rate limit reached. Try again in {wait_s:.3f}s.", {**named, **waits}
        )

    def _variant(self, body: Mapping[str, Any]) -> str:
        return "b" if str(body.get("model", "")).endswith("_b") else self._options.variant

    def _may_enter(self, request: web.Request) -> bool:
        key = self._options.key
        return key is None or request.headers.get("Authorization") == f"Bearer {key}"


def _form(body: Mapping[str, Any]) -> str:
    asked = body.get("response_format")
    if not isinstance(asked, Mapping):
        return "none"
    if asked.get("type") == "json_schema":
        return "json_schema"
    return "object_schema" if "schema" in asked else "json_object"


def _spoilt(whole: dict[str, Any], fault: str | None) -> dict[str, Any]:
    """A chat completion after one of the reply faults."""
    choice = whole["choices"][0]
    message: dict[str, Any] = choice["message"]
    finish = choice["finish_reason"]
    match fault:
        case "malformed":
            message = _changed(message, lambda text: f"{text.rstrip('}')},}}")
        case "truncated":
            message, finish = _changed(message, lambda text: text[: len(text) // 2]), "length"
        case "refused":
            message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
            finish = "stop"
        case "empty":
            message, finish = {"role": "assistant", "content": "", "refusal": None}, "stop"
        case _:
            return whole
    return {**whole, "choices": [{**choice, "message": message, "finish_reason": finish}]}


def _changed(message: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """``message`` with its answer changed: the arguments of its tool call, or its content."""
    if "tool_calls" not in message:
        return {**message, "content": change(message["content"])}
    (call,) = message["tool_calls"]
    function = call["function"]
    return {**message, "tool_calls": [{**call, "function": {**function, "arguments": change(function["arguments"])}}]}


async def _body(request: web.Request) -> dict[str, Any] | None:
    try:
        body = json.loads(await request.read())
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _digest(body: Mapping[str, Any]) -> bytes:
    return hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).digest()


def _tokens(text: str) -> int:
    """About one token in four bytes: good enough for limits and usage, and free."""
    return len(text.encode(errors="replace")) // 4 + 1


def _json(value: Any, headers: Mapping[str, str] | None = None, status: int = 200) -> web.Response:
    data = json.dumps(value).encode()
    return web.Response(body=data, status=status, headers=headers, content_type="application/json")


def _error(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    body = {"error": {"message": message, "type": code, "param": None, "code": code}}
    return _json(body, headers, status)


def _unauthorized() -> web.Response:
    return _error(401, "invalid_api_key", "Incorrect API key provided.")
