from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.errors import DataError, HarnessError
from reports.__main__ import main
from reports.load import REQUIRED, load
from tests.reports.runs import MANIFEST, evidence_of, meta_of, rows, write_cell


def retype(path: Path, column: str, values: pa.Array) -> None:
    """Put ``values`` in the place of a column of ``path``."""
    table = pq.read_table(path)
    pq.write_table(table.set_column(table.column_names.index(column), column, values), path)


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


@pytest.mark.parametrize("column", ["fwd_ret", "cost_usd"])
def test_an_infinite_number_is_refused(run: Path, column: str) -> None:
    some = rows(n=4)
    some[2][column] = float("inf")
    write_cell(run, some)
    with pytest.raises(DataError, match=rf"row 2 .*astock-0002.*{column} is inf"):
        load([run])


@pytest.mark.parametrize(("column", "value"), [("seed", 2), ("memory", "online"), ("embedder", "other")])
def test_two_settings_in_one_file_are_refused(run: Path, column: str, value: object) -> None:
    some = rows(n=4)
    some[2][column] = value
    write_cell(run, some)
    with pytest.raises(DataError, match=f"row 2: {column} is"):
        load([run])


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
        ({"label": "up"}, r"astock-0002.*label is 'up'; it must be one of positive, negative, dropped"),
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


def test_an_outcome_that_is_not_known_yet_is_null(run: Path) -> None:
    some = rows(n=4)
    some[2] |= {"label": None, "fwd_ret": None, "correct": None}
    write_cell(run, some)
    (cell,) = load([run]).cells
    assert cell.rows["label"].count(None) == 1


def test_an_unknown_gate_is_named(run: Path) -> None:
    write_cell(run, rows(n=2, gate="open"))
    with pytest.raises(
        DataError, match=r"row 0 \('astock-0000'\): gate is 'open'; it must be one of strict, paper, off"
    ):
        load([run])


@pytest.mark.parametrize(
    ("column", "values", "found", "wanted"),
    [
        ("prob_positive", pa.array(["0.5", "0.5"]), "string", "double"),
        ("prompt_tokens", pa.array(["9", "9"]), "string", "int64"),
        ("total_completion_tokens", pa.array(["9", "9"]).dictionary_encode(), "dictionary.*", "int64"),
        ("epoch", pa.array(["0", "0"]), "string", "int64"),
        ("catalyst_id", pa.array([1, 2]), "int64", "string"),
        ("rehearsal", pa.array(["false", "false"]), "string", "bool"),
        ("rehearsal", pa.array([0, 1]), "int64", "bool"),
        ("decision_day", pa.array(["2024-03-01", "2024-03-01"]), "string", r"date32\[day\]"),
        ("status", pa.array([b"ok", b"ok"]), "binary", "string"),
        ("seed", pa.array([1.5, 1.5]), "double", "int64"),
        ("prob_positive", pa.array([2**60 + 1, 1]), "int64", "double"),
    ],
)
def test_a_column_of_another_type_is_named(run: Path, column: str, values: pa.Array, found: str, wanted: str) -> None:
    path = write_cell(run, rows(n=2))
    retype(path, column, values)
    with pytest.raises(DataError, match=rf"column {column} is of type {found}.*{wanted}") as error:
        load([run])
    assert str(path) in str(error.value)


def test_types_that_keep_every_value_are_read_as_the_documented_ones(run: Path, tmp_path: Path) -> None:
    write_cell(run, rows(n=2))
    path = write_cell(tmp_path / "other", rows(n=2))
    table = pq.read_table(path)
    for column, kind in (
        ("epoch", pa.int8()), ("seed", pa.float64()), ("method", pa.large_string()), ("decision_day", pa.date64()),
        ("gate", pa.dictionary(pa.int32(), pa.string())), ("label", pa.string_view()),
    ):  # fmt: skip
        table = table.set_column(table.column_names.index(column), column, table.column(column).cast(kind))
    pq.write_table(table, path)
    assert load([run]).cells[0].rows == load([tmp_path / "other"]).cells[0].rows


def test_a_column_of_nulls_without_a_type_is_null(run: Path) -> None:
    path = write_cell(run, rows(n=2))
    for column in ("seed", "cost_usd", "decision_day", "prompt_sha256"):
        retype(path, column, pa.nulls(2))
    (cell,) = load([run]).cells
    assert cell.seed is None
    assert cell.rows["decision_day"] == [None, None]
    retype(path, "epoch", pa.nulls(2))
    with pytest.raises(DataError, match="row 0: epoch is null"):
        load([run])


def test_evidence_is_checked_too(run: Path) -> None:
    some = rows(n=2)
    path = write_cell(run, some, evidence=evidence_of(some)).with_name("evidence.parquet")
    retype(path, "epoch", pa.array(["0"] * 4))
    with pytest.raises(DataError, match=r"evidence\.parquet: column epoch is of type string; it must be int64"):
        load([run])
    retype(path, "epoch", pa.array([0] * 4))
    retype(path, "kind", pa.array(["focal", None, "focal", "prior"]))
    with pytest.raises(DataError, match=r"evidence\.parquet: row 1: kind is null"):
        load([run])


def test_text_that_is_not_utf8_and_a_column_twice_are_refused(run: Path) -> None:
    path = write_cell(run, rows(n=2))
    good = pq.read_table(path)
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"a"]).buffers())
    retype(path, "catalyst_id", bad)
    with pytest.raises(DataError, match=r"forecasts\.parquet: not a readable Parquet file \(.*UTF8"):
        load([run])
    pq.write_table(good.append_column("label", good.column("label")), path)
    with pytest.raises(DataError, match=r"column\(s\) label there twice"):
        load([run])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": "40"}, "key n: '40' is not of type 'integer'"),
        ({"n": -1}, "key n: -1 is less than the minimum of 0"),
        ({"n": 2.5}, "key n: 2.5 is not of type"),
        ({"n": True}, "key n: True is not of type"),
        ({"counts": [["ok", 2]]}, r"key counts: \[\['ok', 2\]\] is not of type 'object'"),
        ({"counts": {"ok": "2"}}, r"key counts\.ok: '2' is not of type 'integer'"),
        ({"warnings": "one"}, "key warnings: 'one' is not of type 'array'"),
        ({"reason": 3}, "key reason: 3 is not of type 'string'"),
        ({"gate": "open"}, "key gate: 'open' is not one of"),
        ({"method": ["tiem"]}, "key method: "),
        ({"note": float("nan")}, "not readable as JSON"),
        ({"note": "\ud800"}, "not readable as JSON"),
    ],
)
def test_a_bad_value_in_cell_json_is_named(run: Path, change: dict[str, Any], message: str) -> None:
    some = rows(n=2)
    write_cell(run, some, meta=meta_of(some) | change)
    with pytest.raises(DataError, match=rf"cell\.json: {message}"):
        load([run])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"command": "launch.py method=tiem"}, "key command: 'launch.py method=tiem' is not of type 'array'"),
        ({"versions": ["ray 2"]}, r"key versions: \['ray 2'\] is not of type 'object'"),
        ({"versions": {"ray": 2}}, r"key versions\.ray: 2 is not of type 'string'"),
        ({"data": {"path": "x"}}, r"key data: .* is not of type 'array'"),
        ({"data": ["x"]}, r"key data\[0\]: 'x' is not of type 'object'"),
        ({"data": [{"path": "x"}]}, r"key data\[0\]: 'benchmark' is a required property"),
        ({"git_commit": 7}, "key git_commit: 7 is not of type 'string'"),
        ({"cells": float("inf")}, "not readable as JSON"),
    ],
)
def test_a_bad_value_in_the_manifest_is_named(
    run: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], message: str
) -> None:
    write_cell(run, rows(n=2))
    (run / "manifest.json").write_text(json.dumps(MANIFEST | change), encoding="utf-8")
    with pytest.raises(DataError, match=rf"manifest\.json: {message}"):
        load([run])
    assert main([str(run)]) == 2
    assert "manifest.json" in capsys.readouterr().err


def test_json_that_is_no_object_is_named(run: Path) -> None:
    path = write_cell(run, rows(n=2))
    (path.parent / "cell.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(DataError, match=r"cell\.json: the file: \[1\] is not of type 'object'"):
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


def test_cells_of_the_manifest_without_a_row_are_named(run: Path) -> None:
    write_cell(run, rows(n=5))
    (run / "manifest.json").write_text(json.dumps(MANIFEST | {"cells": {"missing": {}}}), encoding="utf-8")
    loaded = load([run])
    assert loaded.unbegun == ("missing",)
    assert any("missing" in warning and "no row yet" in warning for warning in loaded.warnings)


def test_a_cell_of_two_runs_has_the_files_of_either_in_any_order(run: Path, tmp_path: Path) -> None:
    """One copy of a run without cell.json and evidence takes nothing from the other."""
    some = rows(n=4)
    write_cell(run, some)
    write_cell(tmp_path / "whole", some, meta=meta_of(some, n=9), evidence=evidence_of(some))
    for runs in ([run, tmp_path / "whole"], [tmp_path / "whole", run], [run, tmp_path / "whole", run]):
        (cell,) = load(runs).cells
        assert cell.meta is not None
        assert cell.meta["n"] == 9
        assert cell.evidence is not None
