"""The key of a request: everything that can change the answer, and nothing else."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from pydantic import ValidationError

from harness.gateway.request import ChatRequest, prepare, request_body, user
from harness.gateway.settings import Endpoint, Prices
from tests.gateway.conftest import SCHEMA, ask

ENDPOINT = Endpoint(name="e", model="m", base_url="http://a/v1")


def key(endpoint: Endpoint = ENDPOINT, **fields: Any) -> str:
    return prepare(endpoint, ask(**fields)).sha256


@pytest.mark.parametrize(
    "change",
    [
        {"base_url": "http://b:1/v1"}, {"rpm": 5}, {"tpm": 9}, {"max_in_flight": 1}, {"request_timeout": 1.0},
        {"retries": 1}, {"max_retry_wait_s": 1.0}, {"api_key_env": "K"}, {"label": "L"}, {"prices": Prices(input=1, output=2)},
        {"latency": 1.0}, {"fault": "500=0.1"},
    ],
)  # fmt: skip
def test_operational_settings_do_not_change_the_key(change: dict[str, Any]) -> None:
    other = ENDPOINT.model_copy(update=change)
    assert key(other) == key()
    assert other.identity() == ENDPOINT.identity()


@pytest.mark.parametrize(
    "change",
    [
        {"name": "f"}, {"model": "n"}, {"temperature": 0.5}, {"max_output_tokens": 9}, {"structured": "none"},
        {"token_param": "max_completion_tokens"}, {"supports_temperature": False}, {"extra_body": {"top_p": 1}},
    ],
)  # fmt: skip
def test_settings_of_the_answer_change_the_key(change: dict[str, Any]) -> None:
    other = ENDPOINT.model_copy(update=change)
    assert key(other) != key()
    assert other.identity() != ENDPOINT.identity()


def test_fields_of_the_request() -> None:
    changes = [
        {"sample": (0, 1)},
        {"sample": (1, 0)},
        {"schema": None},
        {"max_tokens": 5},
        {"temperature": 1.0},
        {"text": "other"},
    ]
    assert len({key(**change) for change in changes} | {key()}) == len(changes) + 1
    for change in ({"purpose": "extract"}, {"stage": "build"}, {"essential": ("prob_positive",)}):
        assert key(**change) == key()


def test_key_is_the_hash_of_the_readable_record() -> None:
    made = prepare(ENDPOINT, ask("问题"))
    assert hashlib.sha256(made.record.encode()).hexdigest() == made.sha256
    assert json.loads(made.record)["body"]["messages"][0]["content"] == "问题"


def test_body() -> None:
    body = request_body(
        ENDPOINT.model_copy(update={"token_param": "max_completion_tokens", "supports_temperature": False}), ask()
    )
    assert body["max_completion_tokens"] == 1500
    assert "temperature" not in body
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA


@pytest.mark.parametrize(("structured", "asked"), [("json_object", {"type": "json_object"}), ("none", None)])
def test_schema_in_words_where_the_server_takes_none(structured: str, asked: Any) -> None:
    request = ChatRequest((user("first"), user("last")), SCHEMA)
    body = request_body(ENDPOINT.model_copy(update={"structured": structured}), request)
    assert body.get("response_format") == asked
    assert body["messages"][0]["content"] == "first"
    assert json.dumps(SCHEMA) in body["messages"][1]["content"]


def test_lone_surrogates_can_be_sent() -> None:
    made = prepare(ENDPOINT, ask("a\ud83d"))
    assert made.body["messages"][0]["content"] == "a�"
    assert made.sha256 == prepare(ENDPOINT, ask("a�")).sha256


def test_unknown_setting_is_refused() -> None:
    with pytest.raises(ValidationError, match="rpmm"):
        Endpoint(name="e", model="m", rpmm=3)
