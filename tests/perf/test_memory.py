"""`make bench`: the scheduler, the memory and its retrieval, each against a floor measured in the same run."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from harness.jobs import BenchmarkIndex, taught
from harness.learning import steps_of
from harness.records import ResolvedCase
from tests.chain import longest_chain
from tests.support import benchmark_of, config_of

pytestmark = pytest.mark.perf
LATENCY = 1.0


def say(text: str) -> None:
    print(f"\n  {text}", flush=True)


def test_retrieval_against_a_plain_product() -> None:
    """10,000 queries over 6,000 skills of 1,536 dimensions: cosines rounded row by row, against one numpy product a query."""
    from methods.vectors import VectorTable

    rng = np.random.default_rng(0)
    skills = rng.standard_normal((6000, 1536)).astype(np.float32)
    skills /= np.linalg.norm(skills, axis=1, keepdims=True)
    queries = skills[rng.integers(0, 6000, 200)]

    def a_query(work: Any) -> float:
        started = time.perf_counter()
        for query in queries:
            work(query)
        return (time.perf_counter() - started) / len(queries) * 1e6

    texts = [str(i) for i in range(len(skills))]
    table = VectorTable.of(dict(zip(texts, skills, strict=True)))
    floor = a_query(lambda q: skills @ q)
    ours = a_query(lambda q: table.cosines(texts, q))
    say(
        f"retrieval: {ours:,.0f} µs a query, plain product {floor:,.0f} µs: ratio {ours / floor:.2f} (200 of the 10,000 queries timed)"
    )


def stub_root(to: Path, data_root: Path) -> Path:
    """The released data with a stub document for every experience case that has none."""
    for folder in ("eval", "event", "expr", "prices"):
        shutil.copytree(data_root / folder, to / folder, copy_function=shutil.copy)
    path = to / "event" / "Astock.partial.json"
    path.chmod(0o644)
    content = json.loads(path.read_text("utf-8"))
    cases = json.loads((to / "expr" / "Astock.json").read_text("utf-8"))["catalysts"]
    have = {d["doc_id"] for d in content["text"]}
    for case in cases:
        if case["catalyst_id"] not in have:
            body = f"{case['stock_id']} {case['catalyst_type']} {case['decision_time']}"
            row = {"doc_id": f"stub_{case['catalyst_id']}", "ts": case["decision_time"], "title": "", "body": body}
            content["text"].append({**row, "mentioned_stocks": [case["stock_id"]]})
            content["stocks"].setdefault(case["stock_id"], {"name": case["stock_id"]})
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    return to


def test_learning_the_whole_experience_split(ray_session: None, data_root: Path, tmp_path: Path) -> None:
    """3,000 cases at 1 s a call without a rate limit: wall time against the longest chain of dependencies, and one at a time."""
    import pandas as pd

    import launch

    root = stub_root(tmp_path / "data", data_root)
    config = config_of("method=tiem", "benchmark=csmd", f"benchmark.root='{root}'")
    bench = benchmark_of(config)
    past = BenchmarkIndex.of(bench).past
    assert past is not None
    from harness.config import build

    method = build(config.method, "method")
    cases = taught(past, method)
    outcomes = past.benchmark.evaluation.outcomes
    steps = steps_of([ResolvedCase(c, outcomes[c.catalyst_id], None) for c in cases], method)
    chain = longest_chain(steps)

    peak = 0
    done = asyncio.Event()

    def watch() -> None:
        nonlocal peak
        while not done.is_set():
            rss = sum(
                p.info["memory_info"].rss
                for p in psutil.process_iter(["name", "memory_info"])
                if "ray::" in p.info["name"]
            )
            peak = max(peak, rss)
            time.sleep(2)

    import threading

    threading.Thread(target=watch, daemon=True).start()
    run = tmp_path / "run"
    command = [
        "method=tiem",
        "benchmark=csmd",
        "run.limit=1",
        "backbone.max_in_flight=512",
        f"backbone.latency={LATENCY}",
    ]
    code = launch.main([*command, f"benchmark.root='{root}'", f"run.dir='{run}'"])
    done.set()
    assert code == 0
    (directory,) = (run / "memories").iterdir()
    calls = pd.read_parquet(directory / "calls.parquet")
    sent = calls[calls["sent_at"].notna()]
    wall = (sent["sent_at"].max() - sent["sent_at"].min()).total_seconds() + LATENCY
    took = sent.groupby("purpose")["latency_s"].mean()
    a_case = took["forecast"] + took["distill"]  # one after the other: what a chain is made of
    n_reviews = sum(step.decision is None for step in steps)
    floor = chain * a_case + n_reviews * took["stability"]
    nominal = (2 * chain + n_reviews) * LATENCY
    cpu = (wall - floor) / len(cases) * 1000
    say(
        f"{len(cases)} cases, {len(sent)} calls of {LATENCY:g} s; longest chain {chain} forecasts and lessons, and {n_reviews} reviews"
    )
    say(f"wall {wall:.0f} s, chain times the measured latency of its calls {floor:.0f} s: ratio {wall / floor:.2f}")
    say(f"chain times {LATENCY:g} s {nominal:.0f} s: ratio {wall / nominal:.2f}")
    say(f"one at a time {len(sent) * LATENCY:,.0f} s: speed-up {len(sent) * LATENCY / wall:.0f}")
    say(
        f"scheduler and memory: {cpu:.1f} ms a case over the floor; peak memory of the session's processes {peak / 2**20:,.0f} MiB"
    )


def test_cost_of_the_strict_gate(data_root: Path, tmp_path: Path) -> None:
    """Distinct calls of the hypergraph as of every decision, against one build over the whole corpus."""
    from harness.cell import CellRun
    from harness.config import build
    from harness.contexts import Services, shared_objects
    from harness.jobs import CellSpec
    from harness.local import RehearsingGateway
    from harness.store import CellStore
    from harness.vectors import VectorsAtHand, VectorService, VectorStore

    counted: dict[str, int] = {}
    for gate in ("strict", "paper"):
        config = config_of("method=tiem_wo_csm", "benchmark=csmd", f"benchmark.root='{data_root}'", f"gate={gate}")
        gateway = RehearsingGateway(config.backbone)
        service = VectorService(build(config.embedder, "embedder"), VectorStore(tmp_path / gate / "v.sqlite"), None)
        services = Services(gateway, VectorsAtHand(service.vectors), shared_objects(tmp_path / gate / "artefacts"))
        spec = CellSpec("cell", config, {}, build(config.method, "method"))
        cell = CellRun(spec, BenchmarkIndex.of(benchmark_of(config)), services, CellStore(tmp_path / gate / "cell"))
        asyncio.run(cell.run())
        counted[gate] = sum(len(v) for k, v in gateway.asked.items() if k != "forecast")
    ratio = counted["strict"] / counted["paper"]
    say(
        f"hypergraph of csmd: {counted['strict']} calls as of 128 decisions, {counted['paper']} for one whole-corpus build: ratio {ratio:.2f}"
    )
    assert ratio <= 2.5
