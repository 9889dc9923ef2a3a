"""How sure is a place on the frontier of accuracy and tokens: the share of bootstrap draws in which nothing dominates a method."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from reports import intervals
from reports.metrics import Bools, Floats
from reports.series import Series
from reports.usage import Usage

Usages = Mapping[str, Usage]
Kind = Literal["every", "final"]
KINDS: tuple[Kind, Kind] = ("every", "final")
Shares = tuple[float | None, float | None]
"""With lifecycle tokens, with tokens of the final call."""


def shares(every: Sequence[Series], usages: Sequence[Usages]) -> dict[int, Shares]:
    """Share of draws on the frontier, by ``id`` of the series.

    Methods of one backbone, gate and seed are drawn together: the same decision days of the rows that all of them have scored, on the
    benchmarks that all of them have; each benchmark is drawn independently. A method that makes no call takes 0 tokens. Alone, or without a common row, a share is None.
    """
    groups: dict[tuple[object, ...], list[tuple[Series, Usages]]] = defaultdict(list)
    for s, u in zip(every, usages, strict=True):
        groups[s.backbone, s.setting.gate, s.setting.seed].append((s, u))
    found: dict[int, Shares] = {}
    for group in groups.values():
        lifecycle, final = (_group(group, kind) for kind in KINDS)
        for s, _ in group:
            found[id(s)] = (lifecycle.get(id(s)), final.get(id(s)))
    return found


def _group(group: Sequence[tuple[Series, Usages]], kind: Kind) -> dict[int, float]:
    known = [(s, u) for s, u in group if all(not np.isnan(getattr(one, kind)).all() for one in u.values())]
    common = set.intersection(*(set(u) for _, u in known)) if len(known) > 1 else set()
    draws = [found for name in sorted(common) if (found := _draws(known, name, kind)) is not None]
    if not draws:
        return {}
    acc, tokens = (np.mean([pair[i] for pair in draws], axis=0) for i in (0, 1))
    return {id(s): float(on) for (s, _), on in zip(known, undominated(acc, tokens).mean(axis=0), strict=True)}


def undominated(acc: Floats, tokens: Floats) -> Bools:
    """Whether no other method is at least as good in both and better in one; all shapes (draws, methods)."""
    a, t = acc[:, :, None], tokens[:, :, None]
    b, u = acc[:, None, :], tokens[:, None, :]
    beaten = (b >= a) & (u <= t) & ((b > a) | (u < t))
    return ~np.asarray(beaten.any(axis=2), dtype=np.bool_)


def _draws(known: Sequence[tuple[Series, Usages]], name: str, kind: Kind) -> tuple[Floats, Floats] | None:
    """Accuracy and tokens a forecast on one benchmark, both of shape (draws, methods); None without a common row."""
    members = [s.members[name] for s, _ in known]
    keys = sorted(set.intersection(*(set(member.answers.positions) for member in members)))
    if not keys:
        return None
    first = members[0].answers
    days = [first.days[first.positions[key]] for key in keys]
    clusters = [key[0] for key in keys] if None in days else days
    columns = []
    for member, (_, u) in zip(members, known, strict=True):
        rows = {
            key: i for i, key in enumerate(zip(member.cell.rows["catalyst_id"], member.cell.rows["epoch"], strict=True))
        }
        spent: Floats = getattr(u[name], kind)[[rows[key] for key in keys]]
        spent = np.where(np.isnan(spent), np.nanmean(getattr(u[name], kind)), spent)
        extra = (u[name].shared_tokens or 0.0) / len(rows) if kind == "every" else 0.0
        columns.append((member.answers.hits[[member.answers.positions[key] for key in keys]], spent + extra))
    parts = [intervals.cluster_sums(values, clusters)[:, 0] for pair in columns for values in pair]
    sizes = intervals.cluster_sums(np.ones(len(keys)), clusters)[:, 0]
    # benchmarks are drawn apart: with one seed, those of as many days would be given the same draws
    draws = intervals.resample(np.stack([*parts, sizes], axis=1), [intervals.SEED, *name.encode()])
    means = draws[:, :-1] / draws[:, -1:]
    return means[:, 0::2], means[:, 1::2]
