"""What HyperGraphRAG asks the model: segments of a text, or of a question, with the entities named in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.method import LLM
from methods.base import render
from methods.entity_graph import EntityRecord, clean, name_of, weight_of
from methods.graph_reading import Form, asked, named
from methods.hypergraphrag.graph import Extraction, Member, Segment
from methods.schemas import TEXT, json_object
from methods.tally import Tally

EXTRACT = "hypergraphrag_extract.j2"
DEFAULT_COMPLETENESS, DEFAULT_SCORE = 1.0, 50.0
"""Where the model gives no number."""


def _within(most: int) -> dict[str, Any]:
    return {"type": ["number", "null"], "minimum": 0, "maximum": most}


def form(entity_types: Sequence[str], gleanings: int, summary_tokens: int) -> Form[Extraction]:
    """How HyperGraphRAG reads a text."""
    types = {"type": "string", "enum": list(entity_types)}
    entity = json_object(name=TEXT, type=types, description=TEXT, key_score=_within(100))
    segment = json_object(text=TEXT, completeness=_within(10), entities={"type": "array", "items": entity})
    schema = json_object(segments={"type": "array", "items": segment})
    return Form(render(EXTRACT, entity_types=entity_types), schema, parsed, gleanings, summary_tokens)


def parsed(values: Sequence[Mapping[str, Any]], item: str, tally: Tally) -> Extraction:
    """What the replies about chunk ``item`` say; records without a usable name are left out and counted."""
    segments = []
    for raw in (segment for value in values for segment in value["segments"]):
        members = tuple(
            Member(
                EntityRecord(name, name_of(e["type"]), clean(e["description"])),
                weight_of(e["key_score"], DEFAULT_SCORE),
            )
            for e in raw["entities"]
            if named(name := name_of(e["name"]), item, tally)
        )
        if text := clean(raw["text"]):
            segments.append(Segment(text, weight_of(raw["completeness"], DEFAULT_COMPLETENESS), members))
    if values and not any(segment.members for segment in segments):
        tally.count("empty", item)
    return tuple(segments)


def searched_by(segments: Sequence[str], entities: Sequence[str], question: str) -> tuple[str, str]:
    """(hyperedge query, entity query) of names found in a question; a side without any is the question itself."""
    return ", ".join(segments) or question, ", ".join(entities) or question


async def queries(question: str, how: Form[Extraction], llm: LLM, tally: Tally) -> tuple[str, str]:
    """What hyperedges and entities are searched by: the question read as a text is.

    Raises:
        CallFailed: the model could not be asked.
    """
    messages = ({"role": "system", "content": how.instructions}, {"role": "user", "content": question})
    reply = await asked(llm, messages, how.schema, "question")
    if not reply.value:
        tally.count("question", f"{question[:60]} ({reply.why})")
    found = parsed([reply.value], question[:60], Tally(tally.kinds)) if reply.value else ()
    entities = [member.entity.name for segment in found for member in segment.members]
    return searched_by([segment.name for segment in found], entities, question)
