"""Point metrics of one cell: classification over scored rows, calibration over rows with a probability.

Arrays are one-dimensional and of one length; ``True`` is the positive class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.records import NEGATIVE, POSITIVE

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
ECE_BINS = 10
LOG_LOSS_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Classification:
    """Accuracy, Matthews correlation, macro F1 and balanced accuracy over ``n`` rows.

    ``degenerate`` names why MCC is 0 by convention: "predictions" or "labels" are of one class; None otherwise.
    ``balanced_acc``, the mean recall of both classes, is None if a class has no row.
    """

    n: int
    acc: float
    mcc: float
    f1_macro: float
    degenerate: str | None
    balanced_acc: float | None


def predictions(labels: Bools, probs: Sequence[float | None]) -> Bools:
    """Class predicted for each row: positive iff the probability is at least 0.5; no probability is the opposite of the label."""
    answers = [not label if prob is None else prob >= 0.5 for label, prob in zip(labels, probs, strict=True)]
    return np.array(answers, dtype=np.bool_)


def classification(labels: Sequence[str], probs: Sequence[float | None]) -> Classification | None:
    """Score probabilities against labels (paper, Table 1: Acc, MCC, macro F1).

    Args:
        labels: "positive" or "negative" a row.
        probs: P(positive) in [0, 1] a row; None (no usable answer) counts as the opposite class.

    Returns:
        The metrics as fractions, unrounded; None without rows.

    Raises:
        ValueError: a label other than the two, or lengths differ.
    """
    unknown = set(labels) - {POSITIVE, NEGATIVE}
    if unknown:
        raise ValueError(f"labels must be {POSITIVE!r} or {NEGATIVE!r}, not {sorted(unknown)!r}")
    truth = np.array([label == POSITIVE for label in labels], dtype=np.bool_)
    return classify(truth, predictions(truth, probs))


def classify(truth: Bools, predicted: Bools) -> Classification | None:
    """Metrics of a predicted class; None without rows. MCC of a constant predictor is 0, as in scikit-learn."""
    if truth.size == 0:
        return None
    degenerate = next(
        (name for name, x in (("predictions", predicted), ("labels", truth)) if x.all() or not x.any()), None
    )
    counts = np.array([[cell.sum() for cell in outcomes(truth, predicted)]], dtype=np.float64)
    tp, fp, fn, tn = counts[0]
    return Classification(
        n=int(truth.size),
        acc=float((tp + tn) / truth.size),
        mcc=float(mcc_of(counts)[0]),
        f1_macro=float(f1_of(counts)[0]),
        degenerate=degenerate,
        balanced_acc=float((tp / (tp + fn) + tn / (tn + fp)) / 2) if tp + fn and tn + fp else None,
    )


def outcomes(truth: Bools, predicted: Bools) -> tuple[Bools, Bools, Bools, Bools]:
    """Which rows are true positives, false positives, false negatives, true negatives."""
    return truth & predicted, ~truth & predicted, truth & ~predicted, ~truth & ~predicted


def mcc_of(confusion: Floats) -> Floats:
    """Matthews correlation of each row (tp, fp, fn, tn), shape (rows,); 0 where a class or a prediction is absent."""
    tp, fp, fn, tn = confusion.T
    root = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return _ratio(tp * tn - fp * fn, root)


def f1_of(confusion: Floats) -> Floats:
    """Macro F1 over both classes of each row (tp, fp, fn, tn), shape (rows,); an absent class adds 0."""
    tp, fp, fn, tn = confusion.T
    return (_ratio(2 * tp, 2 * tp + fp + fn) + _ratio(2 * tn, 2 * tn + fp + fn)) / 2


def _ratio(top: Floats, bottom: Floats) -> Floats:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def brier(truth: Bools, probs: Floats) -> float | None:
    """Mean squared distance of the probability from the outcome (Brier 1950, two-class form: 0 best, 1 worst)."""
    return float(np.mean((probs - truth) ** 2)) if truth.size else None


def log_loss(truth: Bools, probs: Floats) -> float | None:
    """Mean negative log likelihood in nats; probabilities are clipped to [eps, 1 - eps] with ``LOG_LOSS_EPS`` (scikit-learn)."""
    if not truth.size:
        return None
    said = np.where(truth, probs, 1 - probs)
    return float(-np.log(np.clip(said, LOG_LOSS_EPS, 1 - LOG_LOSS_EPS)).mean())


@dataclass(frozen=True)
class Bin:
    """A bin of a reliability diagram: rows, mean probability, share of positive outcomes."""

    n: int
    prob_mean: float
    outcome_mean: float


def reliability(truth: Bools, probs: Floats, bins: int = ECE_BINS) -> list[Bin]:
    """Bins of equal count by rising probability, empty ones left out; fewer rows than bins give one bin a row.

    Rows of one probability share their mean outcome, so the bins do not depend on the order of ties.
    """
    if truth.size == 0:
        return []
    order = np.argsort(probs, kind="stable")
    _, group = np.unique(probs, return_inverse=True)
    outcome = (np.bincount(group, weights=truth.astype(np.float64)) / np.bincount(group))[group]
    parts = (part for part in np.array_split(order, bins) if part.size)
    return [Bin(part.size, float(probs[part].mean()), float(outcome[part].mean())) for part in parts]


def ece(truth: Bools, probs: Floats, bins: int = ECE_BINS) -> float | None:
    """Expected calibration error over the bins of ``reliability``: mean over rows of |bin's mean outcome - bin's mean probability|."""
    if truth.size == 0:
        return None
    gaps = (found.n * abs(found.outcome_mean - found.prob_mean) for found in reliability(truth, probs, bins))
    return float(sum(gaps) / truth.size)


@dataclass(frozen=True)
class BrierParts:
    """Brier = reliability - resolution + uncertainty + within (Murphy 1973; Stephenson et al. 2008).

    Reliability and resolution are over the bins of ``reliability``; ``within`` is what the spread inside the bins adds.
    """

    reliability: float
    resolution: float
    uncertainty: float
    within: float


def brier_parts(truth: Bools, probs: Floats, bins: int = ECE_BINS) -> BrierParts | None:
    """The parts of the Brier score; None without rows."""
    whole = brier(truth, probs)
    if whole is None:
        return None
    base = float(truth.mean())
    found = reliability(truth, probs, bins)
    off = sum(b.n * (b.prob_mean - b.outcome_mean) ** 2 for b in found) / truth.size
    told = sum(b.n * (b.outcome_mean - base) ** 2 for b in found) / truth.size
    chance = base * (1 - base)
    return BrierParts(off, told, chance, whole - (off - told + chance))


def total(values: Sequence[Any]) -> float | None:
    """Sum of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
