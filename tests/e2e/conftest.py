"""Whole runs: in this process on the shared Ray session, or as a process of their own where they are to be killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.rehearsal import RehearsalServer, start_rehearsal

ROOT = Path(__file__).resolve().parent.parent.parent
TIMES = ("latency_s",)
"""Columns of forecasts.parquet that may differ between two runs."""


@dataclass(frozen=True)
class Ran:
    """Exit code, what was printed, and the run directory."""

    code: int
    text: str
    directory: Path

    def cell(self, prefix: str) -> Path:
        (found,) = (self.directory / "cells").glob(f"{prefix}*")
        return found

    def forecasts(self, prefix: str = "") -> pd.DataFrame:
        parts = [pd.read_parquet(p) for p in sorted((self.directory / "cells").glob(f"{prefix}*/forecasts.parquet"))]
        return pd.concat(parts, ignore_index=True)


def comparable(frame: pd.DataFrame) -> pd.DataFrame:
    """``frame`` without what may differ between two runs, in a fixed order."""
    return frame.drop(columns=list(TIMES)).sort_values(["cell", "catalyst_id", "epoch"]).reset_index(drop=True)


@pytest.fixture(autouse=True)
def report_only_where_it_is_looked_at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables and figures take longer than all the rest of a small run: tests that are about them are marked ``reported``."""
    import launch

    if request.node.get_closest_marker("reported") is None:
        monkeypatch.setattr(launch, "make_report", lambda *_: True)


@pytest.fixture
def run_here(ray_session: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """``launch.py`` in this process, on the shared Ray session."""
    import launch

    def run(*arguments: str, directory: Path | None = None) -> Ran:
        target = directory or tmp_path / "run"
        capfd.readouterr()
        code = launch.main([*arguments, f"run.dir='{target}'"])
        out = capfd.readouterr()
        return Ran(code, out.out + out.err, target)

    return run


def launch_process(arguments: Sequence[str], directory: Path, **environment: str) -> subprocess.Popen[str]:
    """``launch.py`` as a process of its own, with a Ray session of its own."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "launch.py"), *arguments, f"run.dir='{directory}'"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 90) -> None:
    """Until ``condition`` holds; fails if the process ends or the time is up first."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, f"ended early:\n{process.stdout.read() if process.stdout else ''}"
        assert time.monotonic() < end, "timed out"
        time.sleep(0.05)


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="session")
def recent_sample(tmp_path_factory: pytest.TempPathFactory) -> str:
    """``benchmark.root=`` of a sample whose documents begin seven weeks before the first decision: a short way to a filled memory."""
    root = tmp_path_factory.mktemp("recent") / "sample"
    shutil.copytree(ROOT / "benchmarks" / "sample", root, ignore=shutil.ignore_patterns("*.py", "*.toml"))
    path = root / "event" / "Sample.json"
    content = json.loads(path.read_text("utf-8"))
    content["text"] = [row for row in content["text"] if row["ts"] >= "2020-07-15"]
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    return f"benchmark.root='{root}'"


@pytest.fixture
def endpoint() -> Iterator[Callable[..., RehearsalServer]]:
    """Rehearsal endpoints that outlive a killed run, so that what was asked twice can be counted."""
    started: list[RehearsalServer] = []

    def start(**options: Any) -> RehearsalServer:
        started.append(start_rehearsal(**options))
        return started[-1]

    yield start
    for server in started:
        server.stop()


def stats(server: RehearsalServer) -> dict[str, Any]:
    """``GET /stats``."""
    url = server.base_url.removesuffix("/v1") + "/stats"
    with urllib.request.urlopen(url, timeout=10) as reply:
        loaded: dict[str, Any] = json.load(reply)
    return loaded
