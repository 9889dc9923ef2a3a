"""One Ray session for all cells: gateways, embedders and workers as actors, joined here.

An endpoint's gateway and an embedder's service are one actor each, so limits, the reply cache and identical requests are
shared by every cell of the session. Workers are async actors without CPUs that run many cells at once: they wait on
the network most of the time. Cells are spread over the workers; their rows are written where they run.
"""

from __future__ import annotations

import logging
import os
import signal
import time
import types
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import ray

from harness.config import ClusterSettings, digest
from harness.errors import HarnessError
from harness.gateway.actor import NAMESPACE, SharedPurse, start_gateways
from harness.gateway.client import GatewayClient
from harness.gateway.result import Stats
from harness.jobs import CellResult, Job, Progress, TrainedMemory, trainings_of
from harness.ledger import spent_usd
from harness.progress import ProgressDisplay
from harness.rehearsal import start_rehearsal
from harness.replies import store_of
from harness.store import RunDirectory
from harness.vectors import EmbedClient, EmbedderActor
from harness.worker import Worker

POLL_SECONDS = 0.5
TELL_AGAIN_SECONDS = 30.0
CLOSE_SECONDS = 30.0


def start_ray(address: str | None, object_store_mb: int) -> None:
    """Start a local Ray session, or join the cluster at ``address``; no dashboard, no usage reports.

    A local one that does not come up is tried once more: Ray gives its processes 30 s, which a busy machine may miss.

    Raises:
        HarnessError: it does not come up: a machine that is too busy, or no cluster there.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_task_events_report_interval_ms", "0")  # a record of every remote call, for the dashboard
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    local: dict[str, Any] = (
        {} if address else {"object_store_memory": object_store_mb << 20, "include_dashboard": False}
    )

    def start() -> None:
        try:
            ray.init(
                address=address or "local",
                namespace=NAMESPACE,
                log_to_driver=False,
                logging_level=logging.ERROR,
                **local,
            )
        except BaseException:
            ray.shutdown()
            raise

    try:
        try:
            start()
        except Exception:  # what Ray raises here has no common type
            if address:
                raise
            start()
    except Exception as error:
        where = f"there is no Ray cluster at cluster.address={address}" if address else "Ray did not start"
        advice = (
            "Is the cluster running? Does it want a token (then set RAY_AUTH_MODE=token)?"
            if address
            else "wait until the machine is less busy, and look at free memory and disk, and at cluster.object_store_mb"
        )
        raise HarnessError(f"{where} ({error}); {advice}") from error


class Session:
    """Starts Ray, the endpoints' gateways, the embedders and the workers; runs jobs; stops cleanly."""

    def __init__(self, run_dir: RunDirectory, cluster: ClusterSettings, display: ProgressDisplay) -> None:
        self._run_dir = run_dir
        self._cluster = cluster
        self._display = display
        self._exit = ExitStack()
        self._gateways: dict[str, GatewayClient] = {}
        self._embedders: dict[str, EmbedClient] = {}
        self._budget: SharedPurse | None = None
        self._told: dict[str, float] = {}
        """When the trouble of an endpoint was last told of."""
        self._progress: dict[str, Progress] = {}
        self.interrupted = False
        self.resources: dict[str, float] = {}

    def __enter__(self) -> Session:
        if not ray.is_initialized():
            start_ray(self._cluster.address, self._cluster.object_store_mb)
            self._exit.callback(ray.shutdown)
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        self.resources = {k: v for k, v in resources.items() if not k.startswith("node:")}
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def run(self, jobs: Sequence[Job]) -> list[CellResult]:
        """Run all jobs at once and wait for them; a first Ctrl-C stops cleanly, a second at once.

        A job waits for the training of its memory, and nothing else. Cells on the same data with the same backbone go to the
        same worker, one after the other, so that what they share is built once and kept no longer than for them.
        """
        everything = [*trainings_of(jobs), *jobs]
        self._progress = {
            job.spec.name: Progress(total=len(job.plan), backbone=job.spec.config.backbone.name) for job in everything
        }
        with self._interruptible():
            benchmarks = {id(j.benchmark): ray.put(j.benchmark) for j in everything}
            self._start_gateways(everything)
            services = {
                id(j): (_backbone(j) if j.spec.method.uses_llm else None, self._embedder(j)) for j in everything
            }
            groups = {key: i for i, key in enumerate(sorted({_group(j) for j in everything}))}
            workers = [self._worker() for _ in range(min(self._cluster.workers, len(groups)))]
            pending: dict[Any, Job] = {}
            trained: dict[str, Any] = {}
            for job in sorted(everything, key=lambda j: (j.spec.kind != "memories", groups[_group(j)])):
                worker = workers[groups[_group(job)] * len(workers) // len(groups)]
                source = job.memory
                reference = worker.run.remote(
                    job.spec,
                    *services[id(job)],
                    [benchmarks[id(job.benchmark)]],
                    str(self._trained_path(source)) if source else None,
                    trained[source.name] if source and source.training else None,
                )
                pending[reference] = job
                if job.spec.kind == "memories":
                    trained[job.spec.name] = reference
            results = self._join(pending, workers)
            self._close_gateways()
            return results

    @property
    def _actors(self) -> set[Any]:
        """Of the gateways: backbones at one endpoint have one actor."""
        return {gateway.actor for gateway in self._gateways.values()}

    def _trained_path(self, memory: TrainedMemory) -> Path:
        if memory.training is None:
            assert memory.file is not None
            return memory.file
        spec = memory.training.spec
        return self._run_dir.store(spec.kind, spec.name).directory / "memory.parquet"

    def _join(self, pending: dict[Any, Job], workers: Sequence[Any]) -> list[CellResult]:
        results: list[CellResult] = []
        told = False
        while pending:
            ready, _ = ray.wait(list(pending), timeout=POLL_SECONDS)
            for reference in ready:
                job = pending.pop(reference)
                result = self._result(reference, job)
                if job.spec.kind == "cells":
                    results.append(result)
            if self.interrupted and not told:
                told = True
                self._display.say("stopping: no new calls; waiting for those in flight (Ctrl-C again to abort)")
                self._stop(workers)
            for counts in self._asked([worker.progress.remote() for worker in workers]):
                self._progress |= counts
            stats: dict[str, Stats] = {}
            for some in self._asked([actor.named_stats.remote() for actor in self._actors]):
                stats |= some
            self._display.update(self._progress, stats)
            self._say_troubles(stats)
        return results

    def _result(self, reference: Any, job: Job) -> CellResult:
        try:
            result: CellResult = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            return self._failed(job, str(error.cause).strip() or type(error.cause).__name__)
        except ray.exceptions.RayError as error:
            return self._failed(job, f"a process of the session died ({type(error).__name__})")
        note = f": {result.reason}" if result.reason else ""
        if job.spec.kind == "memories" and result.resumed:  # a cell's own rows are spoken of before the session starts
            note = f", resumed {result.resumed}/{result.n}{note}"
        self._display.say(f"{result.status:10} {result.cell}{note}")
        return result

    def _failed(self, job: Job, why: str) -> CellResult:
        self._display.say(f"failed     {job.spec.name}: {why}")
        return CellResult(job.spec.name, "failed", {}, 0, 0, why, "run the same command again: finished rows are kept")

    def _asked(self, asked: Sequence[Any]) -> list[Any]:
        """What actors answer; one that is gone or busy is left out of this one update."""
        ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=POLL_SECONDS) if asked else ([], [])
        answers = []
        for reference in ready:
            try:
                answers.append(ray.get(reference))
            except ray.exceptions.RayActorError:
                continue
        return answers

    def _say_troubles(self, stats: Mapping[str, Stats]) -> None:
        """Tell of an endpoint that is down, when it begins, every half minute, and when it is back."""
        endpoints = {g.endpoint.place: g.endpoint for g in self._gateways.values() if g.endpoint.name in stats}
        for endpoint in endpoints.values():
            where = f"{endpoint.model} at {endpoint.base_url}"
            trouble, told = stats[endpoint.name].trouble, self._told.get(where)
            if trouble is None and told is not None:
                del self._told[where]
                self._display.say(f"{where}: answers again")
            elif trouble is not None and (told is None or time.monotonic() - told >= TELL_AGAIN_SECONDS):
                self._told[where] = time.monotonic()
                self._display.say(f"{where}: {trouble}")

    def _stop(self, workers: Sequence[Any]) -> None:
        for worker in workers:
            worker.stop.remote()
        for actor in self._actors:
            actor.stop.remote()

    def _close_gateways(self) -> None:
        """Let every store of replies become one whole file. One that cannot now does when it is next opened and closed."""
        closing = [actor.close.remote() for actor in self._actors]
        if closing:
            ray.wait(closing, num_returns=len(closing), timeout=CLOSE_SECONDS)

    def _start_gateways(self, jobs: Sequence[Job]) -> None:
        """One actor for all backbones at the same URL, model and key: a provider's limits are for these three."""
        backbones = {_backbone(j): j.spec.config.backbone for j in jobs if j.spec.method.uses_llm}
        places: dict[Any, list[str]] = {}
        for key, endpoint in backbones.items():
            if endpoint.rehearsal and endpoint.base_url is None:
                server = start_rehearsal(latency=endpoint.latency, fault=endpoint.fault)
                self._exit.callback(server.stop)
                backbones[key] = endpoint = endpoint.model_copy(update={"base_url": server.base_url})
            places.setdefault(endpoint.place, []).append(key)
        budget = self._purse(next((b for j in jobs if (b := j.spec.config.run.budget_usd) is not None), None))
        for keys in places.values():
            caches = [(backbones[k], store_of(self._run_dir.cache, backbones[k].name)) for k in keys]
            self._gateways |= zip(keys, start_gateways(caches, budget), strict=True)

    def _purse(self, budget_usd: float | None) -> SharedPurse | None:
        """One budget for the session; what the run directory has cost before counts."""
        if budget_usd is not None and self._budget is None:
            self._budget = SharedPurse(budget_usd, spent_usd(self._run_dir.cache))
        return self._budget

    def _embedder(self, job: Job) -> str | None:
        """Key of the job's embedder, started on first use; None for a method without."""
        if not job.spec.method.uses_embedder:
            return None
        component = job.spec.config.embedder
        key = digest(component.model_dump(mode="json", by_alias=True))
        if key not in self._embedders:
            actor = ray.remote(EmbedderActor).options(num_cpus=0, max_concurrency=1000)
            path = self._run_dir.cache / f"vectors-{component.name}.sqlite"
            self._embedders[key] = EmbedClient(
                actor.remote(component, str(path), self._purse(job.spec.config.run.budget_usd))
            )
        return key

    def _worker(self) -> Any:
        actor = ray.remote(Worker).options(num_cpus=0, max_concurrency=1000)
        return actor.remote(str(self._run_dir.path), self._gateways, self._embedders, self._cluster.cells_per_worker)

    def _interruptible(self) -> ExitStack:
        """First SIGINT or SIGTERM asks for a clean stop, the second raises KeyboardInterrupt."""
        stack = ExitStack()

        def handle(number: int, frame: types.FrameType | None) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True

        for number in (signal.SIGINT, signal.SIGTERM):
            stack.callback(signal.signal, number, signal.signal(number, handle))
        return stack


def _backbone(job: Job) -> str:
    """Key of the job's backbone with all its settings."""
    return digest(job.spec.config.backbone.model_dump(mode="json"))


def _group(job: Job) -> tuple[str, ...]:
    """Jobs of one group share what is built from their data: they run in one worker. Neighbours in their order share memories."""
    return tuple(digest(part) for part in job.spec.sharing)
