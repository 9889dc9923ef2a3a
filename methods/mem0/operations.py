"""Mem0's rules without a model: facts of a reply, memories near them, and what a reply's decisions do to the memories.

After mem0ai v1.0.11 (``Memory.add`` with inference and ``Memory.search``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.memory import Change, State
from methods.fed import Origin, dumps
from methods.ranking import rank
from methods.vectors import VectorTable

UNKNOWN_ID = "decision about an id that does not exist"
UNKNOWN_EVENT = "decision that is none of ADD, UPDATE, DELETE, NONE"
EMPTY_TEXT = "decision without a text"


@dataclass(frozen=True, slots=True)
class Memory:
    """A fact that is remembered.

    Attributes:
        text: the fact.
        created_at: stamp of the record that it was first written from; an update keeps it.
        updated_at: stamp of the record that this version was written from.
        scope: the part of the memory that it belongs to; None where there is one for all.
        stock: the security of that record.
        origin: the records that shaped this version.
    """

    text: str
    created_at: str
    updated_at: str
    scope: str | None
    stock: str | None
    origin: Origin


@lru_cache(maxsize=200_000)
def decoded(text: str) -> Memory:
    """A memory from a value of the log."""
    value = json.loads(text)
    return Memory(**{**value, "origin": Origin.from_plain(value["origin"])})


def encoded(memory: Memory) -> str:
    """``memory`` as a value of the log."""
    fields = {name: getattr(memory, name) for name in Memory.__slots__}
    return dumps({**fields, "origin": memory.origin.plain()})


def facts_of(value: Mapping[str, Any] | None) -> list[str]:
    """The facts of an extraction's reply: texts, or objects that hold one. None, or anything else, holds none."""
    items = value.get("facts") if value else None
    facts = []
    for item in items if isinstance(items, list) else []:
        fact = item.get("fact") or item.get("text") if isinstance(item, Mapping) else item
        if isinstance(fact, str) and fact.strip():
            facts.append(fact)
    return facts


def search(
    memories: Mapping[str, Memory],
    query: NDArray[np.floating[Any]],
    vectors: VectorTable,
    limit: int,
    threshold: float | None = None,
) -> list[tuple[str, float]]:
    """(id, cosine) of the ``limit`` memories nearest to ``query`` (d,), best first; ties go to the newer, then by id."""
    ids = list(memories)
    scores = vectors.cosines([memories[i].text for i in ids], query)
    best = rank(scores, [memories[i].origin.known_at for i in ids], ids, limit, threshold)
    return [(ids[i], float(scores[i])) for i in best]


def neighbours(memories: Mapping[str, Memory], facts: Sequence[str], vectors: VectorTable, each: int) -> list[str]:
    """Ids of the memories that an update decision is shown: the ``each`` nearest of every fact, each once, in that order."""
    found = (name for fact in facts for name, _ in search(memories, vectors[fact], vectors, each))
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Written:
    """What one decision did: ``event`` ADD, UPDATE or DELETE; ``old`` and ``new`` are None where there is no text."""

    memory_id: str
    event: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Decided:
    """What a reply's decisions come to: the changes in their order (incidents among them), and what was written."""

    changes: list[Change]
    written: list[Written]


def decide(
    memories: Mapping[str, Memory],
    shown: Sequence[str],
    decisions: Sequence[Any],
    new: Callable[[str], Memory],
    new_id: Callable[[int], str],
) -> Decided:
    """Apply the ``decisions`` of a reply in their order.

    One without a text is skipped whatever it says, a deletion too. An UPDATE replaces text and all that belongs to the record
    that it was written from, and keeps the time of creation.

    Args:
        memories: those of the scope, by id.
        shown: ids of the memories shown, in the order of the numbers that the reply calls them by.
        decisions: ``{"id", "text", "event"}`` each.
        new: a memory with a given text, written from the present record.
        new_id: id of the n-th memory that this record adds.
    """
    live = dict(memories)
    changes: list[Change] = []
    written: list[Written] = []

    def put(op: str, name: str, memory: Memory | None) -> None:
        old = live.pop(name, None)
        if memory is not None:
            live[name] = memory
        changes.append(Change(op, name, encoded(memory) if memory else None))
        written.append(Written(name, op.upper(), old.text if old else None, memory.text if memory else None))

    for decision in decisions:
        decision = decision if isinstance(decision, Mapping) else {}
        text, event = decision.get("text"), decision.get("event")
        if not isinstance(text, str) or not text.strip():
            changes.append(Change(EMPTY_TEXT, None))
        elif event == "ADD":
            put("add", new_id(sum(w.event == "ADD" for w in written)), new(text))
        elif event in ("UPDATE", "DELETE"):
            name = _named(decision.get("id"), shown)
            if name is None or name not in live:
                changes.append(Change(UNKNOWN_ID, None))
            elif event == "DELETE":
                put("delete", name, None)
            else:
                put("update", name, replace(new(text), created_at=live[name].created_at))
        elif event != "NONE":
            changes.append(Change(UNKNOWN_EVENT, None))
    return Decided(changes, written)


def memories_of(state: State) -> dict[str, Memory]:
    """The memories of a state of the log."""
    return {name: decoded(text) for name, text in state.items()}


def _named(number: object, shown: Sequence[str]) -> str | None:
    """The id behind the number that the model was shown."""
    return {str(n): name for n, name in enumerate(shown)}.get(str(number))
