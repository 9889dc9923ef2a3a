"""What a run meets on its way is said at its end."""

from __future__ import annotations

import io

from rich.console import Console

import launch
from harness.jobs import CellResult
from harness.run import RunResult


def test_what_cells_met_is_said_once_with_how_often() -> None:
    cells = [
        CellResult("one", "complete", {}, 4, 0, met={"odd names": "3, first d1, d2, d5", "no industries": ""}),
        CellResult("two", "complete", {}, 4, 0, met={"odd names": "1, first d1"}),
    ]
    out = io.StringIO()
    launch.tell_what_was_met(RunResult(cells, interrupted=False), Console(file=out, width=40))
    assert out.getvalue().splitlines() == [
        "note: odd names: 3, first d1, d2, d5 in one, and in 1 more (see warnings in cell.json)",
        "note: no industries: one",
    ]
