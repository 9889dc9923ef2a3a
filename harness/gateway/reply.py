"""From what a model sent to a status and a value.

The rules: cut by length without a complete object is ``truncated``; a refusal or a content filter is ``refused``; the last
strict JSON object after any ``</think>`` that has the essential keys is the answer; anything else is ``invalid``, with the bad
value quoted. Servers that constrain replies by a grammar enforce neither ranges nor lengths, so the schema is checked here
whatever the server promised.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator

from harness.gateway.objects import MAX_DEPTH, Found, find_objects, too_deep
from harness.records import Status
from harness.text import clean

_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
_THINK, _UNTHINK = "<think>", "</think>"
_CUT = "cut by the length limit; raise max_output_tokens"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply says. ``value`` is set only if ``status`` is ok and a schema was asked for or a tool is called."""

    status: Status
    value: dict[str, Any] | None
    text: str | None
    reason: str | None = None


def read_reply(
    reply: Mapping[str, Any], schema: Mapping[str, Any] | None, essential: tuple[str, ...] | None
) -> Reading:
    """Classify one chat completion (the decoded body of a 200)."""
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    text = _text(message.get("content"))
    finish = choice.get("finish_reason")
    refusal = message.get("refusal")
    if refusal or finish == "content_filter":
        return Reading(Status.REFUSED, None, text, f"refused: {_quote(clean(refusal) or 'content filter')}")
    call = _tool_call(message)
    if call is not None:
        cut = finish == "length" and not _is_object(call["arguments"])
        return Reading(Status.TRUNCATED, None, text, _CUT) if cut else Reading(Status.OK, call, text)
    value, problem = _content(text, schema, essential)
    if finish == "length" and (schema is None or _last_object(text or "", _keys(schema, essential))[0] is None):
        return Reading(Status.TRUNCATED, None, text, _CUT)
    if problem is not None:
        if text is None and (message.get("reasoning_content") or message.get("reasoning")):
            problem = "no answer, only reasoning"
        return Reading(Status.INVALID, None, text, problem)
    return Reading(Status.OK, value, text)


def parse_object(
    text: str, schema: Mapping[str, Any], essential: tuple[str, ...] | None = None
) -> tuple[dict[str, Any] | None, str | None]:
    """(value, None) for the last JSON object in ``text`` that has the essential keys and follows ``schema``, or (None, why).

    Numbers given as strings ("0.7") count as numbers. Keys the schema does not name are kept, keys that are not
    essential may be missing.
    """
    keys = _keys(schema, essential)
    found, problem = _last_object(text, keys)
    if found is None:
        return None, problem
    if too_deep(found):
        return None, f"the reply nests more than {MAX_DEPTH} levels deep"
    value = _as_numbers(clean(found), schema, schema)
    not_finite = _not_finite(value)
    if not_finite is not None:
        return None, f"{not_finite} is not a finite number"
    error = next(_validator(json.dumps(schema), keys).iter_errors(value), None)
    if error is not None:
        rule = f"{error.validator} {_quote(error.validator_value)}"
        return None, f"{_path(error.absolute_path)}: {_quote(error.instance)} fails {rule}"
    return value, None


def _keys(schema: Mapping[str, Any], essential: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(schema.get("required", ())) if essential is None else essential


def _last_object(text: str, keys: tuple[str, ...]) -> tuple[dict[str, Any] | None, str | None]:
    """The last object after any ``</think>`` that has ``keys``, not yet checked, or (None, why there is none)."""
    answer = text.rsplit(_UNTHINK, 1)[-1]
    found = find_objects(answer)
    if _THINK in _between(answer, found):
        return None, "the reply ends inside <think>"
    objects = [item.value for item in found]
    whole = [value for value in objects if all(key in value for key in keys)]
    return (whole[-1], None) if whole else (None, _missing(objects, keys, answer))


def _content(
    text: str | None, schema: Mapping[str, Any] | None, essential: tuple[str, ...] | None
) -> tuple[dict[str, Any] | None, str | None]:
    if text is None or not text.strip():
        return None, "empty reply"
    if schema is not None:
        return parse_object(text, schema, essential)
    answer = text.rsplit(_UNTHINK, 1)[-1].strip()
    if not answer:
        return None, "nothing after </think>"
    return None, "the reply ends inside <think>" if answer.startswith(_THINK) else None


def _tool_call(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """The first tool call of a message: its name and its arguments as they came, whether or not they can be read."""
    calls = message.get("tool_calls")
    first = calls[0] if isinstance(calls, list) and calls and isinstance(calls[0], dict) else {}
    function = first.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    arguments = function.get("arguments")
    if not isinstance(arguments, str):  # what is nested too deeply cannot be read, and the caller is told so
        arguments = "" if too_deep(arguments) else json.dumps(arguments, ensure_ascii=False)
    return {"tool": clean(function["name"]), "arguments": clean(arguments)}


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _text(content: object) -> str | None:
    """Content as text: a string, or the text parts of a list of parts."""
    if isinstance(content, str):
        return str(clean(content))
    if isinstance(content, list):
        parts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
        return str(clean("".join(parts)))
    return None


def _between(text: str, found: list[Found]) -> str:
    """``text`` without the objects: a tag inside a JSON string is not a tag."""
    starts = [0, *(item.end for item in found)]
    ends = [*(item.start for item in found), len(text)]
    return "".join(text[a:b] for a, b in zip(starts, ends, strict=True))


def _missing(objects: list[dict[str, Any]], keys: tuple[str, ...], answer: str) -> str:
    if not objects:
        return f"no JSON object in {_quote(answer)}"
    absent = [key for key in keys if key not in objects[-1]]
    return f"no {', '.join(absent)} in {_quote(objects[-1])}"


def _as_numbers(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """``value`` with numeric strings turned into numbers wherever ``schema`` wants a number and no string."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for part in reference[2:].split("/"):
            target = target.get(part, {}) if isinstance(target, Mapping) else {}
        return _as_numbers(value, target, root)
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if isinstance(value, str):
        wants_number = ("number" in kinds or "integer" in kinds) and "string" not in kinds
        return _number(value, "number" not in kinds) if wants_number and _NUMBER.fullmatch(value) else value
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return {key: _as_numbers(item, properties.get(key, {}), root) for key, item in value.items()}
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [_as_numbers(item, schema["items"], root) for item in value]
    return value


def _number(text: str, integer: bool) -> float | int:
    value = float(text)
    return int(value) if integer and value.is_integer() else value


def _not_finite(value: Any) -> float | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else value
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((bad for item in items if (bad := _not_finite(item)) is not None), None)


@lru_cache(maxsize=256)
def _validator(schema_json: str, essential: tuple[str, ...]) -> Draft202012Validator:
    """The schema as the reader takes it: unknown keys allowed, only essential keys required at the top."""
    schema = _open(json.loads(schema_json))
    schema["required"] = list(essential)
    return Draft202012Validator(schema)


def _open(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {k: _open(v) for k, v in schema.items() if not (k == "additionalProperties" and v is False)}
    return [_open(item) for item in schema] if isinstance(schema, list) else schema


def _path(parts: Any) -> str:
    return ".".join(str(part) for part in parts) or "the reply"


def _quote(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
