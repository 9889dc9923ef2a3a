"""Answers: valid under any schema, the prompt's own words, the same for the same request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harness.gateway.request import ChatRequest, request_body, user
from harness.gateway.settings import Endpoint
from harness.rehearsal.answerer import answer
from tests.forecast_reply import parse_forecast

TEXT = "On 2024-03-05 Acme Corp reported record profit. [7] Beta Ltd warned of a loss. 贵州茅台业绩增长超预期。"
RICH: dict[str, Any] = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 5}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
            "required": ["name", "next"],
        }
    },
    "type": "object",
    "properties": {
        "node": {"$ref": "#/$defs/node"},
        "kinds": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 2, "maxItems": 2},
        "note": {"type": ["string", "null"], "minLength": 200, "maxLength": 210},
        "count": {"type": "integer", "exclusiveMinimum": 3, "maximum": 4},
        "below": {"type": "number", "maximum": -5},
        "flag": {"type": "boolean"},
        "fixed": {"const": 3},
        "none": {"type": "null"},
        "date": {"type": "string", "format": "date"},
        "empty": {"type": "array", "items": {"type": "string"}, "maxItems": 0},
        "both": {"allOf": [{"type": "object", "properties": {"x": {"type": "number"}}}, {"required": ["x"]}]},
    },
    "required": ["node", "kinds", "note", "count", "below", "flag", "fixed", "none", "date", "empty", "both"],
}  # fmt: skip


def body(text: str = TEXT, schema: Any = None) -> dict[str, Any]:
    made: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": text}]}
    if schema is not None:
        made["response_format"] = {"type": "json_schema", "json_schema": {"name": "r", "schema": schema}}
    return made


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300), st.sampled_from(["a", "b"]))
def test_any_prompt_gives_a_valid_object(text: str, variant: str) -> None:
    made = json.loads(answer(body(text, RICH), variant))
    assert list(Draft202012Validator(RICH).iter_errors(made)) == []


def test_words_come_from_the_prompt() -> None:
    schema = {
        "type": "object",
        "properties": {key: {"type": "string"} for key in ("company_name", "fact", "event_date")}
        | {"id": {"type": "integer"}},
    }
    seen = [json.loads(answer(body(f"{TEXT} {n}", schema), "a")) for n in range(30)]
    assert all(value["fact"] in f"{TEXT} {n}" for n, value in enumerate(seen))
    assert {"Acme Corp", "Beta Ltd"} <= {value["company_name"] for value in seen}
    assert {value["event_date"] for value in seen} == {"2024-03-05"}
    assert {value["id"] for value in seen} == {7}


@pytest.mark.parametrize(
    ("up", "down"),
    [("profit growth record beat", "loss fraud lawsuit miss"), ("业绩增长，中标，回购", "亏损，处罚，立案，减持")],
)
def test_direction_follows_the_words(up: str, down: str) -> None:
    schema = {"type": "object", "properties": {"prob_positive": {"type": "number", "minimum": 0, "maximum": 1}}}

    def mean(words: str) -> float:
        return sum(json.loads(answer(body(f"{words} {n}", schema), "a"))["prob_positive"] for n in range(50)) / 50

    assert mean(up) > 0.6 > 0.4 > mean(down)


@pytest.mark.parametrize("structured", ["json_schema", "json_object", "none"])
def test_a_schema_in_words_is_followed_too(structured: str) -> None:
    endpoint = Endpoint(name="e", model="m", structured=structured)
    made = json.loads(answer(request_body(endpoint, ChatRequest((user(TEXT),), RICH)), "a"))
    assert list(Draft202012Validator(RICH).iter_errors(made)) == []


def test_without_a_schema() -> None:
    assert "{" not in answer(body(), "a")
    text = answer(body(f"{TEXT} Reply with prob_positive."), "a")
    assert not text.startswith("{")
    assert parse_forecast(text)[0] is not None


def test_only_messages_and_schema_matter() -> None:
    assert answer(body() | {"temperature": 1, "max_tokens": 3, "model": "other"}, "a") == answer(body(), "a")
    assert answer(body(), "b") != answer(body(), "a")


def test_lone_surrogates_are_no_problem() -> None:
    assert answer(body("a \ud83d b", RICH), "a")


def test_the_ends_of_a_link_are_names_given_before() -> None:
    name = {"type": "string"}
    schema = {
        "type": "object",
        "properties": {
            "entities": {"type": "array", "items": {"type": "object", "properties": {"name": name}}, "minItems": 1},
            "links": {
                "type": "array",
                "items": {"type": "object", "properties": {"source": name, "target": name, "relation": name}},
                "minItems": 1,
            },
        },
    }
    for number in range(20):
        made = json.loads(answer(body(f"{TEXT} {number}", schema), "a"))
        given = {entity["name"] for entity in made["entities"]}
        assert {end for link in made["links"] for end in (link["source"], link["target"])} <= given
        assert all(0 < len(link["relation"].split()) <= 3 for link in made["links"])


def test_of_alternatives_one_that_says_something_is_taken() -> None:
    """The empty object stands beside others for readers that take any; it is no answer, and no reason for null either."""
    item = {"anyOf": [{"type": "string"}, {"type": "object", "properties": {}, "additionalProperties": False}]}
    schema = {"type": "object", "properties": {"facts": {"type": "array", "items": item}}, "required": ["facts"]}
    asked = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
    for number in range(20):
        body = {"messages": [{"role": "user", "content": f"Order {number} comes in."}], "response_format": asked}
        assert all(isinstance(fact, str) for fact in json.loads(answer(body, "a"))["facts"])


def test_facts_are_what_the_quoted_user_says() -> None:
    """The first three sentences and the last, whatever stands around them, in either form that a schema allows."""
    fact = {"type": "object", "properties": {"fact": {"type": "string"}}, "required": ["fact"]}
    for items in ({"type": "string"}, {"anyOf": [{"type": "string"}, fact]}):
        schema = {"type": "object", "properties": {"facts": {"type": "array", "items": items}}, "required": ["facts"]}
        said = "Acme wins an order. It is large. 贵州茅台业绩增长超预期。Nobody knew. Profit will grow."
        text = f"Write down what is stated.\n\n## Record\nuser: {said}\n\nReply with JSON and nothing else."
        for variant in ("a", "b"):
            made = json.loads(answer(body(text, schema), variant))
            assert made == {
                "facts": ["Acme wins an order.", "It is large.", "贵州茅台业绩增长超预期。", "Profit will grow."]
            }


def test_decisions_keep_every_new_note() -> None:
    """Each new note is there after the decisions, or was there before; numbers that are changed exist."""
    event = {"type": "string", "enum": ["ADD", "UPDATE", "DELETE", "NONE"]}
    text = {"type": "string"}
    decision = {"type": "object", "properties": {"id": text, "text": text, "event": event}}
    schema = {"type": "object", "properties": {"memory": {"type": "array", "items": decision}}}
    seen = set()
    for number in range(40):
        prompt = f"Decide:\n- ADD: new.\n\n## On file\n[0] Old one.\n[1] Old two.\n\n## New\n- Old two.\n- Order {number}.\n\nReply."
        made = json.loads(answer(body(prompt, schema), "a"))["memory"]
        assert made[0] == {"id": "1", "text": "Old two.", "event": "NONE"}
        assert [d["text"] for d in made if d["event"] in ("ADD", "UPDATE")] == [f"Order {number}."]
        assert {d["id"] for d in made if d["event"] in ("UPDATE", "DELETE")} <= {"0", "1"}
        seen |= {d["event"] for d in made}
    assert seen == {"ADD", "UPDATE", "DELETE", "NONE"}
    empty = "Decide.\n\n## On file\nNothing yet.\n\n## New\n- Order.\n\nReply."
    assert [d["event"] for d in json.loads(answer(body(empty, schema), "a"))["memory"]] == ["ADD"]
