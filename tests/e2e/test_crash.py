"""Killed, interrupted, resumed: nothing that was finished is asked again, and the result is that of an undisturbed run."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from harness.ledger import read_payments
from harness.rehearsal import RehearsalServer
from harness.status import read_status, status_text
from harness.store import in_use
from tests.e2e.conftest import Ran, comparable, kill, launch_process, stats, wait_for

pytestmark = pytest.mark.slow
COMMAND = ("-m", "method=zero_shot,vanilla_rag", "backbone=rehearsal", "benchmark=sample", "backbone.max_in_flight=4")


def test_killed_at_any_moment_and_resumed(
    run_here: Callable[..., Ran], endpoint: Callable[..., RehearsalServer], tmp_path: Path
) -> None:
    server = endpoint(latency=0.15)
    command = (*COMMAND, f"backbone.base_url={server.base_url}")
    process = launch_process(command, tmp_path / "killed")
    target = random.randrange(5, 55)
    wait_for(lambda: stats(server)["chat"]["ok"] >= target, process)
    kill(process)
    answered = stats(server)["chat"]["ok"]
    paid = len(read_payments(tmp_path / "killed" / "cache"))
    assert answered - 8 <= paid <= answered, "the ledger holds all but what was in flight at the kill"
    status = status_text(read_status(tmp_path / "killed"), in_use(tmp_path / "killed"), datetime.now(UTC))
    assert status.startswith("no longer alive")

    resumed = run_here(*command, directory=tmp_path / "killed")
    assert resumed.code == 0, resumed.text
    after = stats(server)["chat"]
    assert after["repeated"] <= 8, "more than what was in flight at the kill was asked again"
    assert after["requests"] - 64 <= 8
    assert answered >= target
    assert len(read_payments(tmp_path / "killed" / "cache")) == 64, (
        "each forecast was paid for once, as far as is known"
    )

    undisturbed = run_here(*COMMAND, directory=tmp_path / "undisturbed")
    pd.testing.assert_frame_equal(comparable(resumed.forecasts()), comparable(undisturbed.forecasts()))


def test_ctrl_c_stops_cleanly_and_the_next_run_resumes(
    run_here: Callable[..., Ran], endpoint: Callable[..., RehearsalServer], tmp_path: Path
) -> None:
    server = endpoint(latency=0.3)
    command = (*COMMAND, f"backbone.base_url={server.base_url}")
    process = launch_process(command, tmp_path / "stopped")
    wait_for(lambda: stats(server)["chat"]["ok"] >= 10, process)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 130, text
    assert "Traceback" not in text
    asked = stats(server)["chat"]
    assert asked["requests"] == asked["ok"] < 64, "a call in flight was dropped, or none was left to do"

    stopped = Ran(130, text, tmp_path / "stopped")
    assert len(stopped.forecasts()) == asked["ok"]
    resumed = run_here(*command, directory=tmp_path / "stopped")
    assert resumed.code == 0
    assert f"resumed {asked['ok']}/64" in resumed.text
    assert stats(server)["chat"] == {"requests": 64, "ok": 64, "n429": 0, "repeated": 0}
