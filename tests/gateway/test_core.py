"""The gateway against servers that reply by script: what is stored, retried, asked again, shared, paid."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web

from harness.errors import ConfigError
from harness.gateway.cache import CachedReply, CacheError, ReplyCache
from harness.gateway.core import Gateway
from harness.gateway.request import prepare
from harness.gateway.result import EmbeddingFailed, Stopped
from harness.gateway.settings import Endpoint, Prices
from harness.records import Status
from harness.tokens import count_tokens, embedding_batches
from tests.gateway.conftest import GOOD, ask, chat_reply

PRICES = Prices(input=1.0, cached_input=0.1, output=10.0)
PAID = (60 * 1.0 + 40 * 0.1 + 10 * 10.0) / 1e6
BAD = chat_reply('{"prob_positive": "70%"}', usage={"prompt_tokens": 100, "completion_tokens": 10})

Play = Callable[..., Any]


def complete(gateway: Gateway) -> Any:
    return gateway.complete(ask())


async def twice(gateway: Gateway) -> Any:
    return [await gateway.complete(ask()), await gateway.complete(ask())]


def test_a_reply_and_its_record(play: Play) -> None:
    done, seen, _ = play([GOOD], complete, prices=PRICES, extra_body={"top_k": 3}, max_output_tokens=77)
    assert done.status is Status.OK
    assert done.value == {"reasoning": "r", "prob_positive": 0.6}
    (call,) = done.calls
    assert (call.prompt_tokens, call.cached_tokens, call.completion_tokens, call.reasoning_tokens) == (
        100,
        40,
        10,
        None,
    )
    assert call.cost_usd == pytest.approx(PAID)
    assert (call.attempts, call.cache_hit, call.http_status, call.status) == (1, False, 200, "ok")
    assert (call.stage, call.purpose) == ("forecast", "forecast")
    assert seen[0]["body"]["top_k"] == 3
    assert seen[0]["body"]["max_tokens"] == 77
    assert pickle.loads(pickle.dumps(done)) == done


def test_a_stored_reply_costs_nothing_and_is_the_same(play: Play) -> None:
    (first, again), seen, _ = play([GOOD], twice, prices=PRICES)
    assert len(seen) == 1
    assert (again.value, again.reply_sha256) == (first.value, first.reply_sha256)
    assert again.cache_hit
    assert (again.cost_usd, again.attempts) == (0.0, 0)
    assert again.list_cost_usd == first.cost_usd


def test_a_reply_is_on_disk_before_it_is_returned(play: Play, tmp_path: Path) -> None:
    async def talk(gateway: Gateway) -> Any:
        done = await gateway.complete(ask())
        return done, ReplyCache(tmp_path / "replies.sqlite").get(done.request_sha256)

    (done, row), _, _ = play([GOOD], talk)
    assert json.loads(row.reply) == GOOD
    assert row.request == prepare(Endpoint(name="e", model="m"), ask()).record
    assert done.request_sha256 == row.request_sha256


def test_a_stored_reply_is_read_anew(play: Play) -> None:
    """What is stored is what the server sent: were the parser stricter than the one that stored it, it would ask again."""

    async def talk(gateway: Gateway) -> Any:
        made = prepare(gateway.endpoint, ask())
        await gateway._cache.put(CachedReply(made.sha256, "e", "now", made.record, json.dumps(BAD)))
        return await gateway.complete(ask())

    done, seen, _ = play([GOOD], talk)
    assert [(call.status, call.cache_hit) for call in done.calls] == [("invalid", True), ("ok", False)]
    assert len(seen) == 1


def test_a_reply_that_cannot_be_stored_is_not_used(play: Play) -> None:
    async def talk(gateway: Gateway) -> Any:
        gateway._cache._store.execute("PRAGMA query_only = 1")
        return await gateway.complete(ask())

    with pytest.raises(CacheError, match="free space"):
        play([GOOD], talk)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (chat_reply("cut", finish="length"), Status.TRUNCATED),
        (chat_reply(None, message_refusal="no"), Status.REFUSED),
        ((400, {"error": {"code": "content_filter", "message": "filtered"}}, {}), Status.REFUSED),
    ],
)
def test_truncated_and_refused_are_neither_retried_nor_stored(play: Play, reply: Any, status: Status) -> None:
    results, seen, _ = play([reply], twice)
    assert [done.status for done in results] == [status] * 2
    assert len(seen) == 2


def test_invalid_is_asked_again_with_its_error(play: Play) -> None:
    done, seen, _ = play([BAD, GOOD], complete, prices=PRICES)
    assert done.status is Status.OK
    assert [call.status for call in done.calls] == ["invalid", "ok"]
    assert [call.stage for call in done.calls] == ["forecast", "retry"]
    assert done.request_sha256 == done.calls[1].request_sha256 != done.calls[0].request_sha256
    told = seen[1]["body"]["messages"]
    assert told[1] == {"role": "assistant", "content": '{"prob_positive": "70%"}'}
    assert "reasoning" in told[2]["content"]
    assert done.cost_usd == pytest.approx(PAID + 200 / 1e6)


def test_the_reply_to_a_fresh_try_answers_the_question_from_then_on(play: Play) -> None:
    (first, again), seen, _ = play([BAD, GOOD], twice)
    assert len(seen) == 2
    assert again.cache_hit
    assert again.value == first.value
    assert again.request_sha256 == first.request_sha256


def test_invalid_three_times_is_invalid(play: Play) -> None:
    (done, _), seen, _ = play([BAD], twice)
    assert done.status is Status.INVALID
    assert len(seen) == 6
    assert len({call.request_sha256 for call in done.calls}) == 3


def test_identical_requests_in_flight_are_one_call(play: Play) -> None:
    async def talk(gateway: Gateway) -> Any:
        return await asyncio.gather(
            *(gateway.complete(ask()) for _ in range(20)), *(gateway.complete(ask(sample=(0, n))) for n in (1, 2))
        )

    results, seen, _ = play([GOOD], talk, prices=PRICES)
    assert len(seen) == 3
    assert sum(done.cost_usd for done in results) == pytest.approx(3 * PAID)
    assert sum(done.cache_hit for done in results) == 19


async def reset(request: web.Request) -> web.StreamResponse:
    """A handler that closes the connection."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def test_a_connection_that_is_closed_is_not_called_late(play: Play) -> None:
    done, _, waits = play([reset], complete, retries=2)
    assert done.status is Status.PROVIDER
    assert "connection to e failed" in done.reason
    assert "in time" not in done.reason
    assert [w for w in waits if w > 0], "the next attempt waits with jitter"


def test_infrastructure_is_retried_within_bounds(play: Play) -> None:
    replies = [(500, {}, {}), reset, (429, {}, {"retry-after": "3600"}), "not JSON", GOOD]
    done, seen, waits = play(replies, complete)
    assert done.status is Status.OK
    assert done.attempts == len(seen) == 5
    assert max(waits) <= 60
    assert len(done.calls) == 1


def test_retries_end(play: Play) -> None:
    done, seen, _ = play([(503, {"error": {"message": "busy"}}, {})], complete, retries=3, prices=PRICES)
    assert done.status is Status.PROVIDER
    assert not done.fatal
    assert len(seen) == 3
    assert "busy" in done.reason
    assert (done.last.http_status, done.cost_usd) == (503, 0.0)


def test_an_endpoint_that_refuses_everything_is_given_up(play: Play) -> None:
    reply = (429, {"error": {"message": "busy"}}, {"retry-after": "20"})
    done, seen, waits = play([reply], complete, outage_s=60)
    assert done.status is Status.RATE_LIMITED
    assert done.fatal
    assert 60 < sum(waits) < 200
    assert 4 < len(seen) < 12
    assert "busy" in done.reason
    assert "outage_s" in done.reason
    assert (done.last.http_status, done.last.attempts) == (429, len(seen))


def test_limits_in_the_headers_of_a_reply_are_kept(play: Play) -> None:
    async def talk(gateway: Gateway) -> Any:
        await gateway.complete(ask())
        return gateway._sender.limiter.limits()

    headers = {"x-ratelimit-limit-requests": "600", "x-ratelimit-limit-tokens": "NaN"}
    assert play([(200, GOOD, headers)], talk)[0] == {"rpm": 600}
    assert play([(200, GOOD, headers)], talk, rpm=50, name="f")[0] == {"rpm": 50}


def test_a_hang_is_given_up_and_sent_again(play: Play) -> None:
    async def hang(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response()

    done, seen, _ = play([hang, GOOD], complete, request_timeout=0.2)
    assert done.status is Status.OK
    assert len(seen) == 2


def test_an_error_inside_a_200_is_an_error(play: Play) -> None:
    done, seen, _ = play([{"error": {"code": 503, "message": "upstream"}}, GOOD], complete)
    assert done.status is Status.OK
    assert len(seen) == 2


@pytest.mark.parametrize(
    "body",
    [
        {"error": "overloaded"},
        {"object": "error", "message": "busy"},
        {},
        {"choices": []},
        {"choices": ["x"]},
        {"choices": [{"message": None}]},
    ],
)
def test_a_200_without_a_message_is_the_servers_fault_not_the_models(play: Play, body: Any) -> None:
    """Scored as wrong it would lower accuracy; it is tried again, and lowers coverage at most."""
    done, seen, _ = play([body, GOOD], complete)
    assert (done.status, len(seen)) == (Status.OK, 2)
    never, _, _ = play([body] * 3, lambda gateway: gateway.complete(ask(sample=(0, 9))), retries=3)
    assert never.status is Status.PROVIDER


@pytest.mark.parametrize(
    "odd",
    [
        {"model": "m\ud800"},
        {"system_fingerprint": "f\ud800"},
        {"usage": {"prompt_tokens": 2**80, "completion_tokens": 1}},
    ],
)
def test_an_odd_reply_makes_a_record_that_can_be_written(play: Play, odd: Any) -> None:
    done, _, _ = play([{**GOOD, **odd}], complete)
    assert done.status is Status.OK
    assert (done.model_returned or "").isprintable()
    assert done.calls[0].prompt_tokens in (None, 100)
    str(done.model_returned).encode()
    str(done.system_fingerprint).encode()


def test_an_error_with_a_lone_surrogate_can_be_written(play: Play) -> None:
    done, _, _ = play([(400, {"error": {"message": "no \ud800"}}, {})], complete)
    assert done.status is Status.PROVIDER
    done.reason.encode()


def test_a_wrong_key_is_fatal_and_never_shown(play: Play, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret")
    caplog.set_level(logging.DEBUG)
    done, seen, _ = play([(401, {"error": {"message": "bad key"}}, {})], complete, api_key_env="MY_KEY")
    assert done.fatal
    assert len(seen) == 1
    assert "MY_KEY" in done.reason
    assert seen[0]["headers"]["Authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in repr(done) + caplog.text


def test_a_missing_key_or_url_is_found_before_any_call(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "r.sqlite")
    with pytest.raises(ConfigError, match="export NO_SUCH_KEY"):
        Gateway(Endpoint(name="e", model="m", base_url="https://x.example/v1", api_key_env="NO_SUCH_KEY"), cache)
    with pytest.raises(ConfigError, match="base_url"):
        Gateway(Endpoint(name="e", model="m"), cache)


def test_budget(play: Play) -> None:
    async def talk(gateway: Gateway) -> Any:
        return [await gateway.complete(ask(sample=(0, n))) for n in range(10)]

    results, seen, _ = play([GOOD], talk, prices=PRICES, budget_usd=5 * PAID, max_output_tokens=12)
    assert [done.status for done in results].count(Status.BUDGET) == 10 - len(seen)
    assert 0 < len(seen) * PAID <= 5 * PAID
    assert "budget reached" in results[-1].reason
    assert results[-1].cost_usd == 0.0


def test_stop_lets_what_is_in_flight_finish_and_stores_it(play: Play, tmp_path: Path) -> None:
    release = asyncio.Event()

    async def slow(_: web.Request) -> web.StreamResponse:
        await release.wait()
        return web.json_response(GOOD)

    async def talk(gateway: Gateway) -> Any:
        calls = [asyncio.create_task(gateway.complete(ask(sample=(0, n)))) for n in range(5)]
        while gateway.stats().in_flight < 2:
            await asyncio.sleep(0.01)
        assert gateway.stats().waiting_on == "concurrency"
        stopping = asyncio.create_task(gateway.stop())
        await asyncio.sleep(0.01)
        release.set()
        await stopping
        with pytest.raises(Stopped):
            await gateway.complete(ask("new"))
        return await asyncio.gather(*calls, return_exceptions=True)

    results, seen, _ = play([slow], talk, max_in_flight=2)
    assert len(seen) == 2
    assert [type(result) for result in results[2:]] == [Stopped] * 3
    cache = ReplyCache(tmp_path / "replies.sqlite")
    assert all(cache.get(done.request_sha256) for done in results[:2])


def test_a_caller_that_gives_up_does_not_lose_the_reply(play: Play, tmp_path: Path) -> None:
    release = asyncio.Event()

    async def slow(_: web.Request) -> web.StreamResponse:
        await release.wait()
        return web.json_response(GOOD)

    async def talk(gateway: Gateway) -> Any:
        caller = asyncio.create_task(gateway.complete(ask()))
        while gateway.stats().in_flight < 1:
            await asyncio.sleep(0.01)
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        release.set()
        return await gateway.complete(ask())

    done, seen, _ = play([slow], talk)
    assert done.status is Status.OK
    assert len(seen) == 1


def _vectors(request: web.Request) -> Any:
    async def respond() -> web.StreamResponse:
        texts = (await request.json())["input"]
        data = [{"index": n, "embedding": [float(len(text)), 1.0]} for n, text in enumerate(texts)]
        return web.json_response({"data": data[::-1], "usage": {"prompt_tokens": len(texts)}})

    return respond()


def test_embeddings_keep_their_order(play: Play) -> None:
    texts = ["x" * (1 + n % 9) for n in range(2500)]
    done, seen, _ = play([(500, {}, {}), _vectors], lambda gateway: gateway.embed(texts), embedding_model="v")
    assert done.vectors.dtype == np.float32
    assert done.vectors[:, 0].tolist() == [len(text) for text in texts]
    assert len(seen) == 3
    assert [call.prompt_tokens for call in done.calls] == [2048, 452]
    assert {call.model for call in done.calls} == {"v"}


def test_embeddings_fail_loudly(play: Play) -> None:
    with pytest.raises(EmbeddingFailed, match=r"0 vectors for 1 texts|no vectors"):
        play([{"data": []}], lambda gateway: gateway.embed(["a"]), embedding_model="v", retries=2)


def test_embedding_batches_keep_the_limits() -> None:
    batches = embedding_batches(["word " * 9000] * 40 + ["", "a"] * 2000)
    assert sum(len(texts) for texts, _ in batches) == 4040
    for texts, tokens in batches:
        assert len(texts) <= 2048
        assert tokens == sum(count_tokens(text) for text in texts) <= 300_000
        assert all(0 < count_tokens(text) <= 8191 for text in texts)
