"""The audit of the data in the report: its tables, its sentence, and files that are no audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import DataError
from reports import build, data_audit
from reports.__main__ import main
from reports.load import Cell, load
from tests.reports.runs import demo_run, meta_of, rows, write_cell


def finding(name: str, verdict: str, severity: str = "low", count: int = 0) -> dict[str, Any]:
    return {
        "id": name, "verdict": verdict, "count": count, "total": 128, "unit": "labels", "severity": severity,
        "examples": [f"c{i}" for i in range(count)], "definition": "what counts", "effect": "it is wrong", "remedy": "leave it out",
    }  # fmt: skip


AUDIT: dict[str, Any] = {
    "benchmark": "csmd", "split": "eval", "files": [], "warnings": [],
    "findings": [
        finding("clean", "PASS"),
        finding("odd", "FAIL", count=1),
        finding("early", "FAIL", "high", count=7),
        finding("unseen", "NOT TESTABLE"),
    ],
    "stats": {"days": 11, "labels": {"icc": 0.25, "design_effect": None}},
}  # fmt: skip


def written(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps(AUDIT | changes), "utf-8")
    return path


def test_what_failed_and_is_severe_comes_first(tmp_path: Path) -> None:
    findings, figures = data_audit.tables(data_audit.read([written(tmp_path / "a.json")]))
    assert [(row["id"], row["verdict"]) for row in findings.rows] == [
        ("early", "FAIL"), ("odd", "FAIL"), ("unseen", "n. t."), ("clean", "pass"),
    ]  # fmt: skip
    assert findings.rows[0]["examples"] == "c0; c1; c2; c3; c4"
    assert [(row["figure"], row["value"]) for row in figures.rows] == [
        ("days", 11), ("labels.icc", 0.25), ("labels.design_effect", None),
    ]  # fmt: skip
    assert [row[-1].text for row in figures.shown()] == ["11", "0.25", "not defined"]


def test_figures_are_whole_in_the_csv_and_rounded_where_people_read(tmp_path: Path) -> None:
    _, figures = data_audit.tables(data_audit.read([written(tmp_path / "a.json", stats={"icc": 0.123456789})]))
    assert figures.to_csv().splitlines()[1].endswith("icc,0.123456789")
    assert "| 0.1235 |" in figures.to_markdown()


def cells_on(directory: Path, benchmark: str = "csmd", **about: Any) -> tuple[Cell, ...]:
    """A cell on ``benchmark`` whose cell.json says ``about`` of it."""
    found = rows("cot", benchmark=benchmark, n=4)
    write_cell(directory, found, meta=meta_of(found, identity={"benchmark": about}))
    return load([directory]).cells


def test_what_all_cells_leave_out_is_not_severe_for_them(tmp_path: Path) -> None:
    (said,) = data_audit.narrative([AUDIT], cells_on(tmp_path, settings={"exclude": ["early", "no_such"]}))
    assert said.text.endswith("2 of 4 checks found something. All its cells leave out early.")
    assert (said.tone, said.numbers["severe"]) == ("plain", 0)


def test_an_audit_of_other_data_is_told_of(tmp_path: Path) -> None:
    audit = AUDIT | {"files": [{"path": "eval/x.json", "sha256": "ab", "rows": 4}]}
    assert (
        data_audit.doubts([audit], cells_on(tmp_path / "same", files={"eval/x.json": "ab", "event/y.json": "0"})) == []
    )
    (other,) = data_audit.doubts([audit], cells_on(tmp_path / "other", files={"eval/x.json": "cd"}))
    assert "looked at other bytes than the cells ran on: eval/x.json" in other
    elsewhere = cells_on(tmp_path / "elsewhere", "edt")
    (foreign,) = data_audit.doubts([audit], elsewhere)
    assert "about no cell of this report" in foreign
    assert not list(data_audit.narrative([audit], elsewhere)), "the first screen is about the cells of the report"


def test_the_sentence_counts_and_names_what_is_severe(tmp_path: Path) -> None:
    (said,) = data_audit.narrative([AUDIT], cells_on(tmp_path))
    assert (
        said.text
        == "The data of csmd (eval): 2 of 4 checks found something, of which 1 is severe: early (7 of 128 labels)."
    )
    assert (said.tone, said.numbers) == ("care", {"checks": 4, "failed": 2, "severe": 1, "left_out": 0})
    (calm,) = data_audit.narrative([AUDIT | {"findings": [finding("clean", "PASS")]}], cells_on(tmp_path))
    assert (calm.text, calm.tone) == ("The data of csmd (eval): 0 of 1 check found something.", "plain")


def test_it_stands_on_the_page_and_in_report_json(run: Path, tmp_path: Path) -> None:
    demo_run(run)
    out = tmp_path / "out"
    assert main([str(run), "--out", str(out), "--audit", str(written(tmp_path / "a.json", benchmark="astock"))]) == 0
    page = (out / "report.html").read_text("utf-8")
    assert "Audit of the data, before any model has seen it" in page
    assert "7 of 128 labels" in page
    assert json.loads((out / "report.json").read_text("utf-8"))["data_audit"] == [AUDIT | {"benchmark": "astock"}]
    assert (out / "tables" / "data_audit.csv").exists()
    build([run], out)
    assert not (out / "tables" / "data_audit.csv").exists(), "a table of an earlier report does not stay behind"


def test_an_option_given_twice_shows_both_audits(run: Path, tmp_path: Path) -> None:
    demo_run(run)
    files = [written(tmp_path / f"{name}.json", benchmark=name) for name in ("csmd", "edt")]
    assert main([str(run), "--out", str(tmp_path / "out"), "--audit", str(files[0]), "--audit", str(files[1])]) == 0
    shown = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))["data_audit"]
    assert [audit["benchmark"] for audit in shown] == ["csmd", "edt"]


def test_what_to_do_about_a_bad_audit_is_not_to_run_cells_again(tmp_path: Path) -> None:
    (tmp_path / "half.json").write_text('{"benchmark":', "utf-8")
    for file in (tmp_path / "half.json", written(tmp_path / "other.json", findings=[{"id": "x"}])):
        with pytest.raises(DataError, match="Name a file written by python -m benchmarks audit") as refused:
            data_audit.read([file])
        assert "run the cells again" not in str(refused.value)


def test_files_that_are_no_audit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file; write it with python -m benchmarks audit"):
        data_audit.read([tmp_path / "absent.json"])
    with pytest.raises(DataError, match=r"other\.json"):
        data_audit.read([written(tmp_path / "other.json", findings=[{"id": "x"}])])
    twice = [written(tmp_path / name) for name in ("a.json", "b.json")]
    with pytest.raises(DataError, match=r"a second audit of csmd \(eval\)"):
        data_audit.read(twice)
