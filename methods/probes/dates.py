"""Dates in running text, English and Chinese: found in every common form, and written anew in the same form or as a mark."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

Kind = Literal["day", "month", "year", "weekday"]

_MONTHS = {name.lower(): i for i, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name[:3]: i for name, i in tuple(_MONTHS.items())} | {"sept": 9}
_DIGITS = "〇一二三四五六七八九"
_YEAR = r"(?:19[89]|20[0-4])\d"
_NAME = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
_ORDINAL = r"(?:st|nd|rd|th)?"
_ZH_YEAR = rf"(?:{_YEAR}|(?:一九|二[〇零○])[〇零○一二三四五六七八九]{{2}})"
_ZH_MONTH, _ZH_DAY = (
    r"(?:1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])",
    r"(?:[12]\d|3[01]|0?[1-9]|[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九])",
)
_AMOUNT = r"(?!\d|[.,]\d|\s*(?:[%％万亿元股点家人吨台]|percent|shares|million|billion|people|employees|units|stores|jobs|points))"

_FORMS: tuple[tuple[Kind, str], ...] = (
    ("day", rf"(?<!\d)(?P<y>{_YEAR})(?P<s>[-/.])(?P<m>1[0-2]|0?[1-9])(?P=s)(?P<d>[12]\d|3[01]|0?[1-9])(?!\d)"),
    ("day", rf"(?<![\d.,])(?P<y>{_YEAR})(?P<m>0[1-9]|1[0-2])(?P<d>0[1-9]|[12]\d|3[01])(?![\d.,]*\d|[万亿元股])"),
    ("day", rf"(?<!\d)(?P<m>1[0-2]|0?[1-9])/(?P<d>[12]\d|3[01]|0?[1-9])/(?P<y>{_YEAR})(?!\d)"),
    ("day", rf"(?P<y>{_ZH_YEAR})\s*年\s*(?P<m>{_ZH_MONTH})\s*月\s*(?P<d>{_ZH_DAY})\s*[日号]"),
    ("day", rf"(?<![\d个])(?P<m>{_ZH_MONTH})\s*月\s*(?P<d>{_ZH_DAY})\s*[日号]"),
    ("month", rf"(?P<y>{_ZH_YEAR})\s*年\s*(?P<m>{_ZH_MONTH})\s*月份?"),
    ("month", rf"(?<![\d个])(?P<m>{_ZH_MONTH})\s*月份?(?![内中])"),
    ("year", rf"(?P<y>{_ZH_YEAR})(?=\s*(?:年|财年|财政年))"),
    ("day", rf"\b(?P<m>{_NAME})\.?\s+(?P<d>[12]\d|3[01]|0?[1-9]){_ORDINAL}\b(?!,?\s*\d{{3}})(?:,?\s+(?P<y>{_YEAR})\b)?"),
    ("day", rf"\b(?P<m>{_NAME})\.?\s+(?P<d>[12]\d|3[01]|0?[1-9]){_ORDINAL}(?:,\s*|\s+)(?P<y>{_YEAR})\b"),
    ("day", rf"\b(?P<d>[12]\d|3[01]|0?[1-9]){_ORDINAL}\s+(?:of\s+)?(?P<m>{_NAME})\b\.?(?:,?\s+(?P<y>{_YEAR})\b)?"),
    ("month", rf"\b(?P<m>{_NAME})\.?,?\s+(?P<y>{_YEAR})\b"),
    ("month", rf"(?<=\b[Ii]n )(?P<m>{_NAME})\b(?!\s+\d)|(?<=\b[Ss]ince )(?P<m2>{_NAME})\b|(?<=\b[Uu]ntil )(?P<m3>{_NAME})\b"),
    ("year", rf"\b(?:FY|CY|[QH][1-4][ -]?)(?P<y>{_YEAR})\b|(?<![\d.])(?P<y2>{_YEAR})(?=[ -]?[QH][1-4]\b)"),
    ("year", rf"(?<![\d.,$¥€£])(?P<y>{_YEAR}){_AMOUNT}"),
    ("weekday", r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|(?:周|星期|礼拜)[一二三四五六日天](?![年月])"),
)  # fmt: skip
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _FORMS)


@dataclass(frozen=True, slots=True)
class Mention:
    """A date in a text.

    Attributes:
        start, end: where it stands.
        kind: how much of a date it is.
        day: the day, or the first of the month or year; None for a weekday.
        parts: (start, end, "y" | "m" | "d") of its parts, in order.
    """

    start: int
    end: int
    kind: Kind
    day: date | None
    parts: tuple[tuple[int, int, str], ...]


def mentions(text: str, anchor: date) -> list[Mention]:
    """Every date in ``text``, in order, none within another; one without a year is the nearest to ``anchor``."""
    found: list[Mention] = []
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if all(match.end() <= m.start or match.start() >= m.end for m in found):
                mention = _mention(kind, match, anchor)
                if mention is not None:
                    found.append(mention)
    return sorted(found, key=lambda m: m.start)


def rewritten(text: str, anchor: date, how: Callable[[Mention], str]) -> str:
    """``text`` with every date replaced by what ``how`` makes of it."""
    out, done = [], 0
    for mention in mentions(text, anchor):
        out += [text[done : mention.start], how(mention)]
        done = mention.end
    return "".join([*out, text[done:]])


def masked(text: str, anchor: date) -> str:
    """``text`` with every date told by its distance from ``anchor`` alone: ``[day T-3]``, ``[month T]``, ``[year T-1]``, ``[weekday]``."""

    def mark(mention: Mention) -> str:
        if mention.day is None:
            return "[weekday]"
        away = {
            "day": (mention.day - anchor).days,
            "month": 12 * (mention.day.year - anchor.year) + mention.day.month - anchor.month,
            "year": mention.day.year - anchor.year,
        }[mention.kind]
        told = f"[{mention.kind} T{away:+d}]" if away else f"[{mention.kind} T]"
        return _with_parts(text, mention, {"y": told}) if mention.kind == "year" else told

    return rewritten(text, anchor, mark)


def shifted(text: str, anchor: date, days: int) -> str:
    """``text`` with every date moved by ``days``, in the form it had; a weekday stays: move by whole weeks."""

    def move(mention: Mention) -> str:
        if mention.day is None:
            return text[mention.start : mention.end]
        middle = {"day": 0, "month": 14, "year": 182}[mention.kind]  # a month moves to that of its middle
        day = mention.day + timedelta(days=middle + days)
        return _with_parts(text, mention, _alike(text, mention, day))

    return rewritten(text, anchor, move)


def _mention(kind: Kind, match: re.Match[str], anchor: date) -> Mention | None:
    """What ``match`` says; None if there is no such day."""
    groups = {name[0]: name for name, value in match.groupdict().items() if value and name[0] in "ymd"}
    parts = tuple(sorted((*match.span(name), part) for part, name in groups.items()))
    said = {part: _number(match[name]) for part, name in groups.items()}
    if kind == "weekday":
        return Mention(match.start(), match.end(), kind, None, ())
    years = [said["y"]] if "y" in said else [anchor.year - 1, anchor.year, anchor.year + 1]
    days = [day for year in years if (day := _day(year, said.get("m", 1), said.get("d", 1)))]
    if not days:
        return None
    return Mention(match.start(), match.end(), kind, min(days, key=lambda day: abs((day - anchor).days)), parts)


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _number(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    if text.lower() in _MONTHS:
        return _MONTHS[text.lower()]
    plain = text.translate(str.maketrans("零○", "〇〇"))
    if "十" not in plain:
        return int("".join(str(_DIGITS.index(c)) for c in plain))
    tens, _, ones = plain.partition("十")
    return 10 * (_DIGITS.index(tens) if tens else 1) + (_DIGITS.index(ones) if ones else 0)


def _alike(text: str, mention: Mention, day: date) -> dict[str, str]:
    """Year, month and day of ``day`` in the way ``mention`` writes its own."""
    values = {"y": day.year, "m": day.month, "d": day.day}
    return {
        part: _in_the_way_of(text[start:end], values[part], text[end : end + 1] == ".")
        for start, end, part in mention.parts
    }


def _in_the_way_of(old: str, value: int, pointed: bool) -> str:
    if old.isascii() and old.isdigit():
        return f"{value:0{len(old)}d}" if len(old) != 1 else str(value)
    if old.lower() in _MONTHS:
        name = calendar.month_name[value]
        whole = old.lower() in map(str.lower, calendar.month_name) and not pointed  # May is both
        return name if whole else name[:3]
    if value > 31:
        return "".join(_DIGITS[int(c)] for c in str(value))
    tens, ones = divmod(value, 10)
    return (_DIGITS[tens] if tens > 1 else "") + ("十" if tens else "") + (_DIGITS[ones] if ones else "")


def _with_parts(text: str, mention: Mention, new: dict[str, str]) -> str:
    out, done = [], mention.start
    for start, end, part in mention.parts:
        out += [text[done:start], new[part]]
        done = end
    return "".join([*out, text[done : mention.end]])
