"""`make bench`: the path of a call, against a bare loop with the same client on the same server in the same run."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest

from harness.gateway.request import ChatRequest, prepare, user
from harness.gateway.settings import Endpoint
from harness.gateway.wire import Wire
from harness.rehearsal import start_rehearsal

pytestmark = pytest.mark.perf
CALLS, AT_ONCE = 1_536, 256


def say(text: str) -> None:
    print(f"\n  {text}", flush=True)


def bare(latency: float) -> tuple[float, float]:
    """(calls a second, ms of CPU a call) of nothing but the client."""
    server = start_rehearsal(latency=latency)

    async def main() -> tuple[float, float]:
        endpoint = Endpoint(name="r", model="rehearsal", base_url=server.base_url, max_in_flight=AT_ONCE)
        wire = Wire(endpoint, lambda headers: None)
        text = "Acme Corp reported record profit growth. " * 40
        bodies = iter([prepare(endpoint, ChatRequest((user(f"{i} {text}"),))).body for i in range(CALLS + AT_ONCE)])

        async def drive(n: int) -> None:
            async def work() -> None:
                for _ in range(n // AT_ONCE):
                    await wire.chat(next(bodies))

            await asyncio.gather(*(work() for _ in range(AT_ONCE)))

        await drive(AT_ONCE)  # connects
        started, cpu = time.perf_counter(), time.process_time()
        await drive(CALLS)
        took = time.perf_counter() - started, time.process_time() - cpu
        await wire.close()
        return CALLS / took[0], took[1] / CALLS * 1e3

    try:
        return asyncio.run(main())
    finally:
        server.stop()


def of_a_run(latency: float, data_root: Path, run_dir: Path) -> tuple[float, float]:
    """(calls a second, ms of CPU a call of all processes while calls are made) of a whole run."""
    command = [
        sys.executable, "launch.py", "method=cot", "benchmark=csmd", f"benchmark.root={data_root}", "run.epochs=12",
        f"backbone.latency={latency}", f"backbone.max_in_flight={AT_ONCE}", f"run.dir={run_dir}",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    samples: list[tuple[float, float]] = []
    while process.poll() is None:
        samples.append((time.time(), _cpu_of(process.pid)))
        time.sleep(0.1)
    assert process.returncode == 0
    (path,) = run_dir.glob("cells/*/calls.parquet")
    calls = pd.read_parquet(path)
    ends = calls["sent_at"] + pd.to_timedelta(calls["latency_s"], unit="s")
    first, last = calls["sent_at"].min().timestamp(), ends.max().timestamp()
    used = [cpu for at, cpu in samples if first <= at <= last]
    return CALLS / (last - first), (used[-1] - used[0]) / CALLS * 1e3


def _cpu_of(pid: int) -> float:
    """CPU seconds of a process and all below it, the rehearsal server left out."""
    total = 0.0
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        try:
            if "harness.rehearsal" not in " ".join(process.cmdline()):
                times = process.cpu_times()
                total += times.user + times.system
        except psutil.Error:
            continue
    return total


@pytest.mark.parametrize("latency", [1.0, 0.05])
def test_a_run_against_a_bare_loop(data_root: Path, tmp_path: Path, latency: float) -> None:
    floor, floor_cpu = bare(latency)
    ours, cpu = of_a_run(latency, data_root, tmp_path / "run")
    say(
        f"latency {latency:g} s, {AT_ONCE} at once: {ours:,.0f} calls/s, bare client {floor:,.0f}: ratio {ours / floor:.2f}; "
        f"CPU {cpu:.1f} ms a call over all processes, bare client {floor_cpu:.1f}"
    )
