"""A sentence of the first screen, and the words for numbers and cells that it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

NAMED_AT_MOST = 3
"""Cells or differences that a sentence names; the rest is counted."""

Tone = Literal["plain", "good", "care"]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Sentence:
    """One statement of the first screen.

    Attributes:
        topic: what it is about; sentences of one topic stand together.
        text: what is read.
        tone: ``care`` where the reader must not trust a figure before looking further.
        numbers: every figure in ``text``, at full precision, by name.
        see: id of the section that holds the rows behind it.
    """

    topic: str
    text: str
    tone: Tone = "plain"
    numbers: Mapping[str, Any] = field(default_factory=dict)
    see: str | None = None


def names(cells: Sequence[Mapping[str, Any]]) -> str:
    """The first cells by name, and how many more there are."""
    more = f" and {len(cells) - NAMED_AT_MOST} more" if len(cells) > NAMED_AT_MOST else ""
    return "; ".join(map(name, cells[:NAMED_AT_MOST])) + more


def name(cell: Mapping[str, Any]) -> str:
    """A cell as method × backbone × benchmark, the method told apart from its likes."""
    return f"{cell.get('name', cell['method'])} × {cell['backbone']} × {cell['benchmark']}"


def many(count: int, noun: str) -> str:
    """As ``1 cell``, ``2 cells``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def be(count: int) -> str:
    """As ``is`` for one, else ``are``."""
    return "is" if count == 1 else "are"


def percent(share: float) -> str:
    """One decimal; a share below 1 is never shown as 100."""
    return f"{min(100 * share, 99.9):.1f}" if share < 1 else "100"


def points(share: float) -> str:
    """A fraction in points of a hundred, one decimal."""
    return f"{100 * share:.1f}"


def dollars(value: float) -> str:
    """US$ in cents; what is less than half a cent is never shown as nothing."""
    return f"US$ {value:,.2f}" if value == 0 or value >= 0.005 else "less than US$ 0.01"


def signed(share: float) -> str:
    """``points`` with its sign."""
    return f"{'+' if share > 0 else '−'}{points(abs(share))}"


def interval(ci: Sequence[float] | None) -> str:
    """An interval in points, in brackets after a space; nothing for None."""
    return f" [{100 * ci[0]:+.1f}, {100 * ci[1]:+.1f}]".replace("-", "−") if ci else ""
