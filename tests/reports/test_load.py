from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.errors import DataError, HarnessError
from reports.__main__ import main
from reports.load import REQUIRED, load
from tests.reports.runs import meta_of, rows, write_cell


def test_forecasts_alone_are_enough(run: Path) -> None:
    write_cell(run, rows(n=5))
    (cell,) = load([run]).cells
    assert cell.size == 5
    assert cell.meta is None
    assert cell.evidence is None


def test_a_row_twice_is_refused_with_file_and_key(run: Path) -> None:
    some = rows(n=4)
    path = write_cell(run, [*some, some[1]])
    with pytest.raises(HarnessError, match=r"rows 1 and 4 .*astock-0001.*epoch 0") as error:
        load([run])
    assert str(path) in str(error.value)


def test_a_cell_in_two_folders_of_one_run_is_refused(run: Path) -> None:
    path = write_cell(run, rows(n=4))
    shutil.copytree(path.parent, path.parent.with_name("copy"))
    with pytest.raises(HarnessError, match="count twice"):
        load([run])


def test_identical_cells_of_two_runs_count_once(run: Path, tmp_path: Path) -> None:
    write_cell(run, rows(n=4))
    write_cell(tmp_path / "other", list(reversed(rows(n=4))))
    assert len(load([run, tmp_path / "other", run]).cells) == 1


def test_different_cells_of_one_id_are_refused(run: Path, tmp_path: Path) -> None:
    write_cell(run, rows(n=4))
    write_cell(tmp_path / "other", rows(n=4, prob_positive=0.9))
    with pytest.raises(HarnessError, match="different contents"):
        load([run, tmp_path / "other"])


@pytest.mark.parametrize("column", REQUIRED)
def test_a_missing_column_is_named(run: Path, column: str) -> None:
    path = write_cell(run, rows(n=2))
    pq.write_table(pq.read_table(path).drop_columns([column]), path)
    with pytest.raises(DataError, match=rf"column\(s\) {column} missing"):
        load([run])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": "fine"}, "status is 'fine'"),
        ({"prob_positive": None}, "prob_positive is None"),
        ({"prob_positive": float("nan")}, "prob_positive is None"),
        ({"prob_positive": 1.5}, "prob_positive is 1.5"),
        ({"catalyst_id": None}, "catalyst_id is null"),
        ({"gate": "off"}, "gate is 'off' but 'strict' in row 0"),
        ({"cell": "another"}, "cell is 'another'"),
    ],
)
def test_a_bad_value_is_named_with_its_row(run: Path, change: dict[str, Any], message: str) -> None:
    some = rows(n=4)
    some[2] |= change
    write_cell(run, some)
    with pytest.raises(DataError, match=f"row 2.*{message}"):
        load([run])


def test_unreadable_files_and_empty_directories_exit_2(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_cell(run, rows(n=2))
    path.write_bytes(b"PAR1 not really")
    assert main([str(run)]) == 2
    assert "not a readable Parquet file" in capsys.readouterr().err
    (tmp_path / "empty" / "cells").mkdir(parents=True)
    assert main([str(tmp_path / "empty")]) == 2
    assert "No cell" in capsys.readouterr().err
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "no folder cells/" in capsys.readouterr().err


def test_a_broken_cell_json_is_named(run: Path) -> None:
    path = write_cell(run, rows(n=2))
    (path.parent / "cell.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"cell\.json: not readable as JSON"):
        load([run])


def test_a_failed_cell_without_forecasts_is_kept(run: Path) -> None:
    folder = run / "cells" / "x"
    folder.mkdir(parents=True)
    (folder / "cell.json").write_text(json.dumps(meta_of(rows(n=1), status="failed", n=9)), encoding="utf-8")
    (cell,) = load([run]).cells
    assert cell.size == 0


def test_several_runs_need_an_out(run: Path) -> None:
    with pytest.raises(SystemExit) as error:
        main([str(run), str(run)])
    assert error.value.code == 2
