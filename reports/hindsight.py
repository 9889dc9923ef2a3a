"""What the direction of the market alone would give: every catalyst answered by the majority of its own decision day.

It knows the labels that it is scored on, so it is an oracle and no forecast. A method below it may have told the day and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.records import NEGATIVE, POSITIVE
from reports.load import Cell
from reports.metrics import classify


@dataclass(frozen=True)
class Hindsight:
    """One benchmark, over every catalyst with a label that some loaded cell asks; fractions.

    Attributes:
        n: catalysts; ``n_days``: their decision days.
        always_positive: share of positive labels.
        acc, mcc, f1_macro: of the day's majority; a tie counts as positive.
    """

    benchmark: str
    n: int
    n_days: int
    always_positive: float
    acc: float
    mcc: float
    f1_macro: float


def hindsight(cells: Sequence[Cell]) -> list[Hindsight]:
    """A row a benchmark, by name; none where no catalyst has a label and a day."""
    labels: dict[str, dict[str, tuple[Any, bool]]] = defaultdict(dict)
    for cell in cells:
        rows = cell.rows
        for case, day, label in zip(rows["catalyst_id"], rows["decision_day"], rows["label"], strict=True):
            if label in (POSITIVE, NEGATIVE) and day is not None:
                labels[cell.benchmark][case] = (day, label == POSITIVE)
    return [_of(benchmark, list(labels[benchmark].values())) for benchmark in sorted(labels)]


def _of(benchmark: str, known: Sequence[tuple[Any, bool]]) -> Hindsight:
    truth = np.array([rose for _, rose in known], dtype=np.bool_)
    by_day = defaultdict[Any, list[bool]](list)
    for day, rose in known:
        by_day[day].append(rose)
    rises = {day: 2 * sum(outcomes) >= len(outcomes) for day, outcomes in by_day.items()}
    found = classify(truth, np.array([rises[day] for day, _ in known], dtype=np.bool_))
    assert found is not None
    return Hindsight(benchmark, found.n, len(by_day), float(truth.mean()), found.acc, found.mcc, found.f1_macro)
