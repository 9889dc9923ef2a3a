from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import (
    Convention,
    Granularity,
    parse_stamp,
    published_by,
    resolved_before,
    retrievable_at,
    sessions_for,
    try_parse_stamp,
)
from harness.errors import ClockError

CN, US = "Asia/Shanghai", "America/New_York"

days = st.dates(date(2000, 1, 1), date(2030, 12, 31))
clocks = st.one_of(
    st.none(),
    st.times().map(lambda t: t.strftime("%H:%M")),
    st.times().map(lambda t: t.strftime("%H:%M:%S")),
)
stamps = st.builds(
    lambda day, clock, tz: parse_stamp(f"{day:%Y-%m-%d}" + (f" {clock}" if clock else ""), tz),
    days,
    clocks,
    st.sampled_from([CN, US]),
)


@pytest.mark.parametrize(
    ("text", "granularity", "instant"),
    [
        ("2021-01-05", Granularity.DAY, datetime(2021, 1, 5, 15, 59, 59, 999999, UTC)),
        ("2021-01-05 09:30", Granularity.MINUTE, datetime(2021, 1, 5, 1, 30, tzinfo=UTC)),
        ("2021-01-05 09:30:01", Granularity.SECOND, datetime(2021, 1, 5, 1, 30, 1, tzinfo=UTC)),
    ],
)
def test_three_forms(text: str, granularity: Granularity, instant: datetime) -> None:
    stamp = parse_stamp(text, CN)
    assert (stamp.granularity, stamp.instant, stamp.day) == (granularity, instant, date(2021, 1, 5))


@pytest.mark.parametrize(
    "text",
    ["", "  ", None, 20210105, "2020-02-30", "2021-1-5", "2021-01-05 24:00", "2021-01-05T09:30:00Z", "2021-01-05 09:30+08:00",
     "2021-01-05 9:30", "05/01/2021", "2021-01-05 09:30:01.5", "２０２１-01-05"],
)  # fmt: skip
def test_anything_else_is_refused_and_named(text: object) -> None:
    with pytest.raises(ClockError) as error:
        parse_stamp(text, CN)
    assert repr(text) in str(error.value)
    assert try_parse_stamp(text, CN) is None


def test_a_date_only_record_is_not_known_at_half_past_nine_of_its_day() -> None:
    record, decision = parse_stamp("2021-01-05", CN), parse_stamp("2021-01-05 09:30", CN)
    assert record.text < decision.text  # what a comparison as text would admit
    assert not published_by(record, decision)
    assert not retrievable_at(record, decision)


@given(stamps, stamps)
def test_retrievable_implies_published_and_is_strict(record, decision) -> None:  # type: ignore[no-untyped-def]
    assert not retrievable_at(record, decision) or published_by(record, decision)
    assert not retrievable_at(decision, decision)
    assert published_by(decision, decision)
    assert published_by(record, decision) == (record.instant <= decision.instant)


@given(stamps, stamps)
def test_a_date_only_decision_retrieves_earlier_days_only(record, decision) -> None:  # type: ignore[no-untyped-def]
    if decision.date_only and retrievable_at(record, decision):
        assert record.day < decision.day


def test_unknown_times_fail_closed() -> None:
    decision = parse_stamp("2021-01-05", CN)
    assert not published_by(None, decision)
    assert not retrievable_at(None, decision)
    assert not resolved_before(None, decision)


@given(
    days.filter(lambda d: date(2010, 1, 1) <= d <= date(2025, 6, 1)),
    clocks,
    st.sampled_from(Convention),
    st.integers(1, 10),
    st.sampled_from([("XSHG", CN), ("XNYS", US)]),
)
def test_an_outcome_is_never_known_before_its_decision(day, clock, convention, horizon, exchange) -> None:  # type: ignore[no-untyped-def]
    code, tz = exchange
    decision = parse_stamp(f"{day:%Y-%m-%d}" + (f" {clock}" if clock else ""), tz)
    sessions = sessions_for(code, [day])
    resolution = sessions.resolve(decision, horizon, convention)
    assert sessions.is_session(resolution.entry_session)
    assert sessions.is_session(resolution.resolve_session)
    between = [s for s in sessions.sessions if resolution.entry_session < s <= resolution.resolve_session]
    assert len(between) == horizon - (convention is Convention.ENTRY_DAY_IS_FIRST)
    assert sessions.close_of(resolution.resolve_session) == resolution.resolve_at
    if not (convention is Convention.CLOSE_TO_CLOSE and decision.date_only):
        assert resolution.resolve_at > decision.instant
    assert resolution.resolve_at > decision.instant - timedelta(days=1)


def test_early_close_counts() -> None:
    sessions = sessions_for("XNYS", [date(2020, 11, 27)])
    before = sessions.resolve(parse_stamp("2020-11-27 12:59", US), 1, Convention.ENTRY_NEXT_OPEN)
    after = sessions.resolve(parse_stamp("2020-11-27 13:00", US), 1, Convention.ENTRY_NEXT_OPEN)
    assert (before.entry_session, after.entry_session) == (date(2020, 11, 27), date(2020, 11, 30))


def test_beyond_the_calendar_is_said_in_words() -> None:
    with pytest.raises(ClockError, match="2026-12-31"):
        sessions_for("XSHG", [date(2026, 12, 29)]).resolve(parse_stamp("2026-12-29", CN), 5, Convention.ENTRY_NEXT_OPEN)
    with pytest.raises(ClockError, match="XMOON"):
        sessions_for("XMOON", [date(2020, 1, 1)])


def test_horizon_zero_is_refused() -> None:
    with pytest.raises(ClockError, match="horizon 0"):
        sessions_for("XSHG", [date(2020, 1, 2)]).resolve(parse_stamp("2020-01-02", CN), 0, Convention.ENTRY_NEXT_OPEN)
