"""Invented daily prices on real exchange sessions, and the outcome of a decision read off them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from benchmarks.catalysts import label_of
from benchmarks.markets import CALENDARS
from benchmarks.sample.content import Company
from harness.clock import Convention, ExchangeSessions, Stamp, zone

SEED = "s264"
FIRST, LAST = date(2019, 12, 2), date(2021, 1, 29)
PATH_SESSIONS = 5
_DAILY_LIMIT = 0.095


@dataclass(frozen=True, slots=True)
class Bar:
    """Opening and closing price of one session."""

    day: date
    open: float
    close: float


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a decision led to. ``path`` holds the five sessions after entry; ``resolve_at`` is exchange-local."""

    entry_session: date
    entry_price: float
    path: tuple[Bar, ...]
    fwd_ret: float
    label: str
    resolve_at: datetime
    stated_resolve: date


def draw(*key: object) -> float:
    """A number in [0, 1) that depends on ``key`` alone, so that adding a company changes no other one."""
    return random.Random(":".join([SEED, *map(str, key)])).random()


def shock(*key: object) -> float:
    """A bell-shaped number of mean 0 and variance 1, free of the platform's maths library (a sum of three uniforms)."""
    return 2 * (sum(draw(*key, part) for part in range(3)) - 1.5)


class PriceBook:
    """Prices of every company over the sessions of its exchange."""

    def __init__(self, companies: tuple[Company, ...]) -> None:
        self.sessions = {market: ExchangeSessions(code, FIRST, LAST) for market, code in CALENDARS.items()}
        self._bars = {company.stock_id: _walk(company, self.sessions[company.market].sessions) for company in companies}

    def settle(self, company: Company, decision: Stamp) -> Settlement:
        """Entry, return, label and resolve time of a decision under the company's convention."""
        sessions, bars = self.sessions[company.market], self._bars[company.stock_id]
        resolved = sessions.resolve(decision, company.horizon, company.convention)
        at = sessions.sessions.index(resolved.entry_session)
        entry = bars[at].close if company.convention is Convention.CLOSE_TO_CLOSE else bars[at].open
        final = bars[sessions.sessions.index(resolved.resolve_session)].close
        fwd_ret = round(final / entry - 1, 6)
        return Settlement(
            entry_session=resolved.entry_session,
            entry_price=entry,
            path=tuple(bars[at + 1 : at + 1 + PATH_SESSIONS]),
            fwd_ret=fwd_ret,
            label=label_of(fwd_ret),
            resolve_at=resolved.resolve_at.astimezone(zone(company.tz)),
            stated_resolve=_stated(sessions, decision.day, company.horizon, resolved.resolve_session),
        )


def _walk(company: Company, days: list[date]) -> list[Bar]:
    """A random walk of common, industry and own shocks, in cents; moves stay inside a 10 % daily limit."""
    bars: list[Bar] = []
    last = company.first_price
    for day in days:
        move = (
            0.007 * shock("market", company.market, day)
            + 0.007 * shock("industry", company.industry, day)
            + 0.021 * shock("own", company.stock_id, day)
        )
        gap = 0.006 * shock("gap", company.stock_id, day)
        opening = round(last * (1 + gap), 2)
        last = round(last * (1 + min(max(move, -_DAILY_LIMIT), _DAILY_LIMIT)), 2)
        bars.append(Bar(day, opening, last))
    return bars


def _stated(sessions: ExchangeSessions, day: date, horizon: int, truth: date) -> date:
    """The date the sample's rows claim: true, except that across a holiday weekdays were counted instead of sessions.

    So it is too early for some of those rows, as in the released files.
    """
    weekdays = [d for d in _days(day + timedelta(1), truth) if d.weekday() < 5]
    if all(sessions.is_session(d) for d in weekdays):
        return truth
    return weekdays[horizon - 1]


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(n) for n in range((last - first).days + 1)]
