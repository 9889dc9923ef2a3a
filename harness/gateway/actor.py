"""One gateway for the whole Ray session: a thin async actor an endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import ray

from harness.gateway.budget import check_prices
from harness.gateway.cache import ReplyCache
from harness.gateway.client import GatewayClient
from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion, Embeddings, Stats
from harness.gateway.settings import Endpoint

_MAX_CONCURRENCY = 2000


class GatewayActor:
    """The Ray side: everything is the gateway's. It waits on the network, so it reserves no CPU."""

    def __init__(self, endpoint: Endpoint, cache_path: str, budget_usd: float | None, spent_usd: float) -> None:
        from harness.gateway.core import Gateway  # the HTTP client is loaded where it is used, not by the driver

        self._gateway = Gateway(endpoint, ReplyCache(cache_path), budget_usd=budget_usd, spent_usd=spent_usd)

    async def complete(self, request: ChatRequest) -> Completion:
        return await self._gateway.complete(request)

    async def embed(self, texts: Sequence[str], purpose: str, stage: str) -> Embeddings:
        return await self._gateway.embed(texts, purpose, stage)

    async def stats(self) -> Stats:
        return self._gateway.stats()

    async def stop(self) -> None:
        await self._gateway.stop()


def start_gateway(
    endpoint: Endpoint, cache_path: Path, budget_usd: float | None = None, spent_usd: float = 0.0
) -> GatewayClient:
    """Start a gateway's actor in the running Ray session, on this machine (the cache is a local file).

    ``spent_usd`` counts against the budget: what earlier runs have paid. It ends with the last handle to it. The key is read from the actor's environment, never passed as an argument.

    Raises:
        ConfigError: as ``Gateway``; found here, before an actor would die of it.
    """
    endpoint.api_key()
    check_prices(endpoint, budget_usd)
    actor = ray.remote(GatewayActor)
    node = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    handle = actor.options(num_cpus=0, max_concurrency=_MAX_CONCURRENCY, scheduling_strategy=node).remote(
        endpoint, str(cache_path), budget_usd, spent_usd
    )
    return GatewayClient(endpoint, handle)
