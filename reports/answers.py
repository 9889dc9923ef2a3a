"""The scored rows of a cell as arrays: what was right, what was said, and which day, stock and catalyst it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.records import NEGATIVE, POSITIVE, Status
from reports import clusters
from reports.clusters import Codes
from reports.load import Cell
from reports.metrics import Bools, Floats

Key = tuple[str, int]
"""(catalyst_id, epoch)."""


@dataclass(frozen=True)
class Answers:
    """Rows with a positive or negative label and an answer of the model, sorted by key. All arrays have the shape (rows,).

    Attributes:
        truth: True for a rise.
        usable: status ok; False for invalid, truncated and refused answers.
        predicted: class said; the opposite of the truth where the answer cannot be used.
        probs: P(positive); NaN where the answer cannot be used.
        days, stocks: values of the columns; None in them is unknown.
    """

    keys: tuple[Key, ...]
    truth: Bools
    usable: Bools
    predicted: Bools
    probs: Floats
    days: tuple[Any, ...]
    stocks: tuple[Any, ...]

    @property
    def size(self) -> int:
        return len(self.keys)

    @cached_property
    def right(self) -> Bools:
        return ~(self.truth ^ self.predicted)

    @cached_property
    def hits(self) -> Floats:
        """1 where right, else 0."""
        return self.right.astype(np.float64)

    @cached_property
    def positions(self) -> Mapping[Key, int]:
        return {key: i for i, key in enumerate(self.keys)}

    @property
    def epochs(self) -> int:
        return len({epoch for _, epoch in self.keys})

    @cached_property
    def catalyst_codes(self) -> Codes:
        return np.unique(np.array([key[0] for key in self.keys], dtype=object), return_inverse=True)[1].astype(np.int64)

    @cached_property
    def day_codes(self) -> Codes | None:
        return clusters.codes(self.days)

    @cached_property
    def stock_codes(self) -> Codes | None:
        return clusters.codes(self.stocks)

    def at(self, rows: NDArray[np.int64]) -> Answers:
        """These rows alone."""

        def pick(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(values[i] for i in rows)

        return Answers(
            pick(self.keys), self.truth[rows], self.usable[rows], self.predicted[rows], self.probs[rows],
            pick(self.days), pick(self.stocks),
        )  # fmt: skip


def answers(cell: Cell) -> Answers:
    """The scored rows of ``cell``. Answers that cannot be used count as the opposite class; infrastructure failures are left out."""
    rows = cell.rows
    scored = [
        i
        for i, (label, status) in enumerate(zip(rows["label"], rows["status"], strict=True))
        if label in (POSITIVE, NEGATIVE) and Status(status).final
    ]

    def pick(name: str) -> tuple[Any, ...]:
        return tuple(rows[name][i] for i in scored)

    truth = np.array([label == POSITIVE for label in pick("label")], dtype=np.bool_)
    usable = np.array([status == Status.OK for status in pick("status")], dtype=np.bool_)
    said = np.array([np.nan if p is None else p for p in pick("prob_positive")], dtype=np.float64)
    probs = np.where(usable, said, np.nan)
    return Answers(
        keys=tuple(zip(pick("catalyst_id"), pick("epoch"), strict=True)),
        truth=truth,
        usable=usable,
        predicted=np.where(usable, probs >= 0.5, ~truth),
        probs=probs,
        days=pick("decision_day"),
        stocks=pick("stock"),
    )


def shared(a: Answers, b: Answers) -> tuple[Answers, Answers]:
    """The rows that both have scored, in one order."""
    keys = sorted(a.positions.keys() & b.positions.keys())
    return tuple(x.at(np.array([x.positions[key] for key in keys], dtype=np.int64)) for x in (a, b))  # type: ignore[return-value]
