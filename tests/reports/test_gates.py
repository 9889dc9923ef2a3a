"""Cells that differ in the gate alone stand side by side, with the number of prompts that the gate changes."""

from __future__ import annotations

from pathlib import Path

import reports
from tests.reports.runs import rows, write_cell


def cell(gate: str, *, later: int) -> list[dict[str, object]]:
    """A cell whose last ``later`` prompts are not those of the others."""
    found = rows("tiem", n=20, gate=gate)
    for i, row in enumerate(found):
        row["cell"] = f"tiem__b__astock__{gate}"
        row["prompt_sha256"] = f"{i}-{gate}" if i >= 20 - later else str(i)
    return found


def test_prompts_that_differ_are_counted_against_strict(tmp_path: Path) -> None:
    for gate, later in (("strict", 0), ("paper", 3), ("off", 20)):
        write_cell(tmp_path / "run", cell(gate, later=later))
    report = reports.build([tmp_path / "run"], tmp_path / "out")
    found = {row["gate"]: (row["prompts"], row["prompts_differ"]) for row in report.data["time_gate"]}
    assert found == {"strict": (20, 0), "paper": (20, 3), "off": (20, 20)}
    assert [row["gate"] for row in report.data["time_gate"]] == ["strict", "paper", "off"]
    assert "Prompts that differ" in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_without_a_strict_cell_nothing_is_claimed(tmp_path: Path) -> None:
    for gate in ("paper", "off"):
        write_cell(tmp_path / "run", cell(gate, later=5))
    report = reports.build([tmp_path / "run"], tmp_path / "out")
    assert {row["prompts_differ"] for row in report.data["time_gate"]} == {None}


def test_one_gate_makes_no_table(tmp_path: Path) -> None:
    write_cell(tmp_path / "run", cell("strict", later=0))
    report = reports.build([tmp_path / "run"], tmp_path / "out")
    assert report.data["time_gate"] == []
    assert any(text.startswith("time_gate is empty") for text in report.warnings)


def test_the_difference_is_over_rows_scored_in_both(tmp_path: Path) -> None:
    strict = cell("strict", later=0)
    for i, row in enumerate(strict):
        row["prob_positive"] = 0.9 if (row["label"] == "positive") == (i < 10) else 0.1
    off = [row | {"gate": "off", "cell": "tiem__b__astock__off"} for row in strict[:10]]
    for found in (strict, off):
        write_cell(tmp_path / "run", found)
    report = reports.build([tmp_path / "run"], tmp_path / "out")
    rows_of = {row["gate"]: row for row in report.data["time_gate"]}
    assert (rows_of["strict"]["acc"], rows_of["off"]["acc"]) == (0.5, 1.0)
    assert (rows_of["off"]["acc_minus_strict"], rows_of["off"]["n_shared"]) == (0.0, 10)
    assert any("on the 10 rows scored in both" in text for text in report.warnings)
