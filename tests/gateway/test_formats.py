"""Servers that take no JSON schema: found out once, remembered, and nothing is paid twice for it."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from harness.gateway.cache import ReplyCache
from harness.gateway.core import Gateway
from harness.gateway.formats import LADDER, Formats, shaped
from harness.gateway.request import WORDED_SCHEMA, prepare
from harness.gateway.result import Completion
from harness.gateway.settings import Endpoint
from harness.records import Status
from harness.rehearsal import start_rehearsal
from tests.e2e.conftest import stats
from tests.gateway.conftest import GOOD, SCHEMA, ask, instant_clock


def ask_all(url: str, store: Path, texts: list[str], **fields: Any) -> list[Completion]:
    async def main() -> list[Completion]:
        endpoint = Endpoint(name="e", model="rehearsal", base_url=url, **fields)
        cache = ReplyCache(store)
        gateway = Gateway(endpoint, cache, clock=instant_clock([]))
        try:
            return [await gateway.complete(ask(text)) for text in texts]
        finally:
            await gateway.close()
            cache.close()

    return asyncio.run(main())


@pytest.mark.parametrize("refusal", [400, 500])
@pytest.mark.parametrize("accepts", LADDER)
def test_the_best_form_taken_is_found_and_kept(tmp_path: Path, accepts: str, refusal: int) -> None:
    server = start_rehearsal(accepts=accepts, refusal=refusal)
    store = tmp_path / "replies.sqlite"
    try:
        first = ask_all(server.base_url, store, ["Profit rose.", "Sales fell."])
        assert [done.status for done in first] == [Status.OK] * 2
        descent = stats(server)["chat"]["requests"] - 2
        again = ask_all(server.base_url, store, ["Profit rose.", "A third text."])
        assert [done.cache_hit for done in again] == [True, False], "what was found out is no part of the key"
        assert stats(server)["chat"]["requests"] == descent + 3, "a later run does not find it out again"
        assert stats(server)["chat"]["ok"] == 3
    finally:
        server.stop()
    assert descent == LADDER.index(accepts), "one refusal a form: a 400, or a server error that names what it refuses"
    with sqlite3.connect(store) as db:
        assert db.execute("SELECT name, value FROM facts").fetchall() == [("structured:e:rehearsal", accepts)]


def test_a_body_in_each_form() -> None:
    body = prepare(Endpoint(name="e", model="m"), ask()).body
    assert shaped(body, "json_schema") == body
    for rung, expected in (
        ("object_schema", {"type": "json_object", "schema": SCHEMA}),
        ("json_object", {"type": "json_object"}),
        ("none", None),
    ):
        lowered = shaped(body, rung)
        assert lowered.get("response_format") == expected
        assert WORDED_SCHEMA in lowered["messages"][-1]["content"]
    assert WORDED_SCHEMA not in body["messages"][-1]["content"], "the body that is the key stays as it is"


def test_one_server_error_is_an_accident(play: Any, tmp_path: Path) -> None:
    done, seen, _ = play([(500, {}, {}), GOOD], lambda gateway: gateway.complete(ask()))
    assert done.status is Status.OK
    assert [s["body"]["response_format"]["type"] for s in seen] == ["json_schema"] * 2
    assert ReplyCache(tmp_path / "replies.sqlite").fact("structured:e:m") == "json_schema"


def test_server_errors_without_a_reason_may_be_the_form(play: Any) -> None:
    """Two of them in the first form, one in each further: then the endpoint is not taken to be down."""
    nothing_said = (500, {}, {})
    done, seen, _ = play([*[nothing_said] * 4, GOOD], lambda gateway: gateway.complete(ask()))
    assert done.status is Status.OK
    asked = [s["body"].get("response_format", {}).get("type", "none") for s in seen]
    assert asked == ["json_schema", "json_schema", "json_object", "json_object", "none"]


def test_once_known_a_refusal_is_the_requests_own_affair(play: Any) -> None:
    async def talk(gateway: Gateway) -> list[Completion]:
        return [await gateway.complete(ask("one")), await gateway.complete(ask("two"))]

    (_, refused), seen, _ = play([GOOD, (400, {"error": {"message": "too long"}}, {})], talk)
    assert refused.status is Status.PROVIDER
    assert "too long" in str(refused.reason)
    assert len(seen) == 2


def test_a_server_that_refuses_everything_teaches_nothing(play: Any, tmp_path: Path) -> None:
    done, seen, _ = play([(400, {"error": {"message": "no"}}, {})], lambda gateway: gateway.complete(ask()))
    assert (done.status, len(seen)) == (Status.PROVIDER, len(LADDER))
    cache = ReplyCache(tmp_path / "replies.sqlite")
    assert Formats(Endpoint(name="e", model="m"), cache).known is None


def test_what_is_remembered_of_another_model_does_not_count(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "r.sqlite")
    cache.remember("structured:e:m", "none")
    assert Formats(Endpoint(name="e", model="m"), cache).known == "none"
    assert Formats(Endpoint(name="e", model="other"), cache).known is None
