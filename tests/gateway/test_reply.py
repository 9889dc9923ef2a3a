"""Reply → status, shape by shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gateway.objects import MAX_DEPTH, find_objects
from harness.gateway.reply import parse_object, read_reply
from harness.records import Status
from tests.forecast_reply import parse_forecast
from tests.gateway.conftest import SCHEMA, chat_reply

OBJECT = '{"reasoning": "r", "prob_positive": 0.7}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<think>a</think>{"prob_positive": 0.31, "direction": "negative"}', 0.31),
        ('<think>plan {"prob_positive": 0.9} maybe</think>\n{"prob_positive": 0.2}', 0.2),
        ('lone end tag</think> {"prob_positive": 0.4}', 0.4),
        ('```json\n{"prob_positive": "0.7"}\n```', 0.7),
        ('first {"prob_positive": 0.1} then {"prob_positive": 0.8}', 0.8),
        ('{"prob_positive": 0.8} and then {"note": "no key here"}', 0.8),
        ('a set {a, b} first: {"prob_positive": 0.3}', 0.3),
        ('an open { brace, then {"prob_positive": 0.3}', 0.3),
        ('{"reasoning": "a } brace and a <think> tag", "prob_positive": 0.5}', 0.5),
        ('{"prob_positive": 1}', 1.0),
        ('{"prob_positive": " 1e-1 "}', 0.1),
    ],
)
def test_usable_forecasts(text: str, expected: float) -> None:
    probability, value, reason = parse_forecast(text)
    assert probability == expected
    assert value is not None
    assert reason is None


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("<think>cut off in the middle of the", "<think>"),
        ('<think>{"prob_positive": 0.9}', "<think>"),
        ('<think>{"prob_positive": 0.9}</think>', "no JSON object"),
        ('{"prob_positive": 1.7}', "1.7"),
        ('{"prob_positive": -0.1}', "-0.1"),
        ('{"prob_positive": "70%"}', "70%"),
        ('{"prob_positive": NaN}', "nan"),
        ('{"prob_positive": 1e999}', "inf"),
        ('{"prob_positive": null}', "None"),
        ('{"prob_positive": true}', "True"),
        ('{"prob_positive": [0.5]}', "0.5"),
        ('{"prob_positive": 0.5,}', "no JSON object"),
        ('{"outer": {"prob_positive": 0.5}, }', "no JSON object"),
        ('{"direction": "negative"}', "prob_positive"),
        ("70 per cent", "70 per cent"),
        ("{" * 5000, "no JSON object"),
        ('{"prob_positive": 0.7, "more": ' + "[" * 600 + "]" * 600 + "}", "levels deep"),
        ('{"prob_positive": 0.7, "more": ' + '{"a":' * 600 + "1" + "}" * 601, "levels deep"),
        ('{"prob_positive":' + "[" * 50_000 + "]" * 50_000 + "}", "no JSON object"),
    ],
)
def test_unusable_forecasts_quote_what_is_wrong(text: str, quoted: str) -> None:
    probability, value, reason = parse_forecast(text)
    assert probability is None
    assert value is None
    assert quoted in str(reason)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (chat_reply(OBJECT), Status.OK),
        (chat_reply(OBJECT, finish="length"), Status.OK),
        (chat_reply(OBJECT, model="another"), Status.OK),
        (chat_reply([{"type": "text", "text": OBJECT}]), Status.OK),
        (chat_reply('{"prob_positive": 0.7, "direction": "positive"}'), Status.OK),
        (chat_reply(OBJECT[:-5], finish="length"), Status.TRUNCATED),
        (chat_reply(None, finish="length"), Status.TRUNCATED),
        (chat_reply(OBJECT.replace("0.7", "1.7"), finish="length"), Status.INVALID),
        (chat_reply("<think>still", finish="length"), Status.TRUNCATED),
        (chat_reply(None, message_refusal="I cannot."), Status.REFUSED),
        (chat_reply("", finish="content_filter"), Status.REFUSED),
        (chat_reply(""), Status.INVALID),
        (chat_reply(None), Status.INVALID),
        (chat_reply(None, message_reasoning_content=OBJECT), Status.INVALID),
        (chat_reply("", message_reasoning=OBJECT), Status.INVALID),
        (chat_reply(f"<think>{OBJECT}"), Status.INVALID),
        (chat_reply('{"reasoning": 5, "prob_positive": 0.7}'), Status.INVALID),
        ({"choices": []}, Status.INVALID),
        ({"choices": [{"message": None, "finish_reason": None}]}, Status.INVALID),
    ],
)
def test_reply_to_status(reply: dict, status: Status) -> None:
    reading = read_reply(reply, SCHEMA, essential=("prob_positive",))
    assert reading.status is status
    assert (reading.value is not None) == (status is Status.OK)
    assert (reading.reason is None) == (status is Status.OK)


def test_nesting_is_bounded_not_forbidden() -> None:
    def nested(levels: int) -> str:
        return '{"prob_positive": 0.7, "more": ' + "[" * levels + "]" * levels + "}"

    assert parse_forecast(nested(MAX_DEPTH - 1))[0] == 0.7
    assert parse_forecast(nested(MAX_DEPTH))[0] is None
    arguments: list[Any] = []
    for _ in range(900):
        arguments = [arguments]
    calls = [{"function": {"name": "f", "arguments": arguments}}]
    assert read_reply(chat_reply(None, message_tool_calls=calls), None, None).value == {"tool": "f", "arguments": ""}


def test_keys_are_essential_unless_said_otherwise() -> None:
    value, reason = parse_object('{"prob_positive": 0.7}', SCHEMA)
    assert value is None
    assert "reasoning" in str(reason)


def test_plain_text() -> None:
    assert read_reply(chat_reply("<think>x</think> fine"), None, None).status is Status.OK
    assert read_reply(chat_reply("<think>x"), None, None).status is Status.INVALID
    assert read_reply(chat_reply("<think>x</think>  "), None, None).status is Status.INVALID
    assert read_reply(chat_reply("cut he", finish="length"), None, None).status is Status.TRUNCATED


def test_lone_surrogates_are_replaced() -> None:
    reply = json.loads(json.dumps(chat_reply('{"reasoning": "a\\ud83d", "prob_positive": 0.7}\ud83d')))
    reading = read_reply(reply, SCHEMA, None)
    assert reading.value == {"reasoning": "a�", "prob_positive": 0.7}
    assert str(reading.text).encode()


def test_nested_schema_with_references() -> None:
    schema = {
        "$defs": {
            "fact": {
                "type": "object",
                "properties": {"weight": {"type": "number", "maximum": 1}},
                "required": ["weight"],
            }
        },
        "type": "object",
        "properties": {"facts": {"type": "array", "items": {"$ref": "#/$defs/fact"}}, "n": {"type": "integer"}},
        "required": ["facts"],
    }
    assert parse_object('{"facts": [{"weight": "0.5"}], "n": "3"}', schema)[0] == {"facts": [{"weight": 0.5}], "n": 3}
    value, reason = parse_object('{"facts": [{"weight": 0.5}, {"weight": 2}]}', schema)
    assert value is None
    assert "facts.1.weight: 2" in str(reason)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), _json, max_size=4), st.text(alphabet="abc \n.,'`"), st.booleans())
def test_any_object_is_found_in_prose(value: dict, prose: str, ascii_only: bool) -> None:
    text = f"{prose}{json.dumps(value, ensure_ascii=ascii_only)}{prose}"
    assert [found.value for found in find_objects(text)] == [value]


@given(st.text(max_size=200))
def test_any_text_is_read_without_an_exception(text: str) -> None:
    parse_forecast(text)
    read_reply(chat_reply(text), SCHEMA, None)
