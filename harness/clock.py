"""Time: the one module that parses, orders and compares timestamps, and knows exchange sessions.

A stamp is exchange-local text of one of three forms (``YYYY-MM-DD``, ``YYYY-MM-DD HH:MM``, ``YYYY-MM-DD HH:MM:SS``).
A date-only stamp means the *end of that day*: it is not known one minute earlier. Stamps are ordered by instant (UTC),
never as text: ``"2021-01-05" < "2021-01-05 09:30"`` is true for strings and leaks a whole day.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from harness.errors import ClockError

_STAMP = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2}))?)?", re.ASCII)
_END_OF_DAY = time(23, 59, 59, 999999)


class Granularity(StrEnum):
    """How precisely a stamp was given."""

    DAY = "day"
    MINUTE = "minute"
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class Stamp:
    """A parsed timestamp. ``instant`` (UTC) is when it is known; for a date-only stamp the end of ``day``.

    Attributes:
        text: the stamp as the file gives it.
        instant: aware datetime in UTC, the key of the one total order.
        day: calendar date in the exchange's local time.
        granularity: day, minute or second.
    """

    text: str
    instant: datetime
    day: date
    granularity: Granularity

    @property
    def date_only(self) -> bool:
        return self.granularity is Granularity.DAY


def parse_stamp(text: object, tz: str) -> Stamp:
    """Parse exchange-local ``text`` in time zone ``tz``.

    Raises:
        ClockError: missing, of another form, zone-stamped, or not a real date or time.
    """
    if not isinstance(text, str) or not text.strip():
        raise ClockError(f"missing timestamp ({text!r}); expected YYYY-MM-DD, optionally with HH:MM or HH:MM:SS")
    match = _STAMP.fullmatch(text.strip())
    if match is None:
        raise ClockError(
            f"unparsable timestamp {text!r}; expected exchange-local YYYY-MM-DD, YYYY-MM-DD HH:MM or "
            "YYYY-MM-DD HH:MM:SS, without a time zone"
        )
    year, month, day, hour, minute, second = match.groups()
    try:
        local_day = date(int(year), int(month), int(day))
        clock = time(int(hour), int(minute), int(second or 0)) if hour else _END_OF_DAY
    except ValueError as error:
        raise ClockError(f"impossible timestamp {text!r}: {error}") from None
    granularity = Granularity.DAY if not hour else Granularity.SECOND if second else Granularity.MINUTE
    try:
        instant = datetime.combine(local_day, clock, tzinfo=zone(tz)).astimezone(UTC)
    except OverflowError:
        raise ClockError(f"impossible timestamp {text!r}: outside the years that can be computed with") from None
    return Stamp(text.strip(), instant, local_day, granularity)


def try_parse_stamp(text: object, tz: str) -> Stamp | None:
    """As ``parse_stamp``, but None where it would raise: the gate keeps such a record invisible and counts it."""
    try:
        return parse_stamp(text, tz)
    except ClockError:
        return None


@lru_cache
def zone(name: str) -> ZoneInfo:
    """The time zone ``name`` (IANA).

    Raises:
        ClockError: no such zone.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise ClockError(f"unknown time zone {name!r}; use an IANA name such as Asia/Shanghai") from None


def published_by(record: Stamp | None, decision: Stamp) -> bool:
    """``avail <= T``: the rule for the focal document and the concurrent ones. An unknown time is never visible."""
    return record is not None and record.instant <= decision.instant


def retrievable_at(record: Stamp | None, decision: Stamp) -> bool:
    """``avail < T``, and of an earlier day if T is date-only: the rule for everything a method retrieves."""
    return record is not None and known_before(record.instant, record.day, decision)


def known_before(at: datetime, day: date | None, decision: Stamp) -> bool:
    """``at < T``, and of an earlier ``day`` if T is date-only; ``day`` is None for an outcome, which has no day of its own."""
    return at < decision.instant and (day is None or not decision.date_only or day < decision.day)


def resolved_before(resolve_at: datetime | None, decision: Stamp) -> bool:
    """``resolve < T``: the rule for outcomes and everything learned from them. An unknown time fails closed."""
    return resolve_at is not None and resolve_at < decision.instant


class Convention(StrEnum):
    """When the return of a catalyst starts and becomes known."""

    ENTRY_NEXT_OPEN = "entry_next_open"
    CLOSE_TO_CLOSE = "close_to_close"
    ENTRY_DAY_IS_FIRST = "entry_day_is_first"


@dataclass(frozen=True, slots=True)
class Resolution:
    """Entry session, the session at whose close the outcome is known, and that close (UTC)."""

    entry_session: date
    resolve_session: date
    resolve_at: datetime


class ExchangeSessions:
    """Sessions, opens and closes of one exchange, from ``exchange_calendars`` (early closes and make-up days included)."""

    def __init__(self, code: str, first: date, last: date) -> None:
        """Load the sessions of exchange ``code`` that cover ``first`` .. ``last``.

        Raises:
            ClockError: unknown exchange, or the calendar does not reach that far.
        """
        import exchange_calendars as xc

        self.code = code
        try:
            calendar = xc.get_calendar(code, start=first.isoformat(), end=last.isoformat())
        except xc.errors.InvalidCalendarName:
            raise ClockError(
                f"unknown exchange calendar {code!r}; use a name of exchange_calendars, e.g. XSHG"
            ) from None
        except (ValueError, xc.errors.CalendarError) as error:
            raise ClockError(
                f"the calendar of {code} does not cover {first} .. {last}: {error} "
                "Update exchange_calendars, or leave out catalysts beyond its range."
            ) from None
        self.tz = str(calendar.tz)
        self.sessions: list[date] = [s.date() for s in calendar.sessions]
        self.opens: list[datetime] = [o.to_pydatetime().astimezone(UTC) for o in calendar.opens]
        self.closes: list[datetime] = [c.to_pydatetime().astimezone(UTC) for c in calendar.closes]

    def is_session(self, day: date) -> bool:
        index = bisect_left(self.sessions, day)
        return index < len(self.sessions) and self.sessions[index] == day

    def session_at(self, index: int, why: str) -> tuple[date, datetime]:
        if not 0 <= index < len(self.sessions):
            raise ClockError(
                f"{why}: the calendar of {self.code} known to exchange_calendars ends on {self.sessions[-1]}; "
                "update exchange_calendars, or leave out catalysts that resolve later."
            )
        return self.sessions[index], self.closes[index]

    def close_of(self, day: date) -> datetime:
        """Close (UTC) of session ``day``, or of the next session if the exchange is closed that day."""
        return self.session_at(bisect_left(self.sessions, day), f"no session on or after {day}")[1]

    def resolve(self, decision: Stamp, horizon: int, convention: Convention) -> Resolution:
        """When a catalyst decided at ``decision`` enters and resolves, ``horizon`` sessions on.

        - ``entry_next_open``: entry is the same session if T is before its close, else the next; known at the close
          of entry + horizon.
        - ``close_to_close``: base is the close of T's session (the next session if T is not one, or later than its
          close with a time of day), known at the close of base + horizon.
        - ``entry_day_is_first``: the entry session counts as day 1, known at the close of entry + horizon - 1.

        Raises:
            ClockError: beyond the calendar, or horizon < 1.
        """
        if horizon < 1:
            raise ClockError(f"horizon {horizon}: must be at least one session")
        if convention is Convention.CLOSE_TO_CLOSE and decision.date_only:
            entry = bisect_left(self.sessions, decision.day)
        else:
            entry = bisect_right(self.closes, decision.instant)
        last = entry + horizon - (1 if convention is Convention.ENTRY_DAY_IS_FIRST else 0)
        entry_session, _ = self.session_at(entry, f"decision {decision.text}")
        resolve_session, resolve_at = self.session_at(last, f"decision {decision.text} + {horizon} sessions")
        return Resolution(entry_session, resolve_session, resolve_at)


@lru_cache(maxsize=64)
def exchange_sessions(code: str, first_year: int, last_year: int) -> ExchangeSessions:
    """Sessions of ``code`` from ``first_year`` to the end of ``last_year`` (or of the calendar), loaded once a process."""
    return ExchangeSessions(code, date(first_year, 1, 1), _calendar_end(code, date(last_year, 12, 31)))


def sessions_for(code: str, days: list[date]) -> ExchangeSessions:
    """Sessions that cover all decision ``days`` and the year after, for resolving them.

    Raises:
        ClockError: unknown exchange, or a day beyond its calendar.
    """
    if not days:
        raise ClockError(f"no days to load the calendar of {code} for")
    return exchange_sessions(code, min(days).year, min(max(days).year + 1, date.max.year))


def _calendar_end(code: str, wanted: date) -> date:
    """The earlier of ``wanted`` and the last date exchange_calendars knows for ``code`` (XSHG stops at a fixed year end)."""
    import exchange_calendars as xc

    if code not in xc.get_calendar_names():
        raise ClockError(f"unknown exchange calendar {code!r}; use a name of exchange_calendars, e.g. XSHG")
    factory = xc.calendar_utils._default_calendar_factories.get(xc.resolve_alias(code))
    bound = factory.bound_max() if factory is not None else None
    return wanted if bound is None else min(wanted, bound.date())
