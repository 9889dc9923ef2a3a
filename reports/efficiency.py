"""Accuracy against what it takes (the paper's Figure 7), and the same with everything that was paid."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reports.frontier import shares
from reports.load import Cell
from reports.series import Series, Setting, counterpart, named, who
from reports.usage import Usage, paid_prices, usage

BASELINE = "zero_shot"


@dataclass(frozen=True)
class Efficiency:
    """One method with one backbone; means over its benchmarks, each with the same weight, unless said.

    Attributes:
        acc_mean: mean accuracy.
        tokens_final_mean: tokens of the final call a forecast, the paper's measure.
        acc_per_ln_tokens: acc_mean ÷ ln(tokens_final_mean).
        marginal_acc_per_1k: accuracy beyond zero-shot per 1,000 tokens beyond zero-shot, on common benchmarks.
        tokens_lifecycle_mean: tokens of all calls a forecast, with its part of what a shared index or memory took.
        cost_per_forecast, cost_per_correct: US$ at list price, over all rows, with the part of the shared calls.
        cost_per_extra_correct: US$ beyond zero-shot for each right answer beyond zero-shot, on common benchmarks.
        frontier_share: share of bootstrap draws (decision days) in which no other method is at least as accurate with no more
            lifecycle tokens, and better in one of the two; frontier_share_final: with tokens of the final call.
        shared_known: whether the calls that belong to no row are on file for all its cells.
    """

    method: str
    backbone: str
    setting: Setting
    cells: tuple[str, ...]
    n: int
    benchmarks: tuple[str, ...]
    acc_mean: float | None
    tokens_final_mean: float | None
    acc_per_ln_tokens: float | None
    marginal_acc_per_1k: float | None
    tokens_lifecycle_mean: float | None
    cost_per_forecast: float | None
    cost_per_correct: float | None
    cost_per_extra_correct: float | None
    frontier_share: float | None
    frontier_share_final: float | None
    shared_known: bool


@dataclass(frozen=True)
class _Taken:
    """A series with the usage of its cells, by benchmark."""

    series: Series
    usages: Mapping[str, Usage]

    def mean(self, value: Callable[[str], float | None], names: Sequence[str]) -> float | None:
        """Mean of ``value`` over the benchmarks ``names``; None if one is unknown."""
        found = [value(name) for name in names]
        return None if not found or None in found else sum(x for x in found if x is not None) / len(found)

    def acc(self, name: str) -> float | None:
        return self.series.members[name].score.acc

    def final(self, name: str) -> float | None:
        return self.usages[name].mean_of_all(None, self.usages[name].final)

    def lifecycle(self, name: str) -> float | None:
        return self.usages[name].mean_of_all(self.usages[name].shared_tokens, self.usages[name].every)

    def cost(self, names: Sequence[str]) -> float | None:
        """US$ a forecast over all rows of ``names``; None if a cell does not know."""
        parts = [self.usages[name].mean_of_all(self.usages[name].shared_cost, self.usages[name].cost) for name in names]
        sizes = [self.usages[name].cost.size for name in names]
        if None in parts or not sum(sizes):
            return None
        return sum((part or 0.0) * size for part, size in zip(parts, sizes, strict=True)) / sum(sizes)

    def right(self, names: Sequence[str]) -> tuple[float, int]:
        """Right answers and rows over ``names``."""
        found = [self.series.members[name].answers for name in names]
        return float(sum(a.hits.sum() for a in found)), sum(self.usages[name].cost.size for name in names)


def efficiencies(every: Sequence[Series], cells: Sequence[Cell]) -> tuple[list[Efficiency], list[str]]:
    """A row a series with a scored row, and warnings."""
    prices = paid_prices(cells)
    taken = [_Taken(s, {name: usage(m.cell, prices) for name, m in s.scored.items()}) for s in every if s.scored]
    frontier = shares([t.series for t in taken], [t.usages for t in taken])
    found = [_efficiency(t, _zero_shot(t, taken), *frontier.get(id(t.series), (None, None))) for t in taken]
    return found, _warnings(found)


def _zero_shot(t: _Taken, taken: Sequence[_Taken]) -> _Taken | None:
    other = counterpart(t.series, BASELINE, [x.series for x in taken])
    return next((x for x in taken if x.series is other), None)


def _efficiency(t: _Taken, zero: _Taken | None, lifecycle_share: float | None, final_share: float | None) -> Efficiency:
    names = sorted(t.usages)
    acc, tokens = t.mean(t.acc, names), t.mean(t.final, names)
    (right, rows), cost = t.right(names), t.cost(names)
    called = not all(score.no_llm for score in t.series.scores)
    return Efficiency(
        t.series.method, t.series.backbone, t.series.setting, tuple(t.series.members[name].score.cell for name in names), rows, tuple(names),
        acc_mean=acc,
        tokens_final_mean=tokens if called else None,
        acc_per_ln_tokens=acc / math.log(tokens) if called and acc is not None and tokens and tokens > 1 else None,
        marginal_acc_per_1k=_marginal(t, zero) if called else None,
        tokens_lifecycle_mean=t.mean(t.lifecycle, names),
        cost_per_forecast=cost,
        cost_per_correct=cost * rows / right if cost is not None and right else None,
        cost_per_extra_correct=_extra(t, zero) if called else None,
        frontier_share=lifecycle_share,
        frontier_share_final=final_share,
        shared_known=all(u.shared_tokens is not None for u in t.usages.values()),
    )  # fmt: skip


def _common(t: _Taken, zero: _Taken | None) -> list[str]:
    if zero is None or zero.series.method == t.series.method:
        return []
    return sorted(t.usages.keys() & zero.usages.keys())


def _marginal(t: _Taken, zero: _Taken | None) -> float | None:
    names = _common(t, zero)
    if zero is None or not names:
        return None
    values = [x.mean(value, names) for x in (t, zero) for value in (x.acc, x.final)]
    acc, tokens, acc_zero, tokens_zero = values
    if acc is None or tokens is None or acc_zero is None or tokens_zero is None or tokens <= tokens_zero:
        return None
    return (acc - acc_zero) / ((tokens - tokens_zero) / 1000)


def _extra(t: _Taken, zero: _Taken | None) -> float | None:
    names = _common(t, zero)
    if zero is None or not names:
        return None
    (right, rows), (right_zero, rows_zero) = t.right(names), zero.right(names)
    cost, cost_zero = t.cost(names), zero.cost(names)
    gained = right / rows - right_zero / rows_zero
    if cost is None or cost_zero is None or gained <= 0:
        return None
    return (cost - cost_zero) / gained


def _warnings(found: Sequence[Efficiency]) -> list[str]:
    def names(rows: Sequence[Efficiency]) -> list[str]:
        return [who(row.method, row.backbone, row.setting) for row in rows]

    called = [row for row in found if row.tokens_final_mean is not None]
    others = [row for row in called if row.method != BASELINE]
    bases = {row.backbone for row in found if row.method == BASELINE}
    widest: dict[str, set[str]] = {}
    for row in found:
        widest.setdefault(row.backbone, set()).update(row.benchmarks)
    return [
        *named(
            "tokens: tokens_lifecycle_mean and costs leave out calls for a shared index or memory, which calls.parquet would tell",
            names([row for row in found if not row.shared_known and row.tokens_lifecycle_mean]),
        ),
        *named(
            f"tokens: marginal_acc_per_1k and cost_per_extra_correct are null without {BASELINE} on a common benchmark",
            names([row for row in others if row.backbone not in bases]),
        ),
        *named(
            "tokens: marginal_acc_per_1k is null where no more tokens were used than zero-shot uses",
            names([row for row in others if row.backbone in bases and row.marginal_acc_per_1k is None]),
        ),
        *named(
            "tokens: cost_per_extra_correct is null where no more answers are right than zero-shot has, or a cost is unknown",
            names([row for row in others if row.backbone in bases and row.cost_per_extra_correct is None]),
        ),
        *named(
            "tokens: token figures are null where a benchmark does not report them, and where no call was made",
            names([row for row in found if row.tokens_final_mean is None]),
        ),
        *named(
            "tokens: means are over fewer benchmarks than others of the backbone have",
            names([row for row in found if set(row.benchmarks) < widest[row.backbone]]),
        ),
    ]  # fmt: skip
