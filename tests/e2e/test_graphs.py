"""A graph whose build was killed: what is paid for is not paid for again, and the forecasts are those of an undisturbed run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from harness.rehearsal import RehearsalServer
from tests.e2e.conftest import Ran, comparable, kill, launch_process, stats, wait_for

pytestmark = pytest.mark.slow
IN_FLIGHT = 8


@pytest.mark.parametrize("method", ["hipporag2", "graphrag"])
def test_a_build_that_was_killed_goes_on(
    run_here: Callable[..., Ran],
    endpoint: Callable[..., RehearsalServer],
    recent_sample: str,
    tmp_path: Path,
    method: str,
) -> None:
    server = endpoint(latency=0.03)
    command = (f"method={method}", recent_sample, "feed=docs", "run.limit=8", f"backbone.max_in_flight={IN_FLIGHT}")
    at = f"backbone.base_url={server.base_url}"
    process = launch_process((*command, at), tmp_path / "killed")
    wait_for(lambda: stats(server)["chat"]["ok"] >= 40, process)
    kill(process)
    resumed = run_here(*command, at, directory=tmp_path / "killed")
    assert resumed.code == 0, resumed.text
    assert stats(server)["chat"]["repeated"] <= IN_FLIGHT, "more than what was in flight at the kill was asked again"
    undisturbed = run_here(*command, directory=tmp_path / "undisturbed")
    pd.testing.assert_frame_equal(comparable(resumed.forecasts()), comparable(undisturbed.forecasts()))
    (file,) = (tmp_path / "undisturbed" / "cells").glob("*/calls.parquet")
    calls = pd.read_parquet(file)
    assert calls.loc[calls["stage"] == "build", "catalyst_id"].isna().all()
