"""What the gateway returns: a completion with its ledger, embeddings, and the exceptions callers may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import HarnessError
from harness.records import Call, Status, total


class Stopped(HarnessError):
    """The gateway is stopping and takes no new calls; the next run goes on from here."""


class EmbeddingFailed(HarnessError):
    """No vectors after all attempts. ``fatal``: no request of this endpoint can succeed."""

    def __init__(self, message: str, status: Status, fatal: bool) -> None:
        super().__init__(message, status, fatal)
        self.status = status
        self.fatal = fatal

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one reply as the server reports them; None where it does not."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None

    @classmethod
    def of(cls, reply: Mapping[str, Any]) -> Usage:
        """Read ``usage``, with the details where OpenAI and DeepSeek put them."""
        usage = _mapping(reply.get("usage"))
        cached = _mapping(usage.get("prompt_tokens_details")).get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
        reasoning = _mapping(usage.get("completion_tokens_details")).get("reasoning_tokens")
        return cls(
            _count(usage.get("prompt_tokens")),
            _count(usage.get("completion_tokens")),
            _count(cached),
            _count(reasoning),
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """The outcome of one ``ChatRequest``.

    Attributes:
        status: ok, or why there is no value.
        value: the parsed object; None unless ok and a schema was asked for. For a tool call its ``tool`` and ``arguments`` (JSON text).
        text: content of the last reply, whatever its status.
        reason: what is wrong, with the bad value quoted; None if ok.
        request_sha256: of the request whose reply this is (a fresh try has its own).
        reply_sha256: of ``text``.
        fatal: no request of this endpoint can succeed; ``reason`` says what to do.
        calls: one record a distinct request asked, in order; ``catalyst_id`` is for the caller to fill in.
    """

    status: Status
    value: dict[str, Any] | None
    text: str | None
    reason: str | None
    request_sha256: str
    reply_sha256: str | None = None
    model_returned: str | None = None
    system_fingerprint: str | None = None
    fatal: bool = False
    calls: tuple[Call, ...] = ()

    @property
    def last(self) -> Call:
        return self.calls[-1]

    @property
    def prompt_tokens(self) -> int | None:
        return self.last.prompt_tokens

    @property
    def completion_tokens(self) -> int | None:
        return self.last.completion_tokens

    @property
    def sent_at(self) -> datetime | None:
        return self.last.sent_at

    @property
    def cache_hit(self) -> bool:
        return all(call.cache_hit for call in self.calls)

    @property
    def attempts(self) -> int:
        """Requests sent over the wire, all tries together."""
        return sum(call.attempts for call in self.calls)

    @property
    def cost_usd(self) -> float | None:
        """USD paid now, all tries together; None if one is unknown."""
        return total(call.cost_usd for call in self.calls)

    @property
    def list_cost_usd(self) -> float | None:
        """USD these replies cost whether or not they came from the cache; None if one is unknown."""
        return total(call.list_cost_usd for call in self.calls)


@dataclass(frozen=True, slots=True)
class Embeddings:
    """``vectors`` (n, d) float32 in the order of the texts; ``calls`` one record a batch."""

    vectors: NDArray[np.float32]
    calls: tuple[Call, ...]


@dataclass(slots=True)
class Stats:
    """What a gateway did so far and what it waits for now.

    Attributes:
        in_flight: requests in the air to its endpoint, those of other gateways that share it included.
        waiting_on: rpm, tpm, input_tpm, output_tpm, learned rpm, concurrency, pause, down, refusing, budget, other runs (they have
            the limits for now), or None.
        retrying: requests that wait for their next attempt now.
        cost_usd: with what unanswered attempts may have cost at most.
        trouble: a sentence for the user where the endpoint is down or refuses everything.
    """

    in_flight: int = 0
    waiting: int = 0
    waiting_on: str | None = None
    trouble: str | None = None
    done: int = 0
    cache_hits: int = 0
    retries: int = 0
    retrying: int = 0
    unanswered: int = 0
    n429: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0

    def count(self, usage: Usage, paid: float | None, hit: bool) -> None:
        """One call is done. The cost is unknown from the first call on whose cost is."""
        self.done += 1
        if hit:
            self.cache_hits += 1
            return
        self.prompt_tokens += usage.prompt_tokens or 0
        self.completion_tokens += usage.completion_tokens or 0
        self.pay(paid)

    def pay(self, paid: float | None) -> None:
        """Add to the cost."""
        self.cost_usd = total((self.cost_usd, paid))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: object) -> int | None:
    """A count that can be one: absurd numbers are as good as none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None
