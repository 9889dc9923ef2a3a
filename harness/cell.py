"""One cell: method × backbone × benchmark × seed. Runs its forecasts, several at a time, and stores every row at once.

A run that learns (``memory=online``, or the training of a memory on the experience split) makes each forecast as soon as what
it depends on is committed, and commits in order: see ``harness.schedule``.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness.calls import CallingLLM, Chat, Embedding
from harness.clock import Stamp
from harness.errors import CallFailed, GateError, HarnessError
from harness.evidence import Deferred, Gate, verdict
from harness.gateway.result import EmbeddingFailed, Stopped
from harness.ingestion import Ingestion, fed_records, needed
from harness.jobs import BenchmarkIndex, CellResult, CellSpec, planned
from harness.learning import Learning
from harness.memory_actor import MemoryClient
from harness.method import MATCHED_CONTEXT_CHARS, Context, Shared, Tools, Vectors
from harness.records import PENDING, Call, Catalyst, Forecast, Status
from harness.rows import Row, call_rows, evidence_rows, forecast_row
from harness.store import CellStore, Key, write_json

log = logging.getLogger(__name__)
FLUSH_SECONDS = 1.0
"""Finished rows wait at most this long for their part; their replies are in the cache from the first moment."""

Plan = list[tuple[Catalyst, int]]


@dataclass(frozen=True)
class Services:
    """What a cell's forecasts may call."""

    chat: Chat | None
    embed: Embedding
    shared: Shared
    memory: MemoryClient | None = None


@dataclass
class Progress:
    """Counts of one cell, read by the session while it runs. ``frontier`` and ``front`` are of runs that learn.

    ``in_flight`` forecasts are under way: some of their calls are in the air, others wait for their turn.
    ``cost_usd`` is None from the first call on whose cost is not known; ``backbone`` None for a method without calls.
    """

    total: int = 0
    resumed: int = 0
    in_flight: int = 0
    done: Counter[str] = field(default_factory=Counter)
    cost_usd: float | None = 0.0
    state: str = "waiting"
    backbone: str | None = None
    frontier: datetime | None = None
    front: int = 0

    @property
    def answered(self) -> int:
        return self.resumed + sum(self.done.values())

    def count(self, status: str) -> None:
        """One more is done."""
        self.done[str(status)] += 1

    def pay(self, calls: Sequence[Call]) -> None:
        """Add what ``calls`` have cost."""
        for call in calls:
            unknown = call.cost_usd is None or self.cost_usd is None
            self.cost_usd = None if unknown else (self.cost_usd or 0.0) + (call.cost_usd or 0.0)


@dataclass(frozen=True, slots=True)
class _MemoryAsOf:
    """``harness.method.MemoryView``: a memory as of one decision."""

    memory: MemoryClient
    decision: Stamp
    gate: Gate

    async def recall(self, question: Any) -> Any:
        return await self.memory.recall(question, self.decision, self.gate)


class CellRun:
    """Runs one cell."""

    def __init__(self, spec: CellSpec, index: BenchmarkIndex, services: Services, store: CellStore) -> None:
        self.spec = spec
        self.progress = Progress(backbone=spec.config.backbone.name if spec.method.uses_llm else None)
        self._met: dict[str, str] = {}
        self._config = spec.config
        self._index = index
        self._services = services
        self._store = store
        self._stopping = False
        self._fatal: HarnessError | None = None
        self._budget: str | None = None
        self._filled_until: datetime | None = None
        self.ending = asyncio.Event()
        """Set once no further forecast is to be started."""
        self._rows: list[Row] = []
        self._evidence: list[Row] = []
        self._calls: list[Row] = []

    def stop(self) -> None:
        """Start no further forecast; those under way end and are stored."""
        self._stopping = True
        self.ending.set()

    async def run(self) -> CellResult:
        """Do what is missing, export the files, write cell.json."""
        plan = planned(self._index.benchmark, self.spec)
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
            self._index, learner, with_cases=config.feed == "docs+cases", online=config.memory == "online"
        )
        for what, n in left_out.items():
            self.warn(f"left out of the memory: {n} {what}.")
        ingested = await Ingestion(self, needed(records, self.spec.fed_until)).run()
        committed = await self.memory.committed()
        missing = (r.key.valid_from for r in records if r.key.record_id not in committed)
        self._filled_until = next(missing, None)
        return ingested

    def _say_what_is_missing(self, cases: Sequence[Catalyst]) -> None:
        silent = sum(self._index.focal(case) is None for case in cases)
        if silent:
            self.warn(f"{silent} of {len(cases)} forecasts have no focal document; their prompts say so.")

    async def _forecast_all(self, todo: Plan) -> None:
        queue = iter(todo)

        async def work() -> None:
            for case, epoch in queue:
                await self.forecast(case, epoch)
                if self.ending.is_set():
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
            forecast = await self.spec.method.forecast(case, self.context(case, epoch, calls, shared))
            self._check_gate(case, forecast)
        except Stopped:
            self.stop()
            return None
        except Exception as error:  # noqa: BLE001 - classified: what is no known failure is a bug, and fails the cell
            forecast = self._failed(case, error)
        finally:
            self.progress.in_flight -= 1
            self._calls += call_rows(self.spec.name, case.catalyst_id, epoch, calls)
            self.record_calls(None, shared)
        if forecast.status is Status.BUDGET:
            self._budget = forecast.reason or "budget reached"
            self.ending.set()
        self._record(case, epoch, forecast, calls)
        return forecast

    async def recollect(self, case: Catalyst) -> Forecast | None:
        """Forecast a case of the experience split in a run that learns through both splits: nothing of it is scored."""
        assert self._index.past is not None
        calls: list[Call] = []
        self.progress.in_flight += 1
        try:
            return await self.spec.method.forecast(case, self.context(case, 0, calls, calls, self._index.past))
        except Stopped:
            self.stop()
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
                await learner.prepare(case, replace(self.context(case, 0, calls, calls, index), memory=None))
        except HarnessError as error:
            log.info("%s, preparing %s: %s", self.spec.name, case.catalyst_id, error)
        finally:
            self.record_calls(None, calls)

    def context(
        self,
        case: Catalyst,
        epoch: int,
        calls: list[Call],
        shared: list[Call],
        index: BenchmarkIndex | None = None,
    ) -> Context:
        """The world as of ``case``, a case of ``index`` (the cell's own by default).

        Calls of this forecast are appended to ``calls``, those that others share to ``shared``.
        """
        config, services, index = self._config, self._services, index or self._index

        async def embed(texts: Sequence[str]) -> Vectors:
            vectors, made = await services.embed(texts)
            shared.extend(made)
            return vectors

        return Context(
            benchmark=index.benchmark.name,
            gate=config.gate,
            evidence=index.evidence.as_of(case.stock_id, case.time, config.gate),
            experience=Deferred(partial(index.experience[config.memory].as_of, case, config.gate)),
            memory=_MemoryAsOf(services.memory, case.time, config.gate) if services.memory else None,
            llm=CallingLLM(
                services.chat, (config.run.seed, epoch), calls, "forecast", self.spec.name, self.spec.learns
            ),
            build_llm=CallingLLM(services.chat, (0, 0), shared, "build", self.spec.name, self.spec.learns),
            embed=embed,
            shared=services.shared,
            feed_cases=config.feed == "docs+cases",
            context_chars=MATCHED_CONTEXT_CHARS if config.context.budget == "matched" else None,
            rng=lambda: np.random.default_rng(_seed(config.run.seed, epoch, case.catalyst_id)),
            warn=self.warn,
        )

    def warn(self, what: str, detail: str = "", /) -> None:
        """Into cell.json, with the newest ``detail``."""
        self._met[what] = detail

    @property
    def warnings(self) -> list[str]:
        """What was said of this run."""
        return [f"{what}: {detail}" if detail else what for what, detail in sorted(self._met.items())]

    def record_calls(self, catalyst_id: str | None, calls: Sequence[Call]) -> None:
        """Put calls that belong to no forecast row on file."""
        self.progress.pay(calls)
        self._calls += call_rows(self.spec.name, catalyst_id, None, calls)

    def give_up_on(self, rest: Plan) -> None:
        """Rows that were not asked because the endpoint refuses all of them, or the budget is reached: stored as such."""
        if self._fatal is not None:
            reason = Forecast(Status.PROVIDER, reason=str(self._fatal))
        elif self._budget is not None:
            reason = Forecast(Status.BUDGET, reason=self._budget)
        else:
            return
        for case, epoch in rest:
            self._record(case, epoch, reason, ())

    def fail(self, error: HarnessError) -> None:
        """End the run: going on is of no use, or the budget does not allow it."""
        if isinstance(error, CallFailed | EmbeddingFailed) and error.status == Status.BUDGET:
            self._budget = str(error)
        else:
            self._fatal = self._fatal or error
        self.ending.set()

    def _failed(self, case: Catalyst, error: Exception) -> Forecast:
        """The forecast that an exception amounts to."""
        if isinstance(error, CallFailed | EmbeddingFailed):
            if error.status == Status.BUDGET or (isinstance(error, EmbeddingFailed) and error.fatal):
                self.fail(error)
            return Forecast(Status(error.status), reason=str(error))
        if isinstance(error, HarnessError) and not isinstance(error, GateError):
            self.fail(error)  # the endpoint refuses this cell, or the cache cannot be written
            return Forecast(Status.PROVIDER, reason=str(error))
        log.error("%s, catalyst %s: %s", self.spec.name, case.catalyst_id, traceback.format_exc())
        return Forecast(Status.BUG, reason=f"{type(error).__name__}: {error}")

    def _check_gate(self, case: Catalyst, forecast: Forecast) -> None:
        """The gate once more, at the prompt: under strict or paper a late record is a bug, whatever let it through."""
        if self._config.gate is Gate.OFF:
            return
        bad = [p.source for p in forecast.shown if verdict(p.source, case.time) != "ok"]
        if bad:
            raise GateError(
                f"catalyst {case.catalyst_id}: {bad[0].kind} {bad[0].item_id} (known {bad[0].known_at}) is not known "
                f"before the decision at {case.time.instant}; {len(bad)} such records reached the prompt"
            )

    def _record(self, case: Catalyst, epoch: int, forecast: Forecast, calls: Sequence[Call]) -> None:
        self.progress.count(forecast.status)
        self.progress.pay(calls)
        outcome = self._index.benchmark.evaluation.outcomes[case.catalyst_id]
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
                    self.fail(error)

    async def _conclude(self, plan: Plan, ingested: int | None) -> CellResult:
        memory = self._services.memory
        log_sha256 = await memory.sha256() if memory else None
        if memory:
            await memory.export(self._store.directory / "memory.parquet", self._filled_until)
            for what, times in (await memory.incidents()).items():
                self.warn(f"in its memory: {times} x {what}.")
        rows = await asyncio.to_thread(self._store.export)
        wanted: set[Key] = {(case.catalyst_id, epoch) for case, epoch in plan}
        counts = Counter(row["status"] for row in rows if (row["catalyst_id"], row["epoch"]) in wanted)
        n, total = max(len(plan), len(rows)), len(plan)
        if ingested is not None:
            n = total = self.progress.total
            counts = Counter({str(Status.OK): ingested})
            if self._budget is not None:
                counts[str(Status.BUDGET)] = total - ingested
        result = self._result(counts, total, rows)
        outcomes = self._index.benchmark.evaluation.outcomes
        if any(outcomes[case.catalyst_id].label == PENDING for case, _ in plan):
            await asyncio.to_thread(self._store.seal, result.status == "complete")
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
                "status": result.status,
                "reason": result.reason,
                "remedy": result.remedy,
                "n": n,
                "counts": dict(
                    sorted((counts if ingested is not None else Counter(r["status"] for r in rows)).items())
                ),
                "coverage": (ingested or sum(row["status"] == Status.OK for row in rows)) / n if n else None,
                "instruction_sha256": self.spec.method.instruction_sha256(),
                "memory_log_sha256": log_sha256,
                "memory_filled_until": self._filled_until.isoformat() if self._filled_until else None,
                "warnings": [*self._index.benchmark.warnings, *self.warnings],
                "identity": self.spec.identity,
            },
        )
        self.progress.state = result.status
        return result

    def _result(self, counts: Counter[str], n: int, rows: Sequence[Row]) -> CellResult:
        done = sum(number for status, number in counts.items() if Status(status).final)
        items = "records" if self.spec.ingests else "forecasts"
        again = "run the same command again: finished rows are kept, the rest is retried"
        status, reason, remedy = "complete", None, None
        if self._fatal is not None:
            status, reason, remedy = "failed", str(self._fatal), f"correct that, then {again}"
        elif counts[Status.BUG]:
            status, reason = "failed", f"{counts[Status.BUG]} of {n} forecasts hit a bug (status bug, see reason)"
            remedy = "report the reason column of forecasts.parquet"
        elif self._budget is not None or counts[Status.BUDGET]:
            status, reason = "incomplete", f"budget reached: {n - done} of {n} {items} left"
            remedy = f"raise run.budget_usd (it counts what this run directory has spent), then {again}"
        elif self._stopping and done < n:
            status, reason, remedy = "incomplete", f"interrupted: {n - done} of {n} {items} left", again
        elif done < n:
            kinds = ", ".join(f"{number} {s}" for s, number in sorted(counts.items()) if not Status(s).final)
            why = Counter(str(r["reason"]) for r in rows if not Status(r["status"]).final).most_common(1)
            said = f": {why[0][0]}" if why else ""
            status, reason, remedy = "incomplete", f"{n - done} of {n} forecasts have no answer ({kinds}){said}", again
        budget = self._budget is not None or bool(counts[Status.BUDGET])
        resumed, met = self.progress.resumed, dict(sorted(self._met.items()))
        return CellResult(self.spec.name, status, dict(counts), n, resumed, reason, remedy, budget, met)

    @property
    def index(self) -> BenchmarkIndex:
        return self._index

    @property
    def width(self) -> int:
        return self._config.backbone.max_in_flight

    @property
    def memory(self) -> MemoryClient:
        assert self._services.memory is not None
        return self._services.memory

    def tools(self, calls: list[Call]) -> Tools:
        """For learning from a case; calls are appended to ``calls``."""

        async def embed(texts: Sequence[str]) -> Vectors:
            vectors, made = await self._services.embed(texts)
            calls.extend(made)
            return vectors

        return Tools(CallingLLM(self._services.chat, (0, 0), calls, "memory", self.spec.name, sequential=True), embed)


def shared_objects(directory: Path) -> Callable[..., Any]:
    """``harness.method.Shared`` for one process: an object a key, made once, with a directory of its own for artefacts."""
    objects: dict[str, Any] = {}

    def shared(key: str, make: Callable[[Path], Any]) -> Any:
        if key not in objects:
            objects[key] = make(directory / key)
        return objects[key]

    return shared


def _seed(run_seed: int, epoch: int, catalyst_id: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{run_seed}/{epoch}/{catalyst_id}".encode()).digest()[:8], "big")
