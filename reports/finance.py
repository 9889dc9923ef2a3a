"""Did probabilities order returns: daily rank correlation and a long-short mean. Not tradable advice.

The returns are those of the benchmark over its horizon; they overlap from day to day, so t values are Newey & West's. Costs beyond the
stated one, capacity, borrowing and the moment at which a forecast would have been there are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from statsmodels.regression.linear_model import OLS

from harness.records import NEGATIVE, POSITIVE, Status
from reports.load import Cell
from reports.metrics import Floats
from reports.series import named

COST = 0.001
"""Of each trade: 10 basis points. A long-short day makes four: both legs are opened and closed."""
_HORIZON = 5  # sessions: returns of days closer than this overlap
_ROUNDING = 1e-12  # values closer than this are one value


@dataclass(frozen=True)
class Finance:
    """One cell; returns as fractions over the benchmark's horizon.

    Attributes:
        n: rows with a probability and a return.
        ic_days: decision days with two different probabilities and two different returns.
        ic_mean, ic_sd, icir: mean, standard deviation and their ratio of the daily Spearman correlation.
        ic_t: Newey-West t of the mean.
        ls_days: days with both a forecast of a rise and one of a fall.
        ls_gross, ls_net: mean over these of (mean return where a rise was said − where a fall was said), before and after cost.
        ls_net_t: Newey-West t of the mean after cost.
        lags: of Newey-West, for ``ic_t`` and ``ls_net_t``.
    """

    cell: str
    method: str
    backbone: str
    benchmark: str
    n: int
    ic_days: int
    ic_mean: float | None
    ic_sd: float | None
    icir: float | None
    ic_t: float | None
    ls_days: int
    ls_gross: float | None
    ls_net: float | None
    ls_net_t: float | None
    lags: tuple[int, int]
    cost_a_trade: float = COST


def finance(cells: Sequence[Cell]) -> tuple[list[Finance], list[str]]:
    """A row for each cell with returns, and warnings."""
    found = [row for row in map(_finance, cells) if row is not None]
    warnings = named(
        "finance: rank correlations are null where no day has two different probabilities and two different returns",
        [row.cell for row in found if not row.ic_days],
    ) + named(
        "finance: long-short returns are null where no day has both a forecast of a rise and one of a fall",
        [row.cell for row in found if not row.ls_days],
    )
    if not found:
        warnings.append("finance is empty: no row has a probability, a return (fwd_ret) and a decision_day.")
    return found, warnings


def newey_west(values: Floats) -> tuple[float | None, int]:
    """Student's t of the mean of ``values`` in time order, and the lags used: at least the horizon's, at most two fewer than values.

    None with fewer than three values or without variance.
    """
    if values.size < 3 or np.ptp(values) < _ROUNDING:
        return None, 0
    lags = min(max(_HORIZON - 1, int(4 * (values.size / 100) ** (2 / 9))), values.size - 2)
    fit = OLS(values, np.ones(values.size)).fit(cov_type="HAC", cov_kwds={"maxlags": lags, "use_correction": True})
    return float(fit.tvalues[0]), lags


def _finance(cell: Cell) -> Finance | None:
    columns = (cell.rows[name] for name in ("decision_day", "status", "label", "prob_positive", "fwd_ret"))
    rows = sorted(
        (day, prob, ret)
        for day, status, label, prob, ret in zip(*columns, strict=True)
        if status == Status.OK and label in (POSITIVE, NEGATIVE) and None not in (day, prob, ret)
    )
    if not rows:
        return None
    probs, returns = (np.array([row[i] for row in rows], dtype=np.float64) for i in (1, 2))
    starts = [i for i, row in enumerate(rows) if i == 0 or row[0] != rows[i - 1][0]][1:]
    days = list(zip(np.split(probs, starts), np.split(returns, starts), strict=True))
    ic = np.array([_rank_correlation(p, r) for p, r in days if np.ptp(p) > 0 and np.ptp(r) > 0])
    ls = np.array([r[p >= 0.5].mean() - r[p < 0.5].mean() for p, r in days if 0 < (p >= 0.5).sum() < p.size])
    (ic_t, ic_lags), (ls_t, ls_lags) = newey_west(ic), newey_west(ls - 4 * COST)
    ic_sd = None if ic.size < 2 else 0.0 if np.ptp(ic) < _ROUNDING else float(ic.std(ddof=1))
    return Finance(
        cell.cell, cell.method, cell.backbone, cell.benchmark, len(rows),
        ic_days=ic.size,
        ic_mean=float(ic.mean()) if ic.size else None,
        ic_sd=ic_sd,
        icir=float(ic.mean()) / ic_sd if ic_sd else None,
        ic_t=ic_t,
        ls_days=ls.size,
        ls_gross=float(ls.mean()) if ls.size else None,
        ls_net=float(ls.mean()) - 4 * COST if ls.size else None,
        ls_net_t=ls_t,
        lags=(ic_lags, ls_lags),
    )  # fmt: skip


def _rank_correlation(probs: Floats, returns: Floats) -> float:
    """Spearman's: the correlation of ranks, ties at their mean rank; a day is short, so ranks are counted pair by pair."""
    a, b = (np.sign(values[:, None] - values).sum(axis=1) for values in (probs, returns))
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
