"""Dates and clock words in running text, Chinese and English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<name>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<!\d)(?P<year>(?:19|20)\d\d)[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})(?!\d)",
        r"(?:(?P<year>(?:19|20)\d\d)年)?(?<!\d)(?P<month>\d{1,2})月(?P<day>\d{1,2})日",
        rf"\b{_MONTH}\s?(?P<day>\d{{1,2}})(?!\d)(?:st|nd|rd|th)?(?:,?\s?(?P<year>(?:19|20)\d\d))?(?!\d)",
    )
)
_WIRE = re.compile(
    rf"\b{_MONTH}\s?(?P<day>\d{{1,2}}),?\s?(?P<year>20\d\d)\s*(?:/PRNewswire|/CNW|--\s*\(BUSINESS WIRE|\(BUSINESS WIRE|\(GLOBE)",
    re.IGNORECASE,
)
_EVENING = re.compile(
    r"(?:(?P<month>\d{1,2})月)?(?<!\d)(?P<day>\d{1,2})日(?:晚间|夜间|傍晚|晚上|晚)|晚间|夜间|傍晚|晚上|今晚"
)
_EARLIER_EVENING = re.compile(r"昨(?:日|天)?(?:晚间|夜间|傍晚|晚上|晚)")


def dates_in(text: str, near: date) -> Iterator[date]:
    """The dates ``text`` names to the day. One without a year is taken in the year that puts it nearest to ``near``."""
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            found = _date_of(match, near)
            if found is not None:
                yield found


def dateline(text: str) -> date | None:
    """The day a news wire's release says it was issued on, None without such a line."""
    match = _WIRE.search(text)
    return _date_of(match, date.min) if match else None


def evenings_in(text: str, day: date) -> Iterator[date | None]:
    """The evenings on which ``text`` says something happened: with their date, or None where it gives none.

    An evening called yesterday's is left out: a text of the next morning may speak of it.
    """
    for match in _EVENING.finditer(_EARLIER_EVENING.sub("", text)):
        yield _date_of(match, day) if match["day"] else None


def _date_of(match: re.Match[str], near: date) -> date | None:
    parts = match.groupdict()
    month = _MONTHS.index(parts["name"][:3].lower()) + 1 if parts.get("name") else int(parts.get("month") or near.month)
    years = [int(parts["year"])] if parts.get("year") else [near.year - 1, near.year, near.year + 1]
    found = [day for year in years if (day := _real(year, month, int(parts["day"]))) is not None]
    return min(found, key=lambda day: abs(day - near), default=None)


def _real(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
