"""A-MEM's rules without a model: notes, what an evolution does to them, when the index is rebuilt, what is read.

After WujiangXu/AgenticMemory 7f716dc, the code of the paper's own experiments. Notes call each other by their position in the
order in which they were added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from harness.memory import State
from methods.fed import Origin, dumps

UNKNOWN_POSITION = "connection to a note that does not exist"


@dataclass(frozen=True, slots=True)
class Note:
    """A note.

    Attributes:
        position: its place in the order of writing, from 0.
        content: the record.
        stamp: when that became known.
        keywords, context, tags: what the model said of it; later notes may change context and tags.
        links: positions of other notes, as suggested, repeated ones included.
        index_text: what it is found by. It follows later changes only when the index is rebuilt.
        evolved: whether writing it was an evolution.
        stock: the security of the record.
        origin: the records that shaped this version.
    """

    position: int
    content: str
    stamp: str
    keywords: tuple[str, ...]
    context: str
    tags: tuple[str, ...]
    links: tuple[int, ...]
    index_text: str
    evolved: bool
    stock: str | None
    origin: Origin


@lru_cache(maxsize=200_000)
def decoded(text: str) -> Note:
    """A note from a value of the log."""
    value = json.loads(text)
    lists = {name: tuple(value[name]) for name in ("keywords", "tags", "links")}
    return Note(**{**value, **lists, "origin": Origin.from_plain(value["origin"])})


def encoded(note: Note) -> str:
    """``note`` as a value of the log."""
    return dumps({**{name: getattr(note, name) for name in Note.__slots__}, "origin": note.origin.plain()})


def notes_of(state: State) -> dict[str, Note]:
    """The notes of a state of the log by id, in the order of their positions."""
    notes = {name: decoded(text) for name, text in state.items()}
    return dict(sorted(notes.items(), key=lambda item: item[1].position))


def fresh_index_text(content: str, context: str, keywords: Sequence[str]) -> str:
    """What a new note is found by; its content, where the model said nothing of it."""
    return f"{context} keywords: {', '.join(keywords)}" if context or keywords else content


def rebuilt_index_text(note: Note) -> str:
    """What a note is found by once the index was rebuilt."""
    return f"{note.content} , {note.context} {' '.join(note.keywords)} {' '.join(note.tags)}"


@dataclass(frozen=True, slots=True)
class Evolved:
    """What an evolution left: the new note, the neighbours that it changed by position, and what went wrong."""

    note: Note
    neighbours: Mapping[int, Note]
    incidents: tuple[str, ...]


def evolve(note: Note, neighbours: Sequence[Note], reply: Mapping[str, Any] | None) -> Evolved:
    """Apply the model's decision about a new ``note`` and its ``neighbours`` (nearest first).

    ``strengthen`` appends the suggested connections to the links of the note and replaces its tags. ``update_neighbor`` gives
    the i-th neighbour the i-th tags and context; it keeps its own context where there are fewer contexts than tags. A connection
    to a position that no note has is dropped and counted; lists that the reply leaves out are empty.
    """
    if not reply or not reply.get("should_evolve"):
        return Evolved(note, {}, ())
    note = replace(note, evolved=True)
    changed: dict[int, Note] = {}
    wrong: list[str] = []
    for action in reply.get("actions", ()):
        if action == "strengthen":
            suggested = reply.get("suggested_connections", ())
            known = [p for p in suggested if 0 <= p < note.position]
            wrong += [UNKNOWN_POSITION] * (len(suggested) - len(known))
            note = replace(note, links=(*note.links, *known), tags=tuple(reply.get("tags_to_update", ())))
        elif action == "update_neighbor":
            contexts, tags = reply.get("new_context_neighborhood", ()), reply.get("new_tags_neighborhood", ())
            for i, (neighbour, own_tags) in enumerate(zip(neighbours, tags, strict=False)):
                context = contexts[i] if i < len(contexts) else neighbour.context
                changed[neighbour.position] = replace(neighbour, tags=tuple(own_tags), context=context)
    shaping = [n.origin for n in neighbours]
    shaped = {p: replace(n, origin=n.origin.shaped_by(note.origin, *shaping)) for p, n in changed.items()}
    return Evolved(replace(note, origin=note.origin.shaped_by(*shaping)), shaped, tuple(wrong))


def rebuild_due(notes: Sequence[Note], every: int) -> bool:
    """Whether the index is rebuilt after the last of ``notes``: it evolved, and evolutions make a multiple of ``every``."""
    return notes[-1].evolved and sum(n.evolved for n in notes) % every == 0


def with_linked(notes: Mapping[int, Note], hits: Sequence[int], k: int) -> list[int]:
    """Positions of what is read, in order: each hit and the notes that it links to.

    One counter of linked notes goes through all hits; once it stands at ``k`` a hit brings one linked note more and no other.
    Links to notes that are not among ``notes`` do not count.
    """
    read: list[int] = []
    counter = 0
    for hit in hits:
        read.append(hit)
        for linked in notes[hit].links:
            if linked not in notes:
                continue
            read.append(linked)
            if counter >= k:
                break
            counter += 1
    return read
