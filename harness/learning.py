"""A run that learns: forecasts, lessons and commits, each as soon as what it depends on is done, commits in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Protocol

from harness.contexts import Contexts
from harness.ending import Ending
from harness.errors import CallFailed, HarnessError
from harness.gateway.result import Stopped
from harness.jobs import BenchmarkIndex, CellSpec, Progress, taught
from harness.memory import CommitKey
from harness.memory_actor import Applied, MemoryClient, review_key
from harness.method import Learner, Lesson
from harness.records import Call, Catalyst, Forecast, ResolvedCase, Row
from harness.rows import forecast_of
from harness.schedule import Chronology, Step

log = logging.getLogger(__name__)
AHEAD = 8
"""One in so many prepares ahead of the frontier: enough to stay ahead, too few to crowd out the forecasts that others wait for."""
_ENOUGH = (-1, "")
"""Taken from the queue of free forecasts: there will be no more. Before all others, for the run is to end at once."""


class CellWithMemory(Protocol):
    """What a run that writes to its memory needs of the cell that it is a part of."""

    @property
    def spec(self) -> CellSpec: ...
    @property
    def progress(self) -> Progress: ...
    @property
    def ending(self) -> Ending: ...
    @property
    def contexts(self) -> Contexts: ...
    @property
    def width(self) -> int: ...
    @property
    def memory(self) -> MemoryClient: ...
    def record_calls(self, catalyst_id: str | None, calls: Sequence[Call]) -> None: ...


class LearningCell(CellWithMemory, Protocol):
    """What a run that learns from its own forecasts needs beyond that."""

    @property
    def index(self) -> BenchmarkIndex: ...
    async def prepare(self, case: Catalyst, index: BenchmarkIndex) -> None: ...
    async def recollect(self, case: Catalyst) -> Forecast | None: ...
    async def forecast(self, case: Catalyst, epoch: int) -> Forecast | None: ...
    def give_up_on(self, rest: list[tuple[Catalyst, int]]) -> None: ...


class Learning:
    """One learning run over the cases of a plan; rows that are ``finished`` are not asked again.

    A cell that goes on learning through its evaluation set (``memory=online``) learns from the experience split in the same run,
    because the last outcomes of the one become known after the first decisions of the other.
    """

    def __init__(self, cell: LearningCell, plan: list[tuple[Catalyst, int]], finished: dict[str, Row]) -> None:
        learner = cell.spec.method.learner()
        if learner is None:
            raise ValueError(f"{cell.spec.name}: the method has no memory to learn with")
        self._cell = cell
        self._learner: Learner = learner
        self._finished = finished
        self._plan = {case.catalyst_id: case for case, _ in plan}
        past = cell.index.past if cell.spec.kind == "cells" and cell.spec.starts_empty else None
        self._index = dict.fromkeys(self._plan, cell.index)
        self._cases = dict(self._plan)
        if past is not None:
            self._cases |= {case.catalyst_id: case for case in taught(past, cell.spec.method)}
            self._index |= dict.fromkeys(self._cases.keys() - self._plan.keys(), past)
        self._resolved = {name: self._outcome(name) for name in self._cases}
        self._chronology = Chronology(
            steps_of(list(self._resolved.values()), learner), [(c.time.instant, n) for n, c in self._cases.items()]
        )
        self._free: asyncio.PriorityQueue[tuple[int, str]] = asyncio.PriorityQueue()
        self._proposals: dict[str, asyncio.Future[Any]] = {}
        self._committed: set[str] = set()
        self._asked: set[str] = set()
        self._left = len(self._cases)

    async def run(self) -> None:
        """Until all is forecast and committed, or the cell is ending."""
        loop = asyncio.get_running_loop()
        self._proposals = {name: loop.create_future() for name in self._cases}
        self._committed = await self._cell.memory.committed()
        self._release()
        workers = [asyncio.create_task(self._work()) for _ in range(min(self._cell.width, len(self._cases)))]
        ahead = iter(sorted(self._resolved.values(), key=commit_key))
        scouts = [asyncio.create_task(self._prepare(ahead)) for _ in range(max(1, self._cell.width // AHEAD))]
        commits = asyncio.create_task(self._commit_in_order())
        others = [commits, asyncio.create_task(self._end_early(len(workers))), *scouts]
        try:
            await asyncio.gather(*workers)
            if not self._cell.ending.begun:
                await commits
        finally:
            for task in (*others, *workers):
                task.cancel()
            await asyncio.gather(*others, *workers, return_exceptions=True)
        self._cell.give_up_on([(c, 0) for n, c in self._plan.items() if n not in self._asked | self._finished.keys()])

    def _outcome(self, name: str) -> ResolvedCase:
        index, case = self._index[name], self._cases[name]
        return ResolvedCase(case, index.benchmark.evaluation.outcomes[name], index.focal(case))

    async def _work(self) -> None:
        while self._left and not self._cell.ending.begun:
            item = await self._free.get()
            if item == _ENOUGH:
                return
            name = item[1]
            learned, proposal = await self._forecast_and_propose(name)
            if not learned:
                return
            self._proposals[name].set_result(proposal)
            self._left -= 1
            if not self._left:
                for _ in range(self._cell.width):
                    self._free.put_nowait(_ENOUGH)

    async def _prepare(self, ahead: Iterator[ResolvedCase]) -> None:
        """Ahead of the frontier: what forecasts need and the memory has no part in, in the order in which others wait."""
        for resolved in ahead:
            name = resolved.case.catalyst_id
            if self._cell.ending.begun:
                return
            if name not in self._finished and name not in self._asked:
                await self._cell.prepare(resolved.case, self._index[name])

    async def _forecast_and_propose(self, name: str) -> tuple[bool, Any]:
        """(True, what the case teaches), or (False, None) if the run ends before it can be learned from."""
        row = self._finished.get(name)
        if row is None:
            self._asked.add(name)
        forecast = forecast_of(row) if row else await self._forecast(name)
        if forecast is None:
            return False, None
        if not forecast.status.final:
            why = f"learning cannot go past {name}: {forecast.status} ({forecast.reason})"
            self._cell.ending.fail(CallFailed(str(forecast.status), why))
            return False, None
        if name in self._committed:
            return True, None
        calls: list[Call] = []
        try:
            lesson = Lesson(self._resolved[name], forecast)
            return True, await self._learner.propose(lesson, self._cell.contexts.tools(calls))
        except Stopped:
            self._cell.ending.stop()
        except HarnessError as error:
            self._cell.ending.fail(error)
        finally:
            self._cell.record_calls(name, calls)
        return False, None

    async def _forecast(self, name: str) -> Forecast | None:
        if name in self._plan:
            return await self._cell.forecast(self._cases[name], 0)
        return await self._cell.recollect(self._cases[name])

    async def _commit_in_order(self) -> None:
        try:
            while burst := self._chronology.burst:
                self._chronology.commit(await self._commit(burst))
                self._release()
        except HarnessError as error:
            self._cell.ending.fail(error)
        except Exception as error:
            log.exception("%s: commit", self._cell.spec.name)
            self._cell.ending.fail(HarnessError(f"a bug in learning: {type(error).__name__}: {error}"))
            raise

    async def _commit(self, burst: Sequence[Step]) -> int:
        """Commit those at the head of ``burst`` whose proposals are there, at least one; how many."""
        first = burst[0].key
        if burst[0].decision is None:
            if first.record_id not in self._committed:
                self._take_up(await self._cell.memory.review(first, self._known(first)))
            return 1
        await self._proposals[first.record_id]
        ready = list(takewhile(lambda step: self._proposals[step.key.record_id].done(), burst))
        keys = [step.key for step in ready if step.key.record_id not in self._committed]
        if keys:
            self._take_up(await self._cell.memory.commit([(k, self._proposals[k.record_id].result()) for k in keys]))
        return len(ready)

    def _take_up(self, applied: Applied) -> None:
        for record_id, calls in applied.calls.items():
            self._cell.record_calls(record_id if record_id in self._cases else None, calls)
        if applied.failure is not None:
            raise applied.failure

    def _known(self, key: CommitKey) -> list[ResolvedCase]:
        """Cases resolved before a review, those of the experience split included, in the order they became known."""
        return sorted((r for r in self._resolved.values() if r.outcome.resolve_at < key.valid_from), key=commit_key)

    async def _end_early(self, workers: int) -> None:
        await self._cell.ending.wait()
        for _ in range(workers):
            self._free.put_nowait(_ENOUGH)

    def _release(self) -> None:
        for item in self._chronology.free():
            self._free.put_nowait(item)
        progress = self._cell.progress
        progress.frontier, progress.front = self._chronology.frontier, self._free.qsize() + progress.in_flight


def commit_key(resolved: ResolvedCase) -> CommitKey:
    """Order of commits: (resolve time, decision time, catalyst id). No outcome counts as known before its own decision."""
    case = resolved.case
    return CommitKey(max(resolved.outcome.resolve_at, case.time.instant), case.time.instant, case.catalyst_id)


def steps_of(cases: Sequence[ResolvedCase], learner: Learner) -> list[Step]:
    """The commits of a run over ``cases``: one a case, and the learner's reviews in between."""
    steps = [Step(commit_key(resolved), resolved.case.time.instant) for resolved in cases]
    if not steps:
        return []
    first, last = min(s.key.decision_time for s in steps), max(s.key.valid_from for s in steps)
    return [*steps, *(Step(review_key(at), None) for at in learner.review_times(first, last))]
