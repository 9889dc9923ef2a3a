"""What calls cost: the money of each attempt, and the payments that go on file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date

from harness.gateway.budget import Account, Purse, check_prices, upper_cost
from harness.gateway.cache import UNANSWERED, Payment, stamp
from harness.gateway.result import Usage
from harness.gateway.retry import AttemptFailed, Failure
from harness.gateway.settings import Endpoint
from harness.records import EMBED, Status

_LONG_S = 0.5


@dataclass(frozen=True, slots=True)
class About:
    """Whose a payment is."""

    request_sha256: str
    purpose: str
    stage: str
    cell: str | None = None
    by_batch: bool = False


class Watched:
    """A purse that knows how many have been waiting for it: the others in flight must settle first."""

    def __init__(self, purse: Purse, now: Callable[[], float] = time.monotonic) -> None:
        self._purse = purse
        self._now = now
        self._since: dict[object, float] = {}

    @property
    def waiting(self) -> int:
        """Reservations that take longer than the way to the purse and back."""
        return sum(self._now() - since > _LONG_S for since in self._since.values())

    async def reserve(self, estimate: float) -> str | None:
        """As ``Purse.reserve``."""
        place = object()
        self._since[place] = self._now()
        try:
            return await self._purse.reserve(estimate)
        finally:
            del self._since[place]

    async def settle(self, estimate: float, cost: float) -> None:
        """As ``Purse.settle``."""
        await self._purse.settle(estimate, cost)


class Till:
    """Costs of one endpoint's calls at today's price, within what the purse holds."""

    def __init__(self, endpoint: Endpoint, purse: Purse | None) -> None:
        self.limited = purse is not None
        self._endpoint = endpoint
        self._purse = Watched(purse) if purse is not None else None
        self._price = endpoint.prices.at(date.today())

    @property
    def waiting(self) -> int:
        """Calls that wait for the budget."""
        return self._purse.waiting if self._purse else 0

    def cost(self, purpose: str, used: Usage, by_batch: bool = False) -> float | None:
        """USD for a reply, ``by_batch`` with the discount for that; None if a price or the usage is not known."""
        if purpose == EMBED:
            return self._price.embedding_cost(used.prompt_tokens)
        usd = self._price.cost(used.prompt_tokens, used.cached_tokens, used.completion_tokens)
        return usd if usd is None or not by_batch else usd * (1 - (self._price.batch_discount or 0.0))

    def account(self, purpose: str, prompt_tokens: int, most_output: int = 0) -> Account:
        """An account for one call.

        Raises:
            ConfigError: there is a budget, and a price is not known.
        """
        check_prices(self._endpoint, self.limited, embeddings=purpose == EMBED)
        if purpose == EMBED:
            return Account(self._purse, self._price.embedding_cost(prompt_tokens) or 0.0)
        return Account(self._purse, upper_cost(self._price, prompt_tokens, most_output) if self.limited else 0.0)

    def payment(self, about: About, status: str, used: Usage) -> Payment:
        """The payment for a reply."""
        model = self._endpoint.embedding_model if about.purpose == EMBED else self._endpoint.model
        return Payment(
            about.request_sha256, stamp(), about.cell, about.purpose, about.stage, str(model), str(status),
            used.prompt_tokens, used.cached_tokens, used.completion_tokens, used.reasoning_tokens,
            self.cost(about.purpose, used, about.by_batch),
        )  # fmt: skip

    def unanswered(self, about: About, attempts: int, prompt_tokens: int, most_output: int | None) -> list[Payment]:
        """One payment an attempt that nobody answered, at the most it can have cost."""
        return [self.payment(about, UNANSWERED, Usage(prompt_tokens, most_output))] * attempts


@contextmanager
def noting(account: Account) -> Iterator[None]:
    """Count an attempt that ends without an answer and may be billed all the same: broken off, or given up by its deadline."""
    try:
        yield
    except asyncio.CancelledError:
        account.unanswered += 1
        raise
    except AttemptFailed as error:
        account.unanswered += error.failure.unanswered
        raise


async def renew(account: Account) -> None:
    """Money for one more attempt.

    Raises:
        AttemptFailed: the budget has none.
    """
    refusal = await account.renew()
    if refusal is not None:
        raise AttemptFailed(over_budget(refusal))


def over_budget(refusal: str) -> Failure:
    """The failure of a call that the budget does not allow."""
    return Failure(Status.BUDGET, refusal, retry=False)
