"""The handle of a gateway that cells carry. It loads no HTTP client: that is the actor's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion, Embeddings, Stats
from harness.gateway.settings import Endpoint
from harness.remote import Post, unwrapped


@dataclass(frozen=True, slots=True)
class GatewayClient:
    """A picklable handle with the gateway's own methods and exceptions.

    Attributes:
        endpoint: the backbone it asks.
        actor: what all backbones of that endpoint share.
        which: the backbone's number there.
    """

    endpoint: Endpoint
    actor: Any
    which: int = 0

    async def complete(self, request: ChatRequest) -> Completion:
        """As ``Gateway.complete``."""
        result: Completion = await Post.to(self.actor).call("complete", self.which, request)
        return result

    async def embed(self, texts: Sequence[str], stage: str = "build") -> Embeddings:
        """As ``Gateway.embed``."""
        result: Embeddings = await Post.to(self.actor).call("embed", self.which, list(texts), stage)
        return result

    async def stats(self) -> Stats:
        """As ``Gateway.stats``."""
        result: Stats = await unwrapped(self.actor.stats.remote(self.which))
        return result

    async def stop(self) -> None:
        """As ``Gateway.stop``, of all backbones of the endpoint."""
        await unwrapped(self.actor.stop.remote())
