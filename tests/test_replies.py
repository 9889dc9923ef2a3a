"""Stored replies read without an endpoint."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from harness.errors import DataError
from harness.gateway.cache import CachedReply, ReplyCache
from harness.replies import Exchange, Replies, store_of, stores_of


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A run's store with a reply, a request answered by it, and one whose answer is gone."""
    path = tmp_path / "cache" / "replies-b.sqlite"

    async def fill() -> None:
        cache = ReplyCache(path)
        await cache.put(CachedReply("one", "b", "2026-01-01", "asked", "answered 沪"))
        await cache.put(CachedReply("two", "b", "2026-01-01", "asked first", None, "one"))
        await cache.put(CachedReply("three", "b", "2026-01-01", "asked", None, "gone"))
        cache.close()

    asyncio.run(fill())
    return path


def test_an_exchange_is_found_by_its_request(store: Path, tmp_path: Path) -> None:
    replies = Replies(stores_of(tmp_path))
    assert len(replies) == 1
    assert replies.get("one") == Exchange("asked", "answered 沪")
    assert replies.get("two") == Exchange("asked first", "answered 沪"), "by way of the try that was usable"
    assert replies.get("three") is None
    assert replies.get("none") is None
    replies.close()


def test_the_documented_way_to_a_prompt_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs = (Path(__file__).parents[1] / "docs" / "files.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", docs, re.DOTALL)
    asked = {"body": {"messages": [{"role": "user", "content": "Up or down?"}]}}
    reply = {"choices": [{"message": {"content": "Up."}}]}

    async def fill() -> None:
        cache = ReplyCache(store_of(tmp_path / "cache", "b"))
        await cache.put(CachedReply("sha", "b", "2026-01-01", json.dumps(asked), json.dumps(reply)))
        cache.close()

    asyncio.run(fill())
    exec(code.replace("RUN_DIR", str(tmp_path)).replace("REQUEST_SHA256", "sha"), {})
    assert capsys.readouterr().out == "user\nUp or down?\nUp.\n"


def test_reading_writes_nothing(store: Path) -> None:
    replies = Replies([store])
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        replies._stores[0][1].execute("DELETE FROM replies")
    replies.close()


def test_a_directory_without_a_cache_has_no_replies(tmp_path: Path) -> None:
    assert stores_of(tmp_path) == []
    assert Replies(()).get("one") is None


def test_damage_is_named(store: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("UPDATE replies SET request = X'00'")
    with pytest.raises(DataError, match=r"replies-b\.sqlite: the row of request one cannot be read"):
        Replies([store]).get("one")
    (tmp_path / "other.sqlite").write_bytes(b"x" * 4096)
    with pytest.raises(DataError, match="not a store of replies"):
        Replies([tmp_path / "other.sqlite"])
