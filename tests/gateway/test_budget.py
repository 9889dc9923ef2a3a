"""Money is reserved before a request leaves."""

from __future__ import annotations

import asyncio

import pytest

from harness.errors import ConfigError
from harness.gateway.budget import Budget, check_prices
from harness.gateway.settings import Endpoint, Prices


def test_never_above_the_limit_and_no_money_stranded() -> None:
    """Reservations are five times the real cost; still nearly all of the budget gets spent, and never more."""

    async def main() -> tuple[int, float]:
        budget, done = Budget(1.0), 0

        async def call() -> None:
            nonlocal done
            if await budget.reserve(0.05) is None:
                await asyncio.sleep(0)
                await budget.settle(0.05, 0.01)
                assert budget.spent <= 1.0
                done += 1

        await asyncio.gather(*(call() for _ in range(300)))
        return done, budget.spent

    done, spent = asyncio.run(main())
    assert 0.95 <= spent <= 1.0
    assert done == round(spent / 0.01)


def test_a_budget_needs_prices() -> None:
    check_prices(Endpoint(name="e", model="m"), None)
    check_prices(Endpoint(name="e", model="m", prices=Prices(input=1, output=1)), 5)
    with pytest.raises(ConfigError, match=r"prices.*conf/backbone/e\.yaml"):
        check_prices(Endpoint(name="e", model="m"), 5)


def test_cost() -> None:
    prices = Prices(input=1.0, cached_input=0.1, output=4.0)
    assert prices.cost(1_000_000, 500_000, 100_000) == pytest.approx(0.5 + 0.05 + 0.4)
    assert prices.cost(None, None, 5) is None
    assert Prices(output=4.0).cost(5, 0, 5) is None
    assert Prices(input=1.0, output=0.0).cost(1_000_000, 500_000, 0) == 1.0
