"""A-MEM (the paper's experiment code): two calls a record, one that describes it and one that links it and changes its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from harness.clock import Stamp
from harness.evidence import Gate
from harness.expected import ONCE, ZERO, Expected, Range, Survey, key_of, tokens_of
from harness.memory import Change, State
from harness.method import Context, FedRecord, Tools, Vectors
from harness.records import EMBED, Catalyst, Forecast, Passage
from methods import forecasting
from methods.a_mem.notes import (
    Note,
    encoded,
    evolve,
    fresh_index_text,
    notes_of,
    rebuild_due,
    rebuilt_index_text,
    with_linked,
)
from methods.base import render
from methods.fed import Origin, fed_text
from methods.feed import retrieval_query, shown_already
from methods.ranking import rank
from methods.record_memory import RecordMemory, asked, each_record, incidents, vectors_of
from methods.schemas import TEXT, json_object
from methods.vectors import VectorTable

NOTE, EVOLVE, QUERY = "a_mem_note.j2", "a_mem_evolve.j2", "a_mem_query.j2"
MAX_TOKENS = 1_000

_TEXTS = {"type": "array", "items": TEXT}
NOTE_SCHEMA = json_object(keywords=_TEXTS, context=TEXT, tags=_TEXTS)
EVOLVE_SCHEMA = json_object(
    should_evolve={"type": "boolean"},
    actions={"type": "array", "items": {"type": "string", "enum": ["strengthen", "update_neighbor"]}},
    suggested_connections={"type": "array", "items": {"type": "integer"}},
    tags_to_update=_TEXTS,
    new_context_neighborhood=_TEXTS,
    new_tags_neighborhood={"type": "array", "items": _TEXTS},
)
QUERY_SCHEMA = json_object(keywords=TEXT)
_ABOUT, _EVOLUTION, _KEYWORDS = Range(20, 200), Range(20, 900), Range(5, 80)
"""Tokens of what a note says of its record, of an evolution, and of a question's key words."""
NO_DESCRIPTION = "note whose description cannot be used"
NO_EVOLUTION = "evolution whose reply cannot be used"


@dataclass(frozen=True, slots=True)
class Described:
    """A record as a note that has no place yet, and the vectors (2, d) of its content and of what it is found by."""

    note: Note
    incidents: tuple[str, ...]
    vectors: Vectors = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Question:
    """What a forecast asks: the case that asks, its keywords' vector (d,), records that are shown anyway, notes to find."""

    catalyst_id: str
    vector: Vectors
    shown: frozenset[str]
    k: int


@dataclass(frozen=True, slots=True)
class Read:
    """A note that is read: its id, the note, and its cosine, None for one that came by a link."""

    note_id: str
    note: Note
    score: float | None


class AMem(RecordMemory):
    """Notes with what they link to, found by cosine.

    Attributes:
        neighbours: notes near a new one that its evolution is shown.
        rebuild_every: evolutions after which the index is rebuilt from what the notes say by then.
        retrieve_k: notes found, and bound of the linked notes read along.
    """

    templates: ClassVar[tuple[str, ...]] = (*forecasting.TEMPLATES, NOTE, EVOLVE, QUERY)
    reading: ClassVar[tuple[str, ...]] = ("retrieve_k", "native_tokens")
    neighbours: int = Field(5, ge=1)
    rebuild_every: int = Field(100, ge=1)
    retrieve_k: int = Field(10, ge=1)

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        passages: list[Passage] = []
        if ctx.memory is not None:
            query = retrieval_query(case, ctx.evidence)
            reply = await asked(ctx.llm, QUERY, QUERY_SCHEMA, "a_mem_query", MAX_TOKENS, query=query)
            keywords = str(reply["keywords"]).strip() if reply else ""
            if not keywords:
                ctx.warn("where a question's keywords could not be used, notes were looked for by the question itself.")
            vector = (await ctx.embed([keywords or query]))[0]
            question = Question(case.catalyst_id, vector, frozenset(shown_already(ctx)), self.retrieve_k)
            found: Sequence[Read] = await ctx.memory.recall(question)
            passages = [_passage(read, rank) for rank, read in enumerate(found, start=1)]
        shown = forecasting.within_budget(passages, ctx, self.native_tokens)
        return await forecasting.ask(case, ctx, context=shown)

    def expected_filling(self, survey: Survey) -> list[Expected]:
        """A description a record, and an evolution that is shown up to so many neighbours, each as long as records are."""
        texts = [fed_text(r).text for r in survey.records]
        mean = sum((tokens_of(text) for text in texts), ZERO) * (1 / max(1, len(texts)))
        blank = Note(0, "", "", (), "", (), (), "", False, None, Origin.of(survey.records[0]))
        described = [render(NOTE, content=text) for text in texts]
        evolved = [render(EVOLVE, note=replace(blank, content=text), neighbours=()) for text in texts]
        near = Range(0, self.neighbours * (mean.high + _ABOUT.high))
        return [
            *each_record(survey, "a_mem_note", ONCE, described, ZERO, _ABOUT, alone=True),
            *each_record(survey, "a_mem_evolve", ONCE, evolved, _ABOUT + near, _EVOLUTION, alone=False),
            *vectors_of(survey, mean + _ABOUT + _ABOUT),
        ]

    def expected_reading(self, case: Catalyst, ctx: Context, survey: Survey) -> list[Expected]:
        """A call for key words, and their vector."""
        if not survey.remembers:
            return []
        prompt = render(QUERY, query=retrieval_query(case, ctx.evidence))
        key = key_of("a_mem_query", prompt)
        return [
            Expected.each("a_mem_query", "forecast", key, ONCE, tokens_of(prompt), _KEYWORDS),
            Expected(EMBED, "build", key, ZERO, _KEYWORDS, ZERO),
        ]

    async def propose(self, record: FedRecord, tools: Tools) -> Described:
        """Ask what ``record`` is about."""
        fed = fed_text(record)
        reply = await asked(tools.llm, NOTE, NOTE_SCHEMA, "a_mem_note", MAX_TOKENS, content=fed.text)
        said: dict[str, Any] = dict(reply) if reply else {"keywords": [], "context": "", "tags": []}
        index_text = fresh_index_text(fed.text, said["context"], said["keywords"])
        note = Note(
            -1,
            fed.text,
            fed.stamp,
            tuple(said["keywords"]),
            said["context"],
            tuple(said["tags"]),
            (),
            index_text,
            False,
            fed.stock,
            Origin.of(record),
        )
        wrong = fed.incidents if reply else (*fed.incidents, NO_DESCRIPTION)
        return Described(note, wrong, await tools.embed([fed.text, index_text]))

    async def apply(self, state: State, described: Described, at: datetime, tools: Tools) -> list[Change]:
        """Ask how the new note and its neighbours are to evolve, and do it."""
        notes = list(notes_of(state).values())
        note = replace(described.note, position=len(notes))
        self.vectors.add([note.content, note.index_text], list(described.vectors))
        await self.vectors.fetch([n.index_text for n in notes], tools.embed)
        near = [notes[i] for i, _ in search(notes, self.vectors[note.content], self.vectors, self.neighbours)]
        reply = await asked(
            tools.llm,
            EVOLVE,
            EVOLVE_SCHEMA,
            "a_mem_evolve",
            MAX_TOKENS,
            ("should_evolve",),
            note=note,
            neighbours=near,
        )
        done = evolve(note, near, reply)
        after = [*(done.neighbours.get(n.position, n) for n in notes), done.note]
        changed = {p: ("evolve", n) for p, n in done.neighbours.items()} | {note.position: ("add", done.note)}
        if rebuild_due(after, self.rebuild_every):
            for old in after:
                new = replace(old, index_text=rebuilt_index_text(old), origin=old.origin.shaped_by(done.note.origin))
                if new.index_text != old.index_text:
                    changed[old.position] = (changed.get(old.position, ("rebuild", old))[0], new)
        wrong = (*described.incidents, *done.incidents, *(() if reply is not None else (NO_EVOLUTION,)))
        return [*incidents(*wrong), *(Change(op, _id(n), encoded(n)) for _, (op, n) in sorted(changed.items()))]

    async def recall(
        self, state: State, question: Question, decision: Stamp, gate: Gate, tools: Tools
    ) -> tuple[Read, ...]:
        """The notes for ``question`` and those they link to, each once, in the order of reading."""
        notes = {
            n.position: n
            for n in notes_of(state).values()
            if n.origin.admitted(gate, decision, question.catalyst_id) and _id(n) not in question.shown
        }
        held = list(notes.values())
        await self.vectors.fetch([n.index_text for n in held], tools.embed)
        hits = search(held, question.vector, self.vectors, question.k)
        scores = {held[i].position: score for i, score in hits}
        read = dict.fromkeys(with_linked(notes, list(scores), question.k))
        return tuple(Read(_id(notes[p]), notes[p], scores.get(p)) for p in read)


def search(
    notes: Sequence[Note], query: NDArray[np.floating[Any]], vectors: VectorTable, k: int
) -> list[tuple[int, float]]:
    """(index, cosine) of the ``k`` of ``notes`` nearest to ``query`` (d,), best first; ties go to the newer, then by id."""
    scores = vectors.cosines([n.index_text for n in notes], query)
    best = rank(scores, [n.origin.known_at for n in notes], [_id(n) for n in notes], k)
    return [(i, float(scores[i])) for i in best]


def _id(note: Note) -> str:
    """A note is called by the record that it holds."""
    return note.origin.sources[0]


def _passage(read: Read, rank: int) -> Passage:
    note = read.note
    about = f"context: {note.context}; keywords: {', '.join(note.keywords)}; tags: {', '.join(note.tags)}"
    return Passage(f"{note.content}\n({about})", note.origin.source(read.note_id, note.stock), rank, read.score)
