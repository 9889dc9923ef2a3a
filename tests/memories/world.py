"""Memory baselines on benchmarks that are changed in memory: cut at a decision, or with a document planted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from harness.clock import parse_stamp
from harness.jobs import Job
from harness.memory import MemoryLog
from harness.memory_file import read_memory
from harness.plan import make_jobs
from harness.records import Benchmark, CaseSet, Catalyst, Document, Row
from tests.support import config_of, run_jobs

Change = Callable[[Benchmark], Benchmark]
DOCUMENTS, EXPERIENCE, PLANTED = 30, 8, 6
"""What is kept of a benchmark: documents before the decision and half as many after it, experience cases on either side; and
how many documents are planted, so that what a memory makes of them does not hang on one reply."""


@cache
def job_of(*overrides: str) -> Job:
    """The job of one cell; benchmarks are loaded once."""
    (job,) = make_jobs([config_of(*overrides)], lambda text: None)
    return job


def ran(scratch: Path, change: Change, only: Sequence[str] | None, *overrides: str) -> list[Row]:
    """Fill the memory of a changed benchmark and make the forecasts ``only``; rows of the cell."""
    job = job_of(*overrides)
    benchmark = change(job.benchmark)
    assert job.memory is not None
    assert job.memory.training is not None
    memory = replace(job.memory, training=replace(job.memory.training, benchmark=benchmark))
    (rows,) = asyncio.run(run_jobs([replace(job, benchmark=benchmark, memory=memory)], scratch, only)).values()
    return rows


def prompt(scratch: Path, change: Change, case: Catalyst, *overrides: str) -> str | None:
    """Hash of the final prompt for ``case``."""
    (row,) = ran(scratch, change, [case.catalyst_id], *overrides)
    assert row["prompt_sha256"]
    return str(row["prompt_sha256"])


def log_of(scratch: Path) -> MemoryLog:
    """The log of the memory that was filled."""
    (file,) = scratch.glob("memories/*/memory.parquet")
    return read_memory(file)


def with_documents(benchmark: Benchmark, documents: Sequence[Document]) -> Benchmark:
    corpus = replace(benchmark.evaluation.corpus, documents=tuple(documents))
    return replace(benchmark, evaluation=replace(benchmark.evaluation, corpus=corpus))


def small(case: Catalyst) -> Change:
    """The benchmark around the decision of ``case``: so small that its memory is filled in a second."""

    def change(benchmark: Benchmark) -> Benchmark:
        now = case.time.instant
        timed = sorted((d for d in benchmark.evaluation.corpus.documents if d.time), key=_instant)
        before, after = [d for d in timed if _instant(d) <= now], [d for d in timed if _instant(d) > now]
        kept = with_documents(benchmark, before[-DOCUMENTS:] + after[: DOCUMENTS // 2])
        return replace(kept, experience=around(benchmark.experience, now) if benchmark.experience else None)

    return change


def around(cases: CaseSet, now: datetime) -> CaseSet:
    """The cases whose outcomes became known just before ``now``, and as many after."""
    ordered = sorted(cases.catalysts, key=lambda c: cases.outcomes[c.catalyst_id].resolve_at)
    early = [c for c in ordered if cases.outcomes[c.catalyst_id].resolve_at < now]
    chosen = early[-EXPERIENCE:] + ordered[len(early) : len(early) + EXPERIENCE]
    return replace(cases, catalysts=tuple(sorted(chosen, key=lambda c: (c.time.instant, c.catalyst_id))))


def cut(case: Catalyst) -> Change:
    """What was known at the decision of ``case``: no later document, no later outcome."""

    def known(cases: CaseSet) -> CaseSet:
        kept = [
            c
            for c in cases.catalysts
            if cases.outcomes[c.catalyst_id].resolve_at < case.time.instant or c.catalyst_id == case.catalyst_id
        ]
        return replace(cases, catalysts=tuple(kept))

    def change(benchmark: Benchmark) -> Benchmark:
        past = [d for d in benchmark.evaluation.corpus.documents if d.time and d.time.instant <= case.time.instant]
        shorter = with_documents(benchmark, past)
        return replace(
            shorter,
            evaluation=known(shorter.evaluation),
            experience=known(shorter.experience) if shorter.experience else None,
        )

    return change


def planted(case: Catalyst, minutes: int, text: str) -> Change:
    """Documents of another stock, ``minutes`` from T, that say ``text``. The day of a date-only T is all T."""
    at = datetime.fromisoformat(case.time.text)
    at += timedelta(days=1 if case.time.date_only and minutes > 0 else 0, minutes=minutes)
    return planted_at(case, at.strftime("%Y-%m-%d %H:%M:%S"), text)


def planted_at(case: Catalyst, ts: str, text: str) -> Change:
    """As ``planted``, at the exchange-local time ``ts``."""

    def change(benchmark: Benchmark) -> Benchmark:
        documents = benchmark.evaluation.corpus.documents
        other = next(d.stocks[0] for d in documents if d.stocks and case.stock_id not in d.stocks)
        stamp = parse_stamp(ts, "America/New_York" if case.market == "US" else "Asia/Shanghai")
        new = [Document(f"planted{n}", stamp, "", f"{text} ({n})", (other,)) for n in range(PLANTED)]
        return with_documents(benchmark, [*documents, *new])

    return change


def both(*changes: Change) -> Change:
    def change(benchmark: Benchmark) -> Benchmark:
        for one in changes:
            benchmark = one(benchmark)
        return benchmark

    return change


def _instant(document: Document) -> datetime:
    assert document.time is not None
    return document.time.instant
