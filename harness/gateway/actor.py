"""One gateway for the whole Ray session: a thin async actor an endpoint, and the handle that cells carry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray

from harness.gateway.budget import check_prices
from harness.gateway.cache import ReplyCache
from harness.gateway.core import Gateway
from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion, Embeddings, Stats
from harness.gateway.settings import Endpoint
from harness.gateway.wire import api_key

_MAX_CONCURRENCY = 2000


class GatewayActor:
    """The Ray side: everything is the gateway's. It waits on the network, so it reserves no CPU."""

    def __init__(self, endpoint: Endpoint, cache_path: str, budget_usd: float | None) -> None:
        self._gateway = Gateway(endpoint, ReplyCache(cache_path), budget_usd=budget_usd)

    async def complete(self, request: ChatRequest) -> Completion:
        return await self._gateway.complete(request)

    async def embed(self, texts: Sequence[str], purpose: str, stage: str) -> Embeddings:
        return await self._gateway.embed(texts, purpose, stage)

    async def stats(self) -> Stats:
        return self._gateway.stats()

    async def stop(self) -> None:
        await self._gateway.stop()


@dataclass(frozen=True, slots=True)
class GatewayClient:
    """A picklable handle with the gateway's own methods and exceptions."""

    endpoint: Endpoint
    actor: Any

    async def complete(self, request: ChatRequest) -> Completion:
        """As ``Gateway.complete``."""
        result: Completion = await _unwrapped(self.actor.complete.remote(request))
        return result

    async def embed(self, texts: Sequence[str], purpose: str = "embed", stage: str = "build") -> Embeddings:
        """As ``Gateway.embed``."""
        result: Embeddings = await _unwrapped(self.actor.embed.remote(list(texts), purpose, stage))
        return result

    async def stats(self) -> Stats:
        """As ``Gateway.stats``."""
        result: Stats = await _unwrapped(self.actor.stats.remote())
        return result

    async def stop(self) -> None:
        """As ``Gateway.stop``."""
        await _unwrapped(self.actor.stop.remote())


def start_gateway(endpoint: Endpoint, cache_path: Path, budget_usd: float | None = None) -> GatewayClient:
    """Start the actor ``gateway:<endpoint name>`` in the running Ray session, on this machine (the cache is a local file).

    It ends with the last handle to it. The key is read from the actor's environment, never passed as an argument.

    Raises:
        ConfigError: as ``Gateway``; found here, before an actor would die of it.
    """
    api_key(endpoint)
    check_prices(endpoint, budget_usd)
    actor = ray.remote(GatewayActor)
    node = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    handle = actor.options(
        name=f"gateway:{endpoint.name}", num_cpus=0, max_concurrency=_MAX_CONCURRENCY, scheduling_strategy=node
    ).remote(endpoint, str(cache_path), budget_usd)
    return GatewayClient(endpoint, handle)


async def _unwrapped(reference: Any) -> Any:
    """The result of a remote call; its exception as it was raised, without Ray's wrapper."""
    try:
        return await reference
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
