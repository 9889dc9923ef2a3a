"""Accuracy by month against the day up to which the backbone was trained, as its maker declares it (``cutoff`` in its YAML)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from scipy import stats

from harness.records import PROBE_PREFIX
from reports.answers import Answers, answers
from reports.clusters import one_way, share_interval
from reports.intervals import Interval, wilson
from reports.load import Cell

PROBES = ("nd", "full", "recall")
"""Probes that are shown over time: what the others change of a case has no month."""


@dataclass(frozen=True)
class Month:
    """Accuracy in one month of decisions; interval: Wilson. ``after`` is True once the month begins after the cutoff."""

    month: str
    n: int
    acc: float
    ci: Interval | None
    base_rate: float
    after: bool | None


@dataclass(frozen=True)
class Curve:
    """One cell over time; ``cells`` names it.

    Attributes:
        cutoff: last day of the training data; None where the backbone's YAML does not say.
        before, after: accuracy of decisions up to and after it, None without one.
        drop: ``before`` minus ``after``, with a 95 % interval that takes days as the unit (Welch).
    """

    cells: tuple[str]
    method: str
    backbone: str
    benchmark: str
    gate: str | None
    cutoff: str | None
    months: tuple[Month, ...]
    n_before: int | None
    n_after: int | None
    before: float | None
    before_ci: Interval | None
    after: float | None
    after_ci: Interval | None
    drop: float | None
    drop_ci: Interval | None


def curves(cells: Sequence[Cell]) -> tuple[list[Curve], list[str]]:
    """A curve for every cell of forecasts, name and date, full input or recall of a backbone with a declared cutoff, and what is to be said of the others."""
    found, unknown = [], set()
    for cell in cells:
        if cell.method.startswith(PROBE_PREFIX) and cell.method.removeprefix(PROBE_PREFIX) not in PROBES:
            continue
        a = answers(cell)
        if not a.size or None in a.days or all(calls == 0 for calls in cell.rows["n_calls"]):
            continue
        declared = (cell.meta or {}).get("cutoff")
        if declared is None:
            unknown.add(cell.backbone)
            continue
        found.append(_curve(cell, a, date.fromisoformat(declared)))
    told = [
        f"cutoff has no row for backbone {name}: its YAML declares no cutoff (backbone.cutoff=YYYY-MM-DD)."
        for name in sorted(unknown)
    ]
    return found, told


def _curve(cell: Cell, a: Answers, cutoff: date) -> Curve:
    late = np.array([day > cutoff for day in a.days], dtype=np.bool_)
    parts = [a.at(np.flatnonzero(chosen)) for chosen in (~late, late)]
    (before, before_ci), (after, after_ci) = map(_share, parts)
    drop = before - after if before is not None and after is not None else None
    return Curve(
        cells=(cell.cell,), method=cell.method, backbone=cell.backbone, benchmark=cell.benchmark, gate=cell.gate,
        cutoff=cutoff.isoformat(), months=_months(a, cutoff), n_before=parts[0].size, n_after=parts[1].size,
        before=before, before_ci=before_ci, after=after, after_ci=after_ci, drop=drop, drop_ci=_drop_interval(parts, drop),
    )  # fmt: skip


def _share(a: Answers) -> tuple[float | None, Interval | None]:
    if not a.size or a.day_codes is None:
        return None, None
    value = float(a.hits.mean())
    return value, share_interval(value, one_way(a.hits, a.day_codes)) or wilson(value, a.size)


def _drop_interval(parts: Sequence[Answers], drop: float | None) -> Interval | None:
    precisions = [one_way(a.hits, a.day_codes) if a.size and a.day_codes is not None else None for a in parts]
    one, two = precisions
    if drop is None or one is None or two is None or one.se == two.se == 0:
        return None
    variance = one.se**2 + two.se**2
    freedom = variance**2 / (one.se**4 / one.df + two.se**4 / two.df)
    half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(variance)
    return max(-1.0, drop - half), min(1.0, drop + half)


def _months(a: Answers, cutoff: date) -> tuple[Month, ...]:
    rows: dict[str, list[int]] = defaultdict(list)
    for i, day in enumerate(a.days):
        rows[f"{day:%Y-%m}"].append(i)
    found = []
    for month, places in sorted(rows.items()):
        part = a.at(np.array(places, dtype=np.int64))
        acc = float(part.hits.mean())
        first = date.fromisoformat(f"{month}-01")
        found.append(Month(month, part.size, acc, wilson(acc, part.size), float(part.truth.mean()), first > cutoff))
    return tuple(found)
