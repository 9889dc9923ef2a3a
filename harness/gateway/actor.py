"""Gateways for the whole Ray session: a thin async actor an endpoint."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray

from harness.gateway.budget import Budget, Purse, check_prices
from harness.gateway.cache import ReplyCache
from harness.gateway.client import GatewayClient
from harness.gateway.limits import Limiter
from harness.gateway.pace import Clock
from harness.gateway.request import ChatRequest, canonical_json
from harness.gateway.result import Completion, Embeddings, Stats
from harness.gateway.settings import Endpoint
from harness.gateway.shares import LEASE_S, NotRenewed, Shares, hold_share
from harness.remote import Mailbox, unwrapped

log = logging.getLogger(__name__)
_MAX_CONCURRENCY = 1000
"""Remote calls at a time: a waiting ``collect`` for every process of the session, and a few others."""
NAMESPACE = "harness"
"""Of actors that all sessions on a cluster find by name."""


def cluster_shares() -> Any:
    """The one ``Shares`` of the Ray cluster, started by whoever is first.

    It ends with the process that started it. The next to notice starts another, and each says again what it holds.
    """
    actor: Any = ray.remote(Shares)
    return actor.options(name="shares", namespace=NAMESPACE, get_if_exists=True, num_cpus=0).remote()


class Member:
    """One gateway among those of the cluster that use the same limits."""

    def __init__(self, place: str, shares: Any) -> None:
        self._place = place
        self._name = uuid.uuid4().hex
        self._shares = shares

    async def renew(self, held: float, wanted: float) -> float:
        """As ``Shares.renew``.

        Raises:
            NotRenewed: no answer.
        """
        try:
            async with asyncio.timeout(LEASE_S):
                share: float = await self._shares.renew.remote(self._place, self._name, held, wanted)
        except TimeoutError as error:
            raise NotRenewed(f"no answer in {LEASE_S:g} s") from error
        except ray.exceptions.RayActorError as error:
            self._shares = cluster_shares()
            raise NotRenewed(str(error)) from error
        return share


class GatewayActor(Mailbox):
    """The Ray side: everything is the gateways'. It waits on the network, so it reserves no CPU."""

    def __init__(self, backbones: Sequence[tuple[Endpoint, str]], budget: Purse | None, shares: Any) -> None:
        super().__init__()
        from harness.gateway.core import Gateway  # the HTTP client is loaded where it is used, not by the driver

        limiter = Limiter.of([endpoint for endpoint, _ in backbones])
        limiter.share(0.0)  # nothing leaves until ``join`` has been told how much may
        self._limiter, self._shares = limiter, shares
        self._caches = [ReplyCache(path) for _, path in backbones]
        self._gateways = [
            Gateway(endpoint, cache, budget=budget, limiter=limiter)
            for (endpoint, _), cache in zip(backbones, self._caches, strict=True)
        ]

    async def join(self) -> None:
        """Share the limits with the gateways of other sessions on this cluster from now on.

        It returns at once: an actor that has a call to finish does not end with the last handle to it.
        """
        self._sharing = asyncio.create_task(self._hold_share())

    async def _hold_share(self) -> None:
        endpoint = self._gateways[0].endpoint
        node = ray.get_runtime_context().get_node_id() if endpoint.loopback else ""
        place = hashlib.sha256(
            canonical_json([endpoint.base_url, endpoint.model, endpoint.api_key(), node]).encode()
        ).hexdigest()
        try:
            await hold_share(self._limiter, Member(place, self._shares).renew, Clock())
        except Exception:  # a run must not wait for ever for a share that nobody gives out
            log.exception("the limits of %s are not divided any more: this run takes all of them", endpoint.name)
            self._limiter.share(1.0)

    async def complete(self, which: int, request: ChatRequest) -> Completion:
        return await self._gateways[which].complete(request)

    async def embed(self, which: int, texts: Sequence[str], stage: str) -> Embeddings:
        return await self._gateways[which].embed(texts, stage)

    async def stats(self, which: int) -> Stats:
        return self._gateways[which].stats()

    async def named_stats(self) -> dict[str, Stats]:
        """A snapshot of each backbone, by its name."""
        return {gateway.endpoint.name: gateway.stats() for gateway in self._gateways}

    async def stop(self) -> None:
        await asyncio.gather(*(gateway.stop() for gateway in self._gateways))

    async def close(self) -> None:
        """Stop, give the share back, and leave every store as one whole file. Nothing can be asked afterwards."""
        await asyncio.gather(*(gateway.close() for gateway in self._gateways))
        self._sharing.cancel()
        for cache in self._caches:
            cache.close()


def start_gateways(backbones: Sequence[tuple[Endpoint, Path]], budget: Purse | None = None) -> list[GatewayClient]:
    """Start one actor for backbones that share an endpoint, in the running Ray session, on this machine.

    They share its limits: of those that differ, the smaller; and with the gateways of other sessions on the same cluster. Each
    has its reply cache, a local file. The actor ends with the last handle to it. The key is read from the actor's environment, never passed as an argument.

    Args:
        backbones: (endpoint, path of its cache) each, all with the same ``Endpoint.place``.
        budget: of the session.

    Raises:
        ConfigError: as ``Gateway``; found here, before an actor would die of it.
    """
    for endpoint, _ in backbones:
        endpoint.api_key()
        check_prices(endpoint, budget is not None)
    actor: Any = ray.remote(GatewayActor)
    node = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    handle = actor.options(num_cpus=0, max_concurrency=_MAX_CONCURRENCY, scheduling_strategy=node).remote(
        [(endpoint, str(path)) for endpoint, path in backbones], budget, cluster_shares()
    )
    handle.join.remote()
    return [GatewayClient(endpoint, handle, which) for which, (endpoint, _) in enumerate(backbones)]


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
