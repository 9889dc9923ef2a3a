"""Checks of texts: copies, cuts, boilerplate, and what a text says about time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from benchmarks.audit.dates import dateline, dates_in, evenings_in
from benchmarks.audit.finding import Check, Found, Hit, Severity
from benchmarks.audit.price_texts import SAME_DAY_PRICE_TEXT
from benchmarks.audit.raw import Raw, Text, place_of

HEADLINES = " | "
"""What separates the headlines of a body that is made of several."""

_CAP_SHARE = 0.05
_CAP_TEXTS = 5
_CAP_CHARS = 40  # shorter texts are alike in length by chance
_NOON = 12


def headlines_of(text: Text) -> list[str]:
    """The headlines of a body, or the whole body where it is one text."""
    return [piece.strip() for piece in text.body.split(HEADLINES) if piece.strip()]


def _duplicate_document(raw: Raw) -> Found:
    seen: set[tuple[object, ...]] = set()
    hits: list[Hit] = []
    for text in raw.texts:
        content = (text.time.instant, text.document.title, text.body, frozenset(text.stocks))
        if content in seen:
            hits.append(Hit(text.doc_id, (text.row,)))
        seen.add(content)
    return Found(len(raw.texts), hits)


def _repeated_body(raw: Raw) -> Found:
    copies = {place for _, place in raw.originals}
    return Found(len(raw.texts), [Hit(t.doc_id, (t.row,)) for t in raw.texts if place_of(t.row) in copies])


def _focal_repeated(raw: Raw) -> Found:
    focal = [(case, text) for case in raw.cases if (text := raw.focal(case)) is not None]
    copies = [Hit(c.case_id, (c.row,)) for c, t in focal if (c.stock_id, place_of(t.row)) in raw.originals]
    return Found(len(focal), copies)


def _shared_body(raw: Raw) -> Found:
    holders: Mapping[str, list[Text]] = defaultdict(list)
    for text in raw.texts:
        for headline in dict.fromkeys(headlines_of(text)):
            if text.stocks:
                holders[headline].append(text)
    shared = {h: texts for h, texts in holders.items() if not _common_stock(texts)}
    hits = [
        Hit(f"{', '.join(t.doc_id for t in ts)}: {_short(h)}", tuple(t.row for t in ts)) for h, ts in shared.items()
    ]
    return Found(len(holders), hits)


def _common_stock(texts: Sequence[Text]) -> bool:
    return bool(set(texts[0].stocks).intersection(*(text.stocks for text in texts[1:])))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def _truncated_body(raw: Raw) -> Found:
    cap = _cap(len(text.body) for text in raw.texts)
    piece_cap = _cap(len(piece) for text in raw.texts for piece in headlines_of(text))

    def cut(text: Text) -> bool:
        whole = cap is not None and len(text.body) >= cap - 1  # one less: a space at the cut was trimmed
        return whole or (piece_cap is not None and any(len(piece) >= piece_cap for piece in headlines_of(text)))

    return Found(len(raw.texts), [Hit(text.doc_id, (text.row,)) for text in raw.texts if cut(text)])


def _cap(lengths: Iterable[int]) -> int | None:
    """The greatest length where texts pile up at it, as they do where something cut them; else None."""
    counts = Counter(lengths)
    longest = max(counts, default=0)
    at_cap = counts[longest] + counts[longest - 1]
    return longest if longest >= _CAP_CHARS and at_cap >= max(_CAP_TEXTS, _CAP_SHARE * counts.total()) else None


def stamp_contradicted(text: Text) -> bool:
    """Whether the text was written after its stamp: it tells of that evening, or was issued on a later day."""
    issued = dateline(text.body)
    if issued is not None and issued > text.time.day:
        return True
    if text.time.date_only or int(text.time.text[11:13]) >= _NOON:
        return False
    evenings = evenings_in(text.document.text, text.time.day)
    return any(day is None or _just_over(day, text) for day in evenings)


def contradicted_by_date(text: Text) -> bool:
    """Whether one of those evenings is given with its date: the strictest reading of the same check."""
    return stamp_contradicted(text) and any(
        day is not None and _just_over(day, text) for day in evenings_in(text.document.text, text.time.day)
    )


def _just_over(day: date, text: Text) -> bool:
    return (text.time.day - day).days in (0, 1)


def _stamp_shifted(raw: Raw) -> Found:
    testable = [text for text in raw.texts if not text.time.date_only or dateline(text.body)]
    return Found(len(testable), [Hit(text.doc_id, (text.row,)) for text in testable if stamp_contradicted(text)])


def _later_date_text(raw: Raw) -> Found:
    focal = [(case, text) for case in raw.cases if (text := raw.focal(case)) is not None]
    hits = [
        Hit(case.case_id, (case.row,))
        for case, text in focal
        if any(day > case.time.day for day in dates_in(text.document.text, text.time.day))
    ]
    return Found(len(focal), hits)


CHECKS = (
    Check(
        "duplicate_document",
        Severity.LOW,
        "documents",
        "stamp, title, body and stocks equal those of an earlier document with another row",
        "the same evidence counts twice in retrieval and in every count of documents",
        "the later of the two",
        _duplicate_document,
    ),
    Check(
        "repeated_body",
        Severity.MEDIUM,
        "documents",
        "the body equals, character for character, that of an earlier document of the same stock (earlier by stamp, then id)",
        "old news shown under a new date",
        "these documents, for all their stocks",
        _repeated_body,
        "drop_copies: true (as shipped) removes them stock by stock.",
    ),
    Check(
        "focal_repeated",
        Severity.MEDIUM,
        "catalysts with a focal document",
        "the focal document (the stock's newest with a stamp up to T) repeats the body of an earlier document of the stock",
        "there is no news at T: a forecast rests on a stale text that looks fresh",
        "these catalysts",
        _focal_repeated,
        "With drop_copies: true the forecast is made from the newest document that is no copy, under its own date.",
    ),
    Check(
        "shared_body",
        Severity.LOW,
        "distinct bodies, or headlines of bodies split at ' | '",
        "it stands in documents that have no stock in common",
        "the text is not specific to the stock; as evidence for both it makes their forecasts alike",
        "every document that holds such a text",
        _shared_body,
    ),
    Check(
        "truncated_body",
        Severity.MEDIUM,
        "documents",
        "the body is as long as the longest there is (or one character less), or one of its ' | ' pieces as long as the longest "
        f"piece, where at least {_CAP_SHARE:.0%} and {_CAP_TEXTS} of them have that length: somebody cut them there",
        "figures and the outlook often stand after the cut; a method cannot read what is not there",
        "these documents",
        _truncated_body,
    ),
    Check(
        "stamp_shifted",
        Severity.HIGH,
        "documents with a time of day or a news-wire dateline",
        "the text says 'evening' of the stamp's day or of the day before, or of no day ('yesterday evening' does not count), and is "
        f"stamped before {_NOON}:00; or its dateline is of a day after the stamp's",
        "the clock of the stamps is off: order against the session, and so entry and resolve time, are wrong; documents of "
        "the same period whose text does not say so are shifted as well (stats.stamp_shift)",
        "these documents",
        _stamp_shifted,
        "Better: correct the clock of the whole period in the file.",
    ),
    SAME_DAY_PRICE_TEXT,
    Check(
        "later_date_text",
        Severity.LOW,
        "catalysts with a focal document",
        "the focal document names a date after T's day (one without a year is taken in the year nearest to the stamp)",
        "mostly a date that was announced; where it is told as past, the text was written after its stamp",
        "these catalysts",
        _later_date_text,
    ),
)
