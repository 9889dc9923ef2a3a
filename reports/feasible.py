"""Whether published figures can come from the number of answers that the paper states."""

from __future__ import annotations

import numpy as np

from reports import metrics
from reports.metrics import Bools, Floats

STATED_N = 128
"""Catalysts of each benchmark (paper, Table 1)."""
_PERCENT, _DECIMAL = 0.5e-4 + 1e-9, 0.5e-2 + 1e-9  # half of the last digit printed: 53.12 %, 0.06
_RUNS = (3, 5)  # means over so many runs are tried for what no single run can give


def note(acc: float, mcc: float, f1_macro: float, n: int = STATED_N) -> str | None:
    """None if some confusion matrix of ``n`` answers rounds to all three figures (fractions); else a sentence that says what fails."""
    right = np.flatnonzero(_near(np.arange(n + 1) / n, acc, _PERCENT))
    if right.size:
        figures = np.concatenate([_figures(n, int(k)) for k in right])
        if (_near(figures[:, 0], mcc, _DECIMAL) & _near(figures[:, 1], f1_macro, _PERCENT)).any():
            return None
        return f"no {n} answers give Acc {100 * acc:.2f} %, MCC {mcc:.2f} and macro F1 {100 * f1_macro:.2f} % together"
    text = f"Acc {100 * acc:.2f} % is no share of {n} answers"
    runs = next((k for k in _RUNS if _near(np.arange(k * n + 1) / (k * n), acc, _PERCENT).any()), None)
    return text if runs is None else f"{text}; a mean of {runs} runs could be"


def _near(values: Floats, printed: float, half: float) -> Bools:
    return np.asarray(np.abs(values - printed) <= half)


def _figures(n: int, right: int) -> Floats:
    """MCC and macro F1 of every confusion matrix of ``n`` answers of which ``right`` are right, shape (matrices, 2)."""
    tp, fp = (x.ravel() for x in np.meshgrid(np.arange(right + 1.0), np.arange(n - right + 1.0)))
    confusion = np.stack([tp, fp, n - right - fp, right - tp], axis=1)
    return np.stack([metrics.mcc_of(confusion), metrics.f1_of(confusion)], axis=1)
