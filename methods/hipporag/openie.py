"""Open information extraction: two calls a passage, once a process; a reply out of shape is left out and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from methods.asking import NAME_CHARS, Asker
from methods.concurrency import Once
from methods.feed import Record
from methods.hipporag.phrases import Normalise, phrase
from methods.schemas import TEXT, json_object
from methods.tally import Tally

SYSTEM, ENTITIES, TRIPLES, QUERY = (
    "hipporag_system.j2", "hipporag_entities.j2", "hipporag_triples.j2", "hipporag_query.j2",
)  # fmt: skip
TEMPLATES = (SYSTEM, ENTITIES, TRIPLES)
PASSAGES_AT_ONCE = 64
KINDS = {
    "entities": "passages whose named entities could not be used",
    "triples": "passages without triples, because the model's answer could not be used",
    "name": "named entities left out: no text, blank or too long",
    "triple": "triples left out: not three texts, or an end blank or too long",
    "none": "entities called NONE, names as any other",
    "silent": "passages in which the model found no triple: only their text can be found",
}
"""What is counted of extraction, in words."""

Triple = tuple[str, str, str]
ENTITY_SCHEMA = json_object(named_entities={"type": "array", "items": TEXT})
FACT = json_object(subject=TEXT, relation=TEXT, object=TEXT)
TRIPLE_SCHEMA = json_object(triples={"type": "array", "items": FACT})


@dataclass(frozen=True, slots=True)
class Extract:
    """What the model found in one passage, as it wrote it."""

    entities: tuple[str, ...]
    triples: tuple[Triple, ...]


class OpenIE:
    """Extracts by passage text. A repeated request costs nothing: replies are stored by their content."""

    def __init__(self, tally: Tally) -> None:
        self._found: Once[str, Extract] = Once()
        self._tally = tally

    async def of(self, records: Sequence[Record], asker: Asker) -> list[Extract]:
        """Extracts of ``records``, in order.

        Raises:
            CallFailed: the model could not be asked.
        """
        return await self._found.get_all(
            records, lambda record: record.text, lambda record: self._extract(record, asker), PASSAGES_AT_ONCE
        )

    async def _extract(self, record: Record, asker: Asker) -> Extract:
        reply = await asker.ask(ENTITIES, ENTITY_SCHEMA, "extract", passage=record.text)
        if reply.value is None:
            self._tally.count("entities", f"{record.item_id} ({reply.reason})")
        entities = names(reply.value, self._tally, record.item_id)
        reply = await asker.ask(TRIPLES, TRIPLE_SCHEMA, "extract", passage=record.text, entities=entities)
        if reply.value is None:
            self._tally.count("triples", f"{record.item_id} ({reply.reason})")
            return Extract(entities, ())
        triples = triples_of(reply.value.get("triples"), self._tally, record.item_id)
        if not triples:
            self._tally.count("silent", record.item_id)
        return Extract(entities, triples)


def names(value: Mapping[str, Any] | None, tally: Tally, where: str) -> tuple[str, ...]:
    """The listed names without repeats; what is no text, blank or too long is counted."""
    listed = (value or {}).get("named_entities")
    found: dict[str, None] = {}
    for name in listed if isinstance(listed, list) else []:
        if isinstance(name, str) and _usable(name):
            found[name.strip()] = None
            _count_none(name, tally, where)
        else:
            tally.count("name", where)
    return tuple(found)


def triples_of(listed: Any, tally: Tally, where: str) -> tuple[Triple, ...]:
    """The well-formed triples in order; others are counted."""
    found: list[Triple] = []
    for item in listed if isinstance(listed, list) else []:
        parts = [item.get(key) for key in ("subject", "relation", "object")] if isinstance(item, Mapping) else item
        triple = as_triple(parts)
        if triple is None or not (_usable(triple[0]) and _usable(triple[2])):
            tally.count("triple", where)
            continue
        found.append(triple)
        _count_none(triple[0], tally, where)
        _count_none(triple[2], tally, where)
    return tuple(found)


def as_triple(parts: Any) -> Triple | None:
    """``parts`` as a triple of texts; None unless there are exactly three, none of them missing."""
    if not isinstance(parts, list | tuple) or len(parts) != 3 or any(part is None for part in parts):
        return None
    return str(parts[0]), str(parts[1]), str(parts[2])


def normalised(triples: Sequence[Triple], how: Normalise) -> tuple[Triple, ...]:
    """Triples of nodes. One with an end that has no letter or digit at all is no edge (but in ``ascii``, which is the original)."""
    clean = [(phrase(s, how), phrase(p, how), phrase(o, how)) for s, p, o in triples]
    return tuple(triple for triple in clean if how is Normalise.ASCII or (triple[0] and triple[2]))


def _usable(name: str) -> bool:
    return 0 < len(name.strip()) <= NAME_CHARS


def _count_none(name: str, tally: Tally, where: str) -> None:
    """A model that finds nothing may call it "NONE". It stays a name as any other, and is counted."""
    if name.strip().upper() == "NONE":
        tally.count("none", where)
