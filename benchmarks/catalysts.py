"""Catalysts and their outcomes, checked; when each outcome became known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from benchmarks.corpus import Evidence
from benchmarks.markets import Markets
from benchmarks.params import CaseFiles
from benchmarks.prices import PricePath, path_of
from benchmarks.problems import Problems
from benchmarks.rows import Row, refuse_repeats
from harness.clock import Convention, ExchangeSessions, parse_stamp, sessions_for
from harness.errors import ClockError
from harness.records import CATALYST_TOPICS, DROPPED, NEGATIVE, PENDING, POSITIVE, Catalyst, Outcome

POSITIVE_FROM = 0.0055
NEGATIVE_TO = -0.005
"""The deadband of the paper: returns strictly between the two have no label."""

_CONVENTIONS = tuple(convention.value for convention in Convention)


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked row: the catalyst, and what is known of its outcome before the calendar is asked.

    ``fwd_ret`` is None where the label is pending.
    """

    row: Row
    catalyst: Catalyst
    convention: Convention
    label: str
    fwd_ret: float | None
    stated_resolve: str | None


def label_of(fwd_ret: float) -> str:
    """Label of a return (a fraction): the paper's rule with its deadband."""
    return POSITIVE if fwd_ret >= POSITIVE_FROM else NEGATIVE if fwd_ret <= NEGATIVE_TO else DROPPED


def read_catalysts(
    rows: Sequence[Row],
    files: CaseFiles,
    markets: Markets,
    evidence: Evidence,
    needs_resolve_date: bool,
    problems: Problems,
) -> list[Draft]:
    """The good rows in the order (instant, id); the bad ones go to ``problems``."""
    drafts: list[Draft] = []
    first: dict[str, Row] = {}
    for row in rows:
        with problems.collect():
            refuse_repeats(row, row.text("catalyst_id"), first)
            draft = read_draft(row, files, markets, evidence, needs_resolve_date)
            _refuse_contradictions(draft, evidence)
            drafts.append(draft)
    return sorted(drafts, key=lambda draft: (draft.catalyst.time.instant, draft.catalyst.catalyst_id))


def read_draft(row: Row, files: CaseFiles, markets: Markets, evidence: Evidence, needs_resolve_date: bool) -> Draft:
    """The values of ``row``, each of its kind; whether they agree with each other is not looked at.

    Raises:
        RowError: a value is missing or of another kind.
    """
    stock_id = row.text("stock_id")
    stock = evidence.corpus.stocks.get(stock_id)
    market = row.optional_choice("market", markets.calendars) or markets.of_stock(stock_id, evidence.markets)
    tz = markets.tz(market)
    if needs_resolve_date or row.get("resolve_date") is not None:
        row.stamp("resolve_date", tz)
    catalyst = Catalyst(
        catalyst_id=row.text("catalyst_id"),
        stock_id=stock_id,
        company=stock.name if stock else stock_id,
        catalyst_type=row.choice("catalyst_type", CATALYST_TOPICS),
        time=row.stamp("decision_time", tz),
        market=market,
        horizon=row.optional_count("horizon_days") or files.horizon,
    )
    pending = row.get("outcome") is None and row.get("fwd_ret") is None
    if pending and not files.pending_allowed:
        raise row.error("outcome", "is not there; benchmark.prospective=true forecasts catalysts without outcomes")
    label = PENDING if pending else row.choice("outcome", (POSITIVE, NEGATIVE, DROPPED))
    fwd_ret = None if pending else row.number("fwd_ret")
    convention = Convention(row.optional_choice("convention", _CONVENTIONS) or files.convention)
    return Draft(row, catalyst, convention, label, fwd_ret, row.optional_text("resolve_date"))


def _refuse_contradictions(draft: Draft, evidence: Evidence) -> None:
    row, stock_id = draft.row, draft.catalyst.stock_id
    if stock_id not in evidence.corpus.stocks and evidence.complete:
        raise row.error("stock_id", f"unknown stock; {evidence.stocks_file} lists all there are, add it there")
    if draft.fwd_ret is not None and draft.label != label_of(draft.fwd_ret):
        rule = f"from {POSITIVE_FROM:+} positive, to {NEGATIVE_TO:+} negative, else dropped"
        raise row.error(
            "outcome", f"contradicts fwd_ret = {draft.fwd_ret!r}, which is {label_of(draft.fwd_ret)} ({rule})"
        )


def settle(
    drafts: Sequence[Draft], markets: Markets, paths: Mapping[str, PricePath], resolve: str, problems: Problems
) -> dict[str, Outcome]:
    """Outcomes by catalyst id, in the order of ``drafts``."""
    outcomes: dict[str, Outcome] = {}
    for code, group in _by_calendar(drafts, markets).items():
        sessions = _load_sessions(code, group, problems)
        if sessions is None:
            continue
        for draft in group:
            with problems.collect():
                outcomes[draft.catalyst.catalyst_id] = _outcome(draft, sessions, paths, resolve)
    return {
        d.catalyst.catalyst_id: outcomes[d.catalyst.catalyst_id] for d in drafts if d.catalyst.catalyst_id in outcomes
    }


def _by_calendar(drafts: Sequence[Draft], markets: Markets) -> dict[str, list[Draft]]:
    groups: dict[str, list[Draft]] = {}
    for draft in drafts:
        groups.setdefault(markets.calendars[draft.catalyst.market], []).append(draft)
    return groups


def _load_sessions(code: str, drafts: Sequence[Draft], problems: Problems) -> ExchangeSessions | None:
    """The sessions for all ``drafts``; None if the calendar does not reach some, which are then named."""
    days = [draft.catalyst.time.day for draft in drafts]
    try:
        return sessions_for(code, days)
    except ClockError:
        for draft, day in zip(drafts, days, strict=True):
            with problems.collect():
                _ask(draft.row, code, day)
        return None


def _ask(row: Row, code: str, day: date) -> None:
    try:
        sessions_for(code, [day])
    except ClockError as error:
        raise row.error("decision_time", str(error)) from None


def _outcome(draft: Draft, sessions: ExchangeSessions, paths: Mapping[str, PricePath], resolve: str) -> Outcome:
    """The outcome of ``draft`` with its resolve time.

    By the exchange calendar; later where the stock's own price path shows a suspension; or at the end of the day the
    file states, where the user asks for the released times.
    """
    case, row = draft.catalyst, draft.row
    try:
        known = sessions.resolve(case.time, case.horizon, draft.convention)
    except ClockError as error:
        raise row.error("decision_time", str(error)) from None
    entry, last, at = known.entry_session, known.resolve_session, known.resolve_at
    path = path_of(paths, case.catalyst_id, case.stock_id, case.time.text)
    if resolve == "released":
        stated = parse_stamp(draft.stated_resolve, sessions.tz)
        last, at = stated.day, stated.instant
    elif path is not None:
        entry, last = _on_path(draft, path, sessions, entry)
        at = sessions.close_of(last)
    return Outcome(case.catalyst_id, draft.label, draft.fwd_ret, at, entry, last, draft.stated_resolve)


def _on_path(draft: Draft, path: PricePath, sessions: ExchangeSessions, earliest: date) -> tuple[date, date]:
    """Entry and resolve session of ``draft`` by its stock's own sessions; entry is not before ``earliest``."""
    steps = draft.catalyst.horizon - (1 if draft.convention is Convention.ENTRY_DAY_IS_FIRST else 0)
    if steps >= len(path.sessions):
        raise path.row.error("path", f"is shorter than the {steps} sessions after entry that {draft.row.where} needs")
    traded = path.sessions[: steps + 1]
    if traded[0] < earliest:
        raise path.row.error(
            "entry_session", f"is before {earliest}, the earliest the calendar of {sessions.code} allows"
        )
    closed = [day for day in traded if not sessions.is_session(day)]
    if closed:
        raise path.row.error("path", f"{closed[0]} is not a session of {sessions.code}")
    return traded[0], traded[-1]
