"""Typed rows that pass between the rooms of the house, and the Arrow schemas of the files they end in.

A ``Catalyst`` carries no label and no return: whatever a method receives cannot leak its own outcome
(paper, Sec. 3, label isolation). Outcomes live in their own type and are joined by ``catalyst_id`` only when
forecasts are written and scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any, TypeVar

import pyarrow as pa

from harness.clock import Stamp

Row = dict[str, Any]
"""A row of a Parquet file, by column."""
N = TypeVar("N", int, float)


class Status(StrEnum):
    """What became of one forecast or one call (contract: forecasts.parquet, calls.parquet)."""

    OK = "ok"
    INVALID = "invalid"  # a reply that the strict parser refuses
    TRUNCATED = "truncated"  # cut by length before a complete object
    REFUSED = "refused"  # refusal or content filter
    RATE_LIMITED = "rate_limited"
    BUDGET = "budget"
    PROVIDER = "provider"
    BUG = "bug"

    @property
    def final(self) -> bool:
        """True if the model has answered: such a row is finished and never asked again."""
        return self in _FINAL


_FINAL = frozenset({Status.OK, Status.INVALID, Status.TRUNCATED, Status.REFUSED})

EMBED = "embed"
"""Purpose of calls for vectors."""

PROBE_PREFIX = "probe_"
"""How the names of probes begin: methods that ask what a backbone knows without evidence. Their rows are no forecasts of a table."""

POSITIVE = "positive"
NEGATIVE = "negative"
DROPPED = "dropped"
"""Label inside the deadband: loads, is never scored, never an ancestor."""
PENDING = "pending"
"""Label of an outcome that is not known yet: asked, not scored before it is known, never an ancestor."""

# The paper's eight catalyst types with the topic phrase used in headers and queries (our wording).
CATALYST_TOPICS: dict[str, str] = {
    "earnings": "earnings results and financial performance",
    "earnings_preann": "earnings pre-announcement and profit outlook",
    "ma": "merger, acquisition and restructuring",
    "regulatory": "regulatory action, approval or litigation",
    "index_change": "index inclusion or removal",
    "rating": "analyst rating and institutional opinion",
    "guidance": "management guidance and business outlook",
    "large_move": "large price move and the news behind it",
}


@dataclass(frozen=True, slots=True)
class Stock:
    """A security. ``industry`` is None where the benchmark has none."""

    stock_id: str
    name: str
    industry: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """One text record. ``time`` is None if the stamp is missing or unparsable: the gate never shows such a record."""

    doc_id: str
    time: Stamp | None
    title: str
    body: str
    stocks: tuple[str, ...]

    @property
    def text(self) -> str:
        """Title and body as shown in a prompt."""
        return f"{self.title}\n{self.body}" if self.title else self.body


@dataclass(frozen=True, slots=True)
class Catalyst:
    """The question: will ``stock_id`` rise or fall over ``horizon`` sessions after ``time``? Holds no label, no return."""

    catalyst_id: str
    stock_id: str
    company: str
    catalyst_type: str
    time: Stamp
    market: str
    horizon: int

    @property
    def topic(self) -> str:
        return CATALYST_TOPICS[self.catalyst_type]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened. ``resolve_at`` (UTC) is when it became known; ``stated_resolve`` is the file's own claim.

    ``fwd_ret`` is None where ``label`` is pending: then ``resolve_at`` is when it will be known.
    """

    catalyst_id: str
    label: str
    fwd_ret: float | None
    resolve_at: datetime
    entry_session: date
    resolve_session: date
    stated_resolve: str | None = None

    @property
    def teaches(self) -> bool:
        """True if there is something to learn from: a known outcome outside the deadband."""
        return self.label in (POSITIVE, NEGATIVE)


@dataclass(frozen=True, slots=True)
class ResolvedCase:
    """A past catalyst together with its outcome; visible only once the outcome was known."""

    case: Catalyst
    outcome: Outcome
    focal: Document | None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a passage of a prompt comes from and when it was known (a row of evidence.parquet, without the cell)."""

    kind: str
    item_id: str
    stock: str | None
    ts_start: datetime | None
    ts_end: datetime | None
    known_at: datetime | None
    visible_from: datetime | None
    gate_rule: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text in a prompt together with its source."""

    text: str
    source: Source
    rank: int | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a method answers for one catalyst.

    ``prob_positive`` is P(return > 0) in [0, 1], None unless ``status`` is ok. ``shown`` lists every record that
    entered the final prompt. ``probe_answer`` is what a probe asked besides, or did to the input, as JSON text.
    """

    status: Status
    prob_positive: float | None = None
    rationale: str | None = None
    reason: str | None = None
    shown: tuple[Passage, ...] = ()
    prompt_sha256: str | None = None
    reply_sha256: str | None = None
    model_returned: str | None = None
    system_fingerprint: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    probe_answer: str | None = None


@dataclass(slots=True)
class Call:
    """One LLM or embedding call as it goes into calls.parquet. ``cost_usd`` is what was paid now: 0 for a cache hit."""

    catalyst_id: str | None
    purpose: str
    stage: str
    request_sha256: str
    model: str
    sent_at: datetime | None
    latency_s: float | None
    attempts: int
    cache_hit: bool
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    status: str
    http_status: int | None
    list_cost_usd: float | None = None
    """Price of the reply whether or not it came from the cache; summed into forecasts.cost_usd, not a column of calls."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a benchmark: path below its root, SHA-256 of its bytes, rows; ``pinned`` is False if a known file differs."""

    path: str
    sha256: str
    rows: int
    pinned: bool | None = None


@dataclass(frozen=True)
class Corpus:
    """Documents and securities as loaded, before any gate. ``present`` is False where the benchmark has no event file."""

    documents: tuple[Document, ...]
    stocks: Mapping[str, Stock]
    present: bool = True


@dataclass(frozen=True)
class CaseSet:
    """Catalysts in the order (decision instant, catalyst id), their outcomes by id, and the corpus they are asked about."""

    name: str
    catalysts: tuple[Catalyst, ...]
    outcomes: Mapping[str, Outcome]
    corpus: Corpus


@dataclass(frozen=True)
class Benchmark:
    """Everything loaded for one benchmark.

    Attributes:
        evaluation: the catalysts to forecast.
        experience: resolved past cases that a memory may learn from, or None.
        drop_copies: remove documents whose body repeats an earlier one of the same stock (before anything else).
        files: every file read, with its SHA-256.
        warnings: sentences for the user, with counts.
    """

    name: str
    evaluation: CaseSet
    experience: CaseSet | None
    drop_copies: bool
    files: tuple[DataFile, ...]
    warnings: tuple[str, ...] = ()


_UTC = pa.timestamp("us", tz="UTC")
_S, _I, _F, _B = pa.string(), pa.int64(), pa.float64(), pa.bool_()

FORECAST_SCHEMA = pa.schema(
    [
        ("cell", _S), ("method", _S), ("backbone", _S), ("benchmark", _S), ("seed", _I), ("epoch", _I), ("gate", _S),
        ("memory", _S), ("embedder", _S), ("catalyst_id", _S), ("stock", _S), ("market", _S), ("catalyst_type", _S),
        ("decision_time", _UTC), ("decision_day", pa.date32()), ("decision_granularity", _S), ("resolve_time", _UTC),
        ("label", _S), ("fwd_ret", _F), ("prob_positive", _F), ("direction", _S), ("correct", _B), ("status", _S),
        ("reason", _S), ("rationale", _S), ("n_calls", _I), ("prompt_tokens", _I), ("completion_tokens", _I),
        ("total_prompt_tokens", _I), ("total_completion_tokens", _I), ("cached_tokens", _I), ("reasoning_tokens", _I),
        ("cost_usd", _F), ("latency_s", _F), ("prompt_sha256", _S), ("reply_sha256", _S), ("model_returned", _S),
        ("system_fingerprint", _S), ("max_evidence_time", _UTC), ("rehearsal", _B),
        ("probe_answer", _S),
    ]
)  # fmt: skip

EVIDENCE_SCHEMA = pa.schema(
    [
        ("cell", _S), ("catalyst_id", _S), ("epoch", _I), ("kind", _S), ("item_id", _S), ("stock", _S),
        ("ts_start", _UTC), ("ts_end", _UTC), ("known_at", _UTC), ("visible_from", _UTC), ("gate_rule", _S),
        ("verdict", _S), ("chars", _I), ("rank", _I), ("score", _F),
    ]
)  # fmt: skip

CALL_SCHEMA = pa.schema(
    [
        ("cell", _S), ("catalyst_id", _S), ("epoch", _I), ("purpose", _S), ("stage", _S), ("request_sha256", _S), ("model", _S),
        ("sent_at", _UTC), ("latency_s", _F), ("attempts", _I), ("cache_hit", _B), ("prompt_tokens", _I),
        ("cached_tokens", _I), ("completion_tokens", _I), ("reasoning_tokens", _I), ("cost_usd", _F), ("status", _S),
        ("http_status", _I),
    ]
)  # fmt: skip


def total(values: Iterable[N | None]) -> N | None:
    """The sum of ``values``; None if one is not known, for what is missing is not 0."""
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known) if len(known) == len(listed) else None
