"""What is tried again, when, and what a failure is called.

One owner of retries: the client's own are off. Connection errors, timeouts, 408, 409, 429 and 5xx are tried again after a
wait with full jitter (Brooker, "Exponential backoff and jitter"), and not before Retry-After; other 4xx never; a prompt that a
content filter stops is an answer, ``refused``.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import openai
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from harness.gateway.limits import Clock
from harness.gateway.request import clean
from harness.gateway.settings import Endpoint
from harness.records import Status

_FIRST_WAIT_S = 0.5
_RETRIED = frozenset({408, 409, 429})


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed.

    Attributes:
        status: what the call is called if nothing helps.
        reason: a sentence for the user, without the key.
        retry: another attempt may help.
        fatal: no request of this endpoint can succeed (key, model, account).
        wait_s: seconds the server asked for, unbounded, or None.
        rpm, tpm: limits a minute that a 429 names in ``x-ratelimit-limit-*``.
        unanswered: the request may have reached the provider and be billed; nobody can tell.
    """

    status: Status
    reason: str
    retry: bool
    fatal: bool = False
    wait_s: float | None = None
    http_status: int | None = None
    rpm: int | None = None
    tpm: int | None = None
    unanswered: bool = False


class AttemptFailed(Exception):
    """One attempt failed. ``failure`` says how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def from_client_error(error: Exception, endpoint: Endpoint) -> Failure:
    """Classify an exception of the OpenAI client (or the transport below it)."""
    if isinstance(error, openai.APIStatusError):
        body = error.body if isinstance(error.body, dict) else {}
        return from_http(error.status_code, body, error.response.headers, endpoint, error.message)
    refused = _caused_by(error, ConnectionRefusedError)
    if refused is not None:  # the transport calls it a time-out
        reason = f"nothing answers at {endpoint.base_url} ({refused}): is the server running? See backbone.base_url"
        return Failure(Status.PROVIDER, reason, retry=True)
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return no_reply(endpoint)
    cause = error.__cause__ or error
    return Failure(
        Status.PROVIDER,
        f"connection to {endpoint.name} failed: {type(cause).__name__}: {cause}",
        retry=True,
        unanswered=_caused_by(error, aiohttp.ClientConnectorError) is None,
    )


def _caused_by(error: BaseException | None, kind: type[BaseException]) -> BaseException | None:
    """The exception of ``kind`` in the chain of causes, if there is one."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error


def no_reply(endpoint: Endpoint) -> Failure:
    """The deadline of an attempt has passed."""
    reason = f"no reply from {endpoint.name} in time; see request_timeout"
    return Failure(Status.PROVIDER, reason, retry=True, unanswered=True)


def from_http(
    code: int, error: Mapping[str, Any], headers: Mapping[str, str], endpoint: Endpoint, message: str | None = None
) -> Failure:
    """Classify an HTTP error. ``error`` is the ``error`` object of the body, ``message`` a text where it has none."""
    kind = str(error.get("code") or error.get("type") or "")
    said = str(clean(str(error.get("message") or message or "")))[:300].rstrip(" .")
    reason = f"{endpoint.name} answered {code}: {said}"
    key = endpoint.api_key_env
    if code == 400 and (kind == "content_filter" or "content management policy" in said or "content_filter" in said):
        return Failure(Status.REFUSED, f"refused: {said}", retry=False, http_status=code)
    if code == 429 and kind == "insufficient_quota":
        remedy = (
            f"The account{f' behind {key}' if key else ''} has no credit left: top it up, or choose another backbone."
        )
        return Failure(Status.RATE_LIMITED, f"{reason}. {remedy}", retry=False, fatal=True, http_status=code)
    if code in (401, 403):
        remedy = "It wants a key: set api_key_env in the backbone's YAML."
        if key:
            remedy = f"Check the key in {key}." if os.environ.get(key) else f"It wants a key: {key} is not set."
        return Failure(Status.PROVIDER, f"{reason}. {remedy}", retry=False, fatal=True, http_status=code)
    if code == 404:
        remedy = f"Check backbone.model={endpoint.model} and backbone.base_url."
        return Failure(Status.PROVIDER, f"{reason}. {remedy}", retry=False, fatal=True, http_status=code)
    status = Status.RATE_LIMITED if code == 429 else Status.PROVIDER
    return Failure(
        status,
        reason,
        retry=code in _RETRIED or code >= 500,
        wait_s=retry_after(headers),
        http_status=code,
        rpm=_limit(headers.get("x-ratelimit-limit-requests")),
        tpm=_limit(headers.get("x-ratelimit-limit-tokens")),
    )


def _limit(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) < 12 and int(text) > 0 else None


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds to wait from ``retry-after-ms`` or ``Retry-After`` (seconds or HTTP date); None if absent or nonsense.

    Zero and times gone by are no wait worth keeping either: None.
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            seconds = float(text) * unit
        except ValueError:
            try:
                when = parsedate_to_datetime(text)
            except ValueError:
                continue
            seconds = (when.astimezone(UTC) - (now or datetime.now(UTC))).total_seconds()
        if math.isfinite(seconds) and seconds > 0:
            return seconds
    return None


def retrying(endpoint: Endpoint, clock: Clock, rng: random.Random) -> AsyncRetrying:
    """The retry loop of one call: up to ``endpoint.retries`` attempts of what ``AttemptFailed`` says may help."""

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.failure.wait_s if isinstance(error, AttemptFailed) else None
        jitter = rng.uniform(0, min(endpoint.max_retry_wait_s, _FIRST_WAIT_S * 2**state.attempt_number))
        return min(endpoint.max_retry_wait_s, (asked or 0.0) + jitter)

    return AsyncRetrying(
        stop=stop_after_attempt(endpoint.retries),
        wait=wait,
        retry=retry_if_exception(lambda error: isinstance(error, AttemptFailed) and error.failure.retry),
        sleep=clock.sleep,
        reraise=True,
    )
