"""What was paid is on file with the reply, an attempt nobody answered counts at the most, and the budget holds all of it."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import ValidationError

from harness import cost as cost_command
from harness.errors import ConfigError
from harness.gateway.budget import Account, Budget
from harness.gateway.cache import UNANSWERED, Payment, ReplyCache
from harness.gateway.core import Gateway
from harness.gateway.paying import Watched
from harness.gateway.result import EmbeddingFailed
from harness.gateway.settings import Price, Prices
from harness.ledger import Paid, ledger, read_payments, spent_usd
from harness.records import Status
from tests.gateway.conftest import GOOD, USAGE, ask, chat_reply

PRICES = Prices(input=1.0, cached_input=0.1, output=10.0, embedding=0.5)
PAID = (60 * 1.0 + 40 * 0.1 + 10 * 10.0) / 1e6
BAD = chat_reply("no object here", usage=USAGE)
Play = Callable[..., Any]


async def broken(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def paid_in(directory: Path) -> list[Payment]:
    (directory / "replies.sqlite").rename(directory / "replies-e.sqlite")
    return [paid.payment for paid in read_payments(directory)]


def test_every_reply_is_a_payment_and_a_cache_hit_is_none(play: Play, tmp_path: Path) -> None:
    async def talk(gateway: Gateway) -> None:
        for _ in range(2):
            await gateway.complete(ask(cell="c"))

    play([BAD, GOOD], talk, prices=PRICES)
    rows = paid_in(tmp_path)
    assert [(p.status, p.stage, p.cell, p.cached_tokens) for p in rows] == [
        (Status.INVALID, "forecast", "c", 40),
        (Status.OK, "retry", "c", 40),
    ]
    assert sum(p.cost_usd or 0 for p in rows) == pytest.approx(2 * PAID)
    assert spent_usd(tmp_path) == pytest.approx(2 * PAID)


def test_an_attempt_without_an_answer_counts_at_the_most(play: Play, tmp_path: Path) -> None:
    done, _, _ = play([broken, (500, {}, {}), GOOD], lambda g: g.complete(ask()), prices=PRICES, max_output_tokens=50)
    assert done.status is Status.OK
    lost, answered = paid_in(tmp_path)
    assert (lost.status, lost.completion_tokens) == (UNANSWERED, 50)
    assert lost.cost_usd == pytest.approx((lost.prompt_tokens or 0) * 1e-6 + 50 * 10e-6)
    assert answered.cost_usd == pytest.approx(PAID)
    found = ledger(read_payments(tmp_path)).total
    assert (found.calls, found.unanswered, found.unanswered_usd) == (1, 1, lost.cost_usd)


def test_an_endpoint_that_is_not_there_costs_nothing(play: Play, tmp_path: Path) -> None:
    done, _, _ = play([GOOD], lambda g: g.complete(ask()), prices=PRICES, retries=1, base_url="http://127.0.0.1:9/v1")
    assert done.status is Status.PROVIDER
    assert paid_in(tmp_path) == []


def test_the_budget_holds_unanswered_attempts(play: Play, tmp_path: Path) -> None:
    """Each lost attempt may cost 500 output tokens: a budget of three of them allows three attempts, not the retries' six."""
    most = 510 * 10e-6
    done, seen, _ = play(
        [broken], lambda g: g.complete(ask()), budget_usd=3 * most, prices=PRICES, max_output_tokens=500
    )
    assert (done.status, len(seen)) == (Status.BUDGET, 3)
    assert spent_usd_of(paid_in(tmp_path)) <= 3 * most


def spent_usd_of(payments: list[Payment]) -> float:
    return sum(p.cost_usd or 0 for p in payments)


def test_random_faults_never_exceed_the_budget() -> None:
    """Attempts of random fate: what is booked never exceeds the limit, and no reservation is left over."""

    async def main(seed: int) -> Budget:
        rng, budget = random.Random(seed), Budget(1.0)

        async def call() -> None:
            account = Account(budget, 0.05)
            if await account.open() is not None:
                return
            for _ in range(4):
                await asyncio.sleep(0)
                if rng.random() < 0.7:
                    await account.close(rng.uniform(0, 0.05))
                    return
                account.unanswered += rng.random() < 0.5
                if await account.renew() is not None:
                    return
            await account.close()

        await asyncio.gather(*(call() for _ in range(100)))
        return budget

    for seed in range(30):
        budget = asyncio.run(main(seed))
        assert budget.spent <= 1.0 + 1e-9
        assert budget._open == 0


def test_who_waits_for_the_budget_is_seen_to_wait() -> None:
    async def main() -> list[int]:
        clock, purse = [0.0], Budget(1.0)
        watched = Watched(purse, lambda: clock[0])
        assert await watched.reserve(0.9) is None
        second = asyncio.create_task(watched.reserve(0.9))
        await asyncio.sleep(0)
        seen = [watched.waiting]
        clock[0] = 1.0
        seen.append(watched.waiting)
        await watched.settle(0.9, 0.05)
        assert await second is None
        return [*seen, watched.waiting]

    assert asyncio.run(main()) == [0, 1, 0]


def embedded(request: web.Request) -> Any:
    async def reply() -> web.Response:
        body = await request.json()
        data = [{"index": i, "embedding": [0.0, 1.0]} for i in range(len(body["input"]))]
        return web.json_response({"data": data, "usage": {"prompt_tokens": 1000, "total_tokens": 1000}})

    return reply()


def test_embeddings_have_a_price_of_their_own(play: Play, tmp_path: Path) -> None:
    done, _, _ = play([embedded], lambda g: g.embed(["a"]), budget_usd=1, prices=PRICES, embedding_model="v")
    assert done.calls[0].cost_usd == pytest.approx(1000 * 0.5e-6)
    (payment,) = paid_in(tmp_path)
    assert (payment.purpose, payment.model, payment.cost_usd) == ("embed", "v", pytest.approx(1000 * 0.5e-6))


def test_embeddings_are_refused_beyond_the_budget(play: Play) -> None:
    async def talk(gateway: Gateway) -> None:
        with pytest.raises(EmbeddingFailed, match="budget reached") as caught:
            await gateway.embed(["a text"])
        assert caught.value.status is Status.BUDGET

    play([embedded], talk, budget_usd=1e-9, prices=PRICES, embedding_model="v")


def test_a_budget_without_the_price_of_embeddings_is_refused(play: Play) -> None:
    async def talk(gateway: Gateway) -> None:
        with pytest.raises(ConfigError, match=r"prices\.embedding"):
            await gateway.embed(["a text"])

    play([embedded], talk, budget_usd=1, prices=Prices(input=1, output=1), embedding_model="v")


def payment(**fields: Any) -> Payment:
    about: dict[str, Any] = {
        "request_sha256": "r", "paid_at": "2026-03-01T10:00:00+00:00", "cell": "c", "purpose": "forecast",
        "stage": "forecast", "model": "m", "status": "ok", "prompt_tokens": 1_000_000, "cached_tokens": 0,
        "completion_tokens": 100_000, "reasoning_tokens": 0, "cost_usd": 1.0,
    }  # fmt: skip
    return Payment(**{**about, **fields})


def test_the_ledger_adds_up_and_unknown_stays_unknown() -> None:
    paid = [
        Paid("a", payment()),
        Paid("a", payment(stage="build", cell="d", cost_usd=None)),
        Paid("b", payment(purpose="embed", cell=None, stage="build", completion_tokens=None, cost_usd=0.5)),
        Paid("b", payment(status=UNANSWERED, cost_usd=3.0)),
    ]
    found = ledger(paid)
    assert [(line.stage, line.calls, line.cost_usd) for line in found.stages] == [
        ("build", 2, None),
        ("forecast", 1, 1.0),
    ]
    assert (found.total.calls, found.total.cost_usd, found.total.unanswered_usd) == (3, None, 3.0)
    assert found.total.input_tokens == 3_000_000
    assert {line.cell for line in found.cells} == {"c", "d", "(shared)"}


def test_prices_by_date() -> None:
    prices = Prices(
        input=1, output=2, as_of=date(2026, 6, 1), earlier=(Price(input=3, output=4, as_of=date(2026, 1, 1)),)
    )
    assert [prices.at(date(*day)).input for day in ((2025, 5, 5), (2026, 1, 1), (2026, 5, 31), (2026, 6, 1))] == [
        3,
        3,
        3,
        1,
    ]
    assert Prices(input=1, output=2).at(date(2020, 1, 1)).input == 1
    with pytest.raises(ValidationError, match="as_of"):
        Prices(input=1, output=2, earlier=(Price(input=3, output=4),))


def test_an_old_run_is_priced_again_without_a_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def fill() -> None:
        cache = ReplyCache(tmp_path / "cache" / "replies-mine.sqlite")
        later = payment(paid_at="2026-07-01T00:00:00+00:00", stage="build")
        await cache.put(None, [payment(), later, payment(status=UNANSWERED)])
        cache.close()

    asyncio.run(fill())
    table = tmp_path / "prices.yaml"
    table.write_text(
        "mine: {input: 1, output: 10, batch_discount: 0.5, as_of: 2026-06-01, earlier: [{input: 2, output: 20, as_of: 2026-01-01}]}"
    )
    out = tmp_path / "ledger.json"

    def total(*options: str) -> float:
        assert cost_command.main([str(tmp_path), *options, "--json", str(out)]) == 0
        import json

        return float(json.loads(out.read_text())["total"]["cost_usd"])

    assert total("--paid") == pytest.approx(2.0)
    assert total("--prices", str(table)) == pytest.approx((2 + 2) + (1 + 1))
    assert total("--prices", str(table), "--on", "2026-08-01") == pytest.approx(2 * 2)
    assert total("--prices", str(table), "--batch") == pytest.approx(4 + 1), (
        "the discount is that of the price that holds"
    )
    capsys.readouterr()
    assert cost_command.main([str(tmp_path), "backbone=nonsense"]) == 2
    assert "deepseek_v4_flash" in capsys.readouterr().err
    assert cost_command.main([str(tmp_path)]) == 0
    assert "no price for calls to mine" in capsys.readouterr().out
    table.write_text("mine: {inputt: 1}")
    assert cost_command.main([str(tmp_path), "--prices", str(table)]) == 2
    assert "mine.inputt" in capsys.readouterr().err


def test_a_row_is_written_with_its_payment_or_not_at_all(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies-e.sqlite")

    async def main() -> None:
        broken_payment = dataclasses.replace(payment(), stage=None)  # type: ignore[arg-type]
        from tests.gateway.test_cache import row

        with pytest.raises(Exception, match="NOT NULL"):
            await cache.put(row(1), [broken_payment])

    asyncio.run(main())
    assert cache.get("sha1") is None
    assert read_payments(tmp_path) == []
