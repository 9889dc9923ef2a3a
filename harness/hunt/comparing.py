"""Where two runs of a method differ: the first line that is another one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from harness.hunt.trace import Asked, Operation

SHOWN = 160
"""Characters of a line that a witness quotes."""


@dataclass(frozen=True, slots=True)
class Witness:
    """What speaks against a method.

    Attributes:
        catalyst: the forecast, or the record of a memory.
        world: the world in which it was seen.
        place: request, answer, memory, artefact.
        expected: the line as it is in the hunted benchmark; None for a canary, which should not be there at all.
        found: the line as it is in ``world``; None where there is no such line.
    """

    catalyst: str
    world: str
    place: str
    expected: str | None
    found: str | None


def difference(one: Asked, other: Asked | None, world: str) -> Witness | None:
    """The first difference between a forecast and the same forecast in ``world``: in what was asked, then in the answer."""
    if other is None:
        return Witness(one.name, world, "answer", _start(one.answer), None)
    for mine, its in zip_longest(one.requests, other.requests):
        if mine != its:
            place = f"request ({(mine or its).purpose})"
            return Witness(one.name, world, place, *_lines(mine.text if mine else None, its.text if its else None))
    if one.answer != other.answer:
        return Witness(one.name, world, "answer", *_lines(one.answer, other.answer))
    return None


def operations_differ(one: Iterable[Operation], other: Iterable[Operation], world: str) -> Witness | None:
    """The first operation of a memory's log that is another one in ``world``."""
    for mine, its in zip_longest(one, other):
        if mine != its:
            where = mine or its
            return Witness(
                where.record, world, "memory", *(f"operation {o.sha256[:12]}" if o else None for o in (mine, its))
            )
    return None


def _lines(mine: str | None, its: str | None) -> tuple[str | None, str | None]:
    """The first pair of lines that differ, cut to where they do."""
    if mine is None or its is None:
        return _start(mine), _start(its)
    pairs = zip_longest(mine.splitlines(), its.splitlines())
    a, b = next(((x, y) for x, y in pairs if x != y), (mine, its))
    start = next((i for i, (x, y) in enumerate(zip(a or "", b or "", strict=False)) if x != y), 0)
    start = max(0, start - SHOWN // 2)
    return (None if a is None else _start(a[start:])), (None if b is None else _start(b[start:]))


def _start(text: str | None) -> str | None:
    return None if text is None else text.strip()[:SHOWN]
