"""Which cells are alike enough to be held against each other: like for like first, and what differs is named."""

from __future__ import annotations

from collections.abc import Sequence

from reports.load import Cell

_ASPECTS = ("memory", "embedder", "feed", "context", "exclude")


def conflicts(a: Cell, b: Cell) -> tuple[str, ...]:
    """Of memory, embedder, feed, context and exclude those that both cells have and that differ, each as ``memory (online, frozen)``.

    What a cell does not state conflicts with nothing, and neither does the memory setting of a method that has no memory.
    """
    return tuple(
        f"{aspect} ({one}, {other})"
        for aspect in _ASPECTS
        if None not in (one := _effective(a, aspect), other := _effective(b, aspect)) and one != other
    )


def nearest(one: Cell, others: Sequence[Cell]) -> list[Cell]:
    """Of ``others`` those with the very settings of ``one``; else those without a conflict; else all."""
    return [x for x in others if _stated(x) == _stated(one)] or _free(one, others) or list(others)


def matched(references: Sequence[Cell], partners: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Pairs (reference, partner) in the order of ``references`` and then ``partners``.

    ``partners`` are cells of one method that may be paired with each of ``references``. Every partner is paired with its nearest
    references; a reference that is nearest to none of them with those that it has no conflict with.
    """
    chosen = {(a.cell, b.cell) for b in partners for a in nearest(b, references)}
    left = [a for a in references if a.cell not in {cell for cell, _ in chosen}]
    chosen |= {(a.cell, b.cell) for a in left for b in _free(a, partners)}
    return [(a, b) for a in references for b in partners if (a.cell, b.cell) in chosen]


def _free(one: Cell, others: Sequence[Cell]) -> list[Cell]:
    return [x for x in others if not conflicts(one, x)]


def _stated(cell: Cell) -> tuple[str | None, ...]:
    return tuple(getattr(cell, aspect) for aspect in _ASPECTS)


def _effective(cell: Cell, aspect: str) -> str | None:
    value: str | None = getattr(cell, aspect)
    return None if aspect == "memory" and not cell.remembers else value
