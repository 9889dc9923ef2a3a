"""HTTP: the OpenAI client without its own retries, on a connection pool as large as ``max_in_flight``."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
import numpy as np
import openai
from numpy.typing import NDArray

from harness.gateway.retry import AttemptFailed, Failure, from_client_error, from_http
from harness.gateway.settings import Endpoint
from harness.records import Status
from harness.text import clean

_CHAT, _EMBEDDINGS = "/chat/completions", "/embeddings"
_PATHS = frozenset({_CHAT, _EMBEDDINGS})
_RAW = {"X-Stainless-Raw-Response": "true"}  # what with_raw_response sets: hand over bytes and headers


class AsyncOpenAI(openai.AsyncOpenAI):
    """The OpenAI client, with requests to a path built from the first one to it: they differ in their bodies only.

    To put URL and headers together anew takes a sixth of the CPU time of a call. The class has the name of its base, which is
    part of the User-Agent. Should a later version of the client not ask ``_build_request`` any more, calls are slower, not different.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._first: dict[str, Any] = {}

    def _build_request(self, options: Any, *, retries_taken: int = 0) -> Any:
        if options.url not in _PATHS:  # files and batches: forms, parameters, other methods than POST
            return super()._build_request(options, retries_taken=retries_taken)
        first = self._first.get(options.url)
        if first is None:
            first = self._first[options.url] = super()._build_request(options, retries_taken=retries_taken)
            del first.headers["content-length"]
        return type(first)(
            first.method,
            first.url,
            headers=first.headers,
            content=_encoded(options.json_data),
            extensions=dict(first.extensions),
        )


def _encoded(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


class Wire:
    """One client of one endpoint. Every failure is raised as ``AttemptFailed``."""

    def __init__(self, endpoint: Endpoint, heard: Callable[[Mapping[str, str]], None]) -> None:
        """Connect lazily; ``heard`` is told the headers of every reply.

        Raises:
            ConfigError: no base_url, or the key's variable is not set.
        """
        key = endpoint.api_key()
        limits = type(openai.DEFAULT_CONNECTION_LIMITS)(
            max_connections=endpoint.max_in_flight, max_keepalive_connections=endpoint.max_in_flight
        )
        self._endpoint = endpoint
        self._heard = heard
        self.client = AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=key,
            max_retries=0,
            timeout=endpoint.request_timeout,
            # A proxy from the environment is for the outside world; it cannot reach a server on this machine.
            http_client=openai.DefaultAioHttpClient(limits=limits, trust_env=not endpoint.loopback),
        )

    async def chat(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The reply to ``body`` as text and decoded."""
        raw, reply = await self._post(_CHAT, body)
        choices = reply.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):  # an answer of the server, not of a model
            raise AttemptFailed(self._strange(f"no message in it: {clean(raw[:120])!r}"))
        return raw, reply

    async def embeddings(self, texts: list[str]) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Vectors (len(texts), d) and the decoded reply."""
        size = self._endpoint.embedding_dimensions
        body: dict[str, Any] = {
            "model": str(self._endpoint.embedding_model),
            "input": texts,
            "encoding_format": "base64",
        }
        if size is not None:
            body["dimensions"] = size
        _, reply = await self._post(_EMBEDDINGS, body)
        try:
            rows = sorted(reply["data"], key=lambda row: row["index"])
            vectors = np.stack([_vector(row["embedding"]) for row in rows])
        except (KeyError, TypeError, ValueError) as error:
            raise AttemptFailed(self._strange(f"no vectors in the reply ({error})")) from error
        if len(vectors) != len(texts):
            raise AttemptFailed(self._strange(f"{len(vectors)} vectors for {len(texts)} texts"))
        return vectors, reply

    async def close(self) -> None:
        await self.client.close()

    async def _post(self, path: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        # Not chat.completions.create: it walks through the whole body to translate types, a third of the CPU time of a call.
        try:
            response: Any = await self.client.post(path, body=body, cast_to=object, options={"headers": _RAW})
        except (openai.APIError, aiohttp.ClientError, TimeoutError, OSError) as error:
            raise AttemptFailed(from_client_error(error, self._endpoint)) from error
        self._heard(response.headers)
        raw = response.content.decode(errors="replace")
        try:
            reply = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise AttemptFailed(self._strange(f"not JSON: {raw[:80]!r}")) from error
        if not isinstance(reply, dict):
            raise AttemptFailed(self._strange(f"not an object: {raw[:80]!r}"))
        if isinstance(reply.get("error"), dict) and not reply.get("choices"):  # some proxies report errors with a 200
            code = reply["error"].get("code")
            code = code if isinstance(code, int) and code >= 400 else 500
            raise AttemptFailed(from_http(code, reply["error"], response.headers, self._endpoint))
        return raw, reply

    def _strange(self, what: str) -> Failure:
        return Failure(Status.PROVIDER, f"{self._endpoint.name} answered 200 with {what}", retry=True, http_status=200)


def _vector(value: str | list[float]) -> NDArray[np.float32]:
    """A vector from base64 (little-endian float32) or, from servers that ignore ``encoding_format``, from numbers."""
    if isinstance(value, str):
        return np.frombuffer(base64.b64decode(value), dtype="<f4").astype(np.float32)
    return np.asarray(value, dtype=np.float32)
