"""Probes from the command line to the report: resumed, labelled, apart from forecasts."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from harness.rehearsal import RehearsalServer
from tests.e2e.conftest import Ran, stats

pytestmark = pytest.mark.slow


@pytest.mark.reported
def test_the_name_date_probe_runs_resumes_and_reports(
    run_here: Callable[..., Ran], endpoint: Callable[..., RehearsalServer]
) -> None:
    server = endpoint()
    command = (
        "experiment=name_date_probe", "backbone=rehearsal", "method.sample=6", f"backbone.base_url={server.base_url}",
        "backbone.cutoff=2020-10-31",
    )  # fmt: skip
    first, again = run_here(*command), run_here(*command)
    assert (first.code, again.code) == (0, 0)
    assert again.text.count("resumed 6/6") == 3
    assert stats(server)["chat"]["requests"] == 18
    data = json.loads((again.directory / "report" / "report.json").read_text("utf-8"))
    (row,) = data["ndp"]
    assert (row["n"], row["backbone"], row["benchmark"]) == (6, "rehearsal", "sample")
    assert "not a language model" in row["label"]
    assert data["cells"] == []
    assert {curve["cutoff"] for curve in data["cutoff"]} == {"2020-10-31"}
    assert "NOT TESTABLE" in again.text or "PASS" in again.text


@pytest.mark.reported
def test_forecasts_and_probes_of_one_directory_stand_apart(run_here: Callable[..., Ran]) -> None:
    run_here("method=zero_shot", "run.limit=6")
    both = run_here("method=probe/nd", "method.sample=6")
    data = json.loads((both.directory / "report" / "report.json").read_text("utf-8"))
    assert [c["method"] for c in data["cells"]] == ["zero_shot"]
    assert [c["method"] for c in data["probe_cells"]] == ["probe_nd"]
