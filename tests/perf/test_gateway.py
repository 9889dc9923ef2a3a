"""`make bench`: a run by ``launch.py``, against a bare loop with the OpenAI client on the same kind of server.

The server is a process of its own and tells when the first and the last request came: the rate is calls by the time between them, so
that starting up counts for neither side.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import psutil
import pytest

pytestmark = pytest.mark.perf
CALLS, AT_ONCE = 1_536, 256
PROMPT = "Acme Corp reported record profit growth in the third quarter. " * 75
"""About 900 tokens."""


@contextmanager
def stub(latency: float) -> Iterator[str]:
    """URL of a server that answers after ``latency`` seconds."""
    command = [sys.executable, "-m", "tests.perf.stub", f"--latency={latency}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def stats(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/stats") as reply:
        found: dict[str, Any] = json.load(reply)
    return found


def rate(seen: dict[str, Any]) -> float:
    """Calls a second, from the first request to the last."""
    assert seen["requests"] == CALLS
    return CALLS / float(seen["last"] - seen["first"])


def bare(latency: float) -> tuple[float, float]:
    """(calls a second, ms of CPU a call) of nothing but the client."""

    async def main(url: str) -> float:
        limits = type(openai.DEFAULT_CONNECTION_LIMITS)(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)
        http = openai.DefaultAioHttpClient(limits=limits)
        client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, http_client=http)
        numbers = iter(range(CALLS))

        async def work() -> None:
            for number in numbers:
                await client.chat.completions.create(
                    model="stub", messages=[{"role": "user", "content": f"{number} {PROMPT}"}], max_tokens=1500
                )

        started = time.process_time()
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        used = time.process_time() - started
        await client.close()
        return used

    with stub(latency) as url:
        used = asyncio.run(main(url))
        return rate(stats(url)), used / CALLS * 1e3


def of_a_run(latency: float, data_root: Path, run_dir: Path) -> tuple[float, float]:
    """(calls a second, ms of CPU a call of all processes while calls are made) of a whole run."""
    with stub(latency) as url:
        command = [
            sys.executable, "launch.py", "method=cot", "benchmark=csmd", f"benchmark.root={data_root}", "run.epochs=12",
            "backbone=openai_compatible", f"backbone.base_url={url}", f"backbone.max_in_flight={AT_ONCE}",
            f"run.dir={run_dir}",
        ]  # fmt: skip
        environment = {**os.environ, "OPENAI_API_KEY": "none"}
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        samples: list[tuple[float, float]] = []
        while process.poll() is None:
            samples.append((time.time(), _cpu_of(process.pid)))
            time.sleep(0.1)
        assert process.returncode == 0
        seen = stats(url)
    used = [cpu for at, cpu in samples if seen["first"] <= at <= seen["last"] + latency]
    return rate(seen), (used[-1] - used[0]) / CALLS * 1e3


def _cpu_of(pid: int) -> float:
    """CPU seconds of a process and all below it."""
    total = 0.0
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


@pytest.mark.data
@pytest.mark.parametrize("latency", [1.0, 0.05])
def test_a_run_against_a_bare_loop(data_root: Path, tmp_path: Path, latency: float) -> None:
    floor, floor_cpu = bare(latency)
    ours, cpu = of_a_run(latency, data_root, tmp_path / "run")
    print(
        f"\n  latency {latency:g} s, {AT_ONCE} at once: {ours:,.0f} calls/s, bare client {floor:,.0f}: ratio {ours / floor:.2f}; "
        f"CPU {cpu:.1f} ms a call over all processes, bare client {floor_cpu:.1f}",
        flush=True,
    )
