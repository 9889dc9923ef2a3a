"""Checks of outcomes: resolve dates, labels, returns, and how independent they are of each other."""

from __future__ import annotations

from itertools import pairwise

from benchmarks.audit.finding import Check, Found, Hit, Severity
from benchmarks.audit.raw import Case, Raw
from benchmarks.catalysts import NEGATIVE_TO, POSITIVE_FROM, label_of
from harness.clock import Convention
from harness.records import DROPPED

CN_RETURN = 0.25
"""Bound on a return over five sessions in China."""

FEW_DAYS = 30
_OTHER_STEP = 0.40  # no price limit: 5-for-3 is the mildest common split, and moves a raw price by -40 %
_ROUNDING = 0.01
_SAME = 0.001


def _resolve_early(raw: Raw) -> Found:
    stated = [(c, c.stated, c.known) for c in raw.cases if c.stated and c.known]
    return Found(len(stated), [Hit(c.case_id, (c.row,)) for c, s, known in stated if s.day < known.resolve_session])


def _resolve_not_a_session(raw: Raw) -> Found:
    stated = [(c, c.stated, c.sessions) for c in raw.cases if c.stated and c.sessions]
    return Found(len(stated), [Hit(c.case_id, (c.row,)) for c, s, sessions in stated if not sessions.is_session(s.day)])


def _label_contradicts_return(raw: Raw) -> Found:
    known = _known(raw)
    return Found(
        len(known), [Hit(c.case_id, (c.row,)) for c, ret in known if label_of(ret) not in (DROPPED, c.draft.label)]
    )


def _known(raw: Raw) -> list[tuple[Case, float]]:
    """The catalysts whose outcome is known, with their return."""
    return [(c, c.draft.fwd_ret) for c in raw.cases if c.draft.fwd_ret is not None]


def _label_in_deadband(raw: Raw) -> Found:
    scored = [(c, ret) for c, ret in _known(raw) if c.draft.label != DROPPED]
    return Found(len(scored), [Hit(c.case_id, (c.row,)) for c, ret in scored if label_of(ret) == DROPPED])


def _return_beyond_limit(raw: Raw) -> Found:
    testable = [(c, ret) for c, ret in _known(raw) if c.draft.catalyst.market == "CN" or c.path]
    return Found(len(testable), [Hit(c.case_id, (c.row,)) for c, ret in testable if _beyond_limit(c, ret)])


def _beyond_limit(case: Case, fwd_ret: float) -> bool:
    if case.draft.catalyst.market == "CN" and abs(fwd_ret) >= CN_RETURN:
        return True
    limit = _daily_limit(case) + _ROUNDING
    return any(abs(after / before - 1) > limit for before, after in pairwise(_closes(case)))


def _daily_limit(case: Case) -> float:
    """How far a price may move in a session: by board in China (the wider limit where it was changed), a split elsewhere."""
    if case.draft.catalyst.market != "CN":
        return _OTHER_STEP
    code, _, exchange = case.stock_id.partition(".")
    if exchange == "BJ":
        return 0.30
    return 0.20 if code.startswith(("688", "689", "300", "301")) else 0.10


def _closes(case: Case) -> list[float]:
    """Closes of the sessions after entry, as far as the price path states them."""
    steps = case.path.row.get("path") if case.path else []
    assert isinstance(steps, list)  # checked when the path was read
    closes = [step[2] for step in steps if len(step) > 2]
    return [float(close) for close in closes if isinstance(close, int | float) and close > 0]


def _return_not_in_prices(raw: Raw) -> Found:
    compared = [(c, ret, own) for c, ret in _known(raw) if (own := _return_by_path(c)) is not None]
    return Found(len(compared), [Hit(c.case_id, (c.row,)) for c, ret, own in compared if abs(ret - own) > _SAME])


def _return_by_path(case: Case) -> float | None:
    """The return from entry price to the last close of the horizon; None where the path does not hold both."""
    price = case.path.row.get("entry_price") if case.path else None
    steps = case.draft.catalyst.horizon - (case.draft.convention is Convention.ENTRY_DAY_IS_FIRST)
    closes = _closes(case)
    if case.draft.convention is Convention.CLOSE_TO_CLOSE or not isinstance(price, int | float) or price <= 0:
        return None
    return closes[steps - 1] / price - 1 if 0 < steps <= len(closes) else None


def _overlapping_windows(raw: Raw) -> Found:
    of_stock: dict[str, list[Case]] = {}
    for case in raw.cases:
        of_stock.setdefault(case.stock_id, []).append(case)
    pairs = [pair for cases in of_stock.values() for pair in pairwise(cases)]
    tested = [(a, b, a.known) for a, b in pairs if a.known]
    hits = [Hit(f"{a.case_id}, {b.case_id}", (b.row,)) for a, b, known in tested if b.time.instant < known.resolve_at]
    return Found(len(tested), hits)


def _few_decision_days(raw: Raw) -> Found:
    days = {case.time.day for case in raw.cases}
    few = [Hit(f"{len(days)} decision days")] if 0 < len(days) < FEW_DAYS else []
    return Found(min(len(days), 1), few)


CHECKS = (
    Check(
        "resolve_early",
        Severity.HIGH,
        "catalysts with a stated resolve date and a known session",
        "resolve_date is a day before the session at whose close the outcome is known: by the exchange's calendar, the "
        "benchmark's convention and horizon, and the stock's own price path where there is one",
        "a memory that believes the date learns outcomes before anyone could know them",
        "these catalysts",
        _resolve_early,
        "Not needed with resolve=calendar (as shipped), which computes the time.",
    ),
    Check(
        "resolve_not_a_session",
        Severity.LOW,
        "catalysts with a stated resolve date and a calendar",
        "resolve_date is a day on which the exchange is closed",
        "the date was counted in weekdays, holidays ignored: others may be too early",
        "these catalysts",
        _resolve_not_a_session,
        "Not needed with resolve=calendar (as shipped).",
    ),
    Check(
        "label_contradicts_return",
        Severity.HIGH,
        "catalysts with an outcome",
        f"fwd_ret >= {POSITIVE_FROM} without the label positive, or fwd_ret <= {NEGATIVE_TO} without the label negative",
        "a right forecast is scored as wrong; a run refuses the benchmark",
        "these catalysts",
        _label_contradicts_return,
    ),
    Check(
        "label_in_deadband",
        Severity.MEDIUM,
        "catalysts with a scored label",
        f"labelled positive or negative though {NEGATIVE_TO} < fwd_ret < {POSITIVE_FROM}",
        "the label is noise; a run refuses the benchmark",
        "these catalysts",
        _label_in_deadband,
    ),
    Check(
        "return_beyond_limit",
        Severity.HIGH,
        "catalysts in CN, or with a price path",
        f"|fwd_ret| >= {CN_RETURN} in CN; or, where prices are at hand, a step from close to close of more than the exchange "
        f"allows (CN: 10, 20 or 30 % by board; elsewhere {_OTHER_STEP:.0%}, as an unadjusted split makes it) and {_ROUNDING:.0%} for rounding",
        "the return may hold an unadjusted dividend, split or rights issue (or be that of a newly listed stock): the label "
        "is then about bookkeeping",
        "these catalysts",
        _return_beyond_limit,
    ),
    Check(
        "return_not_in_prices",
        Severity.HIGH,
        "catalysts with an entry price and closes for the whole horizon",
        f"fwd_ret differs by more than {_SAME} from the last close of the horizon over the entry price, under the convention",
        "the return is of other sessions, or of prices on another basis (adjusted and raw mixed): stats.entry_basis",
        "these catalysts",
        _return_not_in_prices,
    ),
    Check(
        "overlapping_windows",
        Severity.MEDIUM,
        "pairs of consecutive catalysts of a stock",
        "the later of the two is decided before the earlier one's outcome is known",
        "the two returns share sessions: they are not two independent trials",
        "the later one of each pair",
        _overlapping_windows,
        "Or use intervals clustered by stock.",
    ),
    Check(
        "few_decision_days",
        Severity.MEDIUM,
        "1 if there are decisions",
        f"all decisions fall on fewer than {FEW_DAYS} calendar days",
        "stocks move together: a right guess of the market on a few days looks like skill (stats.effective_n_day)",
        None,
        _few_decision_days,
        "Read the intervals clustered by day, and compare with base_rates.day_majority_hindsight.",
    ),
)
