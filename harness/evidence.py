"""The only door to evidence: an index over a corpus, and views of it as of (stock, T).

``strict`` and ``paper`` treat raw documents alike (a document is a function of itself); they differ for structures that
are built over many documents. ``off`` lifts the gate for everything but the focal document and exists for audits only.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import cached_property
from typing import overload

from harness.clock import Stamp, published_by, resolved_before, retrievable_at
from harness.errors import GateError
from harness.records import CaseSet, Catalyst, Corpus, Document, ResolvedCase, Source, Stock


class Gate(StrEnum):
    """How strictly time is enforced."""

    STRICT = "strict"
    PAPER = "paper"
    OFF = "off"


PUBLISHED = "avail<=T"
RETRIEVED = "avail<T"
RESOLVED = "resolve<T"

_RULE_OF_KIND = {"focal": PUBLISHED, "concurrent": PUBLISHED}


def document_source(document: Document, kind: str) -> Source:
    """The source of a passage taken from ``document``."""
    instant = document.time.instant if document.time else None
    stock = document.stocks[0] if document.stocks else None
    rule = _RULE_OF_KIND.get(kind, RETRIEVED)
    return Source(kind, document.doc_id, stock, instant, instant, instant, instant, rule)


def case_source(resolved: ResolvedCase, kind: str) -> Source:
    """The source of a passage made from a resolved case: it spans decision to outcome and is known at the outcome."""
    case, known = resolved.case, resolved.outcome.resolve_at
    return Source(kind, f"case:{case.catalyst_id}", case.stock_id, case.time.instant, known, known, known, RESOLVED)


def verdict(source: Source, decision: Stamp) -> str:
    """``ok``, ``late`` or ``unverifiable``: checked once more when a prompt is written, independently of the view."""
    known: datetime | None = source.visible_from
    if known is None or source.known_at is None:
        return "unverifiable"
    known = max(known, source.known_at)
    on_time = known <= decision.instant if source.gate_rule == PUBLISHED else known < decision.instant
    return "ok" if on_time else "late"


class EvidenceIndex:
    """A corpus in the order of time, copies removed, ready to be viewed as of any (stock, T).

    Attributes:
        documents: visible documents ordered by (instant, doc_id).
        copies: (document, stock) pairs removed because the body repeats an earlier document of that stock.
        unknown_time: documents without a parsable stamp: never visible, counted.
        present: False where the benchmark has no event file at all.
    """

    def __init__(self, corpus: Corpus, drop_copies: bool) -> None:
        timed = sorted((d for d in corpus.documents if d.time), key=_order)
        self.unknown_time = len(corpus.documents) - len(timed)
        self.present = corpus.present
        self.stocks = corpus.stocks
        self.copies: list[tuple[Document, str]] = []
        self.documents: list[Document] = []
        self._by_stock: dict[str, list[Document]] = defaultdict(list)
        seen: set[tuple[str, str]] = set()
        for document in timed:
            own = [s for s in document.stocks if not (drop_copies and (s, document.body) in seen)]
            self.copies.extend((document, s) for s in document.stocks if s not in own)
            seen.update((s, document.body) for s in own)
            if document.stocks and not own:
                continue
            self.documents.append(document)
            for stock in own:
                self._by_stock[stock].append(document)
        self._instants = [_instant(d) for d in self.documents]
        self.key = _content_key(self.documents)

    @cached_property
    def industries(self) -> dict[str, str | None]:
        """Industry of every stock."""
        return {stock_id: stock.industry for stock_id, stock in self.stocks.items()}

    def as_of(self, stock_id: str, decision: Stamp, gate: Gate) -> EvidenceView:
        """The evidence that a forecast for ``stock_id`` at ``decision`` may use."""
        return EvidenceView(self, stock_id, decision, gate)

    def of_stock(self, stock_id: str) -> Sequence[Document]:
        return self._by_stock.get(stock_id, ())

    def published(self, decision: Stamp) -> Sequence[Document]:
        """All documents with ``avail <= T``, oldest first."""
        return self.documents[: bisect_right(self._instants, decision.instant)]

    def before(self, decision: Stamp) -> list[Document]:
        """All documents retrievable at ``decision``, oldest first."""
        prefix = self.documents[: bisect_left(self._instants, decision.instant)]
        return [d for d in prefix if retrievable_at(d.time, decision)] if decision.date_only else prefix


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """Documents as of one decision. Methods reach documents through this and nothing else."""

    index: EvidenceIndex
    stock_id: str
    decision: Stamp
    gate: Gate

    @property
    def present(self) -> bool:
        """False if the benchmark has no event text at all."""
        return self.index.present

    def focal(self) -> Document | None:
        """The stock's newest document with ``avail <= T``, whatever the gate (ties: last doc_id)."""
        own = self.index.of_stock(self.stock_id)
        end = bisect_right(own, self.decision.instant, key=_instant)
        return own[end - 1] if end else None

    def concurrent(self) -> list[Document]:
        """The stock's other documents of T's calendar day, oldest first."""
        return [d for d in self._others() if _day(d) == self.decision.day and self._admits(d)]

    def prior(self) -> list[Document]:
        """The stock's documents of earlier calendar days, oldest first, the focal one excluded."""
        if self.gate is Gate.OFF:
            return [d for d in self._others() if _day(d) != self.decision.day]
        return [d for d in self._others() if _day(d) < self.decision.day and self._admits(d)]

    def retrievable(self) -> list[Document]:
        """Documents of all stocks that a method may retrieve (``avail < T``), oldest first."""
        return list(self.index.documents) if self.gate is Gate.OFF else self.index.before(self.decision)

    def log_end(self) -> tuple[datetime, str]:
        """Where T stands in a log of all documents in order of (instant, id): at the first that may not be retrieved, or at T.

        Under a date-only T that may be a document of the same day, with documents and outcomes after it that are known before
        the day ends: a log that holds them holds that document too.
        """
        published = self.index.published(self.decision)
        refused = next((d for d in published if not retrievable_at(d.time, self.decision)), None)
        return _order(refused) if refused else (self.decision.instant, "")

    def of_stock(self) -> list[Document]:
        """The stock's documents that a method may retrieve (``avail < T``), oldest first."""
        own = self.index.of_stock(self.stock_id)
        return list(own) if self.gate is Gate.OFF else [d for d in own if retrievable_at(d.time, self.decision)]

    def build_on(self) -> EvidenceView:
        """The view that structures over many documents are built from.

        ``strict``: this one, so that they are those of a corpus cut at T. ``paper`` and ``off``: the whole corpus; what was
        built must then be filtered by time (``paper``) or is not (``off``).
        """
        return self if self.gate is Gate.STRICT else EvidenceView(self.index, self.stock_id, self.decision, Gate.OFF)

    def as_of_earlier(self, decision: Stamp) -> EvidenceView:
        """The view at an earlier time: what was known then is known now.

        Raises:
            GateError: ``decision`` is later, and the gate holds.
        """
        if self.gate is not Gate.OFF and decision.instant > self.decision.instant:
            raise GateError(f"a view as of {decision.instant} was asked for by a decision at {self.decision.instant}")
        return EvidenceView(self.index, self.stock_id, decision, self.gate)

    def of(self, stock_id: str) -> EvidenceView:
        """The same decision time, another stock."""
        return EvidenceView(self.index, stock_id, self.decision, self.gate)

    @property
    def stocks(self) -> Mapping[str, Stock]:
        """All securities of the benchmark: names and codes, nothing that happened."""
        return self.index.stocks

    def industry(self, stock_id: str) -> str | None:
        """Industry of ``stock_id``, None where the benchmark has none."""
        stock = self.index.stocks.get(stock_id)
        return stock.industry if stock else None

    @property
    def corpus_key(self) -> str:
        """Identity of the corpus in this process; a part of the keys of shared objects."""
        return self.index.key

    def company(self, stock_id: str) -> str:
        """Name of ``stock_id``, or the id itself where the corpus has none."""
        stock = self.index.stocks.get(stock_id)
        return stock.name if stock else stock_id

    def _others(self) -> Iterable[Document]:
        focal = self.focal()
        return (d for d in self.index.of_stock(self.stock_id) if d is not focal)

    def _admits(self, document: Document) -> bool:
        return self.gate is Gate.OFF or published_by(document.time, self.decision)


class Deferred(Sequence[ResolvedCase]):
    """Cases looked up when they are first asked for: there are thousands, and most methods never ask."""

    def __init__(self, find: Callable[[], list[ResolvedCase]]) -> None:
        self._find = find

    @cached_property
    def _cases(self) -> list[ResolvedCase]:
        return self._find()

    def __len__(self) -> int:
        return len(self._cases)

    @overload
    def __getitem__(self, index: int) -> ResolvedCase: ...
    @overload
    def __getitem__(self, index: slice) -> list[ResolvedCase]: ...
    def __getitem__(self, index: int | slice) -> ResolvedCase | list[ResolvedCase]:
        return self._cases[index]


class ExperienceIndex:
    """Resolved cases in the order in which their outcomes became known: (resolve time, decision time, id).

    A case inside the deadband (``dropped``), or without an outcome yet, is no experience. Its focal document is the one of its own decision time.
    """

    def __init__(self, *sets: tuple[CaseSet, EvidenceIndex]) -> None:
        self.cases = [
            ResolvedCase(case, outcome, evidence.as_of(case.stock_id, case.time, Gate.STRICT).focal())
            for cases, evidence in sets
            for case in cases.catalysts
            if (outcome := cases.outcomes[case.catalyst_id]).teaches
        ]
        self.cases.sort(key=lambda r: (r.outcome.resolve_at, r.case.time.instant, r.case.catalyst_id))

    def as_of(self, case: Catalyst, gate: Gate) -> list[ResolvedCase]:
        """Cases whose outcome was known strictly before ``case``'s decision; never ``case`` itself, whatever the gate."""
        if gate is Gate.OFF:
            return [r for r in self.cases if r.case.catalyst_id != case.catalyst_id]
        end = bisect_left(self.cases, case.time.instant, key=lambda r: r.outcome.resolve_at)
        return [
            r
            for r in self.cases[:end]
            if r.case.catalyst_id != case.catalyst_id and resolved_before(r.outcome.resolve_at, case.time)
        ]


def _content_key(documents: Iterable[Document]) -> str:
    digest = hashlib.sha256()
    for d in documents:
        line = "\x1f".join([d.doc_id, d.time.text if d.time else "", d.title, d.body, *d.stocks])
        digest.update(line.encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()


def _instant(document: Document) -> datetime:
    assert document.time is not None
    return document.time.instant


def _day(document: Document) -> date:
    assert document.time is not None
    return document.time.day


def _order(document: Document) -> tuple[datetime, str]:
    return _instant(document), document.doc_id
