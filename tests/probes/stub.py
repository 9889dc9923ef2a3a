"""Backbones over real HTTP that do, or do not, remember outcomes; and the probes run against them, without Ray."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from aiohttp import web
from aiohttp.test_utils import TestServer

from harness.calls import no_embedder
from harness.cell import CellRun
from harness.config import CellConfig, build
from harness.contexts import Services, shared_objects
from harness.gateway.cache import ReplyCache
from harness.gateway.core import Gateway
from harness.gateway.settings import Endpoint
from harness.jobs import BenchmarkIndex, CellSpec, planned
from harness.records import FORECAST_SCHEMA, Benchmark, Call
from harness.rows import forecast_row
from harness.store import CellStore
from tests.support import config_of

PROBES = ("nd", "nc", "full", "masked", "identify", "news_up", "news_down", "swapped", "shifted", "recall")
Answerer = Callable[[str], dict[str, Any]]
"""The user message to the values of a reply."""
_WHO = re.compile(r"^Security: .*\((?P<code>[^()]+)\)$", re.MULTILINE)
_WHEN = re.compile(r"^Decision time: (?P<day>\d{4}-\d\d-\d\d)", re.MULTILINE)


def reader(prompt: str) -> dict[str, Any]:
    """Remembers nothing: a direction that hangs on the words shown, by chance."""
    news = prompt.partition("## The news")[2] or prompt
    p = 0.2 + 0.6 * hashlib.sha256(news.encode()).digest()[0] / 255
    return {
        "prob_positive": round(p, 3),
        "recalled": False,
        "return_percent": None,
        "company": None,
        "code": None,
        "date": None,
    }


def remembering(benchmark: Benchmark) -> Answerer:
    """Remembers every outcome of ``benchmark`` by code and day; reads, like ``reader``, where it does not know the case."""
    known = {
        (case.stock_id, case.time.day.isoformat()): benchmark.evaluation.outcomes[case.catalyst_id]
        for case in benchmark.evaluation.catalysts
    }

    def answer(prompt: str) -> dict[str, Any]:
        who, when = _WHO.search(prompt), _WHEN.search(prompt)
        outcome = known.get((who["code"], when["day"])) if who and when else None
        if outcome is None or outcome.fwd_ret is None:
            return reader(prompt)
        rose = outcome.label == "positive"
        percent = round(100 * outcome.fwd_ret, 2)
        return {**reader(prompt), "prob_positive": 0.9 if rose else 0.1, "recalled": True, "return_percent": percent}

    return answer


@asynccontextmanager
async def serving(answer: Answerer, asked: list[str]):  # type: ignore[no-untyped-def]
    """An endpoint that fills what the request's schema asks for; yields its URL."""

    async def handle(request: web.Request) -> web.Response:
        body = await request.json()
        prompt = body["messages"][-1]["content"]
        asked.append(prompt)
        wanted = body["response_format"]["json_schema"]["schema"]["properties"]
        values = answer(prompt)
        content = json.dumps({key: values[key] for key in wanted}, ensure_ascii=False)
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 8}
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        return web.json_response({"model": "stub", "choices": [choice], "usage": usage})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", handle)
    server = TestServer(app)
    await server.start_server()
    try:
        yield str(server.make_url("/v1"))
    finally:
        await server.close()


def probed(answer: Answerer, benchmark: Benchmark, run: Path, probes: Sequence[str] = PROBES, *more: str) -> list[str]:
    """Run ``probes`` on ``benchmark`` against ``answer`` and write their cells to ``run``; the prompts that were asked over HTTP."""
    asked: list[str] = []
    configs = [config_of(f"method=probe/{name}", "memory=online", *more) for name in probes]
    asyncio.run(_run(answer, benchmark, configs, run, asked))
    return asked


async def _run(
    answer: Answerer, benchmark: Benchmark, configs: Sequence[CellConfig], run: Path, asked: list[str]
) -> None:
    index = BenchmarkIndex.of(benchmark)
    async with serving(answer, asked) as url:
        cache = ReplyCache(run / "cache" / "replies-stub.sqlite")
        gateway = Gateway(Endpoint(name="stub", model="stub", base_url=url), cache)
        for config in configs:
            cell = f"{config.method.name}__stub__sample__00000000"
            spec = CellSpec(cell, config, {}, build(config.method, "method"))
            services = Services(gateway, no_embedder, shared_objects(run / "artefacts"))
            work = CellRun(spec, index, services, CellStore(run / "scratch" / cell))
            named = config.model_copy(
                update={"backbone": config.backbone.model_copy(update={"name": "stub", "rehearsal": False})}
            )
            plan = planned(benchmark, spec)
            rows = await asyncio.gather(*(_row(work, named, case, epoch) for case, epoch in plan))
            folder = run / "cells" / cell
            folder.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(list(rows), schema=FORECAST_SCHEMA), folder / "forecasts.parquet")
        await gateway.close()
        cache.close()


async def _row(work: CellRun, config: CellConfig, case: Any, epoch: int) -> Mapping[str, Any]:
    calls: list[Call] = []
    forecast = await work.spec.method.forecast(case, work.contexts.of(case, epoch, calls, []))
    work._check_gate(case, forecast)
    outcome = work.index.benchmark.evaluation.outcomes[case.catalyst_id]
    return forecast_row(work.spec.name, config, case, outcome, epoch, forecast, calls)
