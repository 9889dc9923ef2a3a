"""The memory baselines over HTTP against a server that answers badly: what goes wrong is counted, and the run goes on."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pandas as pd
import pytest

from methods.a_mem.method import NO_DESCRIPTION, NO_EVOLUTION
from methods.a_mem.notes import UNKNOWN_POSITION
from methods.fed import CUT
from methods.mem0.method import NO_DECISION, NO_FACTS
from methods.mem0.operations import EMPTY_TEXT, UNKNOWN_EVENT, UNKNOWN_ID
from methods.memgpt.agent import FAILED_TOOL, UNKNOWN_TOOL
from methods.memgpt.mind import NO_REPLY
from tests.e2e.conftest import ROOT, Ran

pytestmark = pytest.mark.slow
SAMPLE = ROOT / "benchmarks" / "sample"
RECORDS = 12
BAD = ("I would rather not.", '{"half": ', "")
"""More than are asked for again: the third is what the caller hears."""
EMPTY = {"keywords": [], "context": "", "tags": []}


def decided(*decisions: Any) -> dict[str, Any]:
    return {"memory": list(decisions)}


def evolving(**fields: Any) -> dict[str, Any]:
    return {"should_evolve": True, "actions": ["strengthen", "update_neighbor"], "suggested_connections": [], **fields}


REPLIES: Mapping[str, Sequence[Any]] = {
    "facts": [*BAD, {"facts": "one"}, {"facts": [{"fact": "a"}, 3, None, {"odd": 1}]}, {}, {"facts": ["profit up"]}],
    "memory": [
        *BAD,
        decided({"id": "999", "text": "ghost", "event": "UPDATE"}, {"id": "0", "text": "", "event": "DELETE"}),
        decided({"id": "x", "text": "ghost", "event": "DELETE"}, {"id": "0", "text": "new", "event": "ADD"}),
        decided({"id": "0", "text": "odd", "event": "MERGE"}, {"id": "0", "text": "kept", "event": "ADD"}),
        decided(7),
    ],
    "context": [*BAD, {"keywords": "none"}, EMPTY, {"keywords": ["profit"], "context": "Profit.", "tags": ["profit"]}],
    "should_evolve": [
        *BAD,
        evolving(suggested_connections=[999, -1, 0], tags_to_update=["linked"]),
        evolving(new_tags_neighborhood=[["t"]] * 50, new_context_neighborhood=["c"] * 50),
        {"should_evolve": "perhaps"},
    ],
    "summary": [*BAD, {"summary": "Old news."}],
    "keywords": [*BAD, {"keywords": "profit"}],
}
"""By a key of what is asked for: replies that are given in turn. Each is a function of how often that was asked, no more."""
CALLS: Sequence[tuple[str, str] | None] = [
    ("sing", "{}"), ("send_message", "{oops"), ("send_message", "[]"), ("core_memory_append", '{"name": "notes", "content": "x"}'),
    ("core_memory_replace", '{"name": "human", "old_content": "absent", "new_content": "x"}'), *[None] * len(BAD),
    ("archival_memory_search", '{"query": "profit", "page": -2}'), ("archival_memory_insert", '{"content": "Profit rose."}'),
    ("conversation_search", '{"query": "profit", "page": 9, "request_heartbeat": true}'), ("send_message", '{"message": ""}'),
]  # fmt: skip


class Scripted(ThreadingHTTPServer):
    """Gives the replies above in turn, and an honest one to what is none of a memory's questions."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: Counter[str] = Counter()

    def message(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if body.get("tools"):
            call = CALLS[self._turn("tool") % len(CALLS)]
            if call is None:
                return {"content": None}
            called = {
                "id": f"c{self.asked['tool']}",
                "type": "function",
                "function": dict(zip(("name", "arguments"), call, strict=True)),
            }
            return {"content": "thinking", "tool_calls": [called]}
        asked = body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
        for key, replies in REPLIES.items():
            if key in asked:
                reply = replies[self._turn(key) % len(replies)]
                return {"content": reply if isinstance(reply, str) else json.dumps(reply)}
        return {"content": json.dumps({"reasoning": "because", "prob_positive": 0.6})}

    def _turn(self, key: str) -> int:
        self.asked[key] += 1
        return self.asked[key] - 1


class _Handler(BaseHTTPRequestHandler):
    server: Scripted
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        choice = {"index": 0, "message": {"role": "assistant", **self.server.message(body)}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        reply = json.dumps({"id": "r", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply.encode())

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    server = Scripted()
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def few_records(root: Path, records: int = RECORDS) -> Path:
    """The sample with few documents, one of them longer than any window; with none before its first decision, the last alone."""
    shutil.copytree(SAMPLE, root, ignore=shutil.ignore_patterns("*.py", "*.toml"))
    file = root / "event" / "Sample.json"
    event = json.loads(file.read_text("utf-8"))
    documents = sorted(event["text"], key=lambda d: d["ts"])
    event["text"] = documents[:records] or documents[-1:]
    if records:
        event["text"][0] |= {"body": "水泵订单增长。" * 2_000}
    file.write_text(json.dumps(event, ensure_ascii=False), "utf-8")
    return root


def run_with(run_here: Callable[..., Ran], server: Scripted, root: Path) -> tuple[Ran, dict[str, Any]]:
    """One forecast of each; (the run, cell.json of every memory by its method)."""
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    where = ("benchmark=sample", f"benchmark.root='{root}'", "feed=docs", "run.limit=1", "embedder=hashing")
    backbone = ("backbone=openai_compatible", f"backbone.base_url={url}", "backbone.tool_calls=true")
    run = run_here("-m", "method=mem0,a_mem,memgpt", *where, *backbone, "backbone.max_in_flight=1")
    files = (run.directory / "memories").glob("*/cell.json")
    return run, {(about := json.loads(f.read_text("utf-8")))["method"]: about for f in files}


def test_bad_replies_of_a_real_server_are_counted_and_the_run_goes_on(
    run_here: Callable[..., Ran], scripted: Scripted, tmp_path: Path
) -> None:
    run, memories = run_with(run_here, scripted, few_records(tmp_path / "data"))
    assert run.code == 0, run.text
    assert set(run.forecasts()["status"]) == {"ok"}
    assert {about["status"] for about in memories.values()} == {"complete"}
    assert {about["n"] for about in memories.values()} == {RECORDS}
    for method, incidents in {
        "mem0": (NO_FACTS, NO_DECISION, UNKNOWN_ID, EMPTY_TEXT, UNKNOWN_EVENT, CUT),
        "a_mem": (NO_DESCRIPTION, NO_EVOLUTION, UNKNOWN_POSITION, CUT),
        "memgpt": (UNKNOWN_TOOL, FAILED_TOOL, NO_REPLY, CUT),
    }.items():
        said = " ".join(memories[method]["warnings"])
        assert [what for what in incidents if what not in said] == [], (method, said)
        (log,) = (run.directory / "memories").glob(f"{method}__*/memory.parquet")
        assert pd.read_parquet(log)["record_id"].nunique() == RECORDS


def test_an_empty_memory_is_read_and_shows_nothing(
    run_here: Callable[..., Ran], scripted: Scripted, tmp_path: Path
) -> None:
    run, memories = run_with(run_here, scripted, few_records(tmp_path / "data", 0))
    assert run.code == 0, run.text
    assert set(run.forecasts()["status"]) == {"ok"}
    assert {(about["status"], about["n"]) for about in memories.values()} == {("complete", 0)}
    shown = pd.concat([pd.read_parquet(f) for f in (run.directory / "cells").glob("*/evidence.parquet")])
    assert "memory_note" not in set(shown["kind"])
