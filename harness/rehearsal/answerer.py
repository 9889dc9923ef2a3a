"""Answers that are a function of the request alone. This is not a language model and imitates none.

The answerer fills the JSON schema a request carries with pieces of the prompt itself, so that everything behind the endpoint
(client, limits, retries, store, parser, methods) runs on input of the right shape. Nothing about a method's quality can be
learned from it.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Mapping
from typing import Any

from harness.gateway.objects import find_objects
from harness.rehearsal.keeping import decisions_on, facts_in, is_decision
from harness.rehearsal.material import material

VARIANTS = ("a", "b")
_DEEPEST = 6
_NULL_SHARE = 0.15
_NAME_HINTS = (
    "name",
    "entity",
    "company",
    "subject",
    "object",
    "actor",
    "title",
    "keyword",
    "theme",
)
_END_HINTS = ("source", "target")
"""Ends of a link: names that the reply has given before, if it has."""

_PHRASE_HINTS = ("relation",)
_DATE_HINTS = ("date", "time", "day")
_FACTS = "facts"
_PAD = " and so on"


def answer(body: Mapping[str, Any], variant: str) -> str:
    """Content of the reply to the chat request ``body``; ``variant`` b answers otherwise than a."""
    messages = [m for m in body.get("messages", ()) if isinstance(m, Mapping)]
    schema = _asked_schema(body, messages)
    prompt = "\n".join(_text(m.get("content")) for m in messages if m.get("role") == "user")
    seed = json.dumps([variant, messages, schema], sort_keys=True, default=str)
    rng = random.Random(int.from_bytes(hashlib.blake2b(seed.encode(errors="replace"), digest_size=8).digest()))
    filler = _Filler(prompt, rng, schema or {})
    if schema is not None:
        return json.dumps(filler.fill(schema, "", 0), ensure_ascii=False)
    prose = " ".join(filler.sentence() for _ in range(rng.randint(1, 3)))
    if "prob_positive" not in prompt:
        return prose
    return f"{prose}\n{json.dumps({'reasoning': filler.sentence(), 'prob_positive': filler.probability()}, ensure_ascii=False)}"


def tool_call(body: Mapping[str, Any], variant: str) -> dict[str, Any] | None:
    """A call of one of the tools that ``body`` offers, as a part of the reply's message; None to answer in words."""
    tools = [t["function"] for t in body.get("tools") or () if isinstance(t, Mapping) and "function" in t]
    messages = [m for m in body.get("messages", ()) if isinstance(m, Mapping)]
    prompt = "\n".join(_text(m.get("content")) for m in messages if m.get("role") == "user")
    seed = json.dumps([variant, messages, tools], sort_keys=True, default=str)
    digest = hashlib.blake2b(seed.encode(errors="replace"), digest_size=8).digest()
    rng = random.Random(int.from_bytes(digest))
    if not tools or rng.random() < _NULL_SHARE:
        return None
    tool = rng.choice(tools)
    parameters = tool.get("parameters") or {"type": "object"}
    arguments = json.dumps(_Filler(prompt, rng, parameters).fill(parameters, "", 0), ensure_ascii=False)
    return {
        "id": f"call_{digest.hex()}",
        "type": "function",
        "function": {"name": tool["name"], "arguments": arguments},
    }


def _asked_schema(body: Mapping[str, Any], messages: list[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The schema of ``response_format``, or else the last JSON schema written into the last user message."""
    asked = body.get("response_format")
    asked = asked if isinstance(asked, Mapping) else {}
    named = asked.get("json_schema")
    schema = named.get("schema") if isinstance(named, Mapping) else asked.get("schema")
    if isinstance(schema, Mapping):
        return schema
    last = next((_text(m.get("content")) for m in reversed(messages) if m.get("role") == "user"), "")
    if '"properties"' not in last:
        return None
    worded = [found.value for found in find_objects(last) if "properties" in found.value]
    return worded[-1] if worded else None


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


class _Filler:
    """Draws values for a schema, in the order of the schema."""

    def __init__(self, prompt: str, rng: random.Random, root: Mapping[str, Any]) -> None:
        self._prompt = prompt
        self._stuff = material(prompt)
        self._rng = rng
        self._root = root
        self._given: list[str] = []

    def probability(self) -> float:
        """In (0, 1), above one half if the words of the prompt point up and chance does not object."""
        x = 0.35 * max(-4, min(4, self._stuff.drift)) + self._rng.gauss(0, 0.8)
        return round(1 / (1 + math.exp(-x)), 2)

    def sentence(self) -> str:
        return self._rng.choice(self._stuff.sentences)

    def _phrase(self) -> str:
        """A few words of a sentence, or as many Chinese characters."""
        sentence = self.sentence()
        words = sentence.split() if " " in sentence else list(sentence)
        start = self._rng.randrange(max(1, len(words) - 2))
        return (" " if " " in sentence else "").join(words[start : start + 3])

    def fill(self, schema: Mapping[str, Any], key: str, depth: int) -> Any:
        """A value valid under ``schema``, which stands under property ``key``."""
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._pick(list(schema["enum"]))
        for union in ("anyOf", "oneOf"):
            if union in schema:
                return self._union([self._resolved(option) for option in schema[union]], key, depth)
        if "allOf" in schema:
            merged = {k: v for part in schema["allOf"] for k, v in self._resolved(part).items()}
            return self.fill(merged, key, depth)
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            return self._union([{**schema, "type": k} for k in kind], key, depth)
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, key, depth)
            case "integer":
                return self._integer(schema)
            case "number":
                return self._number(schema)
            case "boolean":
                return self._rng.random() < 0.5
            case "null":
                return None
        return self._string(schema, key)

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        target: Any = self._root
        for part in reference.removeprefix("#").strip("/").split("/"):
            target = target[part] if part else target
        return self._resolved({**target, **{k: v for k, v in schema.items() if k != "$ref"}})

    def _union(self, options: list[Mapping[str, Any]], key: str, depth: int) -> Any:
        kinds = [option for option in options if option.get("type") != "null"]
        real = [option for option in kinds if option.get("properties") != {}]  # {} would say nothing
        if not real or (len(kinds) < len(options) and (depth >= _DEEPEST or self._rng.random() < _NULL_SHARE)):
            return None
        return self.fill(self._rng.choice(real), key, depth)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        wanted = schema.get("required", ()) if depth >= _DEEPEST else properties
        return {key: self.fill(properties.get(key, {}), key, depth + 1) for key in wanted}

    def _array(self, schema: Mapping[str, Any], key: str, depth: int) -> list[Any]:
        kept = self._kept(schema.get("items", {}), key)
        if kept is not None:
            return kept
        least = int(schema.get("minItems", 0))
        most = int(schema.get("maxItems", max(3, least)))
        size = least if depth >= _DEEPEST else self._rng.randint(min(max(1, least), most), max(least, min(3, most)))
        items = [self.fill(schema.get("items", {}), key, depth + 1) for _ in range(size)]
        unique = list({json.dumps(item, sort_keys=True): item for item in items}.values())
        return unique if len(unique) >= least else items

    def _kept(self, items: Mapping[str, Any], key: str) -> list[Any] | None:
        """The list, where it asks for what the prompt's own text says, or for what becomes of notes on that; else None."""
        options = [self._resolved(option) for option in items.get("anyOf", (items,))]
        if any(map(is_decision, options)):
            return decisions_on(self._prompt, self._rng)
        if key == _FACTS and any(option.get("type") == "string" for option in options):
            return facts_in(self._prompt) or None
        return None

    def _pick(self, options: list[Any]) -> Any:
        if "positive" in options and "negative" in options:
            return "positive" if self.probability() >= 0.5 else "negative"
        return self._rng.choice(options)

    def _integer(self, schema: Mapping[str, Any]) -> int:
        low, high = _bounds(schema, 1)
        fitting = [m for m in self._stuff.marks if (low is None or m >= low) and (high is None or m <= high)]
        if fitting:
            return self._rng.choice(fitting)
        bottom = math.ceil(low) if low is not None else 0 if high is None or high >= 0 else math.floor(high) - 10
        top = math.floor(high) if high is not None else bottom + 10
        return self._rng.randint(bottom, max(bottom, top))

    def _number(self, schema: Mapping[str, Any]) -> float:
        low, high = _bounds(schema, 1e-6)
        bottom = low if low is not None else 0.0 if high is None or high >= 0 else high - 1
        top = high if high is not None else bottom + 1
        return min(top, max(bottom, round(bottom + self.probability() * (top - bottom), 4)))

    def _string(self, schema: Mapping[str, Any], key: str) -> str:
        hint = key.lower()
        if schema.get("format") in ("date", "date-time") or any(word in hint for word in _DATE_HINTS):
            text = self._rng.choice(self._stuff.dates)
        elif any(word in hint for word in _END_HINTS):
            text = self._rng.choice(self._given or self._stuff.names)
        elif hint == "id" and self._stuff.marks:
            text = str(self._rng.choice(self._stuff.marks))
        elif any(word in hint for word in _NAME_HINTS):
            text = self._rng.choice(self._stuff.names)
            self._given.append(text)
        elif any(word in hint for word in _PHRASE_HINTS):
            text = self._phrase()
        else:
            text = self.sentence()
        least, most = int(schema.get("minLength", 0)), int(schema.get("maxLength", 400))
        while len(text) < least:
            text += _PAD
        return text[:most]


def _bounds(schema: Mapping[str, Any], step: float) -> tuple[float | None, float | None]:
    """(least, most) allowed, exclusive bounds moved inwards by ``step``."""
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return (low if above is None else above + step), (high if below is None else below - step)
