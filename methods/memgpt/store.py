"""What MemGPT keeps outside its context: every message ever seen, and passages; searched page by page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from methods.fed import Origin
from methods.ranking import rank
from methods.vectors import VectorTable

PAGE = 5
ARCHIVAL_HITS = 100
"""Passages that a search finds at most, over all pages."""

CONVERSATION, BY_DATE, ARCHIVAL = "conversation_search", "conversation_search_date", "archival_memory_search"


@dataclass(frozen=True, slots=True)
class Message:
    """A message.

    Attributes:
        number: its place among all messages ever seen, from 0.
        role: system, user, assistant, or function for the answer of a tool.
        stamp: when the record was known that the agent was reading.
        content: what it says.
        tool, arguments: the call that an assistant's message makes; arguments are JSON text as it came.
        origin: the records that shaped it.
    """

    number: int
    role: str
    stamp: str
    content: str
    tool: str | None
    arguments: str | None
    origin: Origin


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that the agent put away, in the order of writing."""

    number: int
    stamp: str
    content: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Found:
    """One page of a search.

    Attributes:
        hits: messages or passages of this page.
        total: of all pages.
        page, last_page: from 0.
    """

    hits: tuple[Message | Passage, ...]
    total: int
    page: int
    last_page: int

    def rows(self) -> list[str]:
        """The hits as the agent reads them."""
        return [
            f"timestamp: {hit.stamp}, {hit.role} - {hit.content}"
            if isinstance(hit, Message)
            else f"timestamp: {hit.stamp}, memory: {hit.content}"
            for hit in self.hits
        ]


class Store(Protocol):
    """Searches as of the time of the agent."""

    async def search(self, kind: str, arguments: dict[str, Any], page: int) -> Found:
        """A page of ``kind`` (``query``, or ``start_date`` and ``end_date``)."""
        ...


def page_number(page: Any) -> int:
    """The page that a call asks for: the first where it says nothing, or "none".

    Raises:
        ValueError: no such number.
    """
    if page is None or (isinstance(page, str) and page.strip().lower() == "none"):
        return 0
    try:
        number = int(page)
    except (TypeError, ValueError, OverflowError):  # 1e999 is read as infinity
        raise ValueError(f"page must be a number from 0, not {page!r}") from None
    if number < 0:
        raise ValueError(f"page must be a number from 0, not {number}")
    return number


def paged(hits: Sequence[Message | Passage], page: int) -> Found:
    """Page ``page`` of ``hits``."""
    total = len(hits)
    return Found(tuple(hits[page * PAGE : (page + 1) * PAGE]), total, page, max(0, math.ceil(total / PAGE) - 1))


def searchable(messages: Sequence[Message]) -> list[Message]:
    """The messages that a search looks through: neither instructions nor answers of tools."""
    return [m for m in messages if m.role not in ("system", "function")]


def saying(messages: Sequence[Message], query: str) -> list[Message]:
    """Messages that hold ``query``, whatever the case of its letters, oldest first.

    As in the original both are lower-cased, not folded: a sharp s is not two.
    """
    wanted = query.lower()
    return [m for m in searchable(messages) if wanted in m.content.lower()]


def between(messages: Sequence[Message], start: str, end: str) -> list[Message]:
    """Messages of the days from ``start`` to ``end``, both included, oldest first.

    Raises:
        ValueError: not dates of the form YYYY-MM-DD.
    """
    first, last = (_day(text) for text in (start, end))
    return [m for m in searchable(messages) if first <= date.fromisoformat(m.stamp[:10]) <= last]


def nearest(
    passages: Sequence[Passage], query: NDArray[np.floating[Any]], vectors: VectorTable, k: int = ARCHIVAL_HITS
) -> list[Passage]:
    """The ``k`` passages nearest to ``query`` (d,), best first; ties go to the newer."""
    scores = vectors.cosines([p.content for p in passages], query)
    order = rank(scores, [p.origin.known_at for p in passages], [f"{p.number:09}" for p in passages], k)
    return [passages[i] for i in order]


def _day(text: str) -> date:
    """As the original reads it: month and day may have one digit."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise ValueError(f"{text!r} is no date of the form YYYY-MM-DD") from None
