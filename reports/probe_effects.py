"""What probes measure: accuracy from nested inputs, what a change of the input does to the answers, who and when was recognised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reports.answers import Answers, Key, shared
from reports.clusters import Codes, around, one_way, share_interval
from reports.intervals import Interval, wilson
from reports.metrics import Bools, Floats

if TYPE_CHECKING:
    from reports.probes import Probed

CHANGES = {
    "contrary": "news of the opposite outcome",
    "swapped": "another security",
    "shifted": "another date",
    "masked": "names, codes and dates masked",
}
"""What was changed, by the name of the effect."""


@dataclass(frozen=True)
class NameDate:
    """The Name-Date Probe in one setting (the paper's Figure 5). Shares are fractions, differences those of fractions.

    Attributes:
        n: cases scored with all of ``nd``, ``nc`` and ``full``; with the first alone where the others are missing.
        membase: accuracy from name and date alone.
        delta_content: accuracy with the text minus accuracy without it, on the same cases.
        base_rate: share of rises; ``majority`` is the accuracy of the commoner class, the best that a constant answer gets.
        base_distance: ``membase`` minus ``base_rate``.
        positive_nd, positive_nc, positive_full: share of answers that say positive.
    """

    benchmark: str
    backbone: str
    gate: str | None
    seed: int | None
    n: int
    n_days: int | None
    membase: float
    membase_ci: Interval | None
    base_rate: float
    majority: float
    base_distance: float
    base_distance_ci: Interval | None
    positive_nd: float | None
    positive_nd_ci: Interval | None
    acc_nc: float | None
    positive_nc: float | None
    acc_full: float | None
    positive_full: float | None
    delta_content: float | None
    delta_content_ci: Interval | None
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Effect:
    """What one change of the input does, on the cases that have both answers.

    Attributes:
        same: share of cases whose direction stays (prediction consistency); ``moved`` is 1 - ``same`` (input dependency).
        prob_moved: mean absolute change of the probability.
        lean: for contrary news, mean probability under rising news minus that under falling news; else null.
    """

    benchmark: str
    backbone: str
    gate: str | None
    seed: int | None
    change: str
    n: int
    same: float
    same_ci: Interval | None
    moved: float
    moved_ci: Interval | None
    prob_moved: float
    prob_moved_ci: Interval | None
    lean: float | None
    lean_ci: Interval | None
    acc_before: float
    acc_after: float
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Identity:
    """What share of masked cases was recognised exactly; intervals: Wilson."""

    benchmark: str
    backbone: str
    gate: str | None
    seed: int | None
    n: int
    who: float
    who_ci: Interval | None
    named: float
    coded: float
    dated: float
    dated_ci: Interval | None
    month: float
    year: float
    both: float
    both_ci: Interval | None
    cells: tuple[str, ...]


def units(a: Answers) -> Codes:
    """Decision days; catalysts where a day is unknown."""
    return a.catalyst_codes if a.day_codes is None else a.day_codes


def share(hits: Bools, a: Answers) -> tuple[float, Interval | None]:
    """A share with its interval by day; by Wilson where there is but one day."""
    value = float(hits.mean())
    found = share_interval(value, one_way(hits.astype(np.float64), units(a)))
    return value, found or wilson(value, hits.size)


def mean(values: Floats, a: Answers, low: float = -1.0) -> tuple[float, Interval | None]:
    """A mean with its interval by day; None where there is but one, or all are alike: then the rows do not tell how it varies."""
    value, precision = float(values.mean()), one_way(values, units(a))
    return value, around(value, precision, low=low) if precision and precision.se > 0 else None


def majority_hits(a: Answers) -> Floats:
    """1 where the commoner label of ``a`` is right, else 0: what the best constant answer gets."""
    hits: Floats = (a.truth == (a.truth.mean() >= 0.5)).astype(np.float64)
    return hits


def changed(group: Probed, name: str) -> Answers | None:
    """The answers to changed input: rows whose input could be changed, and that have a usable answer."""
    if name not in group.answers:
        return None
    a, said = group.answers[name], group.said[name]
    keep = [i for i, key in enumerate(a.keys) if a.usable[i] and said.get(key, {}).get("changed", name == "masked")]
    return a.at(np.array(keep, dtype=np.int64))


def contrary(group: Probed) -> Answers | None:
    """The answer to news of the outcome opposite to the case's own, a row a case."""
    up, down = changed(group, "news_up"), changed(group, "news_down")
    if up is None or down is None:
        return None
    parts = [x.at(np.flatnonzero(rises)) for x, rises in ((up, ~up.truth), (down, down.truth))]
    return _joined(parts)


def usable(a: Answers) -> Answers:
    """Rows with an answer that can be used."""
    return a.at(np.flatnonzero(a.usable))


def name_dates(group: Probed) -> Iterator[NameDate]:
    """One row, where the name and the date were asked about."""
    nd = group.answers.get("nd")
    if nd is None or not nd.size:
        return
    nc, full = group.answers.get("nc"), group.answers.get("full")
    if nc is not None and full is not None and nc.size and full.size:
        nc, full = shared(nc, full)
        nd, nc = shared(nd, nc)
        nd, full = shared(nd, full)
    else:
        nc = full = None
    if not nd.size:
        return
    base = float(nd.truth.mean())
    membase, membase_ci = share(nd.right, nd)
    distance, distance_ci = mean(nd.hits - nd.truth, nd)
    said, said_ci = share(nd.predicted[nd.usable], usable(nd)) if nd.usable.any() else (None, None)
    delta, delta_ci = mean(full.hits - nc.hits, full) if full is not None and nc is not None else (None, None)
    yield NameDate(
        **vars_of(group),
        n=nd.size,
        n_days=None if nd.day_codes is None else int(nd.day_codes.max()) + 1,
        membase=membase,
        membase_ci=membase_ci,
        base_rate=base,
        majority=max(base, 1 - base),
        base_distance=distance,
        base_distance_ci=distance_ci,
        positive_nd=said,
        positive_nd_ci=said_ci,
        acc_nc=None if nc is None else float(nc.hits.mean()),
        positive_nc=_positive(nc),
        acc_full=None if full is None else float(full.hits.mean()),
        positive_full=_positive(full),
        delta_content=delta,
        delta_content_ci=delta_ci,
        cells=cells_of(group, "nd", "nc", "full"),
    )


def effects(group: Probed) -> Iterator[Effect]:
    """A row for every change that was asked about beside the unchanged input."""
    full = group.answers.get("full")
    if full is None:
        return
    for change in CHANGES:
        after = contrary(group) if change == "contrary" else changed(group, change)
        if after is None:
            continue
        before, after = shared(usable(full), after)
        if not before.size:
            continue
        same, same_ci = share(before.predicted == after.predicted, before)
        moved, moved_ci = share(before.predicted != after.predicted, before)
        prob, prob_ci = mean(np.abs(after.probs - before.probs), before, low=0.0)
        lean, lean_ci = _lean(group) if change == "contrary" else (None, None)
        names = ("full", *(("news_up", "news_down") if change == "contrary" else (change,)))
        yield Effect(
            **vars_of(group), change=change, n=before.size, same=same, same_ci=same_ci, moved=moved, moved_ci=moved_ci,
            prob_moved=prob, prob_moved_ci=prob_ci, lean=lean, lean_ci=lean_ci,
            acc_before=float(before.hits.mean()), acc_after=float(after.hits.mean()), cells=cells_of(group, *names),
        )  # fmt: skip


def identities(group: Probed) -> Iterator[Identity]:
    """One row, where masked cases were to be recognised."""
    said = list(group.said.get("identify", {}).values())
    if not said:
        return
    n = len(said)

    def of(*keys: str) -> float:
        """Share of cases in which all ``keys`` hold; ``who`` is the company or the code."""
        return sum(all(_held(s, key) for key in keys) for s in said) / n

    yield Identity(
        **vars_of(group), n=n, who=of("who"), who_ci=wilson(of("who"), n), named=of("named"), coded=of("coded"),
        dated=of("dated"), dated_ci=wilson(of("dated"), n), month=of("month"), year=of("year"),
        both=of("who", "dated"), both_ci=wilson(of("who", "dated"), n), cells=cells_of(group, "identify"),
    )  # fmt: skip


def _held(said: Mapping[str, Any], key: str) -> bool:
    return _held(said, "named") or _held(said, "coded") if key == "who" else bool(said.get(key))


def vars_of(group: Probed) -> dict[str, Any]:
    """The setting as fields of a row."""
    s = group.setting
    return {"benchmark": s.benchmark, "backbone": s.backbone, "gate": s.gate, "seed": s.seed}


def cells_of(group: Probed, *names: str) -> tuple[str, ...]:
    """The cells of these probes."""
    return tuple(group.cells[name] for name in names if name in group.cells)


def _lean(group: Probed) -> tuple[float | None, Interval | None]:
    up, down = changed(group, "news_up"), changed(group, "news_down")
    assert up is not None
    assert down is not None
    up, down = shared(up, down)
    return mean(up.probs - down.probs, up) if up.size else (None, None)


def _positive(a: Answers | None) -> float | None:
    return float(a.predicted[a.usable].mean()) if a is not None and a.usable.any() else None


def _joined(parts: Sequence[Answers]) -> Answers:
    """Rows of several answers as one, in the order of their keys."""
    keys: list[Key] = [key for part in parts for key in part.keys]
    order = sorted(range(len(keys)), key=lambda i: keys[i])

    def pick(name: str) -> Any:
        return [value for part in parts for value in getattr(part, name)]

    columns: Mapping[str, list[Any]] = {name: pick(name) for name in Answers.__dataclass_fields__}
    arrays = {"truth": np.bool_, "usable": np.bool_, "predicted": np.bool_, "probs": np.float64}
    values: dict[str, Any] = {
        name: np.array([column[i] for i in order], dtype=arrays[name])
        if name in arrays
        else tuple(column[i] for i in order)
        for name, column in columns.items()
    }
    return Answers(**values)
