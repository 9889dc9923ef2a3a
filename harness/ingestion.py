"""A run that fills a memory with records: documents when they are out, resolved cases once their outcome is known, in order.

What needs no memory (``propose``) runs ahead in parallel; ``apply`` runs in the order of the records, side by side only for
records of different scopes. Every record is on file before the next one that can see it is applied, so a killed run goes on
with the record after the last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from harness.errors import HarnessError
from harness.evidence import case_source
from harness.gateway.result import Stopped
from harness.jobs import BenchmarkIndex, taught
from harness.learning import CellWithMemory, commit_key
from harness.memory import CommitKey
from harness.memory_actor import Applied
from harness.method import FedRecord, Learner
from harness.records import Call, Document, ResolvedCase, Status


def fed_records(
    index: BenchmarkIndex, learner: Learner, with_cases: bool, online: bool
) -> tuple[list[FedRecord], dict[str, int]]:
    """The records that a memory for the forecasts of ``index`` is fed, in order, and what was left out, with counts.

    Args:
        index: the evaluated benchmark: its documents (copies removed) and, where ``online``, its own cases.
        learner: its ``train_limit`` bounds the experience cases, its scopes are part of the keys.
        with_cases: feed resolved cases along with the documents (``feed=docs+cases``).
        online: feed the evaluated cases too, each once its outcome is known.
    """
    records = [_document(d, index, learner) for d in index.evidence.documents]
    silent = 0
    if with_cases:
        cases = [(index.past, False)] if index.past else []
        for source, evaluated in [*cases, (index, True)] if online else cases:
            wanted = taught(source, learner) if not evaluated else source.benchmark.evaluation.catalysts
            outcomes = source.benchmark.evaluation.outcomes
            silent += sum(source.focal(c) is None for c in source.benchmark.evaluation.catalysts)
            for case in wanted:
                resolved = ResolvedCase(case, outcomes[case.catalyst_id], source.focal(case))
                if resolved.focal is not None and resolved.outcome.teaches:
                    records.append(_case(resolved, learner, evaluated))
    left_out = {
        "documents without a time": index.evidence.unknown_time,
        "resolved cases without a focal document": silent,
    }
    return sorted(records, key=lambda r: r.key), {what: n for what, n in left_out.items() if n}


def needed(records: Sequence[FedRecord], until: datetime | None) -> list[FedRecord]:
    """Those of ``records``, in order, that are known before ``until``; all where it is None."""
    return [r for r in records if until is None or r.key.valid_from < until]


def reaches(filled: datetime | None, until: datetime | None) -> bool:
    """Whether a memory filled up to ``filled`` (None: with everything) holds all that is known before ``until`` (None: all)."""
    return filled is None or (until is not None and until <= filled)


def _document(document: Document, index: BenchmarkIndex, learner: Learner) -> FedRecord:
    assert document.time is not None  # an index holds no others
    at = document.time.instant
    key = CommitKey(at, at, document.doc_id, document.time.day, learner.scope_of(document))
    stocks = index.evidence.stocks
    company = " / ".join(stocks[s].name if s in stocks else s for s in document.stocks)
    return FedRecord(key, document, company)


def _case(resolved: ResolvedCase, learner: Learner, evaluated: bool) -> FedRecord:
    at = commit_key(resolved).valid_from
    key = CommitKey(at, at, case_source(resolved, "").item_id, None, learner.scope_of(resolved))
    case = resolved.case
    return FedRecord(key, resolved, case.company, case.catalyst_id if evaluated else None)


class Ingestion:
    """Feeds ``records``, in their order, to the memory of ``cell``; those on file are not fed again."""

    def __init__(self, cell: CellWithMemory, records: Sequence[FedRecord]) -> None:
        learner = cell.spec.method.learner()
        if learner is None:
            raise ValueError(f"{cell.spec.name}: the method has no memory to fill")
        self._cell = cell
        self._learner: Learner = learner
        self._records = records
        self._proposals: dict[str, asyncio.Future[Any]] = {}

    async def run(self) -> int:
        """Until all is committed, or the run is ending; how many records are on file."""
        committed = await self._cell.memory.committed()
        todo = [r for r in self._records if r.key.record_id not in committed]
        progress = self._cell.progress
        progress.total, progress.resumed = len(self._records), len(self._records) - len(todo)
        loop = asyncio.get_running_loop()
        self._proposals = {r.key.record_id: loop.create_future() for r in todo}
        queue = iter(todo)
        ahead = [asyncio.create_task(self._propose(queue)) for _ in range(min(self._cell.width, len(todo)))]
        commits = asyncio.create_task(self._commit_in_order([r.key for r in todo]))
        ending = asyncio.create_task(self._cell.ending.wait())
        try:
            await asyncio.wait([commits, ending], return_when=asyncio.FIRST_COMPLETED)
            if not commits.done():  # what is being applied is paid for: it is taken up, nothing after it is begun
                for future in self._proposals.values():
                    future.cancel()
            return len(self._records) - len(todo) + await commits
        finally:
            for task in (*ahead, ending):
                task.cancel()
            await asyncio.gather(*ahead, ending, return_exceptions=True)

    async def _propose(self, queue: Iterator[FedRecord]) -> None:
        for record in queue:
            if self._cell.ending.begun:
                return
            calls: list[Call] = []
            self._cell.progress.in_flight += 1
            try:
                proposal = await self._learner.propose(record, self._cell.contexts.tools(calls))
                self._proposals[record.key.record_id].set_result(proposal)
            except HarnessError as error:
                self._give_up(error)
                return
            except asyncio.InvalidStateError:  # cancelled: the run is ending
                return
            except Exception as error:  # noqa: BLE001 - a bug: it ends the run where the proposal is waited for, as one in apply does
                if not self._proposals[record.key.record_id].done():
                    self._proposals[record.key.record_id].set_exception(error)
                return
            finally:
                self._cell.progress.in_flight -= 1
                self._cell.record_calls(None, calls)

    async def _commit_in_order(self, keys: Sequence[CommitKey]) -> int:
        done = 0
        while done < len(keys) and not self._cell.ending.begun:
            self._cell.progress.frontier = keys[done].valid_from
            window = self._ready(keys[done:])
            try:
                proposals = [(key, await self._proposals[key.record_id]) for key in window]
            except asyncio.CancelledError:
                break
            done += self._take_up(await self._cell.memory.commit(proposals), len(window))
        return done

    def _ready(self, keys: Sequence[CommitKey]) -> list[CommitKey]:
        """The next record, and those after it that can be applied along with it: proposed, each of another scope."""
        window = [keys[0]]
        scopes = {keys[0].scope}
        for key in keys[1 : self._cell.width]:
            if None in scopes or key.scope in scopes or key.scope is None or not self._proposals[key.record_id].done():
                break
            window.append(key)
            scopes.add(key.scope)
        return window

    def _take_up(self, applied: Applied, asked: int) -> int:
        """Put the calls on file; how many records were committed."""
        for calls in applied.calls.values():
            self._cell.record_calls(None, calls)
        committed = asked
        if applied.failure is not None:
            committed = applied.committed
            self._give_up(applied.failure)
        for _ in range(committed):
            self._cell.progress.count(Status.OK)
        return committed

    def _give_up(self, error: HarnessError) -> None:
        """End the run: no record can be skipped, for what comes after it would be learned by another memory."""
        if isinstance(error, Stopped):
            self._cell.ending.stop()
        else:
            self._cell.ending.fail(error)
