"""A chat endpoint that costs next to nothing: one reply for everybody after a fixed latency, and the times of the requests.

``python -m tests.perf.stub --latency S`` prints its URL; ``GET /stats`` tells what came. ``harness.rehearsal`` would take as much CPU
time as what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from typing import Any

_CONTENT = json.dumps({"reasoning": "Demand is firm and costs fall. " * 4, "prob_positive": 0.62})
_REPLY = json.dumps(
    {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 0,
        "model": "stub",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": _CONTENT}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940},
    }
)


def _http(text: str) -> bytes:
    body = text.encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


class Counts:
    """When the requests came (seconds since the epoch), and how many were in the air at most."""

    def __init__(self) -> None:
        self.requests = self.in_air = self.most = 0
        self.first = self.last = self.last_reply = 0.0

    def came(self) -> None:
        self.last = time.time()
        self.first = self.first or self.last
        self.requests += 1
        self.in_air += 1
        self.most = max(self.most, self.in_air)

    def answered(self) -> None:
        self.in_air -= 1
        self.last_reply = time.time()


class Connection(asyncio.Protocol):
    """One connection, kept alive; one request at a time on it."""

    def __init__(self, counts: Counts, latency: float) -> None:
        self._counts = counts
        self._latency = latency
        self._came = b""
        self._transport: Any = None
        self._reply = _http(_REPLY)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._came += data
        head, ended, body = self._came.partition(b"\r\n\r\n")
        if not ended:
            return
        if head.startswith(b"GET"):
            self._came = b""
            self._transport.write(_http(json.dumps(vars(self._counts))))
            return
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if len(body) >= int(fields[b"content-length"]):
            self._came = b""
            self._counts.came()
            asyncio.get_running_loop().call_later(self._latency, self._answer)

    def _answer(self) -> None:
        self._counts.answered()
        self._transport.write(self._reply)


async def serve(latency: float) -> None:
    """Listen on a free port until killed."""
    counts = Counts()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(counts, latency), "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, required=True)
    asyncio.run(serve(parser.parse_args().latency))
