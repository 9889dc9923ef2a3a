"""Checks of rows: ids, stocks, stamps, and whether there is evidence at all."""

from __future__ import annotations

from collections import Counter

from benchmarks.audit.finding import Check, Found, Hit, Severity
from benchmarks.audit.raw import Case, Raw, Text
from benchmarks.rows import Row


def _unreadable(raw: Raw) -> Found:
    hits = [Hit(message, (row,) if row else ()) for row, message in raw.unreadable]
    return Found(raw.n_rows, hits)


def _duplicate_id(raw: Raw) -> Found:
    seen: set[tuple[str, str]] = set()
    hits: list[Hit] = []
    for kind, record_id, row in _all_ids(raw):
        if (kind, record_id) in seen:
            hits.append(Hit(record_id, (row,)))
        seen.add((kind, record_id))
    return Found(len(raw.cases) + len(raw.texts), hits)


def _all_ids(raw: Raw) -> list[tuple[str, str, Row]]:
    """Ids of both kinds in the order of the rows in their files."""
    ids = [("catalyst", case.case_id, case.row) for case in raw.cases]
    ids += [("document", text.doc_id, text.row) for text in raw.texts]
    return sorted(ids, key=lambda item: (item[2].file, item[2].position))


def _unknown_stock(raw: Raw) -> Found:
    if not raw.has_stocks:
        return Found(0, ())
    named: list[tuple[str, tuple[str, ...], Row]] = [(case.case_id, (case.stock_id,), case.row) for case in raw.cases]
    named += [(text.doc_id, text.stocks, text.row) for text in raw.texts]
    return Found(len(named), [Hit(name, (row,)) for name, stocks, row in named if set(stocks) - raw.stocks.keys()])


def _name_is_ticker(raw: Raw) -> Found:
    cases: dict[str, list[Row]] = {}
    for case in raw.cases:
        cases.setdefault(case.stock_id, []).append(case.row)
    hits = [
        Hit(stock_id, tuple(cases.get(stock_id, ())))
        for stock_id, stock in sorted(raw.stocks.items())
        if stock.name.strip().casefold() in (stock_id.casefold(), stock_id.partition(".")[0].casefold())
    ]
    return Found(len(raw.stocks), hits)


def _no_stock(raw: Raw) -> Found:
    return Found(len(raw.texts), [Hit(text.doc_id, (text.row,)) for text in raw.texts if not text.stocks])


def _no_focal(raw: Raw) -> Found:
    return Found(len(raw.cases), [Hit(c.case_id, (c.row,)) for c in raw.cases if raw.focal(c) is None])


def _no_prior(raw: Raw) -> Found:
    def has_prior(case: Case) -> bool:
        return any(text.time.day < case.time.day for text in raw.of_stock.get(case.stock_id, ()))

    return Found(len(raw.cases), [Hit(c.case_id, (c.row,)) for c in raw.cases if not has_prior(c)])


def _mixed_granularity(raw: Raw) -> Found:
    rows: list[Case | Text] = [*raw.cases, *raw.texts]
    usual = Counter(row.time.granularity for row in rows).most_common(1)
    hits = [
        Hit(row.case_id if isinstance(row, Case) else row.doc_id, (row.row,))
        for row in rows
        if row.time.granularity is not usual[0][0]
    ]
    return Found(len(rows), hits)


CHECKS = (
    Check(
        "unreadable_row",
        Severity.HIGH,
        "catalysts and documents",
        "a row that cannot be read: a value missing, of another kind, or a stamp that is none; rows of stocks and price paths "
        "with such a fault, and catalysts whose outcome the calendar or the price path cannot place, are counted too",
        "a run refuses the benchmark",
        "these catalysts and documents",
        _unreadable,
        "Faults in stocks or price paths must be mended in their file.",
    ),
    Check(
        "duplicate_id",
        Severity.HIGH,
        "catalysts and documents",
        "a catalyst_id or doc_id that an earlier row of its file has already",
        "outcomes are joined by id: one forecast would be scored with another's outcome; a run refuses the benchmark",
        "the later rows",
        _duplicate_id,
    ),
    Check(
        "unknown_stock",
        Severity.MEDIUM,
        "catalysts and documents",
        "the row names a stock that the list of stocks does not have",
        "the stock has no name in prompts, and usually no documents: the forecast is made from the id",
        "these catalysts and documents",
        _unknown_stock,
        "Or add the stocks to the list.",
    ),
    Check(
        "name_is_ticker",
        Severity.MEDIUM,
        "listed stocks",
        "the stock's name equals its id, or its id before the first dot",
        "queries such as '<topic> <company>' find nothing by the name, and a model must know the ticker",
        "the catalysts of these stocks",
        _name_is_ticker,
        "Better: give the stocks their names.",
    ),
    Check(
        "no_stock",
        Severity.LOW,
        "documents",
        "a document that mentions no stock",
        "only methods that retrieve over all documents can see it; it is nobody's focal or prior document",
        "these documents",
        _no_stock,
    ),
    Check(
        "no_focal",
        Severity.MEDIUM,
        "catalysts",
        "no document of the catalyst's stock with a stamp up to T (a date-only stamp counts as the end of its day)",
        "there is no news to forecast from: such a forecast measures what the model remembers",
        "these catalysts",
        _no_focal,
    ),
    Check(
        "no_prior",
        Severity.LOW,
        "catalysts",
        "no document of the catalyst's stock dated on a calendar day before T's",
        "methods that use history have none to use here and cannot differ from those that do not",
        "these catalysts",
        _no_prior,
    ),
    Check(
        "mixed_granularity",
        Severity.MEDIUM,
        "catalysts and documents",
        "a stamp of another granularity (day, minute, second) than most stamps of the benchmark have",
        "compared as text, a date-only stamp would come before every time of its day and leak up to a day; here a "
        "date-only stamp is the end of its day, so such documents are seen late rather than early",
        "the rows of the rarer granularity",
        _mixed_granularity,
    ),
)
