"""One method with one backbone under one setting, over the benchmarks: what the paper's Figures 6 to 8 compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.alike import nearest
from reports.answers import Answers
from reports.load import Cell
from reports.scores import Score


@dataclass(frozen=True)
class Setting:
    """What keeps figures apart that share a method and a backbone; ``exclude`` only where a method was run with several."""

    gate: str | None
    seed: int | None
    memory: str | None
    embedder: str | None
    feed: str | None
    context: str | None
    exclude: str | None = None


@dataclass(frozen=True)
class Member:
    """A cell with its score and its scored rows."""

    cell: Cell
    score: Score
    answers: Answers


@dataclass(frozen=True)
class Series:
    """The cells of one method, backbone and setting, by benchmark."""

    method: str
    backbone: str
    setting: Setting
    members: Mapping[str, Member]

    @property
    def scores(self) -> list[Score]:
        return [member.score for member in self.members.values()]

    @property
    def cells(self) -> tuple[str, ...]:
        return tuple(score.cell for score in self.scores)

    @property
    def first(self) -> Cell:
        """One of its cells: all have the same settings, but perhaps for ``exclude``."""
        return next(iter(self.members.values())).cell

    @property
    def scored(self) -> Mapping[str, Member]:
        """Members with at least one scored row."""
        return {name: member for name, member in self.members.items() if member.answers.size}


def series(members: Iterable[Member]) -> tuple[list[Series], list[str]]:
    """Series sorted by backbone, setting and method, and warnings.

    A benchmark has its own findings to leave out, so ``exclude`` keeps nothing apart unless a method was run with several on one
    benchmark; then it does throughout, so that like stands beside like with every backbone. Two cells on one benchmark that agree in all of this differ in something that the columns do not show; neither can stand for
    its method, so both are left out, with a warning.
    """
    members = list(members)
    groups = _grouped(members, apart=False)
    if any(len({m.cell.exclude for m in alike}) > 1 for here in groups.values() for alike in here.values()):
        groups = _grouped(members, apart=True)
    found, warnings = [], []
    for backbone, setting, method in sorted(groups, key=str):
        alone = {}
        for benchmark, alike in groups[backbone, setting, method].items():
            if len(alike) == 1:
                alone[benchmark] = alike[0]
            else:
                names = ", ".join(member.cell.cell for member in alike)
                warnings.append(
                    f"{names}: same method, backbone, benchmark, gate, seed, memory, embedder, feed, context and exclude, so none of them stands for its method "
                    "in shift, tokens, consistency and Table 1. Give the runs to compare one at a time."
                )
        if alone:
            found.append(Series(method, backbone, setting, alone))
    return found, warnings


def _grouped(members: Sequence[Member], *, apart: bool) -> dict[tuple[str, Setting, str], dict[str, list[Member]]]:
    """By (backbone, setting, method) and benchmark; ``apart`` tells whether ``exclude`` is part of the setting."""
    groups: dict[tuple[str, Setting, str], dict[str, list[Member]]] = {}
    for member in members:
        c = member.cell
        setting = Setting(c.gate, c.seed, c.memory, c.embedder, c.feed, c.context, c.exclude if apart else None)
        groups.setdefault((c.backbone, setting, c.method), {}).setdefault(c.benchmark, []).append(member)
    return groups


def counterpart(one: Series, method: str, every: Sequence[Series]) -> Series | None:
    """The series of ``method`` to hold ``one`` against: same backbone, gate and seed, and of several the one that is nearest; None if none stands out."""
    candidates = {
        s.first.cell: s
        for s in every
        if s.method == method
        and (s.backbone, s.setting.gate, s.setting.seed) == (one.backbone, one.setting.gate, one.setting.seed)
    }
    found = nearest(one.first, [s.first for s in candidates.values()])
    return candidates[found[0].cell] if len(found) == 1 else None


def who(method: str, backbone: str, setting: Setting) -> str:
    """A series in words; the gate is named unless it is the usual one."""
    gate = f" (gate {setting.gate})" if setting.gate not in (None, "strict") else ""
    return f"{method}{gate} with {backbone}"


def named(text: str, cases: Sequence[str]) -> list[str]:
    """One warning for all ``cases`` that ``text`` is true of, each named once; none without cases."""
    return [f"{text}: {'; '.join(dict.fromkeys(cases))}."] if cases else []
