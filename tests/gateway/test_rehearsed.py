"""The whole path over real HTTP: gateway, client, rehearsal server with limits and faults."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.gateway.cache import CacheError, ReplyCache
from harness.gateway.core import Gateway
from harness.gateway.settings import Endpoint
from harness.records import Status
from harness.rehearsal import RehearsalServer, start_rehearsal
from tests.gateway.conftest import SCHEMA, ask
from tests.support import config_of

BACKBONES = sorted((Path(__file__).parents[2] / "conf" / "backbone").glob("*.yaml"))


def run(server: RehearsalServer, path: Path, n: int, **fields: Any) -> list[Any]:
    async def main() -> list[Any]:
        cache = ReplyCache(path)
        gateway = Gateway(Endpoint(**{"name": "r", "model": "rehearsal", "base_url": server.base_url, **fields}), cache)
        try:
            return await asyncio.gather(*(gateway.complete(ask(f"Case {n}: profit rises.")) for n in range(n)))
        finally:
            await gateway.close()
            cache.close()

    return asyncio.run(main())


def counts(server: RehearsalServer) -> dict[str, int]:
    with urllib.request.urlopen(server.base_url.removesuffix("/v1") + "/stats") as reply:
        return json.load(reply)["chat"]


@pytest.mark.parametrize("structured", ["json_schema", "json_object", "none"])
def test_every_way_to_ask_for_an_object(rehearsal: RehearsalServer, tmp_path: Path, structured: str) -> None:
    results = run(rehearsal, tmp_path / "r.sqlite", 20, structured=structured)
    assert {done.status for done in results} == {Status.OK}
    assert all(set(done.value) == set(SCHEMA["properties"]) for done in results)


def test_a_second_run_asks_nothing_even_on_another_port(rehearsal: RehearsalServer, tmp_path: Path) -> None:
    first = run(rehearsal, tmp_path / "r.sqlite", 50)
    other = start_rehearsal()
    again = run(other, tmp_path / "r.sqlite", 50)
    assert counts(other)["requests"] == 0
    other.stop()
    assert [done.value for done in again] == [done.value for done in first]
    assert all(done.cache_hit for done in again)


def test_faults_change_no_answer(rehearsal: RehearsalServer, tmp_path: Path) -> None:
    calm = run(rehearsal, tmp_path / "calm.sqlite", 100)
    server = start_rehearsal(fault="500=0.05,reset=0.03,429=0.02")
    stormy = run(server, tmp_path / "stormy.sqlite", 100)
    seen = counts(server)
    server.stop()
    assert {done.status for done in stormy} == {Status.OK}
    assert [done.value for done in stormy] == [done.value for done in calm]
    assert seen["ok"] == 100
    assert seen["repeated"] == 0
    assert sum(done.attempts for done in stormy) == seen["requests"] > 100


def test_the_pace_meets_no_429(tmp_path: Path) -> None:
    server = start_rehearsal(rpm=3000, latency=0.05)
    results = run(server, tmp_path / "r.sqlite", 60, rpm=3000)
    seen = counts(server)
    server.stop()
    assert seen == {"requests": 60, "ok": 60, "n429": 0, "repeated": 0}
    assert {done.status for done in results} == {Status.OK}


@pytest.mark.parametrize("path", BACKBONES, ids=lambda path: path.stem)
def test_backbones_are_valid(path: Path) -> None:
    assert config_of(f"backbone={path.stem}").backbone.name == path.stem


def test_one_yaml_shows_every_field_and_the_others_start_from_it() -> None:
    shown = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in BACKBONES}
    assert shown.pop("openai_compatible").keys() == Endpoint.model_fields.keys()
    assert all(len(some["defaults"]) == 2 for some in shown.values())


def test_a_reply_counts_as_in_flight_until_it_is_on_disk(
    rehearsal: RehearsalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill while the disk is slow must not cost more than what the limit lets be in flight."""
    put, before = ReplyCache.put, counts(rehearsal)["requests"]

    async def main() -> tuple[int, int]:
        disk = asyncio.Event()

        async def slow(*arguments: Any) -> None:
            await disk.wait()
            await put(*arguments)

        monkeypatch.setattr(ReplyCache, "put", slow)
        cache = ReplyCache(tmp_path / "r.sqlite")
        endpoint = Endpoint(name="r", model="rehearsal", base_url=rehearsal.base_url, max_in_flight=4)
        gateway = Gateway(endpoint, cache)
        try:
            asked = [asyncio.create_task(gateway.complete(ask(f"On a slow disk {n}."))) for n in range(12)]
            _, waiting = await asyncio.wait(asked, timeout=0.5)
            at_first = await asyncio.to_thread(counts, rehearsal)
            disk.set()
            await asyncio.gather(*waiting)
            return at_first["requests"] - before, counts(rehearsal)["requests"] - before
        finally:
            await gateway.close()
            cache.close()

    assert asyncio.run(main()) == (4, 12)


def test_a_full_disk_costs_no_more_than_what_is_in_flight(
    rehearsal: RehearsalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = counts(rehearsal)["requests"]

    async def full(*_: Any) -> None:
        raise CacheError("reply cache: disk is full")

    monkeypatch.setattr(ReplyCache, "put", full)

    async def main() -> list[Any]:
        cache = ReplyCache(tmp_path / "r.sqlite")
        endpoint = Endpoint(name="r", model="rehearsal", base_url=rehearsal.base_url, max_in_flight=4)
        gateway = Gateway(endpoint, cache)
        try:
            asked = [gateway.complete(ask(f"On a full disk {n}.")) for n in range(40)]
            return await asyncio.gather(*asked, return_exceptions=True)
        finally:
            await gateway.close()
            cache.close()

    assert {type(outcome) for outcome in asyncio.run(main())} == {CacheError}
    assert counts(rehearsal)["requests"] - before <= 4
