"""Whether two backbones give one answer (the paper's Figure 8)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from sklearn.metrics import cohen_kappa_score

from reports.answers import shared
from reports.metrics import Bools
from reports.series import Member, Series, Setting, named

MACRO = "macro"


@dataclass(frozen=True)
class Agreement:
    """One method with two backbones on one benchmark, or (benchmark ``macro``) the mean over its benchmarks.

    Attributes:
        n: rows scored with both backbones, the rows of ``dual_correct``.
        n_answered: those among them that both answered in a usable way, the rows of ``agreement`` and ``kappa``.
        agreement: share of equal answers.
        kappa: Cohen's kappa; None if each backbone gives one class only.
        dual_correct: share of rows that both have right; an answer that cannot be used is wrong.
        n_benchmarks: benchmarks behind the row.
    """

    method: str
    benchmark: str
    setting: Setting
    backbone_a: str
    backbone_b: str
    cells: tuple[str, ...]
    agreement: float | None
    kappa: float | None
    dual_correct: float | None
    n: int
    n_answered: int
    n_benchmarks: int = 1


def agreements(every: Sequence[Series]) -> tuple[list[Agreement], list[str]]:
    """Rows for each method and pair of backbones with a common benchmark, the mean last, and warnings."""
    groups: dict[tuple[str, Setting], list[Series]] = defaultdict(list)
    for s in every:
        groups[s.method, s.setting].append(s)
    found: list[Agreement] = []
    for (method, setting), alike in groups.items():
        for a, b in combinations(sorted(alike, key=lambda s: s.backbone), 2):
            rows = [
                _agreement(method, name, setting, a.members[name], b.members[name])
                for name in sorted(a.members.keys() & b.members.keys())
            ]
            found += [*rows, *([_mean(rows)] if rows else [])]
    flat = [f"{row.method} on {row.benchmark}" for row in found if row.kappa is None and row.n_answered]
    empty = [f"{row.method} on {row.benchmark}" for row in found if not row.n_answered]
    warnings = [
        *named(
            "consistency: kappa is null where each backbone gives one class only, and in a mean over such a benchmark",
            flat,
        ),
        *named("consistency: agreement and kappa are null where no row is answered with both backbones", empty),
    ]
    if not found:
        warnings.append("consistency is empty: no method was run with two backbones on one benchmark, in one setting.")
    return found, warnings


def kappa(a: Bools, b: Bools) -> float | None:
    """Cohen's kappa of two raters' classes, shape (rows,); None if both are constant, or without rows."""
    if not a.size or (len(np.unique(a)) == 1 and len(np.unique(b)) == 1):
        return None
    return float(cohen_kappa_score(a, b))


def _agreement(method: str, benchmark: str, setting: Setting, one: Member, two: Member) -> Agreement:
    a, b = shared(one.answers, two.answers)
    both = a.usable & b.usable
    said_a, said_b = a.predicted[both], b.predicted[both]
    return Agreement(
        method, benchmark, setting, one.cell.backbone, two.cell.backbone, (one.cell.cell, two.cell.cell),
        agreement=float((said_a == said_b).mean()) if said_a.size else None,
        kappa=kappa(said_a, said_b),
        dual_correct=float((a.right & b.right).mean()) if a.size else None,
        n=a.size,
        n_answered=int(both.sum()),
    )  # fmt: skip


def _mean(rows: Sequence[Agreement]) -> Agreement:
    """Each benchmark with the same weight; null if undefined for one of them."""

    def mean(key: str) -> float | None:
        values = [getattr(row, key) for row in rows]
        return None if None in values else sum(values) / len(values)

    first = rows[0]
    return Agreement(
        first.method, MACRO, first.setting, first.backbone_a, first.backbone_b, tuple(cell for row in rows for cell in row.cells),
        mean("agreement"), mean("kappa"), mean("dual_correct"),
        sum(row.n for row in rows), sum(row.n_answered for row in rows), len(rows),
    )  # fmt: skip
