"""One gateway for a Ray session."""

from __future__ import annotations

import asyncio
import gc
import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import ray

from harness.errors import ConfigError
from harness.gateway.actor import GatewayClient, start_gateways
from harness.gateway.result import Stopped
from harness.gateway.settings import Endpoint
from harness.records import Status
from harness.rehearsal import RehearsalServer, start_rehearsal
from harness.remote import unwrapped
from tests.gateway.conftest import ask

pytestmark = pytest.mark.slow


def test_actor(ray_session: Any, rehearsal: RehearsalServer, tmp_path: Path) -> None:
    endpoint = Endpoint(name="actor", model="rehearsal", base_url=rehearsal.base_url, embedding_model="v")
    (client,) = start_gateways([(endpoint, tmp_path / "replies.sqlite")])

    @ray.remote(num_cpus=0)
    class Cell:
        async def ask(self, client: GatewayClient, cell: str, texts: list[str]) -> list[Any]:
            return await asyncio.gather(*(client.complete(ask(text, cell=cell)) for text in texts))

    texts = [f"text {n}" for n in range(30)]
    one, other = ray.get([cell.ask.remote(client, "cell", texts) for cell in (Cell.remote(), Cell.remote())])
    assert {done.status for done in one + other} == {Status.OK}
    assert [done.value for done in one] == [done.value for done in other]
    assert sum(done.attempts for done in one + other) == 30, "two processes share requests in flight and the store"

    async def rest() -> None:
        assert (await client.embed(["a", "b"])).vectors.shape == (2, 256)
        assert (await client.stats()).done == 61
        await client.stop()
        with pytest.raises(Stopped, match="no new calls"):
            await client.complete(ask("new"))
        await unwrapped(client.actor.close.remote())

    asyncio.run(rest())
    assert [path.name for path in tmp_path.iterdir()] == ["replies.sqlite"], "a closed store is one whole file"


def test_it_ends_with_the_last_handle(ray_session: Any, rehearsal: RehearsalServer, tmp_path: Path) -> None:
    """A session on a cluster that goes on must leave no process behind."""
    endpoint = Endpoint(name="ends", model="rehearsal", base_url=rehearsal.base_url)
    clients = start_gateways([(endpoint, tmp_path / "replies.sqlite")])
    name = clients[0].actor._actor_id.hex()
    assert asyncio.run(clients[0].complete(ask("once"))).status is Status.OK

    def state() -> str:
        return str(ray._private.state.actors(name)["State"])

    assert state() == "ALIVE"
    clients.clear()
    gc.collect()
    end = time.monotonic() + 30
    while state() != "DEAD" and time.monotonic() < end:
        time.sleep(0.1)
    assert state() == "DEAD"


def test_a_missing_key_is_found_before_the_actor_starts(ray_session: Any, tmp_path: Path) -> None:
    endpoint = Endpoint(name="no_key", model="m", base_url="https://x.example/v1", api_key_env="NO_SUCH_KEY")
    with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
        start_gateways([(endpoint, tmp_path / "r.sqlite")])


def test_backbones_at_one_place_share_its_limits(ray_session: Any, tmp_path: Path) -> None:
    """Two configurations, two processes, four queues: together they keep the smaller limit, and the server refuses nothing."""
    server = start_rehearsal(rpm=1200, latency=0.05)
    common = {"model": "rehearsal", "base_url": server.base_url}
    fast = Endpoint(name="fast", rpm=6000, **common)
    slow = Endpoint(name="slow", rpm=1200, max_output_tokens=99, **common)
    assert fast.place == slow.place
    clients = start_gateways([(e, tmp_path / f"{e.name}.sqlite") for e in (fast, slow)])

    @ray.remote(num_cpus=0)
    class Cell:
        async def ask(self, client: GatewayClient, cell: str, texts: list[str]) -> list[Any]:
            return await asyncio.gather(*(client.complete(ask(text, cell=cell)) for text in texts))

    cells = [Cell.remote() for _ in range(2)]
    texts = [f"text {n}" for n in range(15)]
    asked = [cells[n % 2].ask.remote(clients[n // 2], f"cell {n}", [f"{n} {t}" for t in texts]) for n in range(4)]
    done = [completion for cell in ray.get(asked) for completion in cell]
    with urllib.request.urlopen(server.base_url.removesuffix("/v1") + "/stats") as reply:
        seen = json.load(reply)["chat"]
    server.stop()
    assert {completion.status for completion in done} == {Status.OK}
    assert seen == {"requests": 60, "ok": 60, "n429": 0, "repeated": 0}
    sent = sorted(completion.sent_at for completion in done)
    assert (sent[-1] - sent[0]).total_seconds() >= 59 / 20 - 0.1


def test_two_sessions_share_the_limit_of_an_endpoint(ray_session: Any, tmp_path: Path) -> None:
    """Two gateways that know nothing of each other, as two commands on one cluster have: the server refuses neither."""
    server = start_rehearsal(rpm=1200, latency=0.05)
    endpoint = Endpoint(name="e", model="rehearsal", base_url=server.base_url, rpm=1200)
    clients = [start_gateways([(endpoint, tmp_path / f"{n}.sqlite")])[0] for n in range(2)]

    async def ask_all() -> list[Any]:
        return await asyncio.gather(*(clients[n % 2].complete(ask(f"text {n}")) for n in range(80)))

    done = asyncio.run(ask_all())
    with urllib.request.urlopen(server.base_url.removesuffix("/v1") + "/stats") as reply:
        seen = json.load(reply)["chat"]
    assert seen == {"requests": 80, "ok": 80, "n429": 0, "repeated": 0}
    assert {completion.status for completion in done} == {Status.OK}

    ray.kill(clients[0].actor)  # with it goes, if it was first, who divides the limits: the other goes on

    async def ask_the_other() -> Any:
        return await asyncio.gather(*(clients[1].complete(ask(f"later {n}")) for n in range(20)))

    assert {completion.status for completion in asyncio.run(ask_the_other())} == {Status.OK}
    server.stop()
