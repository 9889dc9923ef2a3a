"""The three tiers of the Event-Evidence Hypergraph (EEH): propositions, episodes, themes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from harness.clock import Stamp


@dataclass(frozen=True, slots=True)
class Entity:
    """A node: ``name`` as it stands in the text, ``type`` one of the entity types."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A typed, directed pair of entity names within one proposition."""

    src: str
    dst: str
    type: str


@dataclass(frozen=True, slots=True)
class Proposition:
    """A hyperedge of the day tier: one atomic statement over its entities.

    Attributes:
        doc_id, chunk, index: document, chunk of it, and position in that chunk: they name and order propositions.
        stock: the security it is filed under.
        time: the document's stamp; None if unknown, then it is in no window.
        sentence: the statement.
    """

    doc_id: str
    chunk: int
    index: int
    stock: str
    time: Stamp | None
    sentence: str
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()

    @property
    def prop_id(self) -> str:
        return f"{self.doc_id}#{self.chunk}.{self.index}"


@dataclass(frozen=True, slots=True)
class Episode:
    """A causal chain of propositions of one stock.

    Attributes:
        start, end: first and last time of its window before the cap (τ_s, τ_e).
        propositions: ids of the propositions kept, in order of time.
        confidence: of the model that it is one chain, 0..1.
    """

    episode_id: str
    stock: str
    type: str
    summary: str
    start: Stamp
    end: Stamp
    propositions: tuple[str, ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class Theme:
    """A development that episodes of several stocks share.

    Attributes:
        confidence: of the model that it is one theme, 0..1.
        stocks, industries, episodes: sorted, without repeats; industries known ones only.
        start, end: earliest and latest time of its episodes (τ_s, τ_e).
        known_at: close of the window it was found in (UTC): before that instant nobody could have built it.
    """

    theme_id: str
    name: str
    description: str
    type: str
    confidence: float
    stocks: tuple[str, ...]
    industries: tuple[str, ...]
    episodes: tuple[str, ...]
    start: Stamp
    end: Stamp
    known_at: datetime
