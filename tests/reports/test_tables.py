"""Tables: marks of the best, headings over columns, LaTeX that compiles, and no number that report.json does not hold."""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports import Report
from reports.figures import NAMES
from reports.tables import Column, Table

COMPILER = next((name for name in ("tectonic", "pdflatex", "xelatex") if shutil.which(name)), None)


def table(values: list[float | None], group: list[str] | None = None) -> Table:
    groups = group or ["g"] * len(values)
    return Table(
        "t",
        "Caption",
        (Column("g", "Group"), Column("acc", "Acc %", "percent", over="astock", ranked=True)),
        tuple({"g": g, "acc": value} for g, value in zip(groups, values, strict=True)),
        group=("g",),
    )


def marks(found: Table) -> list[str]:
    return [row[1].mark for row in found.shown()]


def test_best_and_second_of_each_group_ties_included() -> None:
    assert marks(table([0.5, 0.7, 0.7, 0.6])) == ["", "best", "best", "second"]
    assert marks(table([0.5, 0.7, 0.4, 0.3], ["a", "b", "a", "b"])) == ["best", "best", "second", "second"]
    assert marks(table([None, 0.7])) == ["", ""]  # nothing to be better than
    assert marks(table([0.7, 0.7])) == ["", ""]


@given(st.lists(st.none() | st.sampled_from([0.1, 0.2, 0.3, 0.4]), max_size=8))
def test_marks_are_the_highest_values(values: list[float | None]) -> None:
    ranked = sorted({value for value in values if value is not None}, reverse=True)
    for value, mark in zip(values, marks(table(values)), strict=True):
        expected = (
            {0: "best", 1: "second"}.get(ranked.index(value), "") if value is not None and len(ranked) > 1 else ""
        )
        assert mark == expected


def test_marks_and_headings_in_every_format() -> None:
    found = table([0.5, 0.7])
    assert "**70.00**" in found.to_markdown()
    assert "<u>50.00</u>" in found.to_markdown()
    assert "astock Acc %" in found.to_markdown()
    tex = found.to_latex()
    assert r"\textbf{70.00}" in tex
    assert r"\underline{50.00}" in tex
    assert r"\multicolumn{1}{c}{astock} \\" in tex
    assert r"\cmidrule(lr){2-2}" in tex
    assert found.to_csv() == "g,acc\ng,0.5\ng,0.7\n"


def test_an_interval_has_two_fields() -> None:
    found = Table("t", "C", (Column("x", "X", "percent", interval=True),), ({"x": (0.1, 0.2)}, {"x": None}))
    assert found.to_csv() == "x_low,x_high\n0.1,0.2\n,\n"
    assert [row[0].text for row in found.shown()] == ["[10.00, 20.00]", "—"]


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from numbers(part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


@pytest.mark.parametrize("which", ["demo", "grid"])
def test_every_number_of_every_table_is_in_report_json(which: str, request: pytest.FixtureRequest) -> None:
    report: Report = request.getfixturevalue(which)
    known = set(numbers(report.data))
    seen = 0
    for path in sorted((report.out / "tables").glob("*.csv")):
        for line, row in enumerate(csv.DictReader(path.read_text(encoding="utf-8").splitlines())):
            for key, text in row.items():
                try:
                    value = float(text)
                except ValueError:
                    continue
                seen += 1
                assert value in known, f"{path.name}, row {line}: {key} is {text}"
    assert seen > 300


def test_a_number_of_its_own_would_be_seen(demo: Report) -> None:
    assert 0.123456789 not in set(numbers(demo.data))


def test_every_table_of_the_grid_has_rows(grid: Report) -> None:
    assert {found.name for found in grid.tables if not found.rows} == {"time_gate", "audit"}
    assert {picture.name for picture in grid.figures} == set(NAMES)


def test_tables_show_what_the_csv_holds(grid: Report) -> None:
    for found in grid.tables:
        rows = list(csv.DictReader(found.to_csv().splitlines()))
        for raw, shown in zip(rows, found.shown(), strict=True):
            for column, cell in zip(found.visible, shown, strict=True):
                if column.kind == "percent" and not column.interval and not column.text:
                    text = raw[column.key]
                    assert cell.text == (f"{100 * float(text):.2f}" if text else "—")


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no LaTeX found (tectonic, pdflatex, xelatex): tables are not compiled")
def test_every_table_compiles(demo: Report, grid: Report, tmp_path: Path) -> None:
    assert COMPILER is not None
    files = [path for report in (demo, grid) for path in sorted((report.out / "tables").glob("*.tex"))]
    tables = "\n\\clearpage\n".join(path.read_text(encoding="utf-8") for path in files)
    source = (
        "\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\usepackage{textcomp}\n\\usepackage[utf8]{inputenc}\n"
        "\\usepackage{booktabs,graphicx}\n\\begin{document}\n" + tables + "\n\\end{document}\n"
    )
    (tmp_path / "paper.tex").write_text(source, encoding="utf-8")
    quiet = [] if COMPILER == "tectonic" else ["-interaction=nonstopmode", "-halt-on-error"]
    done = subprocess.run([COMPILER, *quiet, "paper.tex"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert (tmp_path / "paper.pdf").exists()
    assert "Overfull" not in done.stdout
