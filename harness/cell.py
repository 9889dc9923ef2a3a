"""One cell: method × backbone × benchmark × seed. Runs its forecasts, several at a time, and stores every row at once.

A run that learns (``memory=online``, or the training of a memory on the experience split) makes each forecast as soon as what
it depends on is committed, and commits in order: see ``harness.schedule``.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from harness.contexts import Contexts, Notes, Services
from harness.ending import Ending
from harness.errors import CallFailed, GateError, HarnessError
from harness.evidence import Gate
from harness.evidence import verdict as gate_verdict
from harness.gateway.result import EmbeddingFailed, Stopped
from harness.ingestion import Ingestion, fed_records, needed
from harness.jobs import BenchmarkIndex, CellResult, CellSpec, Progress, planned
from harness.learning import Learning
from harness.memory_actor import MemoryClient
from harness.records import PENDING, Call, Catalyst, Forecast, Row, Status
from harness.rows import call_rows, evidence_rows, forecast_row
from harness.store import CellStore, Key, write_json

log = logging.getLogger(__name__)
FLUSH_SECONDS = 1.0
"""Finished rows wait at most this long for their part; their replies are in the cache from the first moment."""

Plan = list[tuple[Catalyst, int]]


class CellRun:
    """Runs one cell."""

    def __init__(self, spec: CellSpec, index: BenchmarkIndex, services: Services, store: CellStore) -> None:
        self.spec = spec
        self.progress = Progress(backbone=spec.config.backbone.name if spec.method.uses_llm else None)
        self.notes = Notes()
        self._config = spec.config
        self._services = services
        self._store = store
        self.index = index
        self.ending = Ending()
        self.contexts = Contexts(spec, index, services, self.notes)
        self._filled_until: datetime | None = None
        self._rows: list[Row] = []
        self._evidence: list[Row] = []
        self._calls: list[Row] = []

    def stop(self) -> None:
        """Start no further forecast; those under way end and are stored."""
        self.ending.stop()

    async def run(self) -> CellResult:
        """Do what is missing, export the files, write cell.json."""
        plan = planned(self.index.benchmark, self.spec)
        finished = await asyncio.to_thread(self._store.finished)
        todo = [(case, epoch) for case, epoch in plan if (case.catalyst_id, epoch) not in finished]
        self.progress.total, self.progress.resumed = len(plan), len(plan) - len(todo)
        self.progress.state = "running"
        self._say_what_is_missing([case for case, _ in plan])
        ended = asyncio.Event()
        flusher = asyncio.create_task(self._flush_until(ended))
        ingested = None
        try:
            if self.spec.ingests:
                ingested = await self._ingest()
            elif self.spec.learns:
                await Learning(self, plan, {key[0]: row for key, row in finished.items()}).run()
            else:
                await self._forecast_all(todo)
        finally:
            ended.set()
            await flusher
        return await self._conclude(plan, ingested)

    async def _ingest(self) -> int:
        """Fill the memory with what this configuration feeds it; how many records are in it."""
        learner = self.spec.method.learner()
        assert learner is not None
        config = self._config
        records, left_out = fed_records(
            self.index, learner, with_cases=config.feed_cases, online=config.memory == "online"
        )
        for what, n in left_out.items():
            self.notes.warn(f"left out of the memory: {n} {what}.")
        ingested = await Ingestion(self, needed(records, self.spec.fed_until)).run()
        committed = await self.memory.committed()
        missing = (r.key.valid_from for r in records if r.key.record_id not in committed)
        self._filled_until = next(missing, None)
        return ingested

    def _say_what_is_missing(self, cases: Sequence[Catalyst]) -> None:
        silent = sum(self.index.focal(case) is None for case in cases)
        if silent:
            self.notes.warn(f"{silent} of {len(cases)} forecasts have no focal document; their prompts say so.")

    async def _forecast_all(self, todo: Plan) -> None:
        queue = iter(todo)

        async def work() -> None:
            for case, epoch in queue:
                await self.forecast(case, epoch)
                if self.ending.begun:
                    return

        width = min(self._config.backbone.width, len(todo))
        await asyncio.gather(*(work() for _ in range(width)))
        self.give_up_on(list(queue))

    async def forecast(self, case: Catalyst, epoch: int) -> Forecast | None:
        """Make and record one forecast; None if the run was stopped before it was made."""
        calls: list[Call] = []
        shared: list[Call] = []
        self.progress.in_flight += 1
        try:
            forecast = await self.spec.method.forecast(case, self.contexts.of(case, epoch, calls, shared))
            self._check_gate(case, forecast)
        except Stopped:
            self.ending.stop()
            return None
        except Exception as error:  # noqa: BLE001 - classified: what is no known failure is a bug, and fails the cell
            forecast = self._failed(case, error)
        finally:
            self.progress.in_flight -= 1
            self._calls += call_rows(self.spec.name, case.catalyst_id, epoch, calls)
            self.record_calls(None, shared)
        if forecast.status is Status.BUDGET:
            self.ending.out_of_money(forecast.reason or "budget reached")
        self._record(case, epoch, forecast, calls)
        return forecast

    async def recollect(self, case: Catalyst) -> Forecast | None:
        """Forecast a case of the experience split in a run that learns through both splits: nothing of it is scored."""
        assert self.index.past is not None
        calls: list[Call] = []
        self.progress.in_flight += 1
        try:
            return await self.spec.method.forecast(case, self.contexts.of(case, 0, calls, calls, self.index.past))
        except Stopped:
            self.ending.stop()
            return None
        except Exception as error:  # noqa: BLE001 - as for any forecast
            return self._failed(case, error)
        finally:
            self.progress.in_flight -= 1
            self.record_calls(case.catalyst_id, calls)

    async def prepare(self, case: Catalyst, index: BenchmarkIndex) -> None:
        """Do what the forecast of ``case`` needs and its memory has no part in; a failure is left for the forecast to meet."""
        learner = self.spec.method.learner()
        calls: list[Call] = []
        try:
            if learner is not None:
                await learner.prepare(case, replace(self.contexts.of(case, 0, calls, calls, index), memory=None))
        except HarnessError as error:
            log.info("%s, preparing %s: %s", self.spec.name, case.catalyst_id, error)
        finally:
            self.record_calls(None, calls)

    def record_calls(self, catalyst_id: str | None, calls: Sequence[Call]) -> None:
        """Put calls that belong to no forecast row on file."""
        self.progress.pay(calls)
        self._calls += call_rows(self.spec.name, catalyst_id, None, calls)

    def give_up_on(self, rest: Plan) -> None:
        """Rows that were not asked because the endpoint refuses all of them, or the budget is reached: stored as such."""
        if (unasked := self.ending.unasked()) is None:
            return
        for case, epoch in rest:
            self._record(case, epoch, unasked, ())

    def _failed(self, case: Catalyst, error: Exception) -> Forecast:
        """The forecast that an exception amounts to."""
        if isinstance(error, CallFailed | EmbeddingFailed):
            if error.status == Status.BUDGET or (isinstance(error, EmbeddingFailed) and error.fatal):
                self.ending.fail(error)
            return Forecast(Status(error.status), reason=str(error))
        if isinstance(error, HarnessError) and not isinstance(error, GateError):
            self.ending.fail(error)  # the endpoint refuses this cell, or the cache cannot be written
            return Forecast(Status.PROVIDER, reason=str(error))
        log.error("%s, catalyst %s: %s", self.spec.name, case.catalyst_id, traceback.format_exc())
        return Forecast(Status.BUG, reason=f"{type(error).__name__}: {error}")

    def _check_gate(self, case: Catalyst, forecast: Forecast) -> None:
        """The gate once more, at the prompt: under strict or paper a late record is a bug, whatever let it through."""
        if self._config.gate is Gate.OFF:
            return
        bad = [p.source for p in forecast.shown if gate_verdict(p.source, case.time) != "ok"]
        if bad:
            raise GateError(
                f"catalyst {case.catalyst_id}: {bad[0].kind} {bad[0].item_id} (known {bad[0].known_at}) is not known "
                f"before the decision at {case.time.instant}; {len(bad)} such records reached the prompt"
            )

    def _record(self, case: Catalyst, epoch: int, forecast: Forecast, calls: Sequence[Call]) -> None:
        self.progress.count(forecast.status)
        self.progress.pay(calls)
        outcome = self.index.benchmark.evaluation.outcomes[case.catalyst_id]
        self._rows.append(forecast_row(self.spec.name, self._config, case, outcome, epoch, forecast, calls))
        self._evidence += evidence_rows(self.spec.name, case, epoch, forecast.shown)

    async def _flush_until(self, ended: asyncio.Event) -> None:
        """Write what is waiting once a second, and a last time at the end. The only writer: it is never cancelled."""
        last = False
        while not last:
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), FLUSH_SECONDS)
            last = ended.is_set()  # read before the rows are taken: what ends during the write is taken next time
            rows, evidence, calls = self._rows, self._evidence, self._calls
            self._rows, self._evidence, self._calls = [], [], []
            if rows or calls:
                try:
                    await asyncio.to_thread(self._store.append, rows, evidence, calls)
                except HarnessError as error:  # a full disk: nothing is lost, the replies are in the cache
                    self.ending.fail(error)

    async def _conclude(self, plan: Plan, ingested: int | None) -> CellResult:
        """Export the files, write cell.json; ``ingested`` is how many records a memory that is fed holds."""
        memory = self._services.memory
        if memory:
            await memory.export(self._store.directory / "memory.parquet", self._filled_until)
            for what, times in (await memory.incidents()).items():
                self.notes.warn(f"in its memory: {times} x {what}.")
        rows = await asyncio.to_thread(self._store.export)
        on_file = Counter(row["status"] for row in rows)
        if ingested is None:
            wanted: set[Key] = {(case.catalyst_id, epoch) for case, epoch in plan}
            counts = Counter(row["status"] for row in rows if (row["catalyst_id"], row["epoch"]) in wanted)
            n, total, items = max(len(plan), len(rows)), len(plan), "forecasts"
        else:
            n = total = self.progress.total
            counts = on_file = Counter({str(Status.OK): ingested})
            if self.ending.budget is not None:
                counts[str(Status.BUDGET)] = total - ingested
            items = "records"
        verdict = self.ending.verdict(counts, total, items, rows)
        outcomes = self.index.benchmark.evaluation.outcomes
        if any(outcomes[case.catalyst_id].label == PENDING for case, _ in plan):
            await asyncio.to_thread(self._store.seal, verdict.status == "complete")
        config = self._config
        write_json(
            self._store.directory / "cell.json",
            {
                "cell": self.spec.name,
                "method": config.method.name,
                "backbone": config.backbone.name,
                "benchmark": config.benchmark.name,
                "gate": str(config.gate),
                "memory": config.memory,
                "embedder": config.embedder.name,
                "seed": config.run.seed,
                "cutoff": config.backbone.cutoff.isoformat() if config.backbone.cutoff else None,
                "rehearsal": config.backbone.rehearsal or any(row["rehearsal"] for row in rows),
                "uses_llm": self.spec.method.uses_llm,
                "status": verdict.status,
                "reason": verdict.reason,
                "remedy": verdict.remedy,
                "n": n,
                "counts": dict(sorted(on_file.items())),
                "coverage": on_file[str(Status.OK)] / n if n else None,
                "instruction_sha256": self.spec.method.instruction_sha256(),
                "memory_log_sha256": await memory.sha256() if memory else None,
                "memory_filled_until": self._filled_until.isoformat() if self._filled_until else None,
                "warnings": [*self.index.benchmark.warnings, *self.notes.lines()],
                "identity": self.spec.identity,
            },
        )
        self.progress.state = verdict.status
        return CellResult(
            self.spec.name, verdict.status, dict(counts), total, self.progress.resumed, verdict.reason, verdict.remedy,
            verdict.budget, dict(sorted(self.notes.met.items())),
        )  # fmt: skip

    @property
    def width(self) -> int:
        """How many of its forecasts may be under way."""
        return self._config.backbone.max_in_flight

    @property
    def memory(self) -> MemoryClient:
        assert self._services.memory is not None
        return self._services.memory
