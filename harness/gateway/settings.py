"""What a backbone is: one YAML in ``conf/backbone`` validated into an ``Endpoint``."""

from __future__ import annotations

import os
from datetime import date
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.errors import ConfigError

_NO_KEY = "none"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Price(BaseModel):
    """List prices in USD per million tokens. A null price makes every cost that needs it null, never 0.

    Attributes:
        cached_input: of the part of the prompt that the provider had in its own cache; null: as ``input``.
        embedding: of texts sent to ``/embeddings``.
        batch_discount: share taken off through a batch API.
        as_of: the day from which the price holds (or on which it was looked up).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: float | None = Field(default=None, ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    output: float | None = Field(default=None, ge=0)
    embedding: float | None = Field(default=None, ge=0)
    batch_discount: float | None = Field(default=None, ge=0, le=1)
    as_of: date | None = None

    @property
    def known(self) -> bool:
        return self.input is not None and self.output is not None

    def cost(self, prompt: int | None, cached: int | None, completion: int | None) -> float | None:
        """USD for one reply; None if a price or the usage is missing. Cached tokens are part of ``prompt``."""
        if self.input is None or self.output is None or prompt is None or completion is None:
            return None
        cached = cached or 0
        cached_price = self.input if self.cached_input is None else self.cached_input
        return ((prompt - cached) * self.input + cached * cached_price + completion * self.output) / 1e6

    def embedding_cost(self, tokens: int | None) -> float | None:
        """USD for embedding ``tokens``; None if the price or the count is missing."""
        return None if self.embedding is None or tokens is None else tokens * self.embedding / 1e6


class Prices(Price):
    """The newest price, and those that held before it (each with its ``as_of``)."""

    earlier: tuple[Price, ...] = ()

    @model_validator(mode="after")
    def _dated(self) -> Prices:
        if self.earlier and any(price.as_of is None for price in (self, *self.earlier)):
            raise ValueError("with earlier prices every price needs its as_of (YYYY-MM-DD)")
        return self

    def at(self, day: date) -> Price:
        """The price that held on ``day``: the newest of those as of that day or before, else the oldest."""
        dated = sorted((p for p in (self, *self.earlier) if p.as_of), key=lambda p: p.as_of or day)
        held = [p for p in dated if p.as_of and p.as_of <= day]
        return held[-1] if held else dated[0] if dated else self


class Endpoint(BaseModel):
    """A model behind an OpenAI-compatible URL. ``name`` is its identity in cells and in the cache, never the URL.

    Attributes:
        api_key_env: environment variable that holds the key; None sends a placeholder (servers without keys).
        rpm: requests a minute; None means no limit.
        tpm: tokens a minute, prompt and completion together; None means no limit.
        input_tpm, output_tpm: prompt and completion tokens a minute, where the provider limits them apart.
        max_in_flight: requests in the air at once; also the size of the connection pool.
        request_timeout: seconds after which one attempt is given up and tried again.
        outage_s: seconds an endpoint that is down, or refuses everything, is waited for.
        structured: the best form in which the server takes a schema; a server that refuses it is found out and asked in
            the next lower one (``harness.gateway.formats``). Below ``json_schema`` the schema is also put in words.
        tool_calls: whether the server has an interface for tool calls; else they are put into a JSON schema.
        thinking_tokens: what a reply of a reasoning model may think on top of its answer, for estimates of cost only.
        extra_body: further fields of the request body, sent as they are.
        retries: attempts at one request, the first included.
        max_retry_wait_s: upper bound of any single wait, whatever Retry-After says.
        transport: ``batch`` sends what nobody waits for through the batch API (files and polling, within a day, at its own
            price); what others wait for, like the lessons of a memory, goes online all the same.
        batch_size: requests a batch at most.
        batch_wait_s: a batch leaves when no request has come for so long.
        batch_poll_s: seconds between two looks at a batch.
        cutoff: last day of what the model was trained on, as its maker declares it; None where that is not known. Says nothing
            to the model: the report holds accuracy before it against accuracy after it.
        rehearsal: start the offline rehearsal server for this backbone; ``latency`` and ``fault`` are its options.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    base_url: str | None = None
    model: str = Field(min_length=1)
    api_key_env: str | None = None

    rpm: int | None = Field(default=None, ge=1)
    tpm: int | None = Field(default=None, ge=1)
    input_tpm: int | None = Field(default=None, ge=1)
    output_tpm: int | None = Field(default=None, ge=1)
    max_in_flight: int = Field(default=128, ge=1)
    request_timeout: float = Field(default=120.0, gt=0)
    retries: int = Field(default=6, ge=1)
    max_retry_wait_s: float = Field(default=60.0, gt=0)
    outage_s: float = Field(default=300.0, gt=0)

    token_param: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    supports_temperature: bool = True
    structured: Literal["json_schema", "json_object", "none"] = "json_schema"
    tool_calls: bool = True
    extra_body: dict[str, Any] = Field(default_factory=dict)
    max_output_tokens: int = Field(default=1500, ge=1)
    thinking_tokens: int = Field(default=0, ge=0)
    temperature: float = Field(default=0.0, ge=0)

    transport: Literal["online", "batch"] = "online"
    batch_size: int = Field(default=10_000, ge=1, le=50_000)
    batch_wait_s: float = Field(default=2.0, gt=0)
    batch_poll_s: float = Field(default=30.0, gt=0)

    prices: Prices = Prices()
    cutoff: date | None = None

    embedding_model: str | None = None
    embedding_dimensions: int | None = Field(default=None, ge=1)

    rehearsal: bool = False
    latency: float = Field(default=0.0, ge=0)
    fault: str | None = None

    @property
    def width(self) -> int:
        """Forecasts of one cell under way at a time: in the air and as many again, ready to leave when those are answered; or
        together in a batch.
        """
        return 2 * self.max_in_flight if self.transport == "online" else self.batch_size

    @property
    def loopback(self) -> bool:
        """Whether the URL is on this machine."""
        return urlsplit(self.base_url or "").hostname in _LOOPBACK

    @property
    def place(self) -> tuple[str | None, str, str | None]:
        """What a provider's limits are for: URL, model and key. Backbones with the same place share them."""
        return (self.base_url, self.model, self.api_key_env)

    def api_key(self) -> str:
        """The key from the environment; a placeholder where no variable is named, or the server is on this machine.

        Raises:
            ConfigError: no base_url, or the key's variable is not set.
        """
        if self.base_url is None:
            raise ConfigError(f"backbone {self.name}: base_url is missing; set backbone.base_url=http://HOST:PORT/v1")
        key = os.environ.get(self.api_key_env) if self.api_key_env else _NO_KEY
        if not key and not self.loopback:
            raise ConfigError(
                f"backbone {self.name}: the environment variable {self.api_key_env} is not set; "
                f"export {self.api_key_env}=<your key> and run again"
            )
        return key or _NO_KEY

    def identity(self) -> dict[str, Any]:
        """What can change a reply, and nothing else: no URL, key, limit or price."""
        return {
            "name": self.name,
            "model": self.model,
            "token_param": self.token_param,
            "structured": self.structured,
            "tool_calls": self.tool_calls,
            "extra_body": self.extra_body,
            "max_output_tokens": self.max_output_tokens,
            "temperature": self.temperature if self.supports_temperature else None,
            "embedding_model": self.embedding_model,
            "embedding_dimensions": self.embedding_dimensions,
        }
