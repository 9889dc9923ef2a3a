"""Figures about a benchmark as a whole: how many trials it really holds, and what needs no model to reach."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.audit.on_texts import contradicted_by_date, stamp_contradicted
from benchmarks.audit.raw import Case, Raw, Text, place_of
from harness.records import NEGATIVE, POSITIVE

_MORNING = 7
_OF_TEXTS = (
    "future_documents_per_query_median",
    "prior_documents_per_query_median",
    "focal_age_days_median",
    "focal_copy_age_days",
    "stamp_shift",
)


@dataclass(frozen=True, slots=True)
class Clustering:
    """How alike the labels of one group are.

    Attributes:
        icc: intra-class correlation by one-way analysis of variance, unbalanced groups allowed; None if it is not defined
            (one group only, no group with two members, or labels that never differ).
        design_effect: 1 + (Σ n_d² ÷ n − 1) · icc, the factor by which the variance of a mean grows.
        effective_n: n ÷ design effect, the number of independent trials that would tell as much.
    """

    icc: float | None
    design_effect: float | None
    effective_n: float | None


def clustering(groups: Sequence[Sequence[float]]) -> Clustering:
    """Intra-class correlation of the values in ``groups`` (Donner and Koval 1980, the ANOVA estimator)."""
    n, k = sum(map(len, groups)), len(groups)
    if k < 2 or n == k:
        return Clustering(None, None, None)
    mean = sum(map(sum, groups)) / n
    means = [sum(group) / len(group) for group in groups]
    between = sum(len(g) * (m - mean) ** 2 for g, m in zip(groups, means, strict=True)) / (k - 1)
    within = sum((value - m) ** 2 for g, m in zip(groups, means, strict=True) for value in g) / (n - k)
    squares = sum(len(group) ** 2 for group in groups) / n
    size = (n - squares) / (k - 1)
    spread = between + (size - 1) * within
    if spread == 0:
        return Clustering(None, None, None)
    icc = (between - within) / spread
    effect = 1 + (squares - 1) * icc
    return Clustering(icc, effect, n / effect if effect > 0 else None)


def statistics_of(raw: Raw) -> dict[str, Any]:
    """The ``stats`` of an audit; fractions, days and counts; None where a figure is not defined."""
    scored = [case for case in raw.cases if case.draft.label in (POSITIVE, NEGATIVE)]
    by_day = clustering(list(_labels(scored, lambda case: case.time.day).values()))
    times = [case.time.text for case in raw.cases]
    entry = Counter(str(case.path.row.get("entry_basis")) for case in raw.cases if case.path)
    granularity = Counter(str(row.time.granularity) for row in _stamped(raw))
    return {
        "n": len(raw.cases),
        "n_scored": len(scored),
        "stocks": len({case.stock_id for case in raw.cases}),
        "documents": len(raw.texts),
        "decision_days": len({case.time.day for case in raw.cases}),
        "first": times[0] if times else None,
        "last": times[-1] if times else None,
        "positive_share": _share([case.draft.label == POSITIVE for case in scored]),
        "label_icc_day": by_day.icc,
        "design_effect_day": by_day.design_effect,
        "effective_n_day": by_day.effective_n,
        "base_rates": _base_rates(scored),
        "granularity": dict(sorted(granularity.items())),
        "abs_return_max": max(
            (abs(ret) for case in raw.cases if (ret := case.draft.fwd_ret) is not None), default=None
        ),
        "entry_basis": dict(sorted(entry.items())),
        **(_texts(raw) if raw.has_texts else dict.fromkeys(_OF_TEXTS)),
    }


def _stamped(raw: Raw) -> list[Case | Text]:
    return [*raw.cases, *raw.texts]


def _texts(raw: Raw) -> dict[str, Any]:
    """The figures about documents, ``_OF_TEXTS``."""
    focal = [(case, text) for case in raw.cases if (text := raw.focal(case)) is not None]
    return {
        "future_documents_per_query_median": _median([_later(raw.texts, case) for case in raw.cases]),
        "prior_documents_per_query_median": _median([len(_prior(raw, case)) for case in raw.cases]),
        "focal_age_days_median": _median([(case.time.day - text.time.day).days for case, text in focal]),
        "focal_copy_age_days": _copy_ages(raw, focal),
        "stamp_shift": _stamp_shift(raw),
    }


def _labels(cases: Sequence[Case], key: Callable[[Case], Hashable]) -> dict[Hashable, list[float]]:
    """1 for positive and 0 for negative, in groups."""
    groups: dict[Hashable, list[float]] = defaultdict(list)
    for case in cases:
        groups[key(case)].append(float(case.draft.label == POSITIVE))
    return groups


def _base_rates(scored: Sequence[Case]) -> dict[str, float | None]:
    """Accuracy of three answers that read nothing; the last two know the labels they are scored on."""

    def of_majority(key: Callable[[Case], Hashable]) -> float | None:
        groups = _labels(scored, key).values()
        return sum(max(sum(g), len(g) - sum(g)) for g in groups) / len(scored) if scored else None

    return {
        "always_positive": _share([case.draft.label == POSITIVE for case in scored]),
        "type_majority": of_majority(lambda case: case.draft.catalyst.catalyst_type),
        "day_majority_hindsight": of_majority(lambda case: case.time.day),
    }


def _later(texts: Sequence[Text], case: Case) -> int:
    """Documents of all stocks that are not yet known at T."""
    return len(texts) - bisect_right(texts, case.time.instant, key=lambda text: text.time.instant)


def _prior(raw: Raw, case: Case) -> list[Text]:
    return [text for text in raw.of_stock.get(case.stock_id, ()) if text.time.day < case.time.day]


def _copy_ages(raw: Raw, focal: Sequence[tuple[Case, Text]]) -> dict[str, float | None]:
    """Days between a focal document that is a copy and the document it repeats."""
    found = [(text, raw.originals.get((case.stock_id, place_of(text.row)))) for case, text in focal]
    ages = [(copy.time.day - original.time.day).days for copy, original in found if original]
    return {"n": len(ages), "median": _median(ages), "max": max(ages, default=None)}


def _stamp_shift(raw: Raw) -> dict[str, Any]:
    """The stretch of the corpus whose texts contradict their stamps, and the stamps of the small hours."""
    wrong = [text for text in raw.texts if stamp_contradicted(text)]
    inside = [t for t in raw.texts if wrong and wrong[0].time.instant <= t.time.instant <= wrong[-1].time.instant]
    night = [t for t in raw.texts if not t.time.date_only and int(t.time.text[11:13]) < _MORNING]
    return {
        "first": wrong[0].time.text if wrong else None,
        "last": wrong[-1].time.text if wrong else None,
        "contradicted_by_date": sum(map(contradicted_by_date, wrong)),
        "documents_between": len(inside),
        "documents_before_7": len(night),
    }


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def _median(values: Sequence[int]) -> float | None:
    return float(median(values)) if values else None
