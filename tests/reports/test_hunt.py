"""The leak hunt in the report: a page of its own, and tables beside those of cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import DataError
from reports import build, hunt
from tests.reports.runs import demo_run

WITNESS = {
    "catalyst": "c1",
    "world": "the future deleted at c1",
    "place": "request (forecast)",
    "expected": "a | b",
    "found": "<b>",
}
FOUND: dict[str, Any] = {
    "rehearsal": True,
    "detectors": [
        {"name": "truncation", "sees": "the future", "blind_to": "the past"},
        {"name": "canaries", "sees": "copies", "blind_to": "counts"},
    ],
    "hunted": [
        {
            "method": method, "benchmark": "csmd", "gate": "strict", "catalysts": ["c1", "c2"], "documents": 898, "worlds": 24,
            "findings": [
                {"detector": "truncation", "verdict": verdict, "why": "why not", "witness": WITNESS if verdict == "FAIL" else None},
                {"detector": "canaries", "verdict": "NOT TESTABLE", "why": "it sends nothing", "witness": None},
            ],
        }
        for method, verdict in (("clean", "PASS"), ("leaky", "FAIL"))
    ],
}  # fmt: skip


def written(directory: Path, found: Any = FOUND) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / hunt.FILE).write_text(json.dumps(found), "utf-8")
    return directory


def test_a_table_of_methods_and_detectors(run: Path) -> None:
    verdicts, findings, detectors = hunt.tables(hunt.read([written(run)]))
    assert [(row["method"], row["truncation"], row["canaries"]) for row in verdicts.rows] == [
        ("clean", "pass", "n. t."),
        ("leaky", "FAIL", "n. t."),
    ]
    assert findings.rows[0]["method"] == "leaky", "what failed comes first"
    assert findings.rows[0]["found"] == "<b>"
    assert [row["name"] for row in detectors.rows] == ["truncation", "canaries"]


def test_without_a_hunt_there_is_nothing(run: Path) -> None:
    run.mkdir()
    assert hunt.tables(hunt.read([run])) == ()
    with pytest.raises(DataError, match="experiment=leak_hunt"):
        hunt.build(run, run / "report")


def test_a_page_of_its_own(run: Path) -> None:
    hunt.build(written(run), run / "report")
    page = (run / "report" / "report.html").read_text("utf-8")
    assert '<td class="bad">FAIL</td>' in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    text = (run / "report" / "report.md").read_text("utf-8")
    assert "| csmd | leaky | strict | FAIL | n. t. |" in text
    assert r"a \| b" in text
    assert (
        (run / "report" / "tables" / "leak_hunt.csv").read_text("utf-8").startswith("benchmark,method,gate,truncation")
    )


def test_beside_the_tables_of_cells(tmp_path: Path) -> None:
    run = written(demo_run(tmp_path / "run"))
    report = build([run], tmp_path / "report")
    assert {"leak_hunt", "leak_hunt_findings", "leak_hunt_detectors"} <= {table.name for table in report.tables}
    for name in ("report.html", "report.md"):
        assert "Leak hunt: method × detector" in (tmp_path / "report" / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: found["hunted"][0]["findings"][0].update(verdict="CLEAN"), "CLEAN"),
        (lambda found: found["hunted"][1].pop("documents"), "documents"),
        (lambda found: found.pop("detectors"), "detectors"),
    ],
)
def test_a_file_that_is_no_hunts_is_refused(run: Path, change: Any, said: str) -> None:
    found = json.loads(json.dumps(FOUND))
    change(found)
    with pytest.raises(DataError, match=said) as error:
        hunt.tables(hunt.read([written(run, found)]))
    assert hunt.FILE in str(error.value)
