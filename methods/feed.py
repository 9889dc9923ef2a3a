"""What retrieval and memory baselines are fed and asked: documents, resolved cases, one query; the same for all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from harness.evidence import EvidenceView, case_source, document_source
from harness.expected import ZERO, Expected, Range, Survey, key_of, tokens_of
from harness.method import Context
from harness.records import EMBED, Catalyst, Document, Passage, ResolvedCase, Source
from harness.tokens import split_to_tokens
from methods.forecasting import MAX_CONCURRENT

FOCAL_QUERY_CHARS = 400
_REQUESTS_A_CASE = 12


@dataclass(frozen=True, slots=True)
class Record:
    """A retrievable text: a document chunk or a resolved case.

    ``text`` is shown, ``embedded`` is what is searched; ``when`` is the exchange-local date or time from which it is known.
    """

    item_id: str
    instant: datetime
    when: str
    text: str
    embedded: str
    source: Source

    def passage(self, kind: str, rank: int, score: float | None = None) -> Passage:
        """The record as it is shown, as evidence of ``kind``."""
        return Passage(self.text, replace(self.source, kind=kind), rank, score)


def shown_already(ctx: Context) -> set[str]:
    """Ids of the focal and the concurrent documents that every prompt shows: no method shows them again."""
    focal, concurrent = ctx.evidence.focal(), ctx.evidence.concurrent()
    return {d.doc_id for d in [*([focal] if focal else []), *concurrent[:MAX_CONCURRENT]]}


def fed_cases(ctx: Context) -> list[ResolvedCase]:
    """Resolved cases that are fed along with the documents (``feed=docs+cases``): those with a focal document."""
    return [r for r in ctx.experience if r.focal is not None] if ctx.feed_cases else []


def company_of(document: Document, evidence: EvidenceView) -> str:
    """Names of the securities that ``document`` is filed under."""
    return " / ".join(evidence.company(stock) for stock in document.stocks)


def retrieval_query(case: Catalyst, evidence: EvidenceView) -> str:
    """q(c): topic of the catalyst type, company, stock id, first 400 characters of the focal text."""
    focal = evidence.focal()
    return " ".join([case.topic, case.company, case.stock_id, focal.text[:FOCAL_QUERY_CHARS] if focal else ""]).strip()


@lru_cache(maxsize=200_000)
def document_records(document: Document, company: str, tokens: int, overlap: int) -> tuple[Record, ...]:
    """The chunks of ``document`` as records; one per ``tokens`` tokens, neighbours sharing ``overlap``."""
    assert document.time is not None  # the view never returns a document without a time
    chunks = split_to_tokens(document.text, tokens, overlap)
    about = " ".join([document.time.text, company, ",".join(document.stocks)]).strip()
    source = document_source(document, "chunk")
    records = []
    for number, chunk in enumerate(chunks):
        text = f"[{about}] {chunk}"
        item_id = document.doc_id if len(chunks) == 1 else f"{document.doc_id}#{number}"
        records.append(
            Record(item_id, document.time.instant, document.time.text, text, text, replace(source, item_id=item_id))
        )
    return tuple(records)


@lru_cache(maxsize=200_000)
def case_record(resolved: ResolvedCase) -> Record:
    """A resolved case as one text: date, company, type, first 400 characters of its focal text, what happened."""
    case, outcome = resolved.case, resolved.outcome
    assert resolved.focal is not None
    text = (
        f"[{case.time.text} {case.company} {case.stock_id}] Past case, {case.topic}: "
        f"{resolved.focal.text[:FOCAL_QUERY_CHARS]} "
        f"Return over the following {case.horizon} trading days: {outcome.label} (known {outcome.resolve_session})."
    )
    source = case_source(resolved, "chunk")
    return Record(source.item_id, outcome.resolve_at, outcome.resolve_session.isoformat(), text, text, source)


def expected_vector(text: str) -> Expected:
    """One text to embed, its request apart."""
    return Expected(EMBED, "build", key_of("embed", text), ZERO, tokens_of(text), ZERO)


def expected_passages(short: float, long: float, k: int, limit: float) -> Range:
    """Characters of ``k`` passages, from ``short`` ones (less one that does not fit) to ``long`` ones, within ``limit``."""
    return Range(max(0.0, min(k * short, limit - long)), min(k * long, limit))


def requests_for_vectors(survey: Survey) -> list[Expected]:
    """The requests that texts are embedded by: at least one in all, at most a few a forecast (``harness.vectors`` batches them)."""
    if not survey.cases:
        return []
    most = _REQUESTS_A_CASE * len(survey.cases) + len(survey.lessons)
    return [Expected(EMBED, "build", key_of("embed", survey.cell), Range(1, most), ZERO, ZERO)]
