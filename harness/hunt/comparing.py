"""Where two runs of a method differ: the first line that is another one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from harness.hunt.trace import Asked, Operation
from harness.hunt.witness import Witness

SHOWN = 160
"""Characters of a line that a witness quotes."""


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
    """The first line that only one text has, of each; where both have the same lines, the first that are not in the same place."""
    if mine is None or its is None:
        return _start(mine), _start(its)
    a, b = mine.splitlines(), its.splitlines()
    only = next((x for x in a if x not in b), None), next((y for y in b if y not in a), None)
    if only == (None, None):
        only = next(((x, y) for x, y in zip_longest(a, b) if x != y), (mine, its))
    start = max(0, _common(*only) - SHOWN // 2)
    return _start(only[0], start), _start(only[1], start)


def _common(a: str | None, b: str | None) -> int:
    """How many characters two lines begin with alike."""
    return next((i for i, (x, y) in enumerate(zip(a or "", b or "", strict=False)) if x != y), 0)


def _start(text: str | None, start: int = 0) -> str | None:
    return None if text is None else text[start:].strip()[:SHOWN]
