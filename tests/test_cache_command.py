"""``python -m harness.cache``: what is there is told, damage is found row by row, and nothing goes without --yes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import zlib
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import cache as command
from harness.gateway.cache import CachedReply, ReplyCache
from harness.store import RunDirectory


def pack(text: str) -> bytes:
    return zlib.compress(text.encode())


REPLY = '{"choices": [{"message": {"content": "好"}}]}'


def row(number: int, created: str = "2026-01-05T12:00:00+00:00", answered_by: str | None = None) -> CachedReply:
    request = f'{{"question": {number}}}'
    key = hashlib.sha256(request.encode()).hexdigest()
    return CachedReply(key, "e", created, request, None if answered_by else REPLY, answered_by)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "replies-e.sqlite"
    cache = ReplyCache(path)

    async def fill() -> None:
        await asyncio.gather(*(cache.put(row(n)) for n in range(5)))
        await cache.put(row(5, "2026-03-01T00:00:00+00:00"))
        await cache.put(row(6, answered_by=row(0).request_sha256))

    asyncio.run(fill())
    cache.close()
    (tmp_path / "cells" / "c").mkdir(parents=True)
    return path


def edit(store: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(store) as db:
        db.execute(statement, values)


def run(*arguments: object) -> int:
    return command.main([str(a) for a in arguments])


def test_stats(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("stats", tmp_path) == 0
    line = capsys.readouterr().out.splitlines()[-1].split()
    assert line[:3] == ["replies-e.sqlite", "6", "1"]


@pytest.mark.parametrize(
    ("statement", "values", "said"),
    [
        ("UPDATE replies SET request = ? WHERE request_sha256 = ?", (pack("{}"),), "hash"),
        ("UPDATE replies SET request = ? WHERE request_sha256 = ?", (b"\x00\x01",), "unpacked"),
        ("UPDATE replies SET reply = ? WHERE request_sha256 = ?", (pack('{"error": 1}'),), "not a chat completion"),
        ("UPDATE replies SET reply = ? WHERE request_sha256 = ?", (pack("{"),), "not a chat completion"),
        ("UPDATE replies SET reply = ? WHERE request_sha256 = ?", (None,), "either a reply or"),
    ],
)
def test_verify_names_what_is_damaged(
    store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    statement: str,
    values: tuple[object, ...],
    said: str,
) -> None:
    assert run("verify", store) == 0
    edit(store, statement, *values, row(3).request_sha256)
    capsys.readouterr()
    assert run("verify", tmp_path) == 1
    out = capsys.readouterr().out
    assert row(3).request_sha256 in out
    assert said in out
    assert "1 damaged" in out


def test_verify_finds_an_answer_that_is_gone(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(store, "DELETE FROM replies WHERE request_sha256 = ?", row(0).request_sha256)
    assert run("verify", store) == 1
    assert "which is not there" in capsys.readouterr().out


def test_verify_finds_a_torn_file(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(store) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(store.read_bytes())
    data[4096:8192] = b"\xff" * 4096
    store.write_bytes(bytes(data))
    assert run("verify", store) in (1, 2)
    assert "SQLite" in (out := capsys.readouterr()).out or "not a store" in out.err


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_export(store: Path, tmp_path: Path, suffix: str) -> None:
    to = tmp_path / f"replies.{suffix}"
    assert run("export", tmp_path, "--to", to) == 0
    rows = (
        pq.read_table(to).to_pylist() if suffix == "parquet" else [json.loads(x) for x in to.read_text().splitlines()]
    )
    assert len(rows) == 7
    assert rows[0] == {
        "request_sha256": row(0).request_sha256, "endpoint": "e", "created_at": row(0).created_at,
        "request": row(0).request, "reply": REPLY, "answered_by": None,
    }  # fmt: skip


def left(store: Path) -> set[str]:
    with sqlite3.connect(store) as db:
        return {key for (key,) in db.execute("SELECT request_sha256 FROM replies")}


def test_prune_needs_a_yes(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("prune", tmp_path, "--before", "2026-02-01") == 0
    assert "add --yes" in capsys.readouterr().out
    assert len(left(store)) == 7
    assert run("prune", tmp_path, "--before", "2026-02-01", "--yes") == 0
    assert left(store) == {row(5).request_sha256}


def test_prune_keeps_what_calls_refer_to(store: Path, tmp_path: Path) -> None:
    keep = [row(n).request_sha256 for n in (1, 2)]
    pq.write_table(pa.table({"request_sha256": keep}), tmp_path / "cells" / "c" / "calls.parquet")
    assert run("prune", tmp_path, "--unreferenced", "--yes") == 0
    assert left(store) == set(keep)
    assert command.doomed(store, None, date(2020, 1, 1)) == []


def test_bad_usage_changes_nothing(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("prune", tmp_path, "--yes") == 2
    assert run("prune", tmp_path, "--unreferenced", "--yes") == 2, "no call on file: nothing says what is referenced"
    assert run("export", tmp_path) == 2
    assert run("export", tmp_path, "--to", tmp_path / "x.csv") == 2
    assert run("stats", tmp_path / "cells") == 2
    assert len(left(store)) == 7


def test_nothing_is_pruned_under_a_run(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    running = RunDirectory(tmp_path)
    running.lock()
    assert run("prune", tmp_path, "--before", "2026-02-01", "--yes") == 2
    assert "run is writing" in capsys.readouterr().err
    assert len(left(store)) == 7
