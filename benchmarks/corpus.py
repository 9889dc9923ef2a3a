"""Documents and stocks, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.markets import Markets
from benchmarks.problems import Problems
from benchmarks.rows import Row, refuse_repeats
from harness.clock import Stamp
from harness.records import Corpus, Document, Stock


@dataclass(frozen=True)
class Evidence:
    """A corpus with what the checks of its catalysts need to know about it.

    Attributes:
        corpus: documents in the order (instant, id), stocks by id.
        markets: market of each stock whose entry states one.
        complete: the list of stocks claims to be complete, so that any other stock is an error.
        stocks_file: where the stocks are listed, None if nowhere.
    """

    corpus: Corpus
    markets: Mapping[str, str]
    complete: bool
    stocks_file: str | None


def read_stocks(rows: Sequence[Row], markets: Markets, problems: Problems) -> tuple[dict[str, Stock], dict[str, str]]:
    """Stocks by id, and the market of those that state one."""
    stocks: dict[str, Stock] = {}
    stated: dict[str, str] = {}
    first: dict[str, Row] = {}
    for row in rows:
        with problems.collect():
            stock_id = row.text("stock_id")
            refuse_repeats(row, stock_id, first)
            industry = row.optional_text("industry") or row.optional_text("industry_l1")
            market = row.optional_choice("market", markets.calendars)
            stocks[stock_id] = Stock(stock_id, row.text("name"), industry)
            if market is not None:
                stated[stock_id] = market
    return stocks, stated


def read_documents(
    rows: Sequence[Row],
    stated: Mapping[str, str],
    markets: Markets,
    known: Mapping[str, Stock] | None,
    problems: Problems,
) -> tuple[Document, ...]:
    """Documents in the order (instant, id). ``known`` holds every stock there is, or is None if that is not known."""
    found: list[tuple[Stamp, Document]] = []
    first: dict[str, Row] = {}
    for row in rows:
        with problems.collect():
            refuse_repeats(row, row.text("doc_id"), first)
            stamp, document = read_document(row, stated, markets)
            if known is not None and (unknown := [stock for stock in document.stocks if stock not in known]):
                raise row.error("mentioned_stocks", f"stock {unknown[0]} is not among the stocks; add it there")
            found.append((stamp, document))
    found.sort(key=lambda item: (item[0].instant, item[1].doc_id))
    return tuple(document for _, document in found)


def read_document(row: Row, stated: Mapping[str, str], markets: Markets) -> tuple[Stamp, Document]:
    """The document of ``row`` with its stamp.

    Raises:
        RowError: a value is missing or of another kind.
    """
    stocks = row.texts("mentioned_stocks")
    stamp = row.stamp("ts", _tz(row, stocks, stated, markets))
    document = Document(row.text("doc_id"), stamp, row.optional_text("title") or "", row.text("body"), stocks)
    return stamp, document


def _tz(row: Row, stocks: tuple[str, ...], stated: Mapping[str, str], markets: Markets) -> str:
    """Time zone of a document's stamp: that of its stocks' exchange, or the benchmark's if it has no stock."""
    zones = {markets.tz(markets.of_stock(stock, stated)) for stock in stocks} or {markets.tz(markets.default)}
    if len(zones) > 1:
        raise row.error(
            "mentioned_stocks",
            f"stocks of {' and '.join(sorted(zones))}: the local time of ts is not defined; split it",
        )
    return zones.pop()
