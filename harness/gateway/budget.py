"""Money: reserved before a request leaves, settled when its cost is known."""

from __future__ import annotations

import asyncio
from typing import Protocol

from harness.errors import ConfigError
from harness.gateway.settings import Endpoint, Price


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


class Account:
    """The money of one call: an upper bound set aside for the attempt under way, and what unanswered attempts may have cost.

    An attempt without an answer (a timeout, a broken connection) may be billed: until someone knows better it counts as its
    upper bound, and the next attempt needs a reservation of its own.
    """

    def __init__(self, purse: Purse | None, most_usd: float) -> None:
        self.unanswered = 0
        self._purse = purse
        self.most_usd = most_usd
        self._open = False
        self._settled = 0

    async def open(self) -> str | None:
        """Set the upper bound of one attempt aside; a sentence if it does not fit."""
        refusal = await self._purse.reserve(self.most_usd) if self._purse else None
        self._open = refusal is None
        return refusal

    async def renew(self) -> str | None:
        """Before another attempt: book the last one if it was unanswered, and reserve again; a sentence if that does not fit."""
        if self._purse is None or self.unanswered == self._settled:
            return None
        await self.close()
        return await self.open()

    async def close(self, cost: float = 0.0) -> None:
        """Book ``cost`` and the unanswered attempts, and give back what is left."""
        if self._purse is not None and self._open:
            self._open = False
            await self._purse.settle(self.most_usd, cost + (self.unanswered - self._settled) * self.most_usd)
            self._settled = self.unanswered


def check_prices(endpoint: Endpoint, limited: bool, *, embeddings: bool = False) -> None:
    """A budget needs prices.

    Raises:
        ConfigError: a budget is set and a price of ``endpoint`` is null (that of embeddings, for an embedder's endpoint).
    """
    prices = endpoint.prices
    if not limited or (prices.embedding is not None if embeddings else prices.known):
        return
    if embeddings:
        raise ConfigError(
            f"run.budget_usd with the embeddings of {endpoint.name}: prices.embedding is null, so the budget cannot be kept. "
            "Set it (USD per million tokens), e.g. +embedder.endpoint.prices.embedding=…"
        )
    raise ConfigError(
        f"run.budget_usd with backbone {endpoint.name}: its prices.input and prices.output are null, so the budget cannot "
        f"be kept. Set both (USD per million tokens) in conf/backbone/{endpoint.name}.yaml, or as backbone.prices.input=…"
    )


def upper_cost(price: Price, prompt_tokens: int, most_output: int) -> float:
    """The most one send can cost in USD: nothing cached, and a reply of full length; 0 without prices."""
    return price.cost(prompt_tokens, 0, most_output) or 0.0
