"""A backbone that remembers outcomes by name and date is exposed by several probes; one that does not is by none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reports
from harness.records import Benchmark
from tests.probes.stub import PROBES, probed, reader, remembering
from tests.support import benchmark_of, config_of


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    return benchmark_of(config_of("benchmark=sample"))


def reported(run: Path) -> dict[str, Any]:
    found = reports.build([run], run / "report")
    assert json.loads((run / "report" / "report.json").read_text("utf-8")) == json.loads(json.dumps(found.data))
    return dict(found.data)


@pytest.fixture(scope="module")
def exposed(benchmark: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    run = tmp_path_factory.mktemp("remembers")
    asked = probed(remembering(benchmark), benchmark, run)
    data = reported(run)
    data["asked"], data["run"] = asked, run
    return data


@pytest.fixture(scope="module")
def clean(benchmark: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    run = tmp_path_factory.mktemp("reads")
    probed(reader, benchmark, run)
    return reported(run)


def verdicts(data: dict[str, Any]) -> dict[str, str]:
    return {row["probe"]: row["verdict"] for row in data["probes"]}


def test_one_that_remembers_is_exposed_by_many_probes(exposed: dict[str, Any]) -> None:
    found = verdicts(exposed)
    assert {name for name, verdict in found.items() if verdict == "FAIL"} == {
        "name_date", "masked", "swapped", "shifted", "contrary", "recall",
    }  # fmt: skip
    assert found["identify"] == "PASS", "it knows cases by code and date, and sees neither"
    (row,) = exposed["ndp"]
    assert row["membase"] == 1.0
    assert row["delta_content"] == 0.0, "the text adds nothing to what is remembered"
    assert any(s["topic"] == "probes" and s["tone"] == "care" for s in exposed["summary"])


def test_one_that_does_not_is_exposed_by_none(clean: dict[str, Any]) -> None:
    found = verdicts(clean)
    assert set(found) == {
        "name_date", "masked", "swapped", "shifted", "contrary", "identify", "recall", "recall_interaction",
    }  # fmt: skip
    assert "FAIL" not in found.values()
    assert found["recall"] == found["recall_interaction"] == "NOT TESTABLE", "it never said that it remembers"
    assert found["name_date"] == "PASS"
    assert all(row["mde"] > 0 for row in clean["probes"] if row["scale"] == "points" and row["n"])


def test_consistency_tells_the_two_apart(exposed: dict[str, Any], clean: dict[str, Any]) -> None:
    same = {
        name: {r["change"]: r["same"] for r in data["probe_effects"]}
        for name, data in (("knows", exposed), ("reads", clean))
    }
    assert same["knows"]["contrary"] == 1.0, "other news change nothing for one that knows the outcome"
    assert same["knows"]["swapped"] < 1.0
    assert same["reads"]["contrary"] < 0.8
    assert all(0 < row["n"] <= 32 for row in exposed["probe_effects"])


def test_masked_prompts_hold_no_name_code_or_date(exposed: dict[str, Any], benchmark: Benchmark) -> None:
    masked = [p for p in exposed["asked"] if "CODE-A" in p]
    assert len(masked) == 64
    text = "\n".join(masked)
    for stock in benchmark.evaluation.corpus.stocks.values():
        assert stock.name not in text
        assert stock.stock_id.split(".")[0] not in text
    assert "2020" not in text
    assert "2019" not in text


def test_probe_cells_stay_out_of_the_tables_of_forecasts(exposed: dict[str, Any]) -> None:
    assert exposed["cells"] == []
    assert {c["method"] for c in exposed["probe_cells"]} == {f"probe_{name}" for name in PROBES}
    folder = exposed["run"] / "report"
    assert not (folder / "tables" / "results.csv").exists(), "a table of methods without a method"
    assert (folder / "figures" / "figure5_name_date.svg").exists()
    assert "probe_masked" in (folder / "report.html").read_text("utf-8")
