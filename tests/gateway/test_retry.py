"""Classes of failure, and Retry-After in all its forms."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from harness.gateway.retry import from_http, named_limits, retry_after
from harness.gateway.settings import Endpoint
from harness.gateway.typical import Typical
from harness.records import Status

ENDPOINT = Endpoint(name="e", model="gpt-x", api_key_env="MY_KEY")
NOW = datetime(2026, 1, 5, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after": "Mon, 05 Jan 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 05 Jan 2026 11:59:00 GMT"}, None),
        ({"retry-after": "3600"}, 3600.0),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("limit", "reset", "kept"),
    [
        ("1200", None, 1200),
        ("1200", "50ms", 1200),
        ("2.09e+06", "1.2s", 2_090_000),
        ("1200", "59.7", 1200),
        ("14400", "2m59.56s", None),
        ("14400", "6h", None),
        ("1200", "soon", 1200),
        ("0", "1s", None),
        ("-1", "1s", None),
        ("nan", "1s", None),
        ("inf", "1s", None),
        ("1e30", "1s", None),
        ("many", "1s", None),
        ("", "1s", None),
        (None, "1s", None),
    ],
)
def test_named_limits(limit: str | None, reset: str | None, kept: float | None) -> None:
    for name, kind in (("rpm", "requests"), ("tpm", "tokens"), ("output_tpm", "output-tokens")):
        headers = {f"x-ratelimit-limit-{kind}": limit, f"x-ratelimit-reset-{kind}": reset}
        given = {key: value for key, value in headers.items() if value is not None}
        assert named_limits(given) == ({} if kept is None else {name: kept})


@pytest.mark.parametrize("code", [408, 409, 429, 500, 502, 503, 504, 529])
def test_retried(code: int) -> None:
    failure = from_http(code, {}, {}, ENDPOINT)
    assert failure.retry
    assert not failure.fatal
    assert failure.status is (Status.RATE_LIMITED if code == 429 else Status.PROVIDER)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
def test_not_retried(code: int) -> None:
    failure = from_http(code, {"message": "no such thing"}, {}, ENDPOINT)
    assert not failure.retry
    assert "no such thing" in failure.reason
    assert failure.fatal == (code in (401, 403, 404))


def test_remedies_name_what_to_change() -> None:
    assert "MY_KEY" in from_http(401, {}, {}, ENDPOINT).reason
    assert "backbone.model=gpt-x" in from_http(404, {}, {}, ENDPOINT).reason
    broke = from_http(429, {"code": "insufficient_quota"}, {}, ENDPOINT)
    assert broke.fatal
    assert not broke.retry


def test_a_filtered_prompt_is_a_refusal() -> None:
    assert from_http(400, {"code": "content_filter"}, {}, ENDPOINT).status is Status.REFUSED


def test_deadline_follows_what_is_usual_and_grows_with_timeouts() -> None:
    typical = Typical(120)
    for _ in range(19):
        typical.observe("forecast", 2.0, 100)
    assert typical.deadline("forecast", 0) == 120
    typical.observe("forecast", 2.0, 100)
    assert [typical.deadline("forecast", n) for n in (0, 1, 2, 6)] == [4, 8, 16, 120]
    assert typical.deadline("build", 0) == 120
    assert typical.output_tokens("forecast", 1500) == 100
    assert typical.output_tokens("build", 1500) == 1500


def test_who_waits_is_told_once_when_the_usual_latency_is_known() -> None:
    typical, told = Typical(120), []
    with typical.once_known("forecast", lambda: told.append("waiting")):
        with typical.once_known("forecast", lambda: told.append("gone")):
            typical.observe("forecast", 1.0, None)
        with typical.once_known("build", lambda: told.append("other purpose")):
            for _ in range(40):
                typical.observe("forecast", 1.0, None)
    assert told == ["waiting"]
