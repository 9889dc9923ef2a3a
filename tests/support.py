"""Prompts without an endpoint: run a method on a loaded benchmark and keep what it would have sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from harness.calls import Chat
from harness.cell import CellRun
from harness.config import CellConfig, build, validate
from harness.contexts import Services, shared_objects
from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion
from harness.jobs import BenchmarkIndex, CellSpec, Job, planned
from harness.local import RehearsingGateway, run_here
from harness.plan import make_jobs
from harness.records import Benchmark, Call, Forecast, Row, Status
from harness.store import CellStore
from harness.vectors import VectorsAtHand, VectorService, VectorStore

ROOT = Path(__file__).resolve().parent.parent
CONF = ROOT / "conf"


def config_of(*overrides: str) -> CellConfig:
    """The configuration that ``launch.py`` would compose from ``overrides``."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        raw = OmegaConf.to_container(compose("config", overrides=list(overrides)), resolve=True)
    assert isinstance(raw, dict)
    return validate({str(k): v for k, v in raw.items()})


def benchmark_of(config: CellConfig) -> Benchmark:
    loaded: Benchmark = build(config.benchmark, "benchmark", resolve=config.resolve)
    return loaded


@dataclass
class RecordingGateway:
    """Keeps every request and answers 0.6, with a reason."""

    requests: list[ChatRequest] = field(default_factory=list)
    value: Mapping[str, Any] = field(default_factory=lambda: {"reasoning": "because", "prob_positive": 0.6})

    async def complete(self, request: ChatRequest) -> Completion:
        self.requests.append(request)
        call = Call(
            None, request.purpose, request.stage, "r", "m", None, None, 1, False, 10, 0, 5, 0, None, Status.OK, 200
        )
        return Completion(Status.OK, dict(self.value), json.dumps(self.value), None, "r", "s", "m", calls=(call,))


def run_cells(configs: Sequence[CellConfig], scratch: Path, only: Sequence[str] | None = None) -> dict[str, list[Row]]:
    """Run cells as a session would, trainings first, in this process; rows by method.

    ``only`` leaves out all other catalysts of cells that do not learn: their forecasts depend on nothing else.
    """
    return asyncio.run(run_jobs(make_jobs(configs, lambda text: None), scratch, only))


async def run_jobs(jobs: Sequence[Job], scratch: Path, only: Sequence[str] | None) -> dict[str, list[Row]]:
    """As ``run_cells``, for jobs that are made already."""
    ended = await run_here(jobs, scratch, only=only, chat=RehearsingGateway)
    for one in ended:
        assert one.result.status == "complete", one.result
    return {one.method: one.rows for one in ended}


def forecasts_of(
    config: CellConfig,
    benchmark: Benchmark,
    scratch: Path,
    only: Sequence[str] | None = None,
    gateway: Chat | None = None,
    warnings: list[str] | None = None,
) -> dict[str, Forecast]:
    """What the method answers for each catalyst (those named in ``only``), prompts included, without Ray or HTTP.

    ``gateway`` answers; by default one that says 0.6 to everything. ``warnings`` gets what cell.json would say.
    """
    told = warnings if warnings is not None else []
    return asyncio.run(_forecasts(config, benchmark, scratch, only, gateway or RecordingGateway(), told))


async def _forecasts(
    config: CellConfig,
    benchmark: Benchmark,
    scratch: Path,
    only: Sequence[str] | None,
    gateway: Chat,
    warnings: list[str],
) -> dict[str, Forecast]:
    scratch.mkdir(parents=True, exist_ok=True)
    service = VectorService(build(config.embedder, "embedder"), VectorStore(scratch / "vectors.sqlite"), None)
    spec = CellSpec("cell", config, {}, build(config.method, "method"))
    services = Services(gateway, VectorsAtHand(service.vectors), shared_objects(scratch / "artefacts"))
    run = CellRun(spec, BenchmarkIndex.of(benchmark), services, CellStore(scratch / "cell"))
    found: dict[str, Forecast] = {}
    for case, epoch in planned(benchmark, spec):
        if only is None or case.catalyst_id in only:
            found[case.catalyst_id] = await spec.method.forecast(case, run.contexts.of(case, epoch, [], []))
    warnings += run.notes.lines()
    return found
