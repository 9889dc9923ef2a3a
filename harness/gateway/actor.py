"""One gateway for the whole Ray session: a thin async actor an endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray

from harness.gateway.budget import Budget, Purse, check_prices
from harness.gateway.cache import ReplyCache
from harness.gateway.client import GatewayClient
from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion, Embeddings, Stats
from harness.gateway.settings import Endpoint
from harness.remote import unwrapped

_MAX_CONCURRENCY = 2000


class GatewayActor:
    """The Ray side: everything is the gateway's. It waits on the network, so it reserves no CPU."""

    def __init__(self, endpoint: Endpoint, cache_path: str, budget: Purse | None) -> None:
        from harness.gateway.core import Gateway  # the HTTP client is loaded where it is used, not by the driver

        self._gateway = Gateway(endpoint, ReplyCache(cache_path), budget=budget)

    async def complete(self, request: ChatRequest) -> Completion:
        return await self._gateway.complete(request)

    async def embed(self, texts: Sequence[str], stage: str) -> Embeddings:
        return await self._gateway.embed(texts, stage)

    async def stats(self) -> Stats:
        return self._gateway.stats()

    async def named_stats(self) -> tuple[str, Stats]:
        """The endpoint's name with the snapshot, for who asks several."""
        return self._gateway.endpoint.name, self._gateway.stats()

    async def stop(self) -> None:
        await self._gateway.stop()


def start_gateway(endpoint: Endpoint, cache_path: Path, budget: Purse | None = None) -> GatewayClient:
    """Start a gateway's actor in the running Ray session, on this machine (the cache is a local file).

    It ends with the last handle to it. The key is read from the actor's environment, never passed as an argument.

    Raises:
        ConfigError: as ``Gateway``; found here, before an actor would die of it.
    """
    endpoint.api_key()
    check_prices(endpoint, budget is not None)
    actor = ray.remote(GatewayActor)
    node = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    handle = actor.options(num_cpus=0, max_concurrency=_MAX_CONCURRENCY, scheduling_strategy=node).remote(
        endpoint, str(cache_path), budget
    )
    return GatewayClient(endpoint, handle)


class SharedPurse:
    """A picklable handle of one budget for all gateways of a session."""

    def __init__(self, limit_usd: float, spent_usd: float) -> None:
        actor = ray.remote(Budget)
        self._actor: Any = actor.options(num_cpus=0, max_concurrency=_MAX_CONCURRENCY).remote(limit_usd, spent_usd)

    async def reserve(self, estimate: float) -> str | None:
        """As ``Budget.reserve``."""
        refusal: str | None = await unwrapped(self._actor.reserve.remote(estimate))
        return refusal

    async def settle(self, estimate: float, cost: float) -> None:
        """As ``Budget.settle``."""
        await unwrapped(self._actor.settle.remote(estimate, cost))
