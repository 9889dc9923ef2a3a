"""Forecasts made before their outcomes: loaded without them, sealed, and resolved only if unchanged."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import benchmarks
from benchmarks.__main__ import main
from benchmarks.resolve import Resolved, resolve
from harness.errors import ConfigError, DataError
from harness.records import FORECAST_SCHEMA, PENDING
from tests.benchmarks.conftest import write
from tests.benchmarks.quiet import SETTINGS, audit_of, cases, finding, quiet

NOW = datetime(2021, 6, 1, tzinfo=UTC)
KNOWN = datetime(2021, 3, 9, 7, tzinfo=UTC)
ANSWERS: tuple[tuple[str, float | None], ...] = (("ok", 0.9), ("ok", 0.2), ("invalid", None), ("rate_limited", None))
OUTCOMES = "catalyst_id,fwd_ret,outcome\nc0,0.03,positive\nc1,0.03,positive\nc2,-0.02,\nc3,0.01,positive\n"


def without_outcomes(count: int) -> dict[str, Any]:
    content = quiet()
    for row in cases(content)[:count]:
        del row["outcome"], row["fwd_ret"]
    return content


def forecast(i: int, cell: str, **values: Any) -> dict[str, Any]:
    status, prob = ANSWERS[i]
    direction = None if prob is None else "positive" if prob >= 0.5 else "negative"
    return {
        **dict.fromkeys(FORECAST_SCHEMA.names),
        "cell": cell, "catalyst_id": f"c{i}", "epoch": 0, "status": status, "prob_positive": prob, "direction": direction,
        "resolve_time": KNOWN, **values,
    }  # fmt: skip


def seal(folder: Path) -> str:
    sha256 = hashlib.sha256((folder / "forecasts.parquet").read_bytes()).hexdigest()
    (folder / "forecasts.parquet.sha256").write_text(f"{sha256}  forecasts.parquet\n", "utf-8")
    return sha256


def sealed_cell(run: Path, rows: list[dict[str, Any]]) -> Path:
    folder = run / "cells" / rows[0]["cell"]
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, FORECAST_SCHEMA), folder / "forecasts.parquet")
    (folder / "cell.json").write_text("{}", "utf-8")
    seal(folder)
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished prospective run of one cell with four forecasts."""
    sealed_cell(tmp_path / "run", [forecast(i, "m__b__d__1") for i in range(4)])
    return tmp_path / "run"


def resolved(run: Path, outcomes: str = OUTCOMES, name: str = "outcomes.csv", **options: Any) -> list[Resolved]:
    file = run.parent / name
    file.write_text(outcomes, "utf-8")
    cells, _ = resolve(run, file, run.parent / "out", **{"published": (), "now": NOW, **options})
    return cells


def rows_of(run: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(
        run.parent / "out" / "cells" / "m__b__d__1" / "forecasts.parquet"
    ).to_pylist()
    return rows


def test_catalysts_without_outcomes_load_when_asked_for(tmp_path: Path) -> None:
    write(tmp_path, without_outcomes(2))
    found = benchmarks.load(**SETTINGS, root=str(tmp_path), prospective=True).evaluation
    pending = [found.outcomes[name] for name in ("c0", "c1")]
    assert [(o.label, o.fwd_ret, o.teaches) for o in pending] == [(PENDING, None, False)] * 2
    assert [o.resolve_at.date().isoformat() for o in pending] == ["2021-03-09", "2021-03-10"]
    assert found.outcomes["c2"].teaches


def test_they_are_refused_otherwise(tmp_path: Path) -> None:
    write(tmp_path, without_outcomes(1))
    with pytest.raises(DataError, match=r"row 1 \(c0\): outcome .*benchmark.prospective=true"):
        benchmarks.load(**SETTINGS, root=str(tmp_path))


@pytest.mark.parametrize("field", ["outcome", "fwd_ret"])
def test_half_an_outcome_is_refused(tmp_path: Path, field: str) -> None:
    content = quiet()
    del cases(content)[0][field]
    write(tmp_path, content)
    with pytest.raises(DataError, match=rf"row 1 \(c0\): {field} is missing"):
        benchmarks.load(**SETTINGS, root=str(tmp_path), prospective=True)


def test_past_cases_must_have_outcomes(tmp_path: Path) -> None:
    content = quiet()
    content["expr/Quiet.json"] = {
        "catalysts": [{**row, "catalyst_id": f"p{i}"} for i, row in enumerate(cases(content))]
    }
    del content["expr/Quiet.json"]["catalysts"][0]["outcome"], content["expr/Quiet.json"]["catalysts"][0]["fwd_ret"]
    write(tmp_path, content)
    past = {key: value for key, value in SETTINGS.items() if key not in ("eval", "prices")}
    with pytest.raises(DataError, match=r"expr/Quiet.json, row 1 \(p0\): outcome"):
        benchmarks.load(
            **SETTINGS, root=str(tmp_path), prospective=True, experience={**past, "catalysts": "expr/Quiet.json"}
        )


@pytest.mark.parametrize("columns", ["", ",outcome,fwd_ret"])
def test_a_table_may_do_without_the_columns(tmp_path: Path, columns: str) -> None:
    text = f"catalyst_id,stock_id,catalyst_type,decision_time{columns}\nn1,600000.SH,ma,2021-03-01{',' * columns.count(',')}\n"
    write(tmp_path, {"new.csv": text})
    settings = {**SETTINGS, "eval": "new.csv", "event": None, "prices": None, "format": "table"}
    found = benchmarks.load(**settings, root=str(tmp_path), prospective=True).evaluation
    assert found.outcomes["n1"].label == PENDING


def test_the_audit_looks_at_what_is_known(tmp_path: Path) -> None:
    found = audit_of(tmp_path, without_outcomes(3), prospective=True)
    assert finding(found, "unreadable_row").count == 0
    assert finding(found, "label_contradicts_return").found.total == 28
    assert (found.stats["n"], found.stats["n_scored"]) == (31, 28)


def test_outcomes_are_joined_and_scored(run: Path) -> None:
    (cell,) = resolved(run)
    assert (cell.n, cell.open, cell.scored, cell.right) == (4, 0, 3, 1)
    assert [(r["label"], r["fwd_ret"], r["correct"]) for r in rows_of(run)] == [
        ("positive", 0.03, True),
        ("positive", 0.03, False),
        ("negative", -0.02, False),  # an answer that cannot be used counts as wrong
        ("positive", 0.01, None),  # no answer: lowers coverage only
    ]
    assert (run.parent / "out" / "cells" / "m__b__d__1" / "cell.json").exists()
    assert pq.read_schema(run.parent / "out" / "cells" / "m__b__d__1" / "forecasts.parquet").equals(FORECAST_SCHEMA)


def test_the_sealed_file_stays_as_it_is(run: Path) -> None:
    folder = run / "cells" / "m__b__d__1"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    resolved(run)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_some_outcomes_now_and_the_rest_later(run: Path) -> None:
    (cell,) = resolved(run, "catalyst_id,fwd_ret\nc0,0.03\nc1,\n")
    assert (cell.open, cell.scored) == (3, 1)
    (cell,) = resolved(run)
    assert (cell.open, cell.scored) == (0, 3)


def test_a_return_in_the_deadband_is_not_scored(run: Path) -> None:
    (cell,) = resolved(run, "catalyst_id,fwd_ret\nc0,0.001\n")
    assert (cell.open, cell.scored) == (3, 0)
    assert (rows_of(run)[0]["label"], rows_of(run)[0]["correct"]) == ("dropped", None)


def test_outcomes_as_released(run: Path) -> None:
    released = {"catalysts": [{"catalyst_id": "c0", "outcome": "positive", "fwd_ret": 0.03, "stock_id": "x"}]}
    (cell,) = resolved(run, json.dumps(released), "outcomes.json")
    assert (cell.open, cell.right) == (3, 1)


def test_a_label_that_was_known_stays(tmp_path: Path) -> None:
    rows = [forecast(0, "m__b__d__1", label="negative", fwd_ret=-0.1, correct=False)]
    sealed_cell(tmp_path / "run", rows)
    resolved(tmp_path / "run")
    assert rows_of(tmp_path / "run") == rows


@pytest.mark.parametrize("change", [{"prob_positive": 0.99}, {"rationale": "I knew it."}, {"catalyst_id": "c9"}])
def test_a_changed_forecast_is_refused(run: Path, change: dict[str, Any]) -> None:
    file = run / "cells" / "m__b__d__1" / "forecasts.parquet"
    rows = pq.read_table(file).to_pylist()
    rows[1] |= change
    pq.write_table(pa.Table.from_pylist(rows, FORECAST_SCHEMA), file)
    with pytest.raises(DataError, match="changed after its hash was written"):
        resolved(run)
    assert not (run.parent / "out").exists()


def test_one_changed_cell_refuses_all(run: Path) -> None:
    folder = sealed_cell(run, [forecast(0, "n__b__d__2")])
    (folder / "forecasts.parquet").write_bytes((folder / "forecasts.parquet").read_bytes() + b" ")
    with pytest.raises(DataError, match=r"n__b__d__2.*changed"):
        resolved(run)
    assert not (run.parent / "out").exists()


def test_a_forecast_sealed_anew_is_refused_by_the_published_hash(run: Path) -> None:
    folder = run / "cells" / "m__b__d__1"
    published = (folder / "forecasts.parquet.sha256").read_text().split()[0]
    assert resolved(run, published=[published.upper()])
    rows = pq.read_table(folder / "forecasts.parquet").to_pylist()
    rows[1]["prob_positive"] = 0.99
    pq.write_table(pa.Table.from_pylist(rows, FORECAST_SCHEMA), folder / "forecasts.parquet")
    seal(folder)
    with pytest.raises(DataError, match="none of the 1 published hashes"):
        resolved(run, published=[published])


def test_an_outcome_of_the_future_is_refused(run: Path) -> None:
    with pytest.raises(DataError, match="outcome of c0: it is known at 2021-03-09T07:00:00"):
        resolved(run, now=datetime(2021, 3, 9, 6, 59, tzinfo=UTC))


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ("catalyst_id,fwd_ret,outcome\nc0,0.03,negative\n", "line 2 .c0.: outcome = 'negative': contradicts fwd_ret"),
        ("catalyst_id,fwd_ret\nc0,0.03\nc0,0.03\n", "duplicate"),
        ("catalyst_id,fwd_ret\nc0,-1.5\n", "line 2 .c0.: fwd_ret = .*nothing loses all its value"),
        ("catalyst_id,fwd_ret\nc0,up\n", "fwd_ret = 'up'"),
        ("catalyst_id,fwd_ret,outcome\nc0,,positive\n", "fwd_ret is missing"),
        ("catalyst_id,outcome\nc0,positive\n", "column fwd_ret is missing"),
    ],
)
def test_bad_outcomes(run: Path, outcomes: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        resolved(run, outcomes)


def test_what_is_not_held_against_a_published_hash_is_said(run: Path) -> None:
    file = run.parent / "outcomes.csv"
    file.write_text(OUTCOMES, "utf-8")
    _, warnings = resolve(run, file, run.parent / "out", (), NOW)
    assert any("no published hash was given" in text for text in warnings)
    sha256 = hashlib.sha256(next(run.glob("cells/*/forecasts.parquet")).read_bytes()).hexdigest()
    _, warnings = resolve(run, file, run.parent / "out", [sha256], NOW)
    assert warnings == []


def test_returns_in_per_cent_are_doubted(run: Path) -> None:
    file = run.parent / "outcomes.csv"
    file.write_text("catalyst_id,fwd_ret\nc0,3.1\nc1,0.2\nc2,1.5\n", "utf-8")
    _, warnings = resolve(run, file, run.parent / "out", (), NOW)
    assert any("2 returns are above 100 %" in text for text in warnings)


def test_a_cell_without_a_hash_is_refused(run: Path) -> None:
    (run / "cells" / "m__b__d__1" / "forecasts.parquet.sha256").unlink()
    with pytest.raises(DataError, match="not complete, or all its outcomes were known"):
        resolved(run)


def test_the_run_itself_is_not_overwritten(run: Path) -> None:
    with pytest.raises(ConfigError, match="the run itself"):
        resolve(run, run.parent / "outcomes.csv", run / ".." / "run", (), NOW)


def test_forecasts_of_another_version_are_refused(run: Path) -> None:
    folder = run / "cells" / "m__b__d__1"
    pq.write_table(pa.table({"catalyst_id": ["c0"]}), folder / "forecasts.parquet")
    seal(folder)
    with pytest.raises(DataError, match=r"not the columns of forecasts\.parquet"):
        resolved(run)
    (folder / "forecasts.parquet").write_bytes(b"PAR1")
    seal(folder)
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        resolved(run)


@pytest.mark.parametrize(("name", "message"), [("outcomes.txt", "must be a .csv"), ("none.csv", "no such file")])
def test_outcomes_that_are_not_there(run: Path, name: str, message: str) -> None:
    (run.parent / "outcomes.txt").write_text(OUTCOMES, "utf-8")
    with pytest.raises(ConfigError, match=message):
        resolve(run, run.parent / name, run.parent / "out", (), NOW)


def test_bad_outcomes_are_named_by_their_file(run: Path) -> None:
    with pytest.raises(DataError, match=r"^\S*outcomes\.csv: 2 bad rows; no outcome is added\.\n.*line 2 \(c0\)"):
        resolved(run, "catalyst_id,fwd_ret\nc0,high\nc1,-2\n")


@pytest.mark.parametrize("value", ["xyz", "0" * 63, "g" * 64, ""])
def test_a_published_hash_that_is_none(run: Path, value: str) -> None:
    with pytest.raises(ConfigError, match="not a SHA-256 of 64 hexadecimal digits"):
        resolved(run, published=(value,))
    assert not (run.parent / "out").exists()


def test_the_command(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = run.parent / "outcomes.csv"
    outcomes.write_text(OUTCOMES + "c77,0.1,positive\n", "utf-8")
    arguments = ["resolve", str(run), "--outcomes", str(outcomes), "--out", str(run.parent / "out")]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert "| m__b__d__1 | 4 | 0 | 3 | 1 | 0.3333 |" in printed.out
    assert "1 outcomes are of no forecast, e.g. c77" in printed.err
    assert main([*arguments, "--published", "0" * 64]) == 2
    assert "none of the 1 published hashes" in capsys.readouterr().err
    sha256 = (run / "cells/m__b__d__1/forecasts.parquet.sha256").read_text("utf-8").split()[0]
    assert main([*arguments, "--published", sha256, "--published", "0" * 64]) == 0, (
        "an option given twice adds to the first"
    )
    assert main(["resolve", str(run.parent), "--outcomes", str(outcomes), "--out", str(run)]) == 2
    assert "give the run directory" in capsys.readouterr().err
