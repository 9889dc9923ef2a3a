"""The hypergraph as a graph: its nodes and typed links, with the propositions and documents they occur in.

At ``document`` scope a node is a name within one document; at ``global`` scope documents are joined by the normalised name.
For audits and analyses: what is retrieved for a forecast goes through time and cosine, not through these joins.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from methods.tiem.records import Proposition


class Scope(StrEnum):
    """How far a name reaches."""

    DOCUMENT = "document"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class Node:
    """An entity. ``doc_id`` is None at global scope; the tuples are sorted and without repeats."""

    name: str
    doc_id: str | None
    types: tuple[str, ...]
    propositions: tuple[str, ...]
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A typed, directed relation between two entities. ``doc_id`` is None at global scope."""

    src: str
    dst: str
    type: str
    doc_id: str | None
    propositions: tuple[str, ...]
    documents: tuple[str, ...]


def normalised(name: str) -> str:
    """``name`` as it is compared across documents: NFKC, case folded, single spaces."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def entities(propositions: Iterable[Proposition], scope: Scope) -> list[Node]:
    """Nodes of ``propositions``, by (name, document)."""
    seen: dict[tuple[str, str], set[tuple[str, Proposition]]] = {}
    for p in propositions:
        for entity in p.entities:
            seen.setdefault((_name(entity.name, scope), _place(p, scope)), set()).add((entity.type, p))
    return [
        Node(name, doc_id or None, _sorted(t for t, _ in found), *_occurrences(p for _, p in found))
        for (name, doc_id), found in sorted(seen.items())
    ]


def relations(propositions: Iterable[Proposition], scope: Scope) -> list[Link]:
    """Links of ``propositions``, by (source, destination, type, document)."""
    seen: dict[tuple[str, str, str, str], set[Proposition]] = {}
    for p in propositions:
        for r in p.relations:
            key = (_name(r.src, scope), _name(r.dst, scope), r.type, _place(p, scope))
            seen.setdefault(key, set()).add(p)
    return [
        Link(src, dst, kind, doc_id or None, *_occurrences(found))
        for (src, dst, kind, doc_id), found in sorted(seen.items())
    ]


def _name(name: str, scope: Scope) -> str:
    return normalised(name) if scope is Scope.GLOBAL else name


def _place(proposition: Proposition, scope: Scope) -> str:
    return proposition.doc_id if scope is Scope.DOCUMENT else ""


def _occurrences(propositions: Iterable[Proposition]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found = list(propositions)
    return _sorted(p.prop_id for p in found), _sorted(p.doc_id for p in found)


def _sorted(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))
