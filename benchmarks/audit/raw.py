"""A benchmark as it lies on disk: every row that can be read, contradictions included; nothing is dropped or mended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from benchmarks.catalysts import Draft, read_draft, settle
from benchmarks.corpus import Evidence, read_document, read_stocks
from benchmarks.files import Folder
from benchmarks.markets import Markets, markets_of
from benchmarks.params import CaseFiles
from benchmarks.prices import PricePath, path_of, read_prices
from benchmarks.problems import Problems, RowError
from benchmarks.rows import Row
from benchmarks.sources import EvidenceRows, catalyst_rows, evidence_rows, price_rows
from harness.clock import ExchangeSessions, Stamp, parse_stamp, published_by, sessions_for
from harness.records import Corpus, Document, Outcome, Stock

_Read = TypeVar("_Read")

Place = tuple[str, int]
"""File and position of a row: what names it even where ids repeat."""


def place_of(row: Row) -> Place:
    """The place of ``row``."""
    return row.file, row.position


@dataclass(frozen=True, slots=True)
class Text:
    """A document with the row it was read from and its stamp."""

    row: Row
    time: Stamp
    document: Document

    @property
    def doc_id(self) -> str:
        return self.document.doc_id

    @property
    def stocks(self) -> tuple[str, ...]:
        return self.document.stocks

    @property
    def body(self) -> str:
        return self.document.body


@dataclass(frozen=True, slots=True)
class Case:
    """A catalyst as its row states it, with what the exchange's calendar says of it.

    Attributes:
        draft: the values of the row.
        known: when the outcome is really known, by calendar and price path; None where that cannot be computed.
        sessions: sessions of its exchange; None where the calendar does not reach that far.
        stated: the file's ``resolve_date``, None where it has none.
        path: the stock's own prices after the decision, None where there are none.
    """

    draft: Draft
    known: Outcome | None
    sessions: ExchangeSessions | None
    stated: Stamp | None
    path: PricePath | None

    @property
    def row(self) -> Row:
        return self.draft.row

    @property
    def case_id(self) -> str:
        return self.draft.catalyst.catalyst_id

    @property
    def stock_id(self) -> str:
        return self.draft.catalyst.stock_id

    @property
    def time(self) -> Stamp:
        return self.draft.catalyst.time


@dataclass(frozen=True)
class Raw:
    """One set of cases of a benchmark as read, before copies are dropped.

    Attributes:
        name: of the benchmark.
        cases: readable catalysts in the order (instant, id).
        texts: readable documents in the order (instant, id).
        stocks: the listed stocks by id.
        has_texts: False where the benchmark has no event file.
        has_stocks: False where no file lists the stocks.
        unreadable: rows that hold no usable record, with the reason; a row of prices or stocks is named without its place.
        n_rows: rows of catalysts and documents, readable or not.
    """

    name: str
    cases: Sequence[Case]
    texts: Sequence[Text]
    stocks: Mapping[str, Stock]
    has_texts: bool
    has_stocks: bool
    unreadable: Sequence[tuple[Row | None, str]]
    n_rows: int

    @cached_property
    def of_stock(self) -> Mapping[str, Sequence[Text]]:
        """Documents of each stock, oldest first."""
        found: dict[str, list[Text]] = defaultdict(list)
        for text in self.texts:
            for stock_id in text.stocks:
                found[stock_id].append(text)
        return found

    @cached_property
    def originals(self) -> Mapping[tuple[str, Place], Text]:
        """For each copy, by (stock, place): the earliest document of that stock with the same body."""
        found: dict[tuple[str, Place], Text] = {}
        for stock_id, texts in self.of_stock.items():
            first: dict[str, Text] = {}
            for text in texts:
                earlier = first.setdefault(text.body, text)
                if earlier is not text:
                    found[stock_id, place_of(text.row)] = earlier
        return found

    def visible(self, case: Case) -> list[Text]:
        """Documents of the case's stock with ``avail <= T``, oldest first."""
        return [text for text in self.of_stock.get(case.stock_id, ()) if published_by(text.time, case.time)]

    def focal(self, case: Case) -> Text | None:
        """The newest of them (ties: last id), copies not dropped."""
        seen = self.visible(case)
        return seen[-1] if seen else None


def read_raw(folder: Folder, files: CaseFiles, catalysts: str, key: str) -> Raw:
    """Read the set of cases ``files`` with the catalysts in file ``catalysts``; ``key`` is its path in the configuration.

    Raises:
        ConfigError: unknown market or calendar.
        DataError: a file is missing or cannot be decoded. Bad rows are not an error: they are what an audit looks for.
    """
    return raw_of(
        files,
        markets_of(files, key),
        catalyst_rows(folder, files, catalysts),
        evidence_rows(folder, files, key),
        price_rows(folder, files, key),
    )


def raw_of(
    files: CaseFiles, markets: Markets, catalysts: Sequence[Row], evidence: EvidenceRows, prices: Sequence[Row]
) -> Raw:
    """As ``read_raw``, from rows."""
    problems = Problems(f"benchmark {files.name}")
    stocks, stated = read_stocks(evidence.stocks, markets, problems)
    paths = read_prices(prices, problems)
    unreadable: list[tuple[Row | None, str]] = [(None, message) for message in problems.messages]
    documents = evidence.documents or ()
    texts = _each(documents, lambda row: Text(row, *read_document(row, stated, markets)), unreadable)
    known = Evidence(Corpus((), stocks), stated, complete=False, stocks_file=evidence.stocks_file)
    drafts = _each(catalysts, lambda row: read_draft(row, files, markets, known, needs_resolve_date=False), unreadable)
    cases = []
    for draft in drafts:
        unsettled = Problems(f"benchmark {files.name}")
        cases.append(_case(draft, markets, paths, unsettled))
        unreadable += [(draft.row, message) for message in unsettled.messages]
    return Raw(
        name=files.name,
        cases=sorted(cases, key=lambda case: (case.time.instant, case.case_id)),
        texts=sorted(texts, key=lambda text: (text.time.instant, text.doc_id)),
        stocks=stocks,
        has_texts=evidence.documents is not None,
        has_stocks=bool(evidence.stocks),
        unreadable=unreadable,
        n_rows=len(documents) + len(catalysts),
    )


def _each(rows: Sequence[Row], read: Callable[[Row], _Read], unreadable: list[tuple[Row | None, str]]) -> list[_Read]:
    """What ``read`` makes of the good rows; the bad ones go to ``unreadable``."""
    found: list[_Read] = []
    for row in rows:
        try:
            found.append(read(row))
        except RowError as error:
            unreadable.append((row, str(error)))
    return found


def _case(draft: Draft, markets: Markets, paths: Mapping[str, PricePath], problems: Problems) -> Case:
    case = draft.catalyst
    outcome = settle([draft], markets, paths, "calendar", problems).get(case.catalyst_id)
    sessions = sessions_for(markets.calendars[case.market], [case.time.day]) if outcome else None
    stated = parse_stamp(draft.stated_resolve, markets.tz(case.market)) if draft.stated_resolve else None
    return Case(draft, outcome, sessions, stated, path_of(paths, case.catalyst_id, case.stock_id, case.time.text))
