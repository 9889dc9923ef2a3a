"""Shared parts: a rehearsal server, a server that replies by script, a clock that writes waits down."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from harness.gateway.budget import Budget
from harness.gateway.cache import ReplyCache
from harness.gateway.core import Gateway
from harness.gateway.pace import Clock
from harness.gateway.request import ChatRequest, user
from harness.gateway.settings import Endpoint
from harness.rehearsal import RehearsalServer, start_rehearsal

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "prob_positive": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": ["reasoning", "prob_positive"],
    "additionalProperties": False,
}


def ask(text: str = "Acme Corp posts record profit.", **fields: Any) -> ChatRequest:
    return ChatRequest((user(text),), **{"schema": SCHEMA, **fields})


def chat_reply(content: Any, finish: str = "stop", **fields: Any) -> dict[str, Any]:
    """The body of a chat completion; ``fields`` are further ones of the body or, with ``message_``, of the message."""
    message = {"role": "assistant", "content": content}
    message |= {key.removeprefix("message_"): value for key, value in fields.items() if key.startswith("message_")}
    rest = {key: value for key, value in fields.items() if not key.startswith("message_")}
    return {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish}], **rest}


USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 40}}
GOOD = chat_reply('{"reasoning": "r", "prob_positive": 0.6}', usage=USAGE)


def instant_clock(waits: list[float]) -> Clock:
    """Real time plus the waits, which are only written down."""

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    return Clock(lambda: time.monotonic() + sum(waits), sleep)


@asynccontextmanager
async def scripted(replies: list[Any], seen: list[dict[str, Any]], path: str = "/v1/chat/completions"):
    """A server that gives ``replies`` in turn (the last one for ever): a body, or (status, body, headers), or a coroutine."""

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        seen.append({"body": body, "headers": dict(request.headers)})
        reply = replies[min(len(seen), len(replies)) - 1]
        if callable(reply):
            return await reply(request)
        status, value, headers = reply if isinstance(reply, tuple) else (200, reply, {})
        text = value if isinstance(value, str) else json.dumps(value)
        return web.Response(status=status, text=text, headers=headers, content_type="application/json")

    app = web.Application()
    app.router.add_post(path, handle)
    server = TestServer(app)
    await server.start_server()
    try:
        yield str(server.make_url("/v1"))
    finally:
        await server.close()


@pytest.fixture(scope="session")
def rehearsal() -> Iterator[RehearsalServer]:
    server = start_rehearsal()
    yield server
    server.stop()


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., Any]:
    """Run ``talk(gateway)`` against scripted replies; returns (its result, requests seen, waits)."""

    def run(
        replies: list[Any], talk: Callable[[Gateway], Awaitable[Any]], budget_usd: float | None = None, **fields: Any
    ):
        seen: list[dict[str, Any]] = []
        waits: list[float] = []
        path = "/v1/embeddings" if "embedding_model" in fields else "/v1/chat/completions"

        async def main() -> Any:
            async with scripted(replies, seen, path) as url:
                endpoint = Endpoint(**{"name": "e", "model": "m", "base_url": url, **fields})
                cache = ReplyCache(tmp_path / "replies.sqlite")
                budget = None if budget_usd is None else Budget(budget_usd)
                gateway = Gateway(endpoint, cache, budget=budget, clock=instant_clock(waits))
                try:
                    return await talk(gateway)
                finally:
                    await gateway.close()
                    cache.close()

        return asyncio.run(main()), seen, waits

    return run
