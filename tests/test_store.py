"""The store: parts are whole or do not count, finished rows never change, a second run is kept out."""

from __future__ import annotations

import hashlib
import os
import random
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.errors import ConfigError, HarnessError
from harness.records import CALL_SCHEMA, EVIDENCE_SCHEMA, FORECAST_SCHEMA
from harness.store import SEAL, CellStore, RunDirectory, write_atomic

T = datetime(2021, 1, 5, 1, 30, tzinfo=UTC)


def row(name: str, status: str = "ok", **values: Any) -> dict[str, Any]:
    base = dict.fromkeys(FORECAST_SCHEMA.names)
    return {
        **base,
        "catalyst_id": name,
        "epoch": 0,
        "status": status,
        "decision_time": T,
        "decision_day": date(2021, 1, 5),
        **values,
    }


def shown(name: str, item: str) -> dict[str, Any]:
    return {**dict.fromkeys(EVIDENCE_SCHEMA.names), "catalyst_id": name, "epoch": 0, "item_id": item}


def call(name: str | None, sha: str) -> dict[str, Any]:
    return {**dict.fromkeys(CALL_SCHEMA.names), "catalyst_id": name, "epoch": 0, "request_sha256": sha}


def test_rows_survive_and_export_in_order(tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    store.append([row("b")], [shown("b", "d1")], [call("b", "x")])
    store.append([row("a")], [shown("a", "d2"), shown("a", "d3")], [call("a", "y"), call(None, "z")])
    assert set(CellStore(tmp_path).finished()) == {("a", 0), ("b", 0)}
    CellStore(tmp_path).export()
    assert pq.read_table(tmp_path / "forecasts.parquet")["catalyst_id"].to_pylist() == ["a", "b"]
    assert pq.read_table(tmp_path / "evidence.parquet")["item_id"].to_pylist() == ["d2", "d3", "d1"]
    assert sorted(pq.read_table(tmp_path / "calls.parquet")["request_sha256"].to_pylist()) == ["x", "y", "z"]
    assert pq.read_schema(tmp_path / "forecasts.parquet").equals(FORECAST_SCHEMA)


def test_a_part_without_its_last_file_does_not_count(tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    store.append([row("a")], [shown("a", "d1")], [])
    store.append([row("b")], [shown("b", "d2")], [call("b", "y")])
    (tmp_path / "parts" / "forecasts-000001.parquet").unlink()  # killed before the commit
    again = CellStore(tmp_path)
    assert set(again.finished()) == {("a", 0)}
    again.append([row("b")], [shown("b", "d3")], [])
    again.export()
    assert pq.read_table(tmp_path / "evidence.parquet")["item_id"].to_pylist() == ["d1", "d3"]


def test_a_finished_row_is_never_replaced_and_a_failed_one_is(tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    store.append([row("a", prob_positive=0.7), row("b", "provider")], [shown("b", "old")], [])
    assert set(store.finished()) == {("a", 0)}
    store.append([row("a", prob_positive=0.1), row("b", prob_positive=0.2)], [shown("b", "new")], [])
    rows = {r["catalyst_id"]: r for r in store.export()}
    assert (rows["a"]["prob_positive"], rows["b"]["prob_positive"], rows["b"]["status"]) == (0.7, 0.2, "ok")
    assert pq.read_table(tmp_path / "evidence.parquet")["item_id"].to_pylist() == ["new"]


@pytest.mark.parametrize("seed", range(20))
def test_killed_between_any_two_files_the_store_stays_readable(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dies at a random rename; what was committed before is there, what was not is done again."""
    rng = random.Random(seed)
    renames = 0
    last = rng.randrange(1, 12)
    real = os.replace

    def dying(source: Any, target: Any) -> None:
        nonlocal renames
        renames += 1
        if renames == last:
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", dying)
    names = [f"c{i}" for i in range(6)]
    try:
        store = CellStore(tmp_path)
        for name in names:
            store.append([row(name)], [shown(name, name)], [call(name, name)])
    except KeyboardInterrupt:
        monkeypatch.setattr(os, "replace", real)
    again = CellStore(tmp_path)
    for name in names:
        if (name, 0) not in again.finished():
            again.append([row(name)], [shown(name, name)], [call(name, name)])
    assert [r["catalyst_id"] for r in again.export()] == names
    assert pq.read_table(tmp_path / "evidence.parquet")["item_id"].to_pylist() == names


def test_a_second_run_in_the_same_directory_is_kept_out(tmp_path: Path) -> None:
    first, second = RunDirectory(tmp_path / "r"), RunDirectory(tmp_path / "r")
    first.lock()
    with pytest.raises(ConfigError, match="another run is writing there"):
        second.lock()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match=r"run\.dir=.*file"):
        RunDirectory(tmp_path / "file" / "run").lock()


def test_a_full_disk_is_said_and_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.json"
    write_atomic(path, b"old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(HarnessError, match="No space left"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"


def test_the_manifest_keeps_cells_of_earlier_runs(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    file = {"benchmark": "b", "path": "p", "sha256": "s"}
    directory.update_manifest({"started_at": "1"}, {"c1": {}}, [file])
    directory.update_manifest({"started_at": "2"}, {"c2": {}}, [file])
    import json

    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (set(manifest["cells"]), manifest["started_at"], manifest["data"]) == ({"c1", "c2"}, "2", [file])


def test_a_seal_is_what_sha256sum_checks(tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    store.append([row("a")], [], [])
    store.export()
    store.seal(complete=True)
    sha256 = hashlib.sha256((tmp_path / "forecasts.parquet").read_bytes()).hexdigest()
    assert (tmp_path / SEAL).read_text() == f"{sha256}  forecasts.parquet\n"
    CellStore(tmp_path).export()  # a resumed run: the same rows, the same bytes
    assert hashlib.sha256((tmp_path / "forecasts.parquet").read_bytes()).hexdigest() == sha256


def test_forecasts_that_may_still_change_have_no_seal(tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    store.append([row("a")], [], [])
    store.export()
    store.seal(complete=True)
    store.seal(complete=False)
    assert not (tmp_path / SEAL).exists()
