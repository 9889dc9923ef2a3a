"""The handle of a gateway that cells carry. It loads no HTTP client: that is the actor's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion, Embeddings, Stats
from harness.gateway.settings import Endpoint
from harness.remote import unwrapped


@dataclass(frozen=True, slots=True)
class GatewayClient:
    """A picklable handle with the gateway's own methods and exceptions."""

    endpoint: Endpoint
    actor: Any

    async def complete(self, request: ChatRequest) -> Completion:
        """As ``Gateway.complete``."""
        result: Completion = await unwrapped(self.actor.complete.remote(request))
        return result

    async def embed(self, texts: Sequence[str], stage: str = "build") -> Embeddings:
        """As ``Gateway.embed``."""
        result: Embeddings = await unwrapped(self.actor.embed.remote(list(texts), stage))
        return result

    async def stats(self) -> Stats:
        """As ``Gateway.stats``."""
        result: Stats = await unwrapped(self.actor.stats.remote())
        return result

    async def stop(self) -> None:
        """As ``Gateway.stop``."""
        await unwrapped(self.actor.stop.remote())
