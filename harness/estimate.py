"""``run.mode=estimate``: what a grid will cost, a cell a row, without a call and without Ray.

Every method says what it expects to ask (``Method.expected``). Requests that several cells share are counted once, with the first
of them, as they are paid once. Each high end has room for replies that must be asked for again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from harness.config import build, digest
from harness.errors import HarnessError
from harness.evidence import Deferred
from harness.expected import ZERO, Expected, Range, Scribe, Survey
from harness.gateway.settings import Price
from harness.ingestion import fed_records, needed, reaches
from harness.jobs import BenchmarkIndex, Job, taught, trainings_of
from harness.ledger import read_payments
from harness.listing import listing
from harness.method import Context, FedRecord
from harness.records import EMBED, Catalyst, ResolvedCase
from harness.store import RunDirectory, write_json

FRESH_SHARE = 0.05
"""Calls that an unusable reply makes again, at most usually."""


@dataclass(frozen=True, slots=True)
class Bill:
    """Calls and tokens with what they cost: ``cost_usd`` None where a price is not known."""

    calls: Range = ZERO
    tokens_in: Range = ZERO
    tokens_out: Range = ZERO
    embedded: Range = ZERO
    cost_usd: Range | None = ZERO

    def __add__(self, other: Bill) -> Bill:
        cost = None if self.cost_usd is None or other.cost_usd is None else self.cost_usd + other.cost_usd
        return Bill(
            self.calls + other.calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.embedded + other.embedded,
            cost,
        )


@dataclass
class Row:
    """One cell or training. ``total`` None: its method does not say what it asks."""

    cell: str
    kind: str
    total: Bill | None
    remaining: Bill | None
    purposes: dict[str, Bill] = field(default_factory=dict)


@dataclass(frozen=True)
class Estimate:
    """All rows and their sum; the sum leaves out rows that are not known."""

    rows: Sequence[Row]

    @property
    def total(self) -> Bill:
        return sum((row.total for row in self.rows if row.total), Bill())

    @property
    def remaining(self) -> Bill:
        return sum((row.remaining for row in self.rows if row.remaining), Bill())

    def as_json(self) -> dict[str, Any]:
        """As ``estimate.json`` holds it."""
        unknown = [row.cell for row in self.rows if row.total is None]
        sums = {"total": asdict(self.total), "remaining": asdict(self.remaining)}
        return {"cells": [asdict(row) for row in self.rows], **sums, "unknown": unknown}


def estimate(jobs: Sequence[Job], directory: RunDirectory) -> Estimate:
    """What ``jobs`` and the trainings they wait for will cost, in all and after what is done in ``directory``."""
    everything = [*trainings_of(jobs), *jobs]
    indexes: dict[int, BenchmarkIndex] = {}
    counted: set[tuple[str, str]] = set()
    done = _Done(directory)
    rows = {}
    # Who waits for a training asks later than it.
    for job in sorted(everything, key=lambda j: bool(j.memory and j.memory.training)):
        if id(job.benchmark) not in indexes:
            indexes[id(job.benchmark)] = BenchmarkIndex.of(job.benchmark)
        rows[job.spec.name] = _row(job, _expected(job, indexes[id(job.benchmark)], counted), done)
    return Estimate([rows[job.spec.name] for job in everything])


def _expected(job: Job, index: BenchmarkIndex, counted: set[tuple[str, str]]) -> list[Expected] | None:
    """What the job adds to the requests ``counted`` so far."""
    if not job.spec.method.uses_llm:
        return []
    found = asyncio.run(job.spec.method.expected(survey_of(job, index)))
    if found is None:
        return None
    scope = digest(job.spec.config.backbone.identity())
    vectors = digest(job.spec.config.embedder.model_dump(mode="json", by_alias=True))
    fresh = []
    for one in found:
        key = (vectors if one.purpose == EMBED else scope, one.key)
        if key not in counted:
            counted.add(key)
            fresh.append(one)
    return fresh


def survey_of(job: Job, index: BenchmarkIndex) -> Survey:
    """What a method is shown of a job."""
    spec, config = job.spec, job.spec.config
    past = index.past if spec.learns and spec.kind == "cells" and spec.starts_empty else None
    before = [(case, 0) for case in taught(past, spec.method)] if past else []
    cases = [*before, *job.plan]
    home = {case.catalyst_id: past or index for case, _ in before} | {case.catalyst_id: index for case, _ in job.plan}

    def context(case: Catalyst) -> Context:
        at = home[case.catalyst_id]
        return Context(
            benchmark=at.benchmark.name,
            gate=config.gate,
            evidence=at.evidence.as_of(case.stock_id, case.time, config.gate),
            experience=Deferred(lambda: at.experience[config.memory].as_of(case, config.gate)),
            memory=None,
            llm=Scribe(),
            build_llm=Scribe(),
            embed=_no_vectors,
            shared=_no_directory,
            feed_cases=config.feed_cases,
            context_chars=config.context_chars,
            rng=lambda: np.random.default_rng(0),
            warn=lambda what, detail="", /: None,
        )

    learned = cases if spec.learns else []
    lessons = [_resolved(home[case.catalyst_id], case) for case, _ in learned]
    lessons.sort(key=lambda r: r.outcome.resolve_at)
    remembers = spec.learns or (
        spec.method.learner() is not None and config.memory != "none" and job.memory is not None
    )
    return Survey(spec.name, cases, context, lessons, remembers, config.run.seed, _records(job, index))


def _records(job: Job, index: BenchmarkIndex) -> Sequence[FedRecord]:
    learner, config = job.spec.method.learner(), job.spec.config
    if learner is None or not job.spec.ingests:
        return ()
    fed = fed_records(index, learner, with_cases=config.feed_cases, online=config.memory == "online")[0]
    return needed(fed, job.spec.fed_until)


def _resolved(index: BenchmarkIndex, case: Catalyst) -> ResolvedCase:
    return ResolvedCase(case, index.benchmark.evaluation.outcomes[case.catalyst_id], index.focal(case))


async def _no_vectors(texts: Sequence[str]) -> Any:
    raise HarnessError("an estimate embeds nothing: Method.expected must not use ctx.embed")


def _no_directory(key: str, make: Any) -> Any:
    raise HarnessError("an estimate builds nothing: Method.expected must not use ctx.shared")


def _row(job: Job, expected: Sequence[Expected] | None, done: _Done) -> Row:
    spec = job.spec
    if expected is None:
        return Row(spec.name, spec.kind, None, None)
    price = spec.config.backbone.prices.at(date.today())
    endpoint = build(spec.config.embedder, "embedder").endpoint
    embedding = endpoint.prices.at(date.today()) if endpoint else Price(embedding=0)
    groups: defaultdict[str, list[Expected]] = defaultdict(list)
    for one in expected:
        if one.purpose != EMBED or endpoint is not None:
            groups[one.purpose].append(one)
    purposes = {
        name: _bill(name, some, price, embedding, spec.config.backbone.thinking_tokens) for name, some in groups.items()
    }
    left = [
        bill if not done.knows else _times(bill, done.share_left(job, name, bill)) for name, bill in purposes.items()
    ]
    return Row(spec.name, spec.kind, sum(purposes.values(), Bill()), sum(left, Bill()), purposes)


def _bill(purpose: str, expected: Iterable[Expected], price: Price, embedding: Price, thinking: int) -> Bill:
    calls = tokens_in = tokens_out = ZERO
    for one in expected:
        calls, tokens_in, tokens_out = calls + one.calls, tokens_in + one.tokens_in, tokens_out + one.tokens_out
    if purpose == EMBED:
        ends = [embedding.embedding_cost(round(n)) for n in (tokens_in.low, tokens_in.high)]
        return Bill(calls=calls, embedded=tokens_in, cost_usd=_range(ends))
    calls, tokens_in = calls.widened(FRESH_SHARE), tokens_in.widened(FRESH_SHARE)
    tokens_out = (tokens_out + Range(0, thinking) * calls).widened(FRESH_SHARE)
    pairs = ((tokens_in.low, tokens_out.low), (tokens_in.high, tokens_out.high))
    return Bill(calls, tokens_in, tokens_out, cost_usd=_range([price.cost(round(i), 0, round(o)) for i, o in pairs]))


def _range(ends: Sequence[float | None]) -> Range | None:
    low, high = ends
    return None if low is None or high is None else Range(low, high)


def _times(bill: Bill, share: Range) -> Bill:
    cost = None if bill.cost_usd is None else bill.cost_usd * share
    return Bill(bill.calls * share, bill.tokens_in * share, bill.tokens_out * share, bill.embedded * share, cost)


class _Done:
    """What a run directory has already paid for, taken off the cells in their order."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self._paid: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        for paid in read_payments(directory.cache):
            one = paid.payment
            if one.status == "ok":
                owner = (one.cell or "") if one.stage == "forecast" or one.stage == "memory" else ""
                self._paid[paid.backbone, owner, one.purpose] += 1
        self.knows = bool(self._paid)

    def share_left(self, job: Job, purpose: str, bill: Bill) -> Range:
        """The share of ``bill`` that is still to be paid; calls of a build are anybody's."""
        spec = job.spec
        store = self._directory.store(spec.kind, spec.name)
        about = store.about()
        finished = len(store.finished())
        if about is not None and about.get("status") == "complete" and finished >= len(job.plan):
            filled = about.get("memory_filled_until")
            if reaches(datetime.fromisoformat(filled) if filled else None, spec.fed_until):
                return ZERO
        backbone = spec.config.embedder.name if purpose == EMBED else spec.config.backbone.name
        shared = (backbone, "", purpose)
        own = (backbone, spec.name, purpose)
        key = own if self._paid.get(own) else shared
        used = min(self._paid.get(key, 0), round(bill.calls.high))
        if key in self._paid:
            self._paid[key] -= used
        low, high = bill.calls.low, bill.calls.high
        return Range(max(0.0, low - used) / low if low else 0.0, max(0.0, high - used) / high if high else 0.0)


def estimate_text(found: Estimate) -> str:
    """The estimate as text: a row a cell, and the sum."""
    left = any(row.total != row.remaining for row in found.rows)
    head = ["cell", "calls", "tokens in", "tokens out", *(["embedded"] if found.total.embedded.high else []), "cost"]
    head += ["still to pay: calls", "cost"] if left else []

    def shown(name: str, total: Bill | None, rest: Bill | None) -> list[str]:
        if total is None or rest is None:
            return [name, "not known", *[""] * (len(head) - 2)]
        cells = [name, span(total.calls), span(total.tokens_in), span(total.tokens_out)]
        cells += [span(total.embedded)] if found.total.embedded.high else []
        cells.append(dollars(total.cost_usd))
        return cells + ([span(rest.calls), dollars(rest.cost_usd)] if left else [])

    rows: list[list[str] | None] = [shown(row.cell, row.total, row.remaining) for row in found.rows]
    text = listing(head, [*rows, None, shown("total", found.total, found.remaining)])
    silent = sum(row.total is None for row in found.rows)
    note = f"\nnot known: {silent} cells whose method does not say what it asks (Method.expected); the total leaves them out"
    return text + (note if silent else "")


def span(found: Range) -> str:
    """Low and high as whole numbers."""
    low, high = int(found.low), round(found.high)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def dollars(found: Range | None) -> str:
    """Low and high in USD; ``-`` without prices."""
    return "-" if found is None else f"${found.low:,.4f}–{found.high:,.4f}"


def write_estimate(found: Estimate, directory: Path) -> None:
    """Write ``estimate.json``."""
    write_json(directory / "estimate.json", found.as_json())
