"""What is tried again, when, and what a failure is called.

One owner of retries: the client's own are off. Connection errors, timeouts, 408, 409, 429 and 5xx are tried again after a
wait with full jitter (Brooker, "Exponential backoff and jitter"), and not before Retry-After; other 4xx never; a prompt that a
content filter stops is an answer, ``refused``.
"""

from __future__ import annotations

import math
import os
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import openai
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from harness.gateway.limits import GivenUp
from harness.gateway.pace import Clock
from harness.gateway.settings import Endpoint
from harness.records import Status
from harness.text import clean

_FIRST_WAIT_S = 0.5
_RETRIED = frozenset({408, 409, 429})
_NAMED = {"rpm": "requests", "tpm": "tokens", "input_tpm": "input-tokens", "output_tpm": "output-tokens"}
_ABSURD = 1e10
_MINUTE_S = 70.0
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNIT_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed.

    Attributes:
        status: what the call is called if nothing helps.
        reason: a sentence for the user, without the key.
        retry: another attempt may help.
        fatal: no request of this endpoint can succeed (key, model, account).
        wait_s: seconds the server asked for, unbounded, or None.
        late: its deadline has passed.
        limits: a minute, as a 429 names them: see ``named_limits``.
        form: it was the form in which the schema is asked for; another is tried, and nothing is wrong with the endpoint.
        unanswered: the request may have reached the provider and be billed; nobody can tell.
    """

    status: Status
    reason: str
    retry: bool
    fatal: bool = False
    wait_s: float | None = None
    http_status: int | None = None
    late: bool = False
    limits: Mapping[str, float] = field(default_factory=dict)
    form: bool = False
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
    broken = _caused_by(error, aiohttp.ClientConnectionError)
    if isinstance(error, TimeoutError | openai.APITimeoutError) and (
        broken is None or isinstance(broken, TimeoutError)  # the transport calls a closed connection a time-out as well
    ):
        return no_reply(endpoint)
    cause = broken or error.__cause__ or error
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
    return Failure(Status.PROVIDER, reason, retry=True, late=True, unanswered=True)


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
        remedy = f"Check backbone.model={endpoint.model} and backbone.base_url={endpoint.base_url}"
        remedy += "." if str(endpoint.base_url).rstrip("/").endswith("/v1") else ", which ends in /v1 for most servers."
        return Failure(Status.PROVIDER, f"{reason}. {remedy}", retry=False, fatal=True, http_status=code)
    status = Status.RATE_LIMITED if code == 429 else Status.PROVIDER
    return Failure(
        status,
        reason,
        retry=code in _RETRIED or code >= 500,
        wait_s=retry_after(headers),
        http_status=code,
        limits=named_limits(headers),
    )


def given_up(endpoint: Endpoint, error: GivenUp) -> Failure:
    """The endpoint took nothing for too long: none of its calls can succeed in this run."""
    reason = f"{error} (backbone {endpoint.name}, see its outage_s)"
    if error.kind == "refusing":
        return Failure(Status.RATE_LIMITED, reason, retry=False, fatal=True, http_status=429)
    return Failure(Status.PROVIDER, reason, retry=False, fatal=True)


def named_limits(headers: Mapping[str, str]) -> dict[str, float]:
    """Limits a minute that a server names in ``x-ratelimit-limit-*``; what makes no sense is left out.

    So is a limit that is for longer than a minute: its ``x-ratelimit-reset-*`` is further away than that.
    """
    limits: dict[str, float] = {}
    for name, kind in _NAMED.items():
        text = headers.get(f"x-ratelimit-limit-{kind}")
        if text is None:
            continue
        limit = _number(text)
        reset = _seconds(headers.get(f"x-ratelimit-reset-{kind}") or "")
        if limit is not None and 1 <= limit <= _ABSURD and (reset is None or reset <= _MINUTE_S):
            limits[name] = limit
    return limits


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _seconds(text: str) -> float | None:
    """Seconds of a duration such as ``1m26.4s``, ``120ms`` or ``7.5``; None for anything else."""
    if (plain := _number(text)) is not None:
        return plain
    parts = _DURATION.findall(text)
    if "".join(number + unit for number, unit in parts) != text.strip() or not parts:
        return None
    return sum(float(number) * _UNIT_S[unit] for number, unit in parts)


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


@dataclass(slots=True)
class Sending:
    """Facts of the attempts at one request, as they come.

    Attributes:
        excused: attempts that failed for no fault of the request, and use up none of its retries.
        at_once: the next needs no wait: the last one has waited for its deadline, or the endpoint is in trouble and the limiter
            says when the next may leave.
        refusals: attempts that met a 429.
        timeouts: attempts whose deadline passed.
        latency_s: the last attempt's, waits excluded.
    """

    attempts: int = 0
    excused: int = 0
    at_once: bool = False
    refusals: int = 0
    timeouts: int = 0
    sent_at: datetime | None = None
    latency_s: float | None = None

    @property
    def counted(self) -> int:
        """Attempts that count."""
        return self.attempts - self.excused


def retrying(endpoint: Endpoint, clock: Clock, rng: random.Random, sending: Sending) -> AsyncRetrying:
    """The retry loop of one call: until ``endpoint.retries`` attempts that count, of what ``AttemptFailed`` says may help."""

    def wait(state: RetryCallState) -> float:
        if sending.at_once:
            return 0.0
        error = state.outcome.exception() if state.outcome else None
        asked = error.failure.wait_s if isinstance(error, AttemptFailed) else None
        jitter = rng.uniform(0, min(endpoint.max_retry_wait_s, _FIRST_WAIT_S * 2 ** max(1, sending.counted)))
        return min(endpoint.max_retry_wait_s, (asked or 0.0) + jitter)

    return AsyncRetrying(
        stop=lambda _: sending.counted >= endpoint.retries,
        wait=wait,
        retry=retry_if_exception(lambda error: isinstance(error, AttemptFailed) and error.failure.retry),
        sleep=clock.sleep,
        reraise=True,
    )
