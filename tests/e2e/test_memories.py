"""The memory baselines on Ray: filled in order whatever the width, through a kill, shared as files, apart from each other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from harness.estimate import estimate
from harness.plan import make_jobs
from harness.rehearsal import RehearsalServer
from harness.store import RunDirectory
from tests.e2e.conftest import Ran, comparable, kill, launch_process, stats, wait_for
from tests.support import config_of

pytestmark = pytest.mark.slow
METHODS = ("mem0", "a_mem", "memgpt")


def logs(run: Ran) -> dict[str, str]:
    """Hash of every log that was filled, by the name of its memory."""
    return {
        path.parent.name: json.loads(path.read_text("utf-8"))["memory_log_sha256"]
        for path in (run.directory / "memories").glob("*/cell.json")
    }


@pytest.fixture(scope="module")
def data(recent_sample: str) -> tuple[str, ...]:
    return ("benchmark=sample", recent_sample, "run.limit=3", "method.train_limit=5")


@pytest.fixture(scope="module")
def command(data: tuple[str, ...]) -> tuple[str, ...]:
    return ("-m", f"method={','.join(METHODS)}", *data)


@pytest.fixture(scope="module")
def undisturbed(ray_session: None, command: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Ran:
    import launch

    directory = tmp_path_factory.mktemp("undisturbed")
    code = launch.main([*command, "backbone.max_in_flight=64", f"run.dir='{directory}'"])
    return Ran(code, "", directory)


def test_one_worker_gives_what_sixty_four_give(
    undisturbed: Ran, command: tuple[str, ...], run_here: Callable[..., Ran]
) -> None:
    assert undisturbed.code == 0
    assert len(logs(undisturbed)) == 3
    alone = run_here(*command, "backbone.max_in_flight=1", "cluster.workers=1")
    assert alone.code == 0, alone.text
    assert logs(alone) == logs(undisturbed)
    pd.testing.assert_frame_equal(comparable(alone.forecasts()), comparable(undisturbed.forecasts()))


def test_the_estimate_holds(undisturbed: Ran, data: tuple[str, ...], tmp_path: Path) -> None:
    """Calls and prompt tokens of every memory, and of the forecasts that read it, lie between what was said before."""
    configs = [config_of(f"method={m}", *data) for m in METHODS]
    said = {row.cell: row for row in estimate(make_jobs(configs, lambda text: None), RunDirectory(tmp_path)).rows}
    assert len(said) == 6
    for directory in (*undisturbed.directory.glob("memories/*"), *undisturbed.directory.glob("cells/*")):
        calls = pd.read_parquet(directory / "calls.parquet")
        bills = said[directory.name].purposes
        for purpose, made in calls[calls["purpose"] != "embed"].groupby("purpose"):
            bill = bills[str(purpose)]
            assert bill.calls.low <= len(made) <= bill.calls.high, (directory.name, purpose)
            assert bill.tokens_in.low <= made["prompt_tokens"].sum() <= bill.tokens_in.high, (directory.name, purpose)


def test_killed_while_it_is_filled_and_resumed(
    undisturbed: Ran,
    command: tuple[str, ...],
    run_here: Callable[..., Ran],
    endpoint: Callable[..., RehearsalServer],
    tmp_path: Path,
) -> None:
    server = endpoint(latency=0.02)
    command = (*command, f"backbone.base_url={server.base_url}", "backbone.max_in_flight=8")
    process = launch_process(command, tmp_path / "killed")
    journals = "memories/*/memory.jsonl"
    wait_for(lambda: len(list((tmp_path / "killed").glob(journals))) == 3, process)
    wait_for(lambda: stats(server)["chat"]["ok"] >= 130, process)
    kill(process)
    resumed = run_here(*command, directory=tmp_path / "killed")
    assert resumed.code == 0, resumed.text
    assert re.search(r"complete +\S+, resumed [1-9]\d*/\d+", resumed.text), "records on file are spoken of"
    assert logs(resumed) == logs(undisturbed)
    pd.testing.assert_frame_equal(comparable(resumed.forecasts()), comparable(undisturbed.forecasts()))
    assert stats(server)["chat"]["repeated"] <= 24


def test_a_filled_memory_can_be_shared_as_one_file(
    undisturbed: Ran, data: tuple[str, ...], run_here: Callable[..., Ran]
) -> None:
    (file,) = (undisturbed.directory / "memories").glob("a_mem__*/memory.parquet")
    run = run_here("method=a_mem", *data, f"memory_file='{file}'")
    assert run.code == 0, run.text
    assert not list((run.directory / "memories").iterdir()), "something was filled"
    columns = ["catalyst_id", "prob_positive", "prompt_sha256"]
    shared = undisturbed.forecasts("a_mem")[columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(run.forecasts()[columns], shared)


def test_gates_share_one_memory(data: tuple[str, ...], run_here: Callable[..., Ran]) -> None:
    run = run_here("-m", "method=mem0", *data, "gate=strict,paper,off")
    assert run.code == 0, run.text
    assert len(logs(run)) == 1
    assert run.forecasts()["prompt_sha256"].nunique() > 3
