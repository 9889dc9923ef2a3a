"""Stored replies read without an endpoint."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from harness.errors import DataError
from harness.gateway.cache import CachedReply, ReplyCache
from harness.replies import Exchange, Replies, stores_of


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
