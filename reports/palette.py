"""One colour and one mark a method, the same in every figure, table and timeline.

Okabe and Ito's palette, told apart by the colour-blind; related methods share a colour and differ in mark, so that pictures can be
read in grey. A method that is not known here gets the next free pair in the order of names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Look(NamedTuple):
    """``colour`` as #rrggbb, ``mark`` as matplotlib names it."""

    colour: str
    mark: str


BLUE, ORANGE, GREEN, PINK, SKY, AMBER, GREY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#767676",
)
MARKS = "osD^vP"

KNOWN = {
    "tiem": Look(ORANGE, "o"), "tiem_scmr": Look(ORANGE, "s"), "tiem_wo_eeh": Look(ORANGE, "D"), "tiem_wo_csm": Look(ORANGE, "^"),
    "tiem_wo_hefr": Look(ORANGE, "v"), "zero_shot": Look(SKY, "o"), "cot": Look(SKY, "s"), "vanilla_rag": Look(BLUE, "o"),
    "hipporag": Look(BLUE, "s"), "hipporag2": Look(BLUE, "D"), "graphrag": Look(GREEN, "o"), "lightrag": Look(GREEN, "s"),
    "hypergraphrag": Look(GREEN, "D"), "mem0": Look(PINK, "o"), "memgpt": Look(PINK, "s"), "a_mem": Look(PINK, "D"),
    "always_positive": Look(GREY, "o"), "majority": Look(GREY, "s"), "type_majority": Look(GREY, "D"),
}  # fmt: skip


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """The look of each method. The known ones have theirs whatever else is in the report."""
    free = [Look(colour, mark) for mark in MARKS for colour in (AMBER, GREEN, BLUE, PINK, SKY, ORANGE)]
    free = [look for look in free if look not in KNOWN.values()]
    found: dict[str, Look] = {}
    unknown = 0
    for method in sorted(set(methods)):
        if method in KNOWN:
            found[method] = KNOWN[method]
        else:
            found[method] = free[unknown % len(free)]
            unknown += 1
    return found
