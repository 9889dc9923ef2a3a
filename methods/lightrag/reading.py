"""What LightRAG asks the model: entities and relations of a text, keywords of a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.method import LLM
from methods.base import render
from methods.entity_graph import EntityRecord, clean, name_of, texts_of, weight_of
from methods.graph_reading import Form, asked, named
from methods.lightrag.graph import Extraction, RelationRecord
from methods.schemas import TEXT, json_object
from methods.tally import Tally

EXTRACT = "lightrag_extract.j2"
KEYWORDS = "lightrag_keywords.j2"
DEFAULT_WEIGHT = 1.0
"""Weight of a relation whose strength is no number."""

_LEVEL = {"type": "array", "items": TEXT}
_RELATION = json_object(
    source=TEXT, target=TEXT, description=TEXT, keywords=TEXT, strength={"type": ["number", "null"]}
)
KEYWORDS_SCHEMA = json_object(high_level_keywords=_LEVEL, low_level_keywords=_LEVEL)


def form(entity_types: Sequence[str], gleanings: int, summary_tokens: int) -> Form[Extraction]:
    """How LightRAG reads a text."""
    entity = json_object(name=TEXT, type={"type": "string", "enum": list(entity_types)}, description=TEXT)
    schema = json_object(entities={"type": "array", "items": entity}, relations={"type": "array", "items": _RELATION})
    return Form(render(EXTRACT, entity_types=entity_types), schema, parsed, gleanings, summary_tokens)


def parsed(values: Sequence[Mapping[str, Any]], item: str, tally: Tally) -> Extraction:
    """What the replies about chunk ``item`` say; records without a usable name are left out and counted."""
    entities, relations = [], []
    for value in values:
        for raw in value["entities"]:
            if named(name := name_of(raw["name"]), item, tally):
                entities.append(EntityRecord(name, name_of(raw["type"]), clean(raw["description"])))
        for raw in value["relations"]:
            ends = name_of(raw["source"]), name_of(raw["target"])
            if all(named(end, item, tally) for end in ends):
                weight = weight_of(raw["strength"], DEFAULT_WEIGHT)
                relations.append(RelationRecord(*ends, clean(raw["description"]), clean(raw["keywords"]), weight))
    if values and not entities:
        tally.count("empty", item)
    return Extraction(tuple(entities), tuple(relations))


async def keywords(question: str, llm: LLM, tally: Tally) -> tuple[str, str]:
    """(high, low): what relations and entities are searched by. A side without keywords is searched by the question itself.

    Raises:
        CallFailed: the model could not be asked.
    """
    messages = ({"role": "system", "content": render(KEYWORDS)}, {"role": "user", "content": question})
    reply = await asked(llm, messages, KEYWORDS_SCHEMA, "keywords")
    if reply.value is None:
        tally.count("question", f"{question[:60]} ({reply.why})")
        return question, question
    high, low = (", ".join(texts_of(reply.value, f"{level}_level_keywords")) for level in ("high", "low"))
    return high or question, low or question
