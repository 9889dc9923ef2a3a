"""A user's own benchmark: the documented example, and the same checks for every format."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from omegaconf import OmegaConf

import benchmarks
from harness.clock import Granularity
from harness.errors import DataError
from harness.records import Benchmark

DOC = Path(__file__).parents[2] / "docs" / "benchmarks.md"

CATALYSTS: list[dict[str, Any]] = [
    {"catalyst_id": "a", "stock_id": "000001", "catalyst_type": "ma", "decision_time": "2021-03-15 18:30:00",
     "outcome": "positive", "fwd_ret": 0.041, "horizon_days": 3},
    {"catalyst_id": "b", "stock_id": "000777", "catalyst_type": "rating", "decision_time": "2021-03-16 09:00:00",
     "outcome": "negative", "fwd_ret": -0.0125, "horizon_days": 5},
]  # fmt: skip
DOCUMENTS: list[dict[str, Any]] = [
    {"doc_id": "n1", "ts": "2021-03-15 18:30:00", "mentioned_stocks": ["000001", "000777"], "title": "题", "body": 'Says "yes",\nthen no.'},
    {"doc_id": "n2", "ts": "2021-03-16 08:00:00", "mentioned_stocks": [], "title": "", "body": "长" * 200_000},
]  # fmt: skip
STOCKS = [{"stock_id": "000001", "name": "北港"}, {"stock_id": "000777", "name": "南港"}]


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, rows[0], lineterminator="\r\n")
    writer.writeheader()
    writer.writerows([{k: ";".join(v) if isinstance(v, list) else v for k, v in row.items()} for row in rows])
    return b"\xef\xbb\xbf" + out.getvalue().encode()


def as_jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "\r\n".join(json.dumps(row) for row in rows).encode() + b"\n\n"


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    table = pa.Table.from_pylist(rows)
    for column in ("decision_time", "ts"):
        if column in table.column_names:
            times = [datetime.fromisoformat(row[column]) for row in rows]
            table = table.set_column(table.column_names.index(column), column, pa.array(times, pa.timestamp("ns")))
    return parquet(table)


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


FORMATS = {"csv": as_csv, "jsonl": as_jsonl, "parquet": as_parquet}


def load_tables(root: Path, ending: str, catalysts: bytes, documents: bytes, stocks: bytes) -> Benchmark:
    for name, data in (("c", catalysts), ("d", documents), ("s", stocks)):
        (root / f"{name}.{ending}").write_bytes(data)
    return benchmarks.load(
        name="own", root=str(root), market="CN", convention="entry_next_open", horizon=5, format="table",
        eval=f"c.{ending}", event=f"d.{ending}", stocks=f"s.{ending}",
    )  # fmt: skip


@pytest.mark.parametrize("ending", FORMATS)
def test_the_three_formats_give_the_same_records(ending: str, tmp_path: Path) -> None:
    write = FORMATS[ending]
    loaded = load_tables(tmp_path, ending, write(CATALYSTS), write(DOCUMENTS), write(STOCKS))
    reference = load_tables(tmp_path, "jsonl", as_jsonl(CATALYSTS), as_jsonl(DOCUMENTS), as_jsonl(STOCKS))
    assert replace(loaded, files=()) == replace(reference, files=())
    assert loaded.warnings == ()
    assert [(f.path, f.rows) for f in loaded.files] == [(f"{name}.{ending}", 2) for name in "cds"]
    first = loaded.evaluation.catalysts[0]
    assert (first.stock_id, first.company, first.horizon) == ("000001", "北港", 3)
    assert loaded.evaluation.corpus.documents[0].stocks == ("000001", "000777")
    assert loaded.evaluation.corpus.documents[0].body == 'Says "yes",\nthen no.'


def test_the_documented_example_loads(tmp_path: Path) -> None:
    blocks = dict(re.findall(r"^`([^`]+)`:\n\n```\w+\n(.*?)```", DOC.read_text(encoding="utf-8"), re.M | re.S))
    settings = dict(OmegaConf.create(blocks.pop("conf/benchmark/harbour.yaml")))
    for name, text in blocks.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert settings.pop("_target_") == "benchmarks.load"
    loaded = benchmarks.load(**{**settings, "root": str(tmp_path)})
    assert [c.company for c in loaded.evaluation.catalysts] == ["北港物流", "南港集团"]
    assert loaded.evaluation.corpus.documents[1].stocks == ("000777", "000001")
    assert loaded.evaluation.outcomes["h1"].resolve_at == datetime(2021, 3, 23, 7, 0, tzinfo=UTC)
    assert loaded.evaluation.outcomes["h1"].stated_resolve is None


def test_every_setting_is_documented() -> None:
    text = DOC.read_text(encoding="utf-8")
    undocumented = {
        key for key in benchmarks.Parameters.model_fields if f"`{key}`" not in text and f"`{key}=" not in text
    }
    assert undocumented == {"bundled"}


def test_rows_are_named_by_the_line_of_the_file(tmp_path: Path) -> None:
    bad = [CATALYSTS[0], {**CATALYSTS[1], "outcome": "up"}]
    documents = [DOCUMENTS[0], {**DOCUMENTS[1], "ts": "x"}]
    for ending, lines in (("csv", ("line 3", "line 4")), ("jsonl", ("line 2", "line 2"))):
        write = FORMATS[ending]
        with pytest.raises(DataError) as caught:
            load_tables(tmp_path, ending, write(bad), write(documents), write(STOCKS))
        assert f"c.{ending}, {lines[0]} (b): outcome = 'up'" in str(caught.value)
        # The first document's body holds a line break, so its CSV record takes lines 2 and 3.
        assert f"d.{ending}, {lines[1]} (n2): ts = 'x'" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "cell", "says"),
    [
        ("fwd_ret", "1.2%", "fwd_ret = '1.2%': is text"),
        ("fwd_ret", "", "fwd_ret is missing"),
        ("fwd_ret", "nan", "fwd_ret = nan"),
        ("horizon_days", "5.0", "horizon_days = '5.0'"),
        ("horizon_days", "0", "horizon_days = 0"),
        ("decision_time", "", "decision_time is missing"),
        ("stock_id", "1", "stock_id = '1': unknown stock; s.csv lists"),
    ],
)
def test_bad_cells_of_a_csv(field: str, cell: str, says: str, tmp_path: Path) -> None:
    rows = [CATALYSTS[0], {**CATALYSTS[1], field: cell}]
    with pytest.raises(DataError, match=re.escape(says)):
        load_tables(tmp_path, "csv", as_csv(rows), as_csv(DOCUMENTS), as_csv(STOCKS))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\n", "the file is empty"),
        ("catalyst_id,stock_id\n", "column catalyst_type is missing; it has catalyst_id, stock_id"),
        (as_csv(CATALYSTS).decode("utf-8-sig").splitlines()[0], "c.csv: no rows"),
        (as_csv(CATALYSTS).decode("utf-8-sig") + "1,2\n", "c.csv, line 4: 2 cells under 7 columns"),
        (as_csv(CATALYSTS).decode("utf-8-sig") + '"open', "c.csv, line 4: not valid CSV"),
        (as_csv(CATALYSTS).decode("utf-8-sig").replace("horizon_days", "fwd_ret"), "column fwd_ret is there twice"),
    ],
)
def test_a_csv_that_is_none(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape(says)):
        load_tables(tmp_path, "csv", text.encode(), as_csv(DOCUMENTS), as_csv(STOCKS))


def test_a_broken_line_of_jsonl_is_named(tmp_path: Path) -> None:
    broken = as_jsonl(CATALYSTS).rstrip() + b'\n\n{"catalyst_id": \n'
    with pytest.raises(DataError, match=r"c\.jsonl: invalid JSON at line 4, column 17"):
        load_tables(tmp_path, "jsonl", broken, as_jsonl(DOCUMENTS), as_jsonl(STOCKS))


def test_unused_columns_are_a_warning(tmp_path: Path) -> None:
    rows = [{**row, "horizon_day": 3} for row in CATALYSTS]
    loaded = load_tables(tmp_path, "csv", as_csv(rows), as_csv(DOCUMENTS), as_csv(STOCKS))
    assert loaded.warnings[0].startswith("c.csv: columns not used: horizon_day (known: catalyst_id")


def catalysts_with(column: str, array: pa.Array) -> bytes:
    table = pa.Table.from_pylist(CATALYSTS)
    return parquet(table.set_column(table.column_names.index(column), column, array))


MIDNIGHTS = [datetime(2021, 3, 15), datetime(2021, 3, 16)]


@pytest.mark.parametrize(
    ("column", "array", "says"),
    [
        ("decision_time", pa.array(MIDNIGHTS, pa.timestamp("ms", "UTC")), "stamped with zone UTC"),
        ("decision_time", pa.array(MIDNIGHTS, pa.timestamp("ms")), "nothing but midnights"),
        ("decision_time", pa.array([1, 2], pa.timestamp("ns")), "cannot be read as Parquet: Casting"),
        (
            "decision_time",
            pa.array([1_600_000_000_000_001] * 2, pa.timestamp("us")),
            "row 1 (a): decision_time = '2020-09",
        ),
        ("stock_id", pa.array([1, 777]), "row 1 (a): stock_id = 1: is a number"),
        ("fwd_ret", pa.array([0.041, None]), "row 2 (b): fwd_ret = null"),
    ],
)
def test_bad_parquet_columns(column: str, array: pa.Array, says: str, tmp_path: Path) -> None:
    data = catalysts_with(column, array)
    with pytest.raises(DataError, match=re.escape(says)):
        load_tables(tmp_path, "parquet", data, as_parquet(DOCUMENTS), as_parquet(STOCKS))


def test_parquet_dates_and_decimals(tmp_path: Path) -> None:
    data = catalysts_with("decision_time", pa.array([date(2021, 3, 15), date(2021, 3, 16)], pa.date32()))
    loaded = load_tables(tmp_path, "parquet", data, as_parquet(DOCUMENTS), as_parquet(STOCKS))
    assert {c.time.granularity for c in loaded.evaluation.catalysts} == {Granularity.DAY}
    data = catalysts_with("fwd_ret", pa.array([Decimal("0.0410"), Decimal("-0.0050")]))
    loaded = load_tables(tmp_path, "parquet", data, as_parquet(DOCUMENTS), as_parquet(STOCKS))
    assert loaded.evaluation.outcomes["b"].fwd_ret == -0.005


def test_other_endings_and_broken_parquet_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"c\.xlsx: a table is a \.csv, \.jsonl, \.parquet file"):
        load_tables(tmp_path, "xlsx", b"x", b"x", b"x")
    with pytest.raises(DataError, match=r"c\.parquet: cannot be read as Parquet"):
        load_tables(tmp_path, "parquet", b"PAR1 nothing", as_parquet(DOCUMENTS), as_parquet(STOCKS))


def test_without_a_list_of_stocks_ids_stand_in_for_names(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_bytes(as_csv(CATALYSTS))
    (tmp_path / "d.csv").write_bytes(as_csv(DOCUMENTS))
    loaded = benchmarks.load(
        name="own", root=str(tmp_path), market="CN", convention="entry_next_open", horizon=5, format="table",
        eval="c.csv", event="d.csv",
    )  # fmt: skip
    assert [c.company for c in loaded.evaluation.catalysts] == ["000001", "000777"]
    assert "no file lists the stocks: 2 of 2" in loaded.warnings[0]
