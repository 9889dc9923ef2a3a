"""The written report: golden text, labels, strictness, determinism, size."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from rich.console import Console

from harness.errors import DataError
from reports import Report, build, contents, terminal_table
from reports.__main__ import main
from reports.labels import GATE_OFF, REHEARSAL
from tests.reports.runs import demo_run, evidence_of, meta_of, rows, write_cell

GOLDEN = Path(__file__).parent / "golden"
NUMBER = re.compile(r"(?<![^,\n])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![^,\n])")
"""A field of a CSV file that is a number and nothing else."""


@pytest.mark.parametrize(
    ("which", "name"),
    [
        ("demo", "report.md"),
        *(("demo", f"tables/{name}") for name in ("results.csv", "results.tex")),
        *(
            ("grid", f"tables/{name}.csv")
            for name in ("pairs", "precision", "shift", "efficiency", "consistency", "spread", "finance")
        ),
        *(("grid", f"tables/{name}.tex") for name in ("table1", "ablation", "shift", "published")),
    ],
)
def test_golden(which: str, name: str, request: pytest.FixtureRequest) -> None:
    """Set UPDATE_GOLDEN=1 to write the files anew, then read the difference.

    Full-precision numbers may differ from one processor to another in their last digits, everything else may not.
    """
    report: Report = request.getfixturevalue(which)
    golden, text = GOLDEN / Path(name).name, (report.out / name).read_text(encoding="utf-8")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    if golden.suffix == ".csv":
        assert NUMBER.sub("#", text) == NUMBER.sub("#", golden.read_text(encoding="utf-8"))
        found, expected = ([float(n) for n in NUMBER.findall(t)] for t in (text, golden.read_text("utf-8")))
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
    else:
        assert text == golden.read_text(encoding="utf-8")


def test_layout(demo: Report) -> None:
    tables = (
        "results", "hindsight", "table1", "pairs", "precision", "ablation", "shift", "efficiency", "consistency", "calibration_and_cost",
        "unusable_answers", "spread", "finance", "published", "time_gate", "audit", "cells",
    )  # fmt: skip
    drawn = ("accuracy_forest", "reliability", "differences", "figure7_tokens")
    expected = {"report.html", "report.md", "report.json", *(f"figures/{n}.{s}" for n in drawn for s in ("svg", "png"))}
    expected |= {f"tables/{name}.{suffix}" for name in tables for suffix in ("csv", "md", "tex")}
    assert {path.relative_to(demo.out).as_posix() for path in demo.out.rglob("*") if path.is_file()} == expected


def test_every_table_over_methods_is_named(grid: Report) -> None:
    """Else one of an earlier report would stay behind."""
    assert {table.name for table in grid.tables} == {*contents.NAMES} - {contents.LEDGER}


def test_report_json_is_strict_and_has_the_documented_keys(demo: Report) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    data = json.loads((demo.out / "report.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert {"cells", "pairs", "shift", "tokens", "consistency", "audit", "ndp", "published", "warnings"} <= data.keys()
    keys = (
        "cell method backbone benchmark gate seed memory embedder n n_scored coverage acc acc_ci mcc mcc_ci f1_macro f1_ci brier log_loss "
        "ece tokens_final_mean tokens_total cost_usd"
    )
    assert all(set(keys.split()) <= cell.keys() for cell in data["cells"])
    late = [row for row in data["audit"] if row["late"]]
    assert [(row["method"], row["gate"], row["kind"], row["late"], row["affected_queries"]) for row in late] == [
        ("tiem", "off", "prior", 5, 5)
    ]
    for empty in ("shift", "consistency", "ndp"):
        assert data[empty] == []
        assert any(text.startswith(f"{empty} is empty") for text in data["warnings"])


def test_the_grid_fills_every_documented_key(grid: Report) -> None:
    keys = {
        "pairs": "a b backbone benchmark diff ci p_mcnemar p_cluster p_holm mde n_discordant",
        "shift": "method backbone acc_ref acc_shift acc_worst f1_shift robustness",
        "tokens": "method backbone acc_mean tokens_final_mean acc_per_ln_tokens marginal_acc_per_1k tokens_lifecycle_mean "
        "cost_per_forecast cost_per_correct cost_per_extra_correct frontier_share",
        "consistency": "method benchmark backbone_a backbone_b agreement kappa dual_correct n",
    }
    for part, names in keys.items():
        assert grid.data[part]
        assert all(set(names.split()) <= row.keys() for row in grid.data[part]), part
    assert [row["benchmark"] for row in grid.data["consistency"]].count("macro") == 5


def test_the_same_parquet_gives_the_same_bytes(demo: Report, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(demo.out.parent / "cells", moved / "cells")
    shutil.copy(demo.out.parent / "manifest.json", moved)
    again = build([moved], tmp_path / "out")
    for path in demo.out.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (again.out / path.relative_to(demo.out)).read_bytes(), path.name


def test_every_title_of_a_rehearsal_says_so(run: Path) -> None:
    report = build([demo_run(run, rehearsal=True)], run / "report")
    data = report.data
    assert REHEARSAL in report.title
    assert GATE_OFF in report.title
    filled = [table for table in report.tables if table.rows]
    assert len(filled) >= 9
    for table in filled:
        assert any(row["label"] for row in table.rows)
        assert REHEARSAL in table.caption
        for suffix in ("csv", "md", "tex"):
            assert "Rehearsal endpoint" in (report.out / "tables" / f"{table.name}.{suffix}").read_text(
                encoding="utf-8"
            )
    for picture in report.figures:
        assert REHEARSAL in picture.title
        assert "Rehearsal endpoint" in picture.svg.decode()
    page = (report.out / "report.html").read_text(encoding="utf-8")
    assert REHEARSAL in page.split("</title>")[0]
    assert not any(row["comparable"] for row in data["published"] if row["backbone"] == "rehearsal")


def test_a_mixed_title_names_its_cells(run: Path) -> None:
    for backbone in ("rehearsal", "deepseek_v4_flash"):
        write_cell(run, rows("cot", backbone, rehearsal=backbone == "rehearsal"))
    assert f"{REHEARSAL} (cells: cot × rehearsal × astock)" in build([run], run / "report").title


def test_a_mixed_title_of_many_cells_names_the_backbone(run: Path) -> None:
    for backbone in ("rehearsal", "deepseek_v4_flash"):
        for number in range(5):
            write_cell(run, rows(f"m{number}", backbone, rehearsal=backbone == "rehearsal"))
    assert f"{REHEARSAL} (all cells with backbone rehearsal)" in build([run], run / "report").title


def test_forecasts_alone_make_a_report_that_names_what_is_missing(run: Path) -> None:
    write_cell(run, rows())
    report = build([run], run / "report")
    for name in ("manifest.json", "cell.json", "evidence.parquet"):
        assert any(f"{name} is missing" in text for text in report.warnings)


def test_a_late_record_under_the_strict_gate_is_a_warning(run: Path) -> None:
    some = rows(n=6)
    write_cell(run, some, evidence=evidence_of(some, late=2))
    report = build([run], run / "report")
    assert any("2 late records of kind prior entered prompts under the strict gate" in text for text in report.warnings)


def test_failed_cells_come_with_reason_and_remedy(demo: Report) -> None:
    assert any("the endpoint refused the key (401). What to do: set OPENAI_API_KEY" in text for text in demo.warnings)


def test_one_hundred_and_ten_cells(run: Path) -> None:
    for b in range(5):
        for m in range(11):
            for backbone in ("rehearsal", "rehearsal_b"):
                write_cell(run, rows(f"method_{m:02d}", backbone, f"bench_{b}", n=12, rehearsal=True))
    report = build([run], run / "report")
    assert len(report.data["cells"]) == 110
    ET.fromstring(report.figures[0].svg)


def test_hostile_and_chinese_names_are_escaped(run: Path) -> None:
    nasty = "<script>alert(1)</script>|_&$[x]"
    some = rows(nasty, "模型", "基准", n=6, cell="nasty")
    write_cell(run, some, meta=meta_of(some, status="failed", reason=nasty), evidence=evidence_of(some))
    report = build([run], run / "report")
    page = (report.out / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "基准" in page
    assert r"\|\_&$\[x\]" in (report.out / "report.md").read_text(encoding="utf-8")
    assert r"\_\&\${[}x{]}" in (report.out / "tables" / "results.tex").read_text(encoding="utf-8")


def test_a_report_without_scores_leaves_no_old_figure(run: Path) -> None:
    write_cell(run, rows(n=3))
    build([run], run / "report")
    write_cell(run, rows(n=3, status="budget"))
    report = build([run], run / "report")
    assert report.figures == ()
    assert not list((report.out / "figures").iterdir())


def test_the_terminal_table_cuts_nothing(demo: Report) -> None:
    out = io.StringIO()
    terminal_table(demo, Console(file=out, width=80))
    text = out.getvalue()
    assert "…" not in text
    assert "\x1b" not in text
    assert "no LLM (run with deepseek_v4_flash)" in text
    assert "TIME GATE OFF" in text


def test_the_page_asks_for_nothing_from_outside(demo: Report) -> None:
    page = (demo.out / "report.html").read_text(encoding="utf-8")
    assert "<script src" not in page
    assert 'src="http' not in page
    assert "@import" not in page
    assert "url(" not in page


@pytest.mark.parametrize("blocked", [".", "tables", "report.md"])
def test_an_out_that_cannot_be_written_is_named(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], blocked: str
) -> None:
    write_cell(run, rows(n=3))
    out = tmp_path / "out"
    if blocked == "report.md":
        (out / blocked).mkdir(parents=True)  # a directory where a file must go
    else:
        (out / blocked).parent.mkdir(exist_ok=True)
        (out / blocked).write_text("in the way", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be written here") as error:
        build([run], out)
    assert str(out) in str(error.value)
    assert main([str(run), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "--out DIR" in said
    assert "Traceback" not in said


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc here")
def test_an_out_below_proc_exits_2(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cell(run, rows(n=3))
    assert main([str(run), "--out", "/proc/nowhere/report"]) == 2
    assert "/proc/nowhere" in capsys.readouterr().err


def test_without_the_reference_the_methods_are_named(run: Path) -> None:
    for method in ("cot", "vanilla_rag"):
        write_cell(run, rows(method, n=6))
    write_cell(run, rows("always_positive", n=6, n_calls=0))
    (text,) = [text for text in build([run], run / "report").warnings if text.startswith("pairs is empty")]
    assert "'tiem'" in text
    assert "Methods here: cot, vanilla_rag." in text
    assert "python -m reports RUN --reference NAME" in text
    assert build([run], run / "report", reference="cot").data["pairs"]


def test_with_one_method_nothing_is_offered(run: Path) -> None:
    write_cell(run, rows("cot", n=6))
    (text,) = [text for text in build([run], run / "report").warnings if text.startswith("pairs is empty")]
    assert "--reference" not in text


def test_seeds_are_told_apart_wherever_a_cell_is_named(run: Path) -> None:
    for seed in (1, 2):
        for method in ("tiem", "cot"):
            some = [row | {"seed": seed, "cell": f"{method}-{seed}"} for row in rows(method, n=8, gate="off")]
            write_cell(run, some)
    write_cell(run, rows("zero_shot", n=8))
    report = build([run], run / "report")
    assert (
        "cot (gate=off, seed=1) × deepseek_v4_flash × astock; cot (gate=off, seed=2) × deepseek_v4_flash × astock"
        in report.title
    )
    for table in report.tables:
        if table.name in ("results", "pairs", "calibration_and_cost", "cells"):
            read = [tuple(cell.text for cell in row[:4]) for row in table.shown()]
            assert len(set(read)) == len(read) > 1, table.name
    assert "tiem (gate=off, seed=2)" in report.figures[0].svg.decode()


def test_n_is_shown_as_catalysts_times_epochs(run: Path) -> None:
    write_cell(run, rows(n=6, epochs=3))
    write_cell(run, rows("cot", n=6))
    report = build([run], run / "report")
    results = next(table for table in report.tables if table.name == "results")
    at = [column.key for column in results.visible].index("n")
    assert [row[at].text for row in results.shown()] == ["6", "6 × 3"]
    assert [row["n"] for row in report.data["cells"]] == [6, 18]
    assert ",18," in results.to_csv()


def test_the_clipping_of_log_loss_is_said(demo: Report) -> None:
    table = next(table for table in demo.tables if table.name == "calibration_and_cost")
    assert "clipped to [eps, 1 − eps] with eps = 2.2e-16" in table.note


def test_what_was_paid_is_a_table_where_there_is_a_ledger(run: Path) -> None:
    write_cell(run, rows())
    line = {
        "cell": "tiem__x", "backbone": "x", "stage": "build", "calls": 3, "input_tokens": 900, "cached_tokens": 0,
        "output_tokens": 40, "reasoning_tokens": None, "cost_usd": None, "unanswered": 1, "unanswered_usd": 0.25,
    }  # fmt: skip
    (run / "ledger.json").write_text(json.dumps({"cells": [line], "stages": [], "total": {**line, "cell": ""}}))
    report = build([run], run / "report")
    (table,) = (table for table in report.tables if table.name == "ledger")
    assert [(row["cell"], row["cost_usd"], row["unanswered_usd"]) for row in table.rows] == [
        ("tiem__x", None, 0.25), ("all cells", None, 0.25),
    ]  # fmt: skip
    assert "of it reasoning" in (run / "report" / "report.html").read_text("utf-8")
    (run / "ledger.json").write_text('{"cells": [{"cell": 3}]}')
    with pytest.raises(DataError, match=r"ledger\.json"):
        build([run], run / "report")
    (run / "ledger.json").unlink()
    build([run], run / "report")
    assert not (run / "report" / "tables" / "ledger.csv").exists(), "none of an earlier report stays behind"
