"""From catalysts without outcomes to a score, without any step of the run knowing an outcome."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import reports
from benchmarks.__main__ import main
from tests.e2e.conftest import Ran

pytestmark = pytest.mark.slow
SAMPLE = Path(__file__).parents[2] / "benchmarks" / "sample"
CELL = ("method=zero_shot", "benchmark=sample")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The sample without the outcomes of what is to be forecast; these are in ``outcomes.json``."""
    root = tmp_path / "data"
    shutil.copytree(SAMPLE, root)
    file = root / "eval" / "Sample.json"
    content = json.loads(file.read_text("utf-8"))
    (root / "outcomes.json").write_text(json.dumps(content), "utf-8")
    for row in content["catalysts"]:
        del row["outcome"], row["fwd_ret"]
    file.write_text(json.dumps(content), "utf-8")
    return root


def test_forecast_publish_resolve(run_here: Callable[..., Ran], root: Path, tmp_path: Path) -> None:
    asked = (*CELL, f"benchmark.root='{root}'", "benchmark.prospective=true")
    ran = run_here(*asked)
    assert ran.code == 0
    cell = ran.cell("zero_shot")
    sha256 = hashlib.sha256((cell / "forecasts.parquet").read_bytes()).hexdigest()
    assert sha256 in ran.text
    assert "33 of 33 of these outcomes could be known by now" in ran.text, "the sample's outcomes are years old"
    assert (cell / "forecasts.parquet.sha256").read_text() == f"{sha256}  forecasts.parquet\n"
    before = ran.forecasts()
    assert len(before) == 33
    assert before[["label", "fwd_ret", "correct"]].isna().all(axis=None)

    assert run_here(*asked).code == 0  # once more: nothing left to do, the hash is the same
    assert hashlib.sha256((cell / "forecasts.parquet").read_bytes()).hexdigest() == sha256

    out = tmp_path / "resolved"
    command = ["resolve", str(ran.directory), "--outcomes", str(root / "outcomes.json"), "--out", str(out)]
    assert main([*command, "--published", sha256]) == 0
    report = reports.build([out], out / "report")
    (score,) = report.data["cells"]
    usual = run_here(*CELL, directory=tmp_path / "usual").forecasts()
    after = pd.read_parquet(next(out.glob("cells/*/forecasts.parquet")))
    both = usual.merge(after, on="catalyst_id")
    assert (both["prompt_sha256_x"] == both["prompt_sha256_y"]).all()
    assert (both["correct_x"] == both["correct_y"]).all()
    assert (score["n_scored"], score["acc"]) == (32, usual["correct"].mean())

    rows = pd.read_parquet(cell / "forecasts.parquet")
    rows.loc[0, "prob_positive"] = 0.999
    rows.to_parquet(cell / "forecasts.parquet")
    assert main(command) == 2


def test_an_unfinished_cell_has_no_hash(run_here: Callable[..., Ran], root: Path) -> None:
    asked = (*CELL, f"benchmark.root='{root}'", "benchmark.prospective=true", "run.limit=4")
    ran = run_here(*asked)
    assert (ran.cell("zero_shot") / "forecasts.parquet.sha256").exists()
    ran = run_here(*asked[:-1], "run.limit=6", "backbone.fault='400=1'")
    assert ran.code == 1
    assert not (ran.cell("zero_shot") / "forecasts.parquet.sha256").exists()


def test_nothing_is_learned_from_what_is_not_known(run_here: Callable[..., Ran], root: Path) -> None:
    ran = run_here(
        "method=tiem", "benchmark=sample", f"benchmark.root='{root}'", "benchmark.prospective=true", "memory=online"
    )
    assert ran.code == 2
    assert "33 catalysts of benchmark sample have no outcome to learn from yet" in ran.text
