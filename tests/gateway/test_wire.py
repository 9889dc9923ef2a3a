"""What goes over the wire is what the OpenAI client sends, on the first call to a path and on later ones."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from harness.gateway.settings import Endpoint
from harness.gateway.wire import Wire
from tests.gateway.conftest import GOOD, scripted

BODIES: list[dict[str, Any]] = [
    {"model": "m", "messages": [{"role": "user", "content": text}], "temperature": 0.0}
    for text in ("one", "第二", "3" * 9000)
]
VECTORS = {"data": [{"index": 0, "embedding": [0.5, 0.5]}]}


def sent(path: str, reply: dict[str, Any], by_wire: bool) -> list[dict[str, Any]]:
    """Bodies and headers of three calls, the port left out."""
    seen: list[dict[str, Any]] = []

    async def main() -> None:
        async with scripted([reply], seen, f"/v1{path}") as url:
            wire = Wire(Endpoint(name="e", model="m", base_url=url, embedding_model="v"), lambda headers: None)
            plain = openai.AsyncOpenAI(
                base_url=url, api_key="none", timeout=120.0, http_client=openai.DefaultAioHttpClient()
            )
            for body in BODIES:
                text = body["messages"][0]["content"]
                if not by_wire:
                    body = (
                        body
                        if path.startswith("/chat")
                        else {"model": "v", "input": [text], "encoding_format": "base64"}
                    )
                    raw = {"X-Stainless-Raw-Response": "true"}
                    await plain.post(path, body=body, cast_to=object, options={"headers": raw})
                elif path.startswith("/chat"):
                    await wire.chat(body)
                else:
                    await wire.embeddings([text])
            await wire.close()
            await plain.close()

    asyncio.run(main())
    for request in seen:
        request["headers"] = {k.lower(): v for k, v in request["headers"].items() if k.lower() != "host"}
    return seen


@pytest.mark.parametrize(("path", "reply"), [("/chat/completions", GOOD), ("/embeddings", VECTORS)])
def test_the_same_as_by_the_client_itself(path: str, reply: dict[str, Any]) -> None:
    ours = sent(path, reply, by_wire=True)
    assert len(ours) == 3
    assert ours == sent(path, reply, by_wire=False)
    assert len({request["headers"]["content-length"] for request in ours}) == 3
