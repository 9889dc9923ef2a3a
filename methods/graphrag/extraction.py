"""Entities and relations of a text unit: one call, and one follow-up for what was missed."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.method import Message
from methods.asking import NAME_CHARS, Asker
from methods.concurrency import Once
from methods.feed import Record
from methods.schemas import TEXT, json_object
from methods.tally import Tally

SYSTEM, EXTRACT, GLEAN = "graphrag_extract_system.j2", "graphrag_extract.j2", "graphrag_glean.j2"
TEMPLATES = (SYSTEM, EXTRACT, GLEAN)
UNITS_AT_ONCE = 64
KINDS = {
    "unread": "extraction replies that could not be used",
    "entity": "entities left out: a part missing, or the name blank or too long",
    "relation": "relations left out: a part missing, or a name blank or too long",
    "none": "entities called NONE, names as any other",
    "silent": "units in which the model found no entity: local search cannot reach them",
}
"""What is counted of extraction, in words."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class EntityMention:
    """An entity as one unit describes it."""

    title: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class RelationMention:
    """A directed relation as one unit describes it."""

    source: str
    target: str
    description: str
    weight: float


@dataclass(frozen=True, slots=True)
class Extract:
    """What was found in one unit, in the order of the reply."""

    entities: tuple[EntityMention, ...] = ()
    relations: tuple[RelationMention, ...] = ()


def schema(types: Sequence[str]) -> dict[str, Any]:
    """JSON schema of a reply with entities of ``types``."""
    entity = json_object(name=TEXT, type={"type": "string", "enum": list(types)}, description=TEXT)
    relation = json_object(source=TEXT, target=TEXT, description=TEXT, strength={"type": "number"})
    return json_object(entities={"type": "array", "items": entity}, relationships={"type": "array", "items": relation})


class Extraction:
    """Extracts by unit text. A repeated request costs nothing: replies are stored by their content."""

    def __init__(self, types: Sequence[str], gleanings: int, tally: Tally) -> None:
        self._types = types
        self._schema = schema(types)
        self._gleanings = gleanings
        self._tally = tally
        self._found: Once[str, Extract] = Once()

    async def of(self, records: Sequence[Record], asker: Asker) -> list[Extract]:
        """Extracts of ``records``, in order.

        Raises:
            CallFailed: the model could not be asked.
        """
        return await self._found.get_all(
            records, lambda record: record.text, lambda record: self._extract(record, asker), UNITS_AT_ONCE
        )

    async def _extract(self, record: Record, asker: Asker) -> Extract:
        values: dict[str, Any] = {"text": record.text, "types": self._types}
        found, history = Extract(), list[Message]()
        for template in (EXTRACT, *[GLEAN] * self._gleanings):
            reply = await asker.ask(template, self._schema, "extract", history=tuple(history), **values)
            if reply.value is None:
                self._tally.count("unread", f"{record.item_id} ({reply.reason})")
                break
            more = read(reply.value, self._tally, record.item_id)
            found = Extract(found.entities + more.entities, found.relations + more.relations)
            said = json.dumps(reply.value, ensure_ascii=False)
            history += [asker.message(template, **values), {"role": "assistant", "content": said}]
        if not found.entities:
            self._tally.count("silent", record.item_id)
        return found


def read(value: Mapping[str, Any] | None, tally: Tally, where: str) -> Extract:
    """The well-formed items of a reply; others are counted."""
    entities = [_entity(item) for item in _listed(value, "entities")]
    relations = [_relation(item) for item in _listed(value, "relationships")]
    for kind, lost in (("entity", entities.count(None)), ("relation", relations.count(None))):
        for _ in range(lost):
            tally.count(kind, where)
    for _ in (e for e in entities if e is not None and e.title == "NONE"):
        tally.count("none", where)
    return Extract(tuple(e for e in entities if e), tuple(r for r in relations if r))


def clean(text: str) -> str:
    """``text`` without HTML entities, control characters and surrounding space."""
    return _CONTROL.sub("", html.unescape(text.strip()))


def title(name: str) -> str:
    """``name`` as entities are told apart: upper case and clean, however often it is cleaned again."""
    found, again = name, clean(name.upper())
    while again != found:
        found, again = again, clean(again.upper())
    return found


def _listed(value: Mapping[str, Any] | None, key: str) -> list[Any]:
    listed = (value or {}).get(key)
    return listed if isinstance(listed, list) else []


def _entity(item: Any) -> EntityMention | None:
    parts = _texts(item, "name", "type", "description")
    if parts is None or not _usable(name := title(parts[0])):
        return None
    return EntityMention(name, clean(parts[1].upper()), clean(parts[2]))


def _relation(item: Any) -> RelationMention | None:
    parts = _texts(item, "source", "target", "description")
    if parts is None or "strength" not in item:
        return None
    source, target = title(parts[0]), title(parts[1])
    if not (_usable(source) and _usable(target)):
        return None
    return RelationMention(source, target, clean(parts[2]), _number(item["strength"]))


def _texts(item: Any, *keys: str) -> list[str] | None:
    """The texts under ``keys``; None if one is missing or no text."""
    parts = [item.get(key) for key in keys] if isinstance(item, Mapping) else []
    texts = [part for part in parts if isinstance(part, str)]
    return texts if len(texts) == len(keys) else None


def _usable(name: str) -> bool:
    return 0 < len(name) <= NAME_CHARS


def _number(strength: Any) -> float:
    """The strength of a relation; 1 where it is no finite number."""
    try:
        weight = float(strength)
    except (TypeError, ValueError):
        return 1.0
    return weight if math.isfinite(weight) else 1.0
