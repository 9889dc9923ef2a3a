"""The check of focal texts that tell a price move of their own day, and whether that move is a part of the return."""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import datetime

from benchmarks.audit.finding import Check, Found, Hit, Severity
from benchmarks.audit.raw import Case, Raw, Text
from harness.clock import Convention

_VERBS = (
    r"(?:ris(?:es?|ing)|rose|jump(?:s|ed)?|surg(?:es?|ed|ing)|soar(?:s|ed)?|gain(?:s|ed)?|falls?|fell|drop(?:s|ped)?|slid(?:es?)?"
    r"|sinks?|sank|plung(?:es?|ed)|tumbl(?:es?|ed)|rall(?:y|ies|ied)|slump(?:s|ed)?|climb(?:s|ed)?|dip(?:s|ped)?)"
)
_STOCK = r"(?:\b(?:shares?|stocks?)\b|\((?:[A-Za-z]+:\s?)?[A-Z]{1,5}\))"
_MOVE = re.compile(
    r"涨停|跌停"
    r"|(?:今日|今天|当日|盘中|早盘|午后|尾盘|收盘|截至发稿)[^。；|]{0,24}(?:涨|跌)"
    r"|股价[^。；|]{0,12}(?:涨|跌)[^。；|]{0,8}\d"
    rf"|\b(?:shares?|stocks?)\b[^|.]{{0,24}}\b{_VERBS}\b"
    rf"|{_STOCK}[^|.]{{0,40}}\b(?:up|down|{_VERBS})\s(?:by\s|more than\s|over\s|as much as\s|about\s|nearly\s)?\d+(?:\.\d+)?\s?%"
    r"|\b(?:52-week|all-time|record)\s(?:high|low)\b"
    r"|\b(?:gains?|dips?|sinks?|moves?|flat)\b[^|]{0,12}\b(?:as|but|than|lags?)\b[^|]{0,16}\bmarket\b",
    re.IGNORECASE,
)
_AFTER_HOURS = re.compile(
    r"\bafter[- ]?hours\b|\bafter[- ]?market\b|\bpost-?market\b|\bafter the (?:bell|close)\b|\b(?:extended|late) trading\b",
    re.IGNORECASE,
)


def _same_day_price_text(raw: Raw) -> Found:
    focal = [(case, text) for case in raw.cases if (text := raw.focal(case)) is not None]
    hits = [
        Hit(case.case_id, (case.row,), harmless=_over_before_return(case, text))
        for case, text in focal
        if text.time.day == case.time.day and _MOVE.search(text.document.text)
    ]
    return Found(len(focal), sorted(hits, key=lambda hit: hit.harmless))


def _over_before_return(case: Case, text: Text) -> bool:
    """Whether any move that ``text`` can tell of was over when the return starts.

    A text tells of what was before its stamp, and of its day's session at most until the close, unless it speaks of trading after that.
    """
    start, close = _start_of_return(case), _close_of_day(case)
    if start is None:
        return False
    after_hours = bool(_AFTER_HOURS.search(text.document.text))
    told_until = text.time.instant if close is None or after_hours else min(text.time.instant, close)
    return told_until <= start


def _start_of_return(case: Case) -> datetime | None:
    """When the price was made that the return is measured from; None where no calendar tells."""
    if case.known is None or case.sessions is None:
        return None
    at_close = case.draft.convention is Convention.CLOSE_TO_CLOSE
    times = case.sessions.closes if at_close else case.sessions.opens
    return times[bisect_left(case.sessions.sessions, case.known.entry_session)]


def _close_of_day(case: Case) -> datetime | None:
    """The close of T's session; None on a day without one."""
    sessions = case.sessions
    return sessions.close_of(case.time.day) if sessions and sessions.is_session(case.time.day) else None


SAME_DAY_PRICE_TEXT = Check(
    "same_day_price_text",
    Severity.HIGH,
    "catalysts with a focal document",
    "the focal document is dated on T's day and speaks of a move of a share price or an index (found by wording)",
    "the text tells a part of the move; if the return starts before that move was over, it tells a part of the label",
    "these catalysts",
    _same_day_price_text,
    harmless="the return starts from a price made after the text, or at the close that ended the move",
)
