"""The store of replies: committed before use, safe under kill -9 and a full disk."""

from __future__ import annotations

import asyncio
import hashlib
import random
import signal
import sqlite3
import string
import subprocess
import sys
from pathlib import Path

import pytest

from harness.gateway.cache import CachedReply, CacheError, Payment, ReplyCache


def row(number: int, text: str = "reply") -> CachedReply:
    return CachedReply(f"sha{number}", "e", "2026-01-05T12:00:00+00:00", f"request {number} 问", text)


def test_what_is_put_is_read_by_another_reader(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "replies.sqlite"
    mine, other = ReplyCache(path), ReplyCache(path)

    async def main() -> None:
        await asyncio.gather(*(mine.put(row(n)) for n in range(500)), *(other.put(row(n)) for n in range(400, 900)))

    asyncio.run(main())
    assert mine.get("sha0") == row(0)
    assert all(mine.get(f"sha{n}") == row(n) for n in range(900))
    assert mine.get("missing") is None


def test_the_first_reply_stays(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "r.sqlite")

    async def main() -> None:
        await cache.put(row(1))
        await cache.put(row(1, "other"))

    asyncio.run(main())
    assert cache.get("sha1") == row(1)


def test_writes_that_wait_together_share_a_commit(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "r.sqlite")
    commits = []
    cache._store.set_trace_callback(lambda statement: commits.append(statement) if statement == "COMMIT" else None)

    async def main() -> None:
        await asyncio.gather(*(cache.put(row(n)) for n in range(300)))

    asyncio.run(main())
    assert len(commits) < 10


_WRITER = """
import asyncio, sys
from harness.gateway.cache import CachedReply, ReplyCache
async def main():
    cache = ReplyCache(sys.argv[1])
    for n in range(100000):
        await cache.put(CachedReply(f"sha{n}", "e", "now", "q" * 500, "r" * 500))
        print(n, flush=True)
asyncio.run(main())
"""


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        seen = [writer.stdout.readline() for _ in range(50)]
        writer.send_signal(signal.SIGKILL)
        seen += writer.stdout.read().splitlines()
        writer.wait()
        writer.stdout.close()
        cache = ReplyCache(path)
        assert all(cache.get(f"sha{line.strip()}") is not None for line in seen if line.strip())
        assert cache._reader.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        cache.close()


def test_a_full_disk_stops_with_a_remedy_and_keeps_what_was_stored(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "r.sqlite")

    async def fill() -> None:
        await cache.put(row(0))
        cache._store.execute("PRAGMA max_page_count = 20")
        for n in range(1, 1000):
            await cache.put(
                CachedReply(f"sha{n}", "e", "now", "", "".join(chr(1000 + (n * i) % 5000) for i in range(3000)))
            )

    with pytest.raises(CacheError, match=r"full.*free space"):
        asyncio.run(fill())
    assert cache.get("sha0") == row(0)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    path.write_text("not a database, by far" * 100)
    with pytest.raises(CacheError, match=r"r\.sqlite"):
        ReplyCache(path)


def test_bytes_written_are_a_few_times_the_replies(tmp_path: Path) -> None:
    """One row a commit, the worst case; prompts of 4 KB, replies of 1 KB. All that is written goes through the WAL, then the file."""
    path, rng, n = tmp_path / "r.sqlite", random.Random(1), 120
    words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randrange(2, 9))) for _ in range(3000)]
    instruction = " ".join(rng.choices(words, k=250))
    cache, replies = ReplyCache(path), 0

    async def fill() -> None:
        nonlocal replies
        for _ in range(n):
            request = f"{instruction} {' '.join(rng.choices(words, k=400))}"
            reply = " ".join(rng.choices(words, k=160))
            key = hashlib.sha256(request.encode()).hexdigest()
            paid = Payment(key, "now", "cell", "forecast", "forecast", "model", "ok", 900, 0, 200, 0, None)
            await cache.put(CachedReply(key, "e", "now", request, reply), [paid])
            replies += len(reply)

    asyncio.run(fill())
    logged = path.with_name("r.sqlite-wal").stat().st_size
    cache.close()
    assert replies / n == pytest.approx(1000, rel=0.1)
    assert logged + path.stat().st_size < 8.5 * replies
    assert not path.with_name("r.sqlite-wal").exists(), "a closed store is one file"


def test_wal(tmp_path: Path) -> None:
    ReplyCache(tmp_path / "r.sqlite")
    assert sqlite3.connect(tmp_path / "r.sqlite").execute("PRAGMA journal_mode").fetchone() == ("wal",)
