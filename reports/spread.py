"""Several runs of one cell (epochs, seeds): how much comes from running again, how much from the choice of catalysts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports import intervals, metrics
from reports.clusters import codes, one_way
from reports.metrics import Floats
from reports.series import Member


@dataclass(frozen=True)
class Spread:
    """Runs of one method, backbone, benchmark, gate, memory, embedder, feed, context and exclude, on the catalysts scored in all of them.

    Attributes:
        runs: (seed, epoch) pairs; ``n`` catalysts in each.
        acc_mean, acc_min, acc_max: over runs.
        acc_sd_runs: standard deviation of the runs' accuracies: what repeating the run changes.
        run_variance: component of the run beyond the noise of single answers (two-way analysis of variance; below 0 set to 0).
        answer_variance: noise of a single answer, the same question asked again.
        acc_se_sampling, acc_se_day: standard error from the choice of catalysts (independent; by decision day), which no repetition reduces.
        mcc_sd_runs, f1_sd_runs: as ``acc_sd_runs``.
        flip_share: catalysts that are right in some runs and wrong in others.
    """

    method: str
    backbone: str
    benchmark: str
    gate: str | None
    memory: str | None
    embedder: str | None
    feed: str | None
    context: str | None
    exclude: str | None
    cells: tuple[str, ...]
    runs: int
    n: int
    acc_mean: float
    acc_min: float
    acc_max: float
    acc_sd_runs: float
    run_variance: float | None
    answer_variance: float | None
    acc_se_sampling: float | None
    acc_se_day: float | None
    mcc_sd_runs: float
    f1_sd_runs: float
    flip_share: float


def spreads(members: Sequence[Member]) -> list[Spread]:
    """A row wherever there are two runs or more with a catalyst scored in all of them."""
    groups: dict[tuple[str | None, ...], list[Member]] = defaultdict(list)
    for member in members:
        c = member.cell
        groups[c.method, c.backbone, c.benchmark, c.gate, c.memory, c.embedder, c.feed, c.context, c.exclude].append(
            member
        )
    found = (_spread(key, alike) for key, alike in groups.items())
    return [row for row in found if row is not None]


def _spread(key: tuple[str | None, ...], alike: Sequence[Member]) -> Spread | None:
    runs: dict[tuple[str, int], dict[str, tuple[Member, int]]] = defaultdict(dict)
    for member in alike:
        for i, (catalyst, epoch) in enumerate(member.answers.keys):
            runs[member.cell.cell, epoch][catalyst] = (member, i)
    common = sorted(set.intersection(*(set(run) for run in runs.values()))) if len(runs) > 1 else []
    if not common:
        return None
    places = [[run[catalyst] for catalyst in common] for run in runs.values()]
    truth, said = (
        np.array([[getattr(member.answers, name)[i] for member, i in row] for row in places], dtype=np.bool_)
        for name in ("truth", "predicted")
    )
    hits: Floats = (truth == said).astype(np.float64)  # shape (runs, catalysts)
    totals = np.concatenate(
        [intervals.confusion_sums(t, s, [0] * len(common)) for t, s in zip(truth, said, strict=True)]
    )
    days = codes([member.answers.days[i] for member, i in places[0]])
    of_catalyst = hits.mean(axis=0)
    alone, by_day = one_way(of_catalyst, np.arange(len(common))), None if days is None else one_way(of_catalyst, days)
    between, noise = _components(hits)
    method, backbone, benchmark, gate, memory, embedder, feed, context, exclude = key
    acc = hits.mean(axis=1)
    return Spread(
        str(method), str(backbone), str(benchmark), gate, memory, embedder, feed, context, exclude,
        cells=tuple(dict.fromkeys(cell for cell, _ in runs)),
        runs=len(runs), n=len(common),
        acc_mean=float(acc.mean()), acc_min=float(acc.min()), acc_max=float(acc.max()), acc_sd_runs=_sd(acc),
        run_variance=between, answer_variance=noise,
        acc_se_sampling=alone.se if alone else None,
        acc_se_day=by_day.se if by_day else None,
        mcc_sd_runs=_sd(metrics.mcc_of(totals)), f1_sd_runs=_sd(metrics.f1_of(totals)),
        flip_share=float((hits.min(axis=0) < hits.max(axis=0)).mean()),
    )  # fmt: skip


def _components(hits: Floats) -> tuple[float | None, float | None]:
    """Variance of the run and of a single answer, from runs × catalysts; None with one catalyst."""
    runs, n = hits.shape
    if n < 2:
        return None, None
    rest = hits - hits.mean(axis=0) - hits.mean(axis=1)[:, None] + hits.mean()
    noise = float((rest**2).sum()) / ((runs - 1) * (n - 1))
    between = float(hits.mean(axis=1).var(ddof=1)) - noise / n
    return max(0.0, between), noise


def _sd(values: Floats) -> float:
    return float(values.std(ddof=1))
