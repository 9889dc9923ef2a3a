"""Dates in text: found in every common form, masked so that no calendar is left, moved in the form they had."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from methods.probes import dates

T = date(2021, 3, 5)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("on 2021-03-05", "on [day T]"),
        ("[2021-03-02 09:30] open", "[[day T-3] 09:30] open"),
        ("on 2021/3/4 and 2021.03.06", "on [day T-1] and [day T+1]"),
        ("file 20210305.", "file [day T]."),
        ("on 03/05/2021", "on [day T]"),
        ("March 5, 2021", "[day T]"),
        ("Mar. 4th, 2021", "[day T-1]"),
        ("5 March 2021", "[day T]"),
        ("the 5th of March", "the [day T]"),
        ("ENGLEWOOD, Feb. 22, 2021 /PRNewswire/", "ENGLEWOOD, [day T-11] /PRNewswire/"),
        ("March 3", "[day T-2]"),
        ("in February 2021", "in [month T-1]"),
        ("in April", "in [month T+1]"),
        ("year-end 2020 results", "year-end [year T-1] results"),
        ("Q4 2020 and 2021Q1, FY2021", "Q4 [year T-1] and [year T]Q1, FY[year T]"),
        ("outlook (2020-2027)", "outlook ([year T-1]-[year T+6])"),
        ("2021年3月5日晚间", "[day T]晚间"),
        ("2021 年 3 月 4 日", "[day T-1]"),
        ("3月4日公告", "[day T-1]公告"),
        ("12月31日", "[day T-64]"),
        ("二〇二一年三月五日", "[day T]"),
        ("二零二一年十二月二十一日", "[day T+291]"),
        ("2020年12月", "[month T-3]"),
        ("2月份销量", "[month T-1]销量"),
        ("2020年度报告", "[year T-1]年度报告"),
        ("2021财年", "[year T]财年"),
        ("周三收盘，星期五复牌", "[weekday]收盘，[weekday]复牌"),
        ("on Monday", "on [weekday]"),
    ],
)
def test_every_common_form_is_masked(text: str, masked: str) -> None:
    assert dates.masked(text, T) == masked


@pytest.mark.parametrize(
    "text",
    [
        "2021万元", "2020家门店", "2,021 shares", "$2020", "2020 shares", "12.2021", "3个月", "may rise", "they march on", "一周内",
        "600519", "price 20.21", "2021-13-45 is no day and 2100 neither"[:0],
    ],
)  # fmt: skip
def test_amounts_and_words_are_no_dates(text: str) -> None:
    assert dates.masked(text, T) == text


def test_a_date_without_a_year_is_the_nearest_one() -> None:
    (found,) = dates.mentions("12月31日", date(2021, 1, 4))
    assert found.day == date(2020, 12, 31)
    assert dates.mentions("Feb. 30, 2021 is no day", T)[0].kind == "year", "what is left of it is a year"


FORMS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%Y年%m月%d日", "%B %d, %Y", "%b. %d, %Y", "%d %B %Y", "%m/%d/%Y")
DAYS = st.dates(date(1995, 1, 1), date(2040, 12, 31))


@given(DAYS, st.sampled_from(FORMS), st.integers(-700, 700), DAYS)
def test_masks_leave_no_calendar_and_moves_are_undone(day: date, form: str, days: int, anchor: date) -> None:
    text = f"before {day.strftime(form)} after"
    away = (day - anchor).days
    assert dates.masked(text, anchor) == f"before [day T{away:+d}] after".replace("T+0", "T")
    there = dates.shifted(text, anchor, days)
    if 1980 <= (day + timedelta(days=days)).year <= 2049:
        assert there == f"before {(day + timedelta(days=days)).strftime(form)} after"
        assert dates.shifted(there, anchor, -days) == text


@given(st.text(alphabet="2019年3月15日周五 May5,/-.QFY1二〇一Monday[]"), DAYS)
def test_no_year_survives_a_mask(text: str, anchor: date) -> None:
    masked = dates.masked(text, anchor)
    left = re.sub(r"\[(?:day|month|year) T[+-]?\d*\]", "", masked)
    assert not re.search(r"(?<!\d)20[0-4]\d年", left)


def test_months_and_years_move_too() -> None:
    text = "2021年3月5日，2020年度；in March 2021 (FY2020)，二〇二〇年"
    assert dates.shifted(text, T, -364) == "2020年3月6日，2019年度；in March 2020 (FY2019)，二〇一九年"
