"""The batch API over real HTTP: the same answers as online, and nothing that was paid for is paid for again."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError
from harness.gateway.batch_log import Batch, BatchLog
from harness.gateway.batches import Batches
from harness.gateway.cache import ReplyCache
from harness.gateway.core import Gateway
from harness.gateway.result import Completion
from harness.gateway.settings import Endpoint
from harness.records import Status
from harness.rehearsal import RehearsalServer, start_rehearsal
from tests.gateway.conftest import GOOD, ask, scripted

N = 40


def endpoint(url: str, **fields: Any) -> Endpoint:
    quick = {"transport": "batch", "batch_wait_s": 0.01, "batch_poll_s": 0.02}
    return Endpoint(**{"name": "r", "model": "rehearsal", "base_url": url, **quick, **fields})


@asynccontextmanager
async def opened(server: RehearsalServer, path: Path, **fields: Any) -> AsyncIterator[Gateway]:
    cache = ReplyCache(path)
    gateway = Gateway(endpoint(server.base_url, **fields), cache)
    try:
        yield gateway
    finally:
        await gateway.close()
        cache.close()


def completed(gateway: Gateway, numbers: Any = range(N), **fields: Any) -> list[asyncio.Task[Completion]]:
    return [asyncio.create_task(gateway.complete(ask(f"Case {n}: profit rises.", **fields))) for n in numbers]


def run(server: RehearsalServer, path: Path, numbers: Any = range(N), **fields: Any) -> list[Completion]:
    async def main() -> list[Completion]:
        async with opened(server, path, **fields) as gateway:
            return await asyncio.gather(*completed(gateway, numbers))

    return asyncio.run(main())


def counts(server: RehearsalServer) -> dict[str, int]:
    with urllib.request.urlopen(server.base_url.removesuffix("/v1") + "/stats") as reply:
        found: dict[str, int] = json.load(reply)["chat"]
    return found


def on_file(path: Path) -> list[Batch]:
    return BatchLog(path, "r").rows()


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Any:
    started = start_rehearsal(**getattr(request, "param", {}))
    yield started
    started.stop()


def test_a_batch_gives_what_online_calls_give(server: RehearsalServer, tmp_path: Path) -> None:
    online = run(server, tmp_path / "online.sqlite", transport="online")
    batched = run(server, tmp_path / "batch.sqlite")
    assert [(d.status, d.value, d.request_sha256) for d in batched] == [
        (d.status, d.value, d.request_sha256) for d in online
    ]
    assert counts(server)["repeated"] == N, "asked once online and once in a batch"
    assert on_file(tmp_path / "batch.sqlite") == [], "what is collected is forgotten"
    again = run(server, tmp_path / "batch.sqlite")
    assert all(done.cache_hit for done in again)


@pytest.mark.parametrize("server", [{"fault": "500=0.2,hang=0.2,malformed=0.1"}], indirect=True)
def test_error_lines_expired_requests_and_bad_replies_are_asked_again_and_nothing_else(
    server: RehearsalServer, tmp_path: Path
) -> None:
    done = run(server, tmp_path / "r.sqlite")
    assert {d.status for d in done} == {Status.OK}
    assert counts(server)["repeated"] == 0
    assert max(d.calls[0].attempts for d in done) > 1


@pytest.mark.parametrize("server", [{"latency": 0.5}], indirect=True)
def test_a_run_that_died_is_taken_up_where_its_batch_is(server: RehearsalServer, tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"

    async def die() -> None:
        async with opened(server, path) as gateway:
            tasks = completed(gateway)
            while not any(batch.batch_id for batch in on_file(path)):
                await asyncio.sleep(0.01)
            for task in tasks:
                task.cancel()

    asyncio.run(die())
    assert counts(server)["ok"] == N
    some = run(server, path, range(N // 2))
    assert {d.status for d in some} == {Status.OK}
    assert len(on_file(path)) == 1, "half of it is still to be collected"
    run(server, path)
    assert counts(server) == {"requests": N, "ok": N, "n429": 0, "repeated": 0}
    assert on_file(path) == []


@pytest.mark.parametrize("created", [True, False])
def test_a_kill_while_a_batch_is_made(
    server: RehearsalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, created: bool
) -> None:
    """The batch exists and nobody wrote down its id, or it does not exist: found by its tag, or asked again."""
    path = tmp_path / "r.sqlite"
    create = Batches._create

    async def killed(self: Batches, batch: Batch, data: bytes) -> str:
        if created:
            await create(self, batch, data)
        await asyncio.Event().wait()
        raise AssertionError

    async def die() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Batches, "_create", killed)
            async with opened(server, path) as gateway:
                tasks = completed(gateway)
                await asyncio.sleep(0.3)
                for task in tasks:
                    task.cancel()

    asyncio.run(die())
    assert [batch.batch_id for batch in on_file(path)] == [None]
    assert {d.status for d in run(server, path)} == {Status.OK}
    assert counts(server) == {"requests": N, "ok": N, "n429": 0, "repeated": 0}
    assert on_file(path) == []


def test_a_reply_that_is_not_yet_stored_is_not_forgotten(
    server: RehearsalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted violation: killed after the batch was read and before the replies were stored."""
    path = tmp_path / "r.sqlite"

    async def never(self: ReplyCache, *args: Any, **kwargs: Any) -> None:
        await asyncio.Event().wait()

    async def die() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(ReplyCache, "put", never)
            async with opened(server, path) as gateway:
                tasks = completed(gateway)
                await asyncio.sleep(0.5)
                for task in [*tasks, *gateway._tasks]:
                    task.cancel()

    asyncio.run(die())
    assert len(on_file(path)) == 1
    run(server, path)
    assert counts(server)["repeated"] == 0


def test_a_bug_in_the_background_reaches_all_who_wait(
    server: RehearsalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Batches, "_take", lambda self: dict[str, bytes]()["nothing"])
    with pytest.raises(HarnessError, match="KeyError"):
        run(server, tmp_path / "r.sqlite")


def test_what_others_wait_for_goes_online(server: RehearsalServer, tmp_path: Path) -> None:
    async def main() -> list[Completion]:
        async with opened(server, tmp_path / "r.sqlite", batch_wait_s=1000.0) as gateway:
            return await asyncio.gather(*completed(gateway, sequential=True))

    assert {d.status for d in asyncio.run(main())} == {Status.OK}


def test_batches_are_no_larger_than_the_server_takes(
    server: RehearsalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    create: Callable[..., Awaitable[str]] = Batches._create

    async def counting(self: Batches, batch: Batch, data: bytes) -> str:
        sizes.append(len(batch.keys))
        return await create(self, batch, data)

    monkeypatch.setattr(Batches, "_create", counting)
    run(server, tmp_path / "r.sqlite", batch_size=15)
    assert sum(sizes) == N
    assert max(sizes) == 15


def test_a_server_without_batches_is_said_so_and_costs_nothing(tmp_path: Path) -> None:
    async def main() -> Completion:
        async with scripted([GOOD], []) as url:
            cache = ReplyCache(tmp_path / "r.sqlite")
            gateway = Gateway(endpoint(url), cache)
            try:
                return await asyncio.wait_for(gateway.complete(ask()), 20)
            finally:
                await gateway.close()
                cache.close()

    done = asyncio.run(main())
    assert done.status is Status.PROVIDER
    assert "batch API" in str(done.reason)
    assert "transport=online" in str(done.reason)
    assert done.fatal
    assert on_file(tmp_path / "r.sqlite") == []
