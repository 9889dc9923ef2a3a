"""Two benchmarks at once never see each other's memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from harness.jobs import Job
from harness.records import Benchmark, Catalyst
from tests.memories.test_truncation import METHODS, case_of
from tests.memories.world import both, job_of, planted, small
from tests.support import run_jobs

CANARY = "Zanzibar Zeppelin Works"
SAID = f"{CANARY} wins an order. {CANARY} raises its guidance. {CANARY} expects profit to grow."


def job_on(benchmark: Benchmark, name: str, case: Catalyst, method: str) -> Job:
    """A cell on ``benchmark`` under another name, with a memory of its own."""
    job = job_of(f"method={method}", "benchmark=sample")
    assert job.memory is not None
    assert job.memory.training is not None
    training = job.memory.training
    filled = replace(training.spec, name=f"filled-{name}")
    memory = replace(job.memory, training=replace(training, spec=filled, benchmark=benchmark))
    return replace(job, spec=replace(job.spec, name=name), benchmark=benchmark, memory=memory)


@pytest.mark.parametrize("method", METHODS)
def test_a_canary_in_one_is_not_found_in_the_other(method: str, tmp_path: Path) -> None:
    case = case_of(("benchmark=sample",))
    job = job_of(f"method={method}", "benchmark=sample")
    plain = small(case)(job.benchmark)
    with_canary = both(small(case), planted(case, -1, SAID))(job.benchmark)
    jobs = [job_on(with_canary, "one", case, method), job_on(plain, "two", case, method)]
    asyncio.run(run_jobs(jobs, tmp_path, [case.catalyst_id]))
    journals = {p.parent.name: p.read_text("utf-8") for p in tmp_path.glob("memories/*/memory.jsonl")}
    assert CANARY in journals["filled-one"]
    assert CANARY not in journals["filled-two"]
    alone = tmp_path / "alone"
    asyncio.run(run_jobs([job_on(plain, "two", case, method)], alone, [case.catalyst_id]))
    journal = (alone / "memories" / "filled-two" / "memory.jsonl").read_text("utf-8")
    assert journals["filled-two"] == journal, "the neighbour left a trace"
