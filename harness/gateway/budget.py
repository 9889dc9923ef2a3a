"""Money: reserved before a request leaves, settled when its cost is known."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from harness.errors import ConfigError
from harness.gateway.settings import Endpoint


class Purse(Protocol):
    """What a gateway asks before it spends: a ``Budget``, or the handle of one that several gateways share."""

    async def reserve(self, estimate: float) -> str | None: ...
    async def settle(self, estimate: float, cost: float) -> None: ...


class Budget:
    """Never more than ``limit_usd`` spent and reserved together. A request that does not fit waits while others settle."""

    def __init__(self, limit_usd: float, spent_usd: float = 0.0) -> None:
        self.limit_usd = limit_usd
        self.spent = spent_usd
        self._reserved = 0.0
        self._open = 0
        self._settled = asyncio.Condition()

    async def reserve(self, estimate: float) -> str | None:
        """Set ``estimate`` (USD) aside; a sentence if it does not fit and nothing in flight could make room."""
        async with self._settled:
            while self.spent + self._reserved + estimate > self.limit_usd:
                if self._open == 0 or self.spent + estimate > self.limit_usd:
                    spent = f"${self.spent:.4f} of ${self.limit_usd:g}"
                    return f"budget reached: {spent} spent, this call may cost ${estimate:.4f}"
                await self._settled.wait()
            self._reserved += estimate
            self._open += 1
            return None

    async def settle(self, estimate: float, cost: float) -> None:
        """Replace a reservation by what was paid."""
        async with self._settled:
            self._open -= 1
            self._reserved = self._reserved - estimate if self._open else 0.0
            self.spent += cost
            self._settled.notify_all()


def check_prices(endpoint: Endpoint, limited: bool) -> None:
    """A budget needs prices.

    Raises:
        ConfigError: a budget is set and a price of ``endpoint`` is null.
    """
    if limited and not endpoint.prices.known:
        raise ConfigError(
            f"run.budget_usd with backbone {endpoint.name}: its prices.input and prices.output are null, so the budget cannot "
            f"be kept. Set both (USD per million tokens) in conf/backbone/{endpoint.name}.yaml, or as backbone.prices.input=…"
        )


def upper_cost(endpoint: Endpoint, body: dict[str, Any], prompt_tokens: int) -> float:
    """The most one send of ``body`` can cost in USD: nothing cached, and a reply of full length."""
    return endpoint.prices.cost(prompt_tokens, 0, body[endpoint.token_param]) or 0.0
