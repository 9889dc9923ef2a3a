"""TIEM on Ray: the memory learns in parallel yet exactly in order, through kills, whatever the number of workers and nodes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import psutil
import pytest

from harness.rehearsal import RehearsalServer
from tests.e2e.conftest import ROOT, Ran, comparable, kill, launch_process, stats, wait_for

pytestmark = pytest.mark.slow
COMMAND = ("method=tiem", "benchmark=sample", "run.limit=6", "method.train_limit=48")


def log_sha256(run: Ran) -> str:
    """Hash of the trained memory's log."""
    (about,) = (run.directory / "memories").glob("*/cell.json")
    value: str = json.loads(about.read_text("utf-8"))["memory_log_sha256"]
    return value


@pytest.fixture(scope="module")
def undisturbed(ray_session: None, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    import launch

    directory = tmp_path_factory.mktemp("undisturbed")
    code = launch.main([*COMMAND, "backbone.max_in_flight=64", f"run.dir='{directory}'"])
    return Ran(code, "", directory)


def test_one_worker_gives_what_sixty_four_give(undisturbed: Ran, run_here: Callable[..., Ran]) -> None:
    assert undisturbed.code == 0
    alone = run_here(*COMMAND, "backbone.max_in_flight=1", "cluster.workers=1")
    assert alone.code == 0, alone.text
    assert log_sha256(alone) == log_sha256(undisturbed)
    pd.testing.assert_frame_equal(comparable(alone.forecasts()), comparable(undisturbed.forecasts()))


def test_killed_while_learning_and_resumed(
    undisturbed: Ran, run_here: Callable[..., Ran], endpoint: Callable[..., RehearsalServer], tmp_path: Path
) -> None:
    server = endpoint(latency=0.05)
    command = (*COMMAND, f"backbone.base_url={server.base_url}", "backbone.max_in_flight=8")
    process = launch_process(command, tmp_path / "killed")
    wait_for(lambda: any((tmp_path / "killed").glob("memories/*/memory.jsonl")), process)
    wait_for(lambda: stats(server)["chat"]["ok"] >= 120, process)
    kill(process)
    resumed = run_here(*command, directory=tmp_path / "killed")
    assert resumed.code == 0, resumed.text
    assert log_sha256(resumed) == log_sha256(undisturbed)
    pd.testing.assert_frame_equal(comparable(resumed.forecasts()), comparable(undisturbed.forecasts()))
    assert stats(server)["chat"]["repeated"] <= 8


def test_a_memory_actor_that_is_killed_comes_back_with_everything(
    run_here: Callable[..., Ran], endpoint: Callable[..., RehearsalServer], tmp_path: Path
) -> None:
    command = ("method=tiem", "benchmark=sample", "memory=online", "run.limit=6", "method.train_limit=40")
    whole = run_here(*command, directory=tmp_path / "whole")
    assert whole.code == 0, whole.text

    server = endpoint(latency=0.05)
    killed: list[int] = []

    def assassin() -> None:
        while len(killed) < 2:
            asked = stats(server)["chat"]["ok"]
            victims = [
                p
                for p in psutil.process_iter(["name", "cmdline"])
                if "MemoryActor" in " ".join(p.info["cmdline"] or [])
            ]
            if victims and asked >= 60 * (len(killed) + 1):
                os.kill(victims[0].pid, signal.SIGKILL)
                killed.append(victims[0].pid)
            time.sleep(0.1)

    thread = threading.Thread(target=assassin, daemon=True)
    thread.start()
    run = run_here(*command, f"backbone.base_url={server.base_url}", directory=tmp_path / "killed")
    assert killed, "no memory actor was found to kill"
    assert run.code == 0, run.text
    hashes = [
        json.loads(next((r.directory / "cells").glob("*/cell.json")).read_text("utf-8"))["memory_log_sha256"]
        for r in (whole, run)
    ]
    assert hashes[0] == hashes[1]
    pd.testing.assert_frame_equal(comparable(run.forecasts()), comparable(whole.forecasts()))


TWO_RAYLETS = """
import sys
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 100 << 20})
cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
sys.path.insert(0, ".")
import launch

code = launch.main([*sys.argv[1:], f"cluster.address={cluster.address}"])
cluster.shutdown()
sys.exit(code)
"""


def test_two_raylets_give_what_one_gives(undisturbed: Ran, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWO_RAYLETS, *COMMAND, f"run.dir={tmp_path / 'two'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = Ran(0, "", tmp_path / "two")
    assert json.loads((run.directory / "manifest.json").read_text("utf-8"))["ray"]["CPU"] == 2
    assert log_sha256(run) == log_sha256(undisturbed)
    pd.testing.assert_frame_equal(comparable(run.forecasts()), comparable(undisturbed.forecasts()))


def test_a_trained_memory_can_be_shared_as_one_file(undisturbed: Ran, run_here: Callable[..., Ran]) -> None:
    (file,) = (undisturbed.directory / "memories").glob("*/memory.parquet")
    run = run_here(*COMMAND, f"memory_file='{file}'")
    assert run.code == 0, run.text
    assert not list((run.directory / "memories").iterdir()), "something was trained"
    columns = ["catalyst_id", "prob_positive", "prompt_sha256"]
    pd.testing.assert_frame_equal(run.forecasts()[columns], undisturbed.forecasts()[columns])


def test_all_variants_that_learn_share_one_training(run_here: Callable[..., Ran]) -> None:
    run = run_here("-m", "method=tiem,tiem_wo_eeh,tiem_wo_hefr,tiem_scmr", "run.limit=2", "method.train_limit=20")
    assert run.code == 0, run.text
    assert len(list((run.directory / "memories").iterdir())) == 1
