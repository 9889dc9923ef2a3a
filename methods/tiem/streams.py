"""The streams of the fused prompt: the records each holds, and what of them the budget leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from harness.evidence import RESOLVED, Gate
from harness.records import Passage, Source
from methods.tiem.budget import SHARES, allocate, cut, prefix_length
from methods.tiem.recall import Recalled, known_at
from methods.tiem.records import Episode, Proposition, Theme
from methods.tiem.retrieval import episode_source, proposition_source, theme_source
from methods.tiem.skills import Ancestor

MAIN = tuple(SHARES)
"""The streams that share the budget, by priority."""


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a stream: its text, and the records behind it (the first is the one whose text it is)."""

    text: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Streams:
    """What was found for one forecast.

    Attributes:
        main: the items of each stream in ``MAIN``, in the order in which they are shown; empty for a missing one.
        concurrent: what else was said on T's day: outside the budget, never cut.
        skills: the recalled skills behind the stream ``exp``.
    """

    main: Mapping[str, Sequence[Item]]
    concurrent: Sequence[Passage]
    skills: Sequence[Recalled]


@dataclass(frozen=True, slots=True)
class Block:
    """A stream as it is shown. ``missing`` tells one that was empty from one that had no room."""

    text: str
    missing: bool
    passages: tuple[Passage, ...]


def within_budget(main: Mapping[str, Sequence[Item]], chars: int) -> dict[str, Block]:
    """Each stream cut to its part of ``chars``: the texts together, cut marks included, are never longer."""
    texts = {name: "\n".join(item.text for item in main[name]) for name in MAIN}
    limits = allocate({name: len(text) for name, text in texts.items()}, SHARES, MAIN, chars)
    return {
        name: Block(cut(texts[name], limits[name]), not texts[name], _left(main[name], texts[name], limits[name]))
        for name in MAIN
    }


def _left(items: Sequence[Item], text: str, limit: int) -> tuple[Passage, ...]:
    """The records of the items of which at least a character is shown, with the text that is shown."""
    end = prefix_length(len(text), limit)
    starts = accumulate((len(item.text) + 1 for item in items), initial=0)
    shown = []
    for item, start in zip(items, starts, strict=False):  # the last start lies behind the last item
        if start < end:
            first, *behind = item.passages
            shown += [replace(first, text=item.text[: end - start]), *behind]
    return tuple(shown)


def statement_passage(p: Proposition) -> Passage:
    """A proposition of the focal document, shown below its dated text."""
    return Passage(f"- {p.sentence}", proposition_source(p, "focal"))


def proposition_passage(p: Proposition, kind: str, rank: int | None = None, score: float | None = None) -> Passage:
    """A proposition with the time of its document."""
    stamp = p.time.text if p.time else "unknown time"
    return Passage(f"[{stamp}] {p.sentence}", proposition_source(p, kind), rank, score)


def episode_passage(e: Episode, rank: int, score: float) -> Passage:
    """An episode with its extent and type."""
    return Passage(f"[{e.start.text} to {e.end.text}] ({e.type}) {e.summary}", episode_source(e), rank, score)


def theme_passage(t: Theme, gate: Gate, rank: int, score: float) -> Passage:
    """A theme with its extent."""
    text = f"[{t.start.text} to {t.end.text}] {t.name}. {t.description}"
    return Passage(text, theme_source(t, gate), rank, score)


def skill_item(found: Recalled, rank: int) -> Item:
    """A skill with its advantage; behind it every case whose outcome shaped it or its label, once each."""
    skill, known = found.skill, known_at(found.skill)
    text = f"[advantage {skill.advantage:+.2f}, {skill.stability}, {skill.domain}] {skill.name}: {skill.description}"
    source = Source("skill", found.skill_id, None, skill.time, known, known, known, RESOLVED)
    cases = {a.source_catalyst_id: a for a in (*skill.ancestors, *skill.label_ancestors)}
    behind = [Passage("", _ancestor_source(name, a), rank) for name, a in cases.items()]
    return Item(text, (Passage(text, source, rank, found.score), *behind))


def _ancestor_source(case_id: str, ancestor: Ancestor) -> Source:
    known = ancestor.resolve_time
    return Source("skill_ancestor", f"case:{case_id}", None, ancestor.decision_time, known, known, known, RESOLVED)
