"""How accuracy travels from the benchmarks a method was made on to others (the paper's Figure 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from reports.clusters import Precision, around, one_way
from reports.intervals import Interval
from reports.series import Member, Series, Setting, named, who

REFERENCE = ("astock", "finpure")
SHIFT = ("cmin_us", "edt", "csmd")


@dataclass(frozen=True)
class Shift:
    """One method with one backbone. Fractions; None where a benchmark of the group is missing or has no scored row.

    Attributes:
        acc_ref, acc_shift: mean accuracy over the reference and over the shift benchmarks, each benchmark with the same weight.
        acc_worst: lowest accuracy among the shift benchmarks, that of ``worst``.
        f1_shift: mean macro F1 over the shift benchmarks.
        robustness: acc_shift ÷ acc_ref.
        …_ci: 95 %, clustered by decision day within each benchmark.
    """

    method: str
    backbone: str
    setting: Setting
    cells: tuple[str, ...]
    acc_ref: float | None
    acc_ref_ci: Interval | None
    acc_shift: float | None
    acc_shift_ci: Interval | None
    acc_worst: float | None
    worst: str | None
    f1_shift: float | None
    robustness: float | None
    robustness_ci: Interval | None


def shifts(every: Sequence[Series]) -> tuple[list[Shift], list[str]]:
    """A row for every series with all reference or all shift benchmarks, and warnings that name what is missing."""
    found, gaps = [], []
    for s in every:
        missing = [name for name in (*REFERENCE, *SHIFT) if name not in s.scored]
        row = _shift(s)
        if row.acc_ref is not None or row.acc_shift is not None:
            found.append(row)
        if 0 < len(missing) < len(REFERENCE) + len(SHIFT):
            gaps.append(f"{who(s.method, s.backbone, s.setting)} lacks {', '.join(missing)}")
    warnings = named("shift: means over an incomplete set of benchmarks are null", gaps)
    if not found:
        warnings.append(
            f"shift is empty: no method has scored rows on all of {', '.join(REFERENCE)} or on all of {', '.join(SHIFT)}."
        )
    return found, warnings


def _shift(s: Series) -> Shift:
    reference, shifted = ([s.scored[name] for name in group if name in s.scored] for group in (REFERENCE, SHIFT))
    reference = reference if len(reference) == len(REFERENCE) else []
    shifted = shifted if len(shifted) == len(SHIFT) else []
    acc_ref, acc_shift = _mean(reference, "acc"), _mean(shifted, "acc")
    error_ref, error_shift = _precision(reference), _precision(shifted)
    worst = min(shifted, key=lambda member: member.score.acc or 0.0) if shifted else None
    ratio = acc_shift / acc_ref if acc_shift is not None and acc_ref else None
    return Shift(
        s.method, s.backbone, s.setting, tuple(s.members[name].score.cell for name in (*REFERENCE, *SHIFT) if name in s.members),
        acc_ref=acc_ref,
        acc_ref_ci=around(acc_ref, error_ref, 0.0, 1.0) if acc_ref is not None else None,
        acc_shift=acc_shift,
        acc_shift_ci=around(acc_shift, error_shift, 0.0, 1.0) if acc_shift is not None else None,
        acc_worst=worst.score.acc if worst else None,
        worst=worst.score.benchmark if worst else None,
        f1_shift=_mean(shifted, "f1_macro"),
        robustness=ratio,
        robustness_ci=_ratio_interval(ratio, acc_ref, error_shift, error_ref) if ratio is not None else None,
    )  # fmt: skip


def _mean(members: Sequence[Member], key: str) -> float | None:
    return sum(getattr(member.score, key) for member in members) / len(members) if members else None


def _precision(members: Sequence[Member]) -> Precision | None:
    """Of the mean of independent accuracies, each clustered by day."""
    days = [member.answers.day_codes for member in members]
    parts = [one_way(member.answers.hits, day) for member, day in zip(members, days, strict=True) if day is not None]
    known = [part for part in parts if part is not None]
    if not members or len(known) < len(members):
        return None
    return _combined([(part, 1 / len(members)) for part in known])


def _combined(parts: Sequence[tuple[Precision, float]]) -> Precision:
    """Of a sum of independent parts with weights; degrees of freedom by Welch and Satterthwaite."""
    variances = [(weight * part.se) ** 2 for part, weight in parts]
    total = sum(variances)
    spread = sum(variance**2 / part.df for variance, (part, _) in zip(variances, parts, strict=True))
    df = total**2 / spread if spread > 0 else min(part.df for part, _ in parts)
    return Precision(math.sqrt(total), df, sum(part.clusters for part, _ in parts))


def _ratio_interval(
    ratio: float, below: float | None, above_error: Precision | None, below_error: Precision | None
) -> Interval | None:
    """Delta method on the logarithm: a ratio stays above 0. Without a spread, or where the ratio is 0, t around the ratio itself."""
    if above_error is None or below_error is None or not below:
        return None
    error = _combined([(above_error, 1 / below), (below_error, ratio / below)])
    if ratio == 0:
        return around(ratio, error, 0.0, math.inf)
    half = float(stats.t.ppf(0.975, error.df)) * error.se / ratio
    return ratio * math.exp(-half), ratio * math.exp(half)
