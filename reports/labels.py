"""Words that must stand in every title: which figures come from the rehearsal endpoint, which were made with a lifted gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from reports.scores import Score

REHEARSAL = "Rehearsal endpoint — not a language model; no claim about a method may be drawn"
GATE_OFF = "TIME GATE OFF"
GATE_PAPER = "Time gate as in the paper's code"
_NAMED_AT_MOST = 4


def label(scores: Sequence[Score]) -> str:
    """What a title over ``scores`` must say, with the cells it is true of where it is not true of all; "" if nothing."""
    rules: tuple[tuple[str, Callable[[Score], bool]], ...] = (
        (REHEARSAL, lambda s: s.rehearsal),
        (GATE_OFF, lambda s: s.gate == "off"),
        (GATE_PAPER, lambda s: s.gate == "paper"),
    )
    scores = list({s.cell: s for s in scores}.values())
    return ". ".join(
        text + _which([s for s in scores if holds(s)], scores) for text, holds in rules if any(map(holds, scores))
    )


def titled(text: str, scores: Sequence[Score]) -> str:
    """``text`` followed by its label."""
    words = label(scores)
    return f"{text}. {words}" if words else text


def _which(some: Sequence[Score], every: Sequence[Score]) -> str:
    if len(some) == len(every):
        return ""
    if len(some) <= _NAMED_AT_MOST:
        names = display_names(every)
        return f" (cells: {'; '.join(f'{names[s.cell]} × {s.backbone} × {s.benchmark}' for s in some)})"
    backbones = sorted({s.backbone for s in some})
    if {s.cell for s in every if s.backbone in backbones} == {s.cell for s in some}:
        return f" (all cells with backbone {', '.join(backbones)})"
    return f" ({len(some)} of {len(every)} cells, marked in the notes)"


def display_names(scores: Sequence[Score]) -> dict[str, str]:
    """A name a cell, unique within its benchmark and backbone: the method, and what sets the cell apart from its likes.

    A lifted gate is named wherever other cells have another gate, also beside a method that was run under one gate alone.
    """
    mixed = len({s.gate for s in scores}) > 1
    groups: dict[tuple[str, str, str], list[Score]] = {}
    for s in scores:
        groups.setdefault((s.benchmark, s.backbone, s.method), []).append(s)
    names: dict[str, str] = {}
    for alike in groups.values():
        varying = [
            key
            for key in ("gate", "memory", "feed", "context", "embedder", "exclude", "seed")
            if len({getattr(s, key) for s in alike}) > 1
        ]
        words = {
            s.cell: ", ".join(
                f"{key}={getattr(s, key)}"
                for key in (
                    ["gate", *varying] if mixed and s.gate in ("off", "paper") and "gate" not in varying else varying
                )
            )
            for s in alike
        }
        often = Counter(words.values())
        for s in alike:
            if len(alike) > 1 and often[words[s.cell]] > 1:
                words[s.cell] = ", ".join(filter(None, (words[s.cell], s.cell.rsplit("__", 1)[-1])))
            names[s.cell] = f"{s.method} ({words[s.cell]})" if words[s.cell] else s.method
    return names


def backbone_name(s: Score) -> str:
    """The backbone as shown: a baseline that calls no model has none, whatever it was run beside."""
    return f"no LLM (run with {s.backbone})" if s.no_llm else s.backbone
