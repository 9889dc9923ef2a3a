"""A run from the command line to the report, on the shipped sample."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from harness.records import CALL_SCHEMA, EVIDENCE_SCHEMA, FORECAST_SCHEMA
from harness.rehearsal import RehearsalServer
from tests.e2e.conftest import Ran, comparable, stats

pytestmark = pytest.mark.slow
METHODS = sorted(p.stem for p in (Path(__file__).parents[2] / "conf" / "method").glob("*.yaml"))


@pytest.fixture(scope="module")
def demo(ray_session: None, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    import launch

    directory = tmp_path_factory.mktemp("demo") / "运行 one"
    return Ran(launch.main(["experiment=demo", f"run.dir='{directory}'"]), "", directory)


def test_the_demo_completes_and_its_report_says_what_it_is(demo: Ran) -> None:
    assert demo.code == 0
    page = (demo.directory / "report" / "report.html").read_text("utf-8")
    assert "not a language model" in page[: page.index("</h1>") + 500]
    report = json.loads((demo.directory / "report" / "report.json").read_text("utf-8"))
    assert {c["method"] for c in report["cells"]} == set(METHODS)
    assert all(c["coverage"] == 1.0 and c["n"] == 32 for c in report["cells"])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_leaves_every_file_and_column(demo: Ran, method: str) -> None:
    cell = demo.cell(f"{method}__rehearsal__sample__")
    for name, schema in (("forecasts", FORECAST_SCHEMA), ("evidence", EVIDENCE_SCHEMA), ("calls", CALL_SCHEMA)):
        assert pq.read_schema(cell / f"{name}.parquet").equals(schema)
    about = json.loads((cell / "cell.json").read_text("utf-8"))
    assert (about["status"], about["counts"], about["rehearsal"]) == ("complete", {"ok": 32}, True)
    rows = pd.read_parquet(cell / "forecasts.parquet")
    assert rows["rehearsal"].all()
    assert rows["prob_positive"].between(0, 1).all()
    assert set(rows["label"]) == {"positive", "negative"}
    assert (rows["correct"] == (rows["direction"] == rows["label"])).all()
    assert (rows["direction"] == rows["prob_positive"].ge(0.5).map({True: "positive", False: "negative"})).all()
    assert not (rows["max_evidence_time"] > rows["decision_time"]).any()
    assert set(pd.read_parquet(cell / "evidence.parquet")["verdict"]) <= {"ok"}


def test_all_methods_with_a_prompt_share_one_instruction(demo: Ran) -> None:
    hashes = {json.loads(p.read_text("utf-8"))["instruction_sha256"] for p in demo.directory.glob("cells/*/cell.json")}
    assert len(hashes - {None}) == 1


def test_the_manifest_says_what_ran_on_which_bytes(demo: Ran) -> None:
    manifest = json.loads((demo.directory / "manifest.json").read_text("utf-8"))
    assert set(manifest["cells"]) == {p.name for p in (demo.directory / "cells").iterdir()}
    assert {f["path"] for f in manifest["data"]} >= {"eval/Sample.json", "event/Sample.json", "expr/Sample.json"}
    assert all(len(f["sha256"]) == 64 for f in manifest["data"])
    assert manifest["finished_at"] > manifest["started_at"]


def test_two_runs_give_the_same_forecasts(demo: Ran, run_here: Callable[..., Ran]) -> None:
    again = run_here("-m", "method=majority,zero_shot,vanilla_rag,tiem_scmr")
    assert again.code == 0
    ours = demo.forecasts()
    ours = ours[ours["method"].isin(set(again.forecasts()["method"]))]
    assert ours["method"].nunique() == 4
    pd.testing.assert_frame_equal(comparable(ours), comparable(again.forecasts()))


def test_how_it_is_run_changes_nothing(demo: Ran, run_here: Callable[..., Ran]) -> None:
    again = run_here("method=vanilla_rag", "cluster.workers=1", "backbone.max_in_flight=3", "backbone.rpm=60000")
    assert again.cell("vanilla_rag").name == demo.cell("vanilla_rag").name
    pd.testing.assert_frame_equal(comparable(demo.forecasts("vanilla_rag")), comparable(again.forecasts("vanilla_rag")))


def test_the_same_command_again_asks_nothing(
    run_here: Callable[..., Ran], endpoint: Callable[..., RehearsalServer]
) -> None:
    server = endpoint()
    command = ("method=cot", f"backbone.base_url={server.base_url}")
    first = run_here(*command)
    before = (first.cell("cot") / "forecasts.parquet").read_bytes()
    second = run_here(*command)
    assert (first.code, second.code) == (0, 0)
    assert "resumed 32/32" in second.text
    assert stats(server)["chat"]["requests"] == 32
    assert pd.read_parquet(second.cell("cot") / "forecasts.parquet").equals(
        pd.read_parquet(first.cell("cot") / "forecasts.parquet")
    )
    assert (second.cell("cot") / "forecasts.parquet").read_bytes() == before


def test_a_limit_is_a_prefix_that_a_longer_run_extends(run_here: Callable[..., Ran]) -> None:
    short = run_here("method=zero_shot", "run.limit=5")
    first = list(short.forecasts()["catalyst_id"])
    whole = run_here("method=zero_shot")
    assert "resumed 5/32" in whole.text
    rows = whole.forecasts().sort_values(["decision_time", "catalyst_id"])
    assert (len(first), len(rows), list(rows["catalyst_id"][:5])) == (5, 32, first)


def test_epochs_are_asked_one_by_one(run_here: Callable[..., Ran], endpoint: Callable[..., RehearsalServer]) -> None:
    server = endpoint()
    run = run_here("method=zero_shot", "run.epochs=3", "run.limit=4", f"backbone.base_url={server.base_url}")
    assert sorted(run.forecasts()["epoch"]) == [0] * 4 + [1] * 4 + [2] * 4
    assert stats(server)["chat"]["requests"] == 12


def test_a_cell_with_a_wrong_key_fails_alone_at_once(
    run_here: Callable[..., Ran], endpoint: Callable[..., RehearsalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = endpoint(key="right")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-the-one")
    run = run_here(
        "-m", "method=zero_shot,always_positive", "backbone=openai_compatible", f"backbone.base_url={server.base_url}"
    )
    assert run.code == 1
    assert "OPENAI_API_KEY" in run.text
    assert "sk-not-the-one" not in run.text
    states = {
        p.parent.name.split("__")[0]: json.loads(p.read_text("utf-8"))["status"]
        for p in run.directory.glob("cells/*/cell.json")
    }
    assert states == {"zero_shot": "failed", "always_positive": "complete"}
    assert stats(server)["chat"] == {"requests": 32, "ok": 0, "n429": 0, "repeated": 0}
    assert set(run.forecasts("zero_shot")["status"]) == {"provider"}
    assert run.forecasts("zero_shot")["correct"].isna().all()


@pytest.mark.reported
def test_replies_that_a_rehearsal_gave_are_labelled_whatever_the_backbone(
    run_here: Callable[..., Ran], endpoint: Callable[..., RehearsalServer]
) -> None:
    run = run_here(
        "method=zero_shot", "backbone=openai_compatible", f"backbone.base_url={endpoint().base_url}", "run.limit=3"
    )
    assert run.forecasts()["rehearsal"].all()
    assert "not a language model" in (run.directory / "report" / "report.md").read_text("utf-8")


@pytest.mark.reported
def test_gate_off_is_in_the_title(run_here: Callable[..., Ran]) -> None:
    run = run_here("method=vanilla_rag", "gate=off")
    assert run.code == 0
    assert "TIME GATE OFF" in (run.directory / "report" / "report.md").read_text("utf-8").split("\n")[0]
    assert "late" in set(pd.read_parquet(run.cell("vanilla_rag") / "evidence.parquet")["verdict"])


@pytest.mark.parametrize(
    ("mode", "model"), [((), "org/x:free"), (("-m",), "org/x:free"), ((), "模型,甲|乙"), (("-m",), "模型,甲|乙")]
)
def test_odd_values_pass(run_here: Callable[..., Ran], tmp_path: Path, mode: tuple[str, ...], model: str) -> None:
    quoted = model if model.isascii() else f'"{model}"'
    directory = tmp_path / "结果 目录, one|two"
    run = run_here(
        *mode,
        "method=zero_shot",
        "run.limit=2",
        f"backbone.model={quoted}",
        directory=directory,
    )
    assert run.code == 0, run.text
    assert set(run.forecasts()["model_returned"]) == {model}
    assert len(run.forecasts()) == 2


def test_a_real_embedder_works_offline(run_here: Callable[..., Ran]) -> None:
    run = run_here("method=vanilla_rag", "embedder=use_multilingual", "run.limit=2", "feed=docs")
    assert run.code == 0, run.text
    assert set(run.forecasts()["embedder"]) == {"use_multilingual"}


def test_an_embeddings_endpoint_is_called_in_batches_and_once(
    run_here: Callable[..., Ran], endpoint: Callable[..., RehearsalServer]
) -> None:
    server = endpoint()
    command = ("method=vanilla_rag", "embedder=openai", f"embedder.endpoint.base_url={server.base_url}")
    run = run_here(*command, "run.limit=8")
    assert run.code == 0, run.text
    asked = stats(server)["embeddings"]
    assert 0 < asked["requests"] < 40
    assert asked["repeated"] == 0
    run_here(*command, "run.limit=8")
    assert stats(server)["embeddings"]["requests"] == asked["requests"]
    calls = pd.read_parquet(run.cell("vanilla_rag") / "calls.parquet")
    assert (calls["purpose"] == "embed").sum() == asked["requests"]
