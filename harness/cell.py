"""One cell: method × backbone × benchmark × seed. Runs its catalysts, several at a time, and stores every row at once."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from harness.config import CellConfig, build
from harness.errors import EndpointError, GateError, HarnessError
from harness.evidence import EvidenceIndex, ExperienceIndex, Gate, verdict
from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion, EmbeddingFailed, Stopped
from harness.method import MATCHED_CONTEXT_CHARS, Context, Message, Method, Vectors
from harness.records import DROPPED, NEGATIVE, POSITIVE, Benchmark, Call, Catalyst, Forecast, Passage, Status
from harness.rehearsal import FINGERPRINT as REHEARSAL_FINGERPRINT
from harness.store import CellStore, Key, Row, write_json

log = logging.getLogger(__name__)
FLUSH_SECONDS = 1.0
"""Finished rows wait at most this long for their part; their replies are in the cache from the first moment."""


class Gateway(Protocol):
    """The chat side of a backbone."""

    async def complete(self, request: ChatRequest) -> Completion: ...


Embed = Callable[[Sequence[str]], Awaitable[tuple[Vectors, list[Call]]]]


@dataclass(frozen=True)
class CellSpec:
    """A cell to run: its name, configuration, identity and the hash of its forecast instruction."""

    name: str
    config: CellConfig
    identity: Mapping[str, Any]
    instruction_sha256: str | None


@dataclass(frozen=True)
class Job:
    """A cell with the benchmark it runs on, and what its method says it needs."""

    spec: CellSpec
    benchmark: Benchmark
    uses_llm: bool
    uses_embedder: bool

    def plan(self) -> list[tuple[Catalyst, int]]:
        """The (catalyst, epoch) pairs to forecast."""
        run = self.spec.config.run
        return planned(self.benchmark, run.limit, run.epochs)


@dataclass(frozen=True)
class BenchmarkIndex:
    """A benchmark ready to be viewed as of any catalyst; built once a process."""

    benchmark: Benchmark
    evidence: EvidenceIndex
    experience: Mapping[str, ExperienceIndex]

    @classmethod
    def of(cls, benchmark: Benchmark) -> BenchmarkIndex:
        evaluation = EvidenceIndex(benchmark.evaluation.corpus, benchmark.drop_copies)
        past = benchmark.experience
        learned = [(past, EvidenceIndex(past.corpus, benchmark.drop_copies))] if past else []
        return cls(
            benchmark,
            evaluation,
            {
                "none": ExperienceIndex(),
                "frozen": ExperienceIndex(*learned),
                "online": ExperienceIndex(*learned, (benchmark.evaluation, evaluation)),
            },
        )


@dataclass
class Progress:
    """Counts of one cell, read by the session while it runs."""

    total: int = 0
    resumed: int = 0
    in_flight: int = 0
    done: Counter[str] = field(default_factory=Counter)
    cost_usd: float = 0.0
    state: str = "waiting"

    @property
    def answered(self) -> int:
        return self.resumed + sum(self.done.values())


@dataclass(frozen=True)
class CellResult:
    """How a cell ended: ``complete``, ``incomplete`` or ``failed``, why, and what to do."""

    cell: str
    status: str
    counts: Mapping[str, int]
    n: int
    resumed: int
    reason: str | None = None
    remedy: str | None = None


def planned(benchmark: Benchmark, limit: int | None, epochs: int) -> list[tuple[Catalyst, int]]:
    """The forecasts of a cell in order of decision time: the first ``limit`` catalysts, each ``epochs`` times.

    Catalysts inside the deadband are never scored, so they are not asked.
    """
    outcomes = benchmark.evaluation.outcomes
    asked = [c for c in benchmark.evaluation.catalysts if outcomes[c.catalyst_id].label != DROPPED]
    return [(case, epoch) for case in asked[:limit] for epoch in range(epochs)]


class CellRun:
    """Runs one cell."""

    def __init__(self, spec: CellSpec, index: BenchmarkIndex, gateway: Gateway, embed: Embed, store: CellStore) -> None:
        self.spec = spec
        self.progress = Progress()
        self._config = spec.config
        self._index = index
        self._gateway = gateway
        self._embed = embed
        self._store = store
        self.method: Method = build(spec.config.method, "method")
        self._stopping = False
        self._fatal: HarnessError | None = None
        self._budget: str | None = None
        self._rows: list[Row] = []
        self._evidence: list[Row] = []
        self._calls: list[Row] = []

    def stop(self) -> None:
        """Start no further forecast; those under way end and are stored."""
        self._stopping = True

    async def run(self) -> CellResult:
        """Do what is missing, export the files, write cell.json."""
        plan = planned(self._index.benchmark, self._config.run.limit, self._config.run.epochs)
        finished = await asyncio.to_thread(self._store.finished)
        todo = [(case, epoch) for case, epoch in plan if (case.catalyst_id, epoch) not in finished]
        self.progress.total, self.progress.resumed = len(plan), len(plan) - len(todo)
        self.progress.state = "running"
        queue = iter(todo)
        ended = asyncio.Event()
        flusher = asyncio.create_task(self._flush_until(ended))
        try:
            width = self._config.backbone.max_in_flight
            await asyncio.gather(*(self._work(queue) for _ in range(min(width, len(todo)))))
            self._give_up_on(list(queue))
        finally:
            ended.set()
            await flusher
        return await asyncio.to_thread(self._conclude, plan)

    async def _work(self, queue: Any) -> None:
        for case, epoch in queue:
            await self._forecast(case, epoch)
            if self._stopping or self._fatal or self._budget:
                return

    async def _forecast(self, case: Catalyst, epoch: int) -> None:
        calls: list[Call] = []
        self.progress.in_flight += 1
        started = time.perf_counter()
        try:
            forecast = await self.method.forecast(case, self.context(case, epoch, calls))
            self._check_gate(case, forecast)
        except Stopped:
            self._stopping = True
            return
        except GateError as error:
            forecast = Forecast(Status.BUG, reason=str(error))
        except EmbeddingFailed as error:
            self._fatal = self._fatal or (error if error.fatal else None)
            forecast = Forecast(error.status, reason=str(error))
        except HarnessError as error:  # the endpoint refuses this cell, or the cache cannot be written: no use going on
            self._fatal = self._fatal or error
            forecast = Forecast(Status.PROVIDER, reason=str(error))
        except Exception as error:  # noqa: BLE001 - a bug in one forecast is that row's status and fails the cell
            log.error("%s, catalyst %s: %s", self.spec.name, case.catalyst_id, traceback.format_exc())
            forecast = Forecast(Status.BUG, reason=f"{type(error).__name__}: {error}")
        finally:
            self.progress.in_flight -= 1
            self._calls += [self._call_row(case, epoch, call) for call in calls]
        if forecast.status is Status.BUDGET:
            self._budget = forecast.reason or "budget reached"
        self._record(case, epoch, forecast, calls, time.perf_counter() - started)

    def context(self, case: Catalyst, epoch: int, calls: list[Call]) -> Context:
        """The world as of ``case``; calls made through it are appended to ``calls``."""
        config = self._config

        async def embed(texts: Sequence[str]) -> Vectors:
            vectors, made = await self._embed(texts)
            calls.extend(made)
            return vectors

        return Context(
            evidence=self._index.evidence.as_of(case.stock_id, case.time, config.gate),
            experience=self._index.experience[config.memory].as_of(case, config.gate),
            llm=CellLLM(self._gateway, config, epoch, calls),
            embed=embed,
            feed_cases=config.feed == "docs+cases",
            context_chars=MATCHED_CONTEXT_CHARS if config.context.budget == "matched" else None,
            rng=np.random.default_rng(_seed(config.run.seed, epoch, case.catalyst_id)),
        )

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

    def _record(self, case: Catalyst, epoch: int, forecast: Forecast, calls: Sequence[Call], seconds: float) -> None:
        self.progress.done[str(forecast.status)] += 1
        self.progress.cost_usd += sum(c.cost_usd or 0.0 for c in calls)
        self._rows.append(self._forecast_row(case, epoch, forecast, calls, seconds))
        self._evidence += [self._evidence_row(case, epoch, passage) for passage in forecast.shown]

    def _give_up_on(self, rest: Sequence[tuple[Catalyst, int]]) -> None:
        """Rows that were not asked because the endpoint refuses all of them, or the budget is reached: stored as such."""
        if self._fatal is not None:
            reason = Forecast(Status.PROVIDER, reason=str(self._fatal))
        elif self._budget is not None:
            reason = Forecast(Status.BUDGET, reason=self._budget)
        else:
            return
        for case, epoch in rest:
            self._record(case, epoch, reason, (), 0.0)

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
                await asyncio.to_thread(self._store.append, rows, evidence, calls)

    def _conclude(self, plan: Sequence[tuple[Catalyst, int]]) -> CellResult:
        rows = self._store.export()
        wanted: set[Key] = {(case.catalyst_id, epoch) for case, epoch in plan}
        counts = Counter(row["status"] for row in rows if (row["catalyst_id"], row["epoch"]) in wanted)
        result = self._result(counts, len(plan))
        n = max(len(plan), len(rows))
        write_json(
            self._store.directory / "cell.json",
            {
                "cell": self.spec.name,
                "method": self._config.method.name,
                "backbone": self._config.backbone.name,
                "benchmark": self._config.benchmark.name,
                "gate": str(self._config.gate),
                "memory": self._config.memory,
                "embedder": self._config.embedder.name,
                "seed": self._config.run.seed,
                "rehearsal": self._config.backbone.rehearsal,
                "uses_llm": self.method.uses_llm,
                "status": result.status,
                "reason": result.reason,
                "remedy": result.remedy,
                "n": n,
                "counts": dict(sorted(Counter(row["status"] for row in rows).items())),
                "coverage": sum(row["status"] == Status.OK for row in rows) / n if n else None,
                "instruction_sha256": self.spec.instruction_sha256,
                "memory_log_sha256": None,
                "warnings": list(self._index.benchmark.warnings),
                "identity": self.spec.identity,
            },
        )
        self.progress.state = result.status
        return result

    def _result(self, counts: Counter[str], n: int) -> CellResult:
        done = sum(number for status, number in counts.items() if Status(status).final)
        again = "run the same command again: finished rows are kept, the rest is retried"
        status, reason, remedy = "complete", None, None
        if self._fatal is not None:
            status, reason, remedy = "failed", str(self._fatal), f"correct that, then {again}"
        elif counts[Status.BUG]:
            status, reason = "failed", f"{counts[Status.BUG]} of {n} forecasts hit a bug (status bug, see reason)"
            remedy = "report the reason column of forecasts.parquet"
        elif self._budget is not None or counts[Status.BUDGET]:
            status, reason = "incomplete", f"budget reached: {n - done} of {n} forecasts left"
            remedy = f"raise run.budget_usd and {again}"
        elif self._stopping:
            status, reason, remedy = "incomplete", f"interrupted: {n - done} of {n} forecasts left", again
        elif done < n:
            kinds = ", ".join(f"{number} {s}" for s, number in sorted(counts.items()) if not Status(s).final)
            status, reason, remedy = "incomplete", f"{n - done} of {n} forecasts have no answer ({kinds})", again
        return CellResult(self.spec.name, status, dict(counts), n, self.progress.resumed, reason, remedy)

    def _forecast_row(
        self, case: Catalyst, epoch: int, forecast: Forecast, calls: Sequence[Call], seconds: float
    ) -> Row:
        config = self._config
        outcome = self._index.benchmark.evaluation.outcomes[case.catalyst_id]
        direction = None
        if forecast.prob_positive is not None:
            direction = POSITIVE if forecast.prob_positive >= 0.5 else NEGATIVE
        chats = [c for c in calls if c.purpose != "embed"]
        known = [p.source.known_at for p in forecast.shown if p.source.known_at]
        return {
            "cell": self.spec.name,
            "method": config.method.name,
            "backbone": config.backbone.name,
            "benchmark": config.benchmark.name,
            "seed": config.run.seed,
            "epoch": epoch,
            "gate": str(config.gate),
            "memory": config.memory,
            "embedder": config.embedder.name,
            "catalyst_id": case.catalyst_id,
            "stock": case.stock_id,
            "market": case.market,
            "catalyst_type": case.catalyst_type,
            "decision_time": case.time.instant,
            "decision_day": case.time.day,
            "decision_granularity": str(case.time.granularity),
            "resolve_time": outcome.resolve_at,
            "label": outcome.label,
            "fwd_ret": outcome.fwd_ret,
            "prob_positive": forecast.prob_positive,
            "direction": direction,
            "correct": direction == outcome.label if forecast.status.final else None,
            "status": str(forecast.status),
            "reason": forecast.reason,
            "rationale": forecast.rationale,
            "n_calls": len(chats),
            "prompt_tokens": forecast.prompt_tokens,
            "completion_tokens": forecast.completion_tokens,
            "total_prompt_tokens": _total(c.prompt_tokens for c in chats),
            "total_completion_tokens": _total(c.completion_tokens for c in chats),
            "cached_tokens": _total(c.cached_tokens for c in chats),
            "reasoning_tokens": _total(c.reasoning_tokens for c in chats),
            "cost_usd": _total(c.list_cost_usd for c in chats),
            "latency_s": seconds,
            "prompt_sha256": forecast.prompt_sha256,
            "reply_sha256": forecast.reply_sha256,
            "model_returned": forecast.model_returned,
            "system_fingerprint": forecast.system_fingerprint,
            "max_evidence_time": max(known, default=None),
            "rehearsal": config.backbone.rehearsal or forecast.system_fingerprint == REHEARSAL_FINGERPRINT,
        }

    def _evidence_row(self, case: Catalyst, epoch: int, passage: Passage) -> Row:
        source = passage.source
        return {
            "cell": self.spec.name,
            "catalyst_id": case.catalyst_id,
            "epoch": epoch,
            "kind": source.kind,
            "item_id": source.item_id,
            "stock": source.stock,
            "ts_start": source.ts_start,
            "ts_end": source.ts_end,
            "known_at": source.known_at,
            "visible_from": source.visible_from,
            "gate_rule": source.gate_rule,
            "verdict": verdict(source, case.time),
            "chars": len(passage.text),
            "rank": passage.rank,
            "score": passage.score,
        }

    def _call_row(self, case: Catalyst, epoch: int, call: Call) -> Row:
        row = {name: getattr(call, name) for name in _CALL_FIELDS}
        return {**row, "cell": self.spec.name, "catalyst_id": case.catalyst_id, "epoch": epoch}


_CALL_FIELDS = (
    "purpose", "stage", "request_sha256", "model", "sent_at", "latency_s", "attempts", "cache_hit", "prompt_tokens",
    "cached_tokens", "completion_tokens", "reasoning_tokens", "cost_usd", "status", "http_status",
)  # fmt: skip


class CellLLM:
    """Chat calls of one forecast: adds sampling and the sample index, collects the calls made."""

    def __init__(self, gateway: Gateway, config: CellConfig, epoch: int, calls: list[Call]) -> None:
        self._gateway = gateway
        self._backbone = config.backbone
        self._sample = (config.run.seed, epoch)
        self._calls = calls

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None,
        purpose: str,
        stage: str = "forecast",
        essential: tuple[str, ...] | None = None,
    ) -> Completion:
        """See ``harness.method.LLM``.

        Raises:
            EndpointError: the endpoint refuses every request of this cell.
        """
        request = ChatRequest(
            messages=tuple(dict(m) for m in messages),
            schema=dict(schema) if schema is not None else None,
            essential=essential,
            sample=self._sample,
            purpose=purpose,
            stage=stage,
        )
        completion = await self._gateway.complete(request)
        self._calls.extend(completion.calls)
        if completion.fatal:
            raise EndpointError(
                completion.reason or f"{self._backbone.name}: the endpoint refuses this cell's requests"
            )
        return completion


def _total(values: Any) -> Any:
    """Sum, or None if any part is unknown."""
    known = list(values)
    return None if any(v is None for v in known) else sum(known)


def _seed(run_seed: int, epoch: int, catalyst_id: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{run_seed}/{epoch}/{catalyst_id}".encode()).digest()[:8], "big")
