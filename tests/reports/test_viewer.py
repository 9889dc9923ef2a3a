"""The data behind the case viewer: what is read, how it is packed, what is said where something is missing."""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
import zlib
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from reports import viewer
from reports.page import MORE, PLACES, sections
from reports.tables import Table
from reports.viewer import Viewer, build_viewer
from reports.viewer_chunks import TEXT_LIMIT, Lines
from reports.viewer_read import Memory, answer_of, messages_of, valid_text
from tests.reports.cases import SKILL, case_run, full_cell, request_of, sha_of
from tests.reports.runs import rows, write_cell

Row = dict[str, Any]


def unpacked(text: str) -> Row:
    found: Row = json.loads(gzip.decompress(base64.b64decode(text)))
    return found


def viewer_of(run: Path, *cells: str) -> Viewer:
    return build_viewer([run], {name: name for name in cells or sorted(p.name for p in (run / "cells").iterdir())})


def text_of(chunk: Row, numbers: list[int]) -> str:
    return "\n".join(chunk["lines"][number] for number in numbers)


def test_columns_say_what_forecasts_say(run: Path) -> None:
    some = rows("tiem", n=4)
    some[1] |= {"status": "invalid", "prob_positive": None}
    some[2] |= {"status": "budget", "prob_positive": None}
    some[3] |= {"label": "dropped"}
    write_cell(run, some)
    index = unpacked(viewer_of(run).index)
    assert index["rows"]["prob"] == [row["prob_positive"] for row in some]
    assert index["rows"]["right"] == [int(some[0]["correct"]), 0, None, None]
    assert index["rows"]["late"] == [None] * 4, "without evidence.parquet it is not known"
    assert index["cases"]["id"] == [f"astock-{i:04d}" for i in range(4)]
    assert index["cases"]["time"] == [int(row["decision_time"].timestamp()) for row in some]


def test_cases_of_all_cells_share_chunks_and_texts(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case_run(run, n=6)
    monkeypatch.setattr(viewer, "ROWS_A_CHUNK", 9)
    made = viewer_of(run)
    assert len(made.chunks) == 2, "three rows a case, three cases a chunk"
    index = unpacked(made.index)
    assert index["cases"]["chunk"] == [0, 0, 0, 1, 1, 1]
    chunk = unpacked(made.chunks[0])
    assert sorted(map(int, chunk["rows"])) == list(range(9))
    assert len(chunk["lines"]) == len(set(chunk["lines"]))
    assert chunk["lines"].count("You are an analyst.") == 1


def test_a_row_has_prompt_reply_evidence_and_the_skill_of_its_time(run: Path) -> None:
    some = rows("tiem", n=1)
    full_cell(run, some, late=1)
    chunk = unpacked(viewer_of(run).chunks[0])
    row = chunk["rows"]["0"]
    exchange = chunk["exchanges"][sha_of(request_of(some[0]))]
    assert "## Focal document" in text_of(chunk, exchange["messages"][1][1])
    assert json.loads(text_of(chunk, exchange["reply"]))["prob_positive"] == some[0]["prob_positive"]
    assert row["evidence"]["verdict"].count("late") == 1
    assert "IF orders rise" in text_of(chunk, row["remembered"][SKILL])
    assert row["calls"][0]["request"] in chunk["exchanges"]


def test_a_memory_is_seen_as_the_decision_saw_it() -> None:
    def micros(day: int, hour: int = 0) -> int:
        return int(datetime(2024, 3, day, hour, tzinfo=UTC).timestamp()) * 1_000_000

    log = {
        "s": [(micros(1), date(2024, 3, 1), "first"), (micros(2), date(2024, 3, 2), "second"), (micros(3), None, None)]
    }
    memory = Memory(log)
    assert memory.before("s", micros(1), None) is None, "an operation at T itself is not seen"
    assert memory.before("s", micros(2, 5), None) == "second"
    assert memory.before("s", micros(2, 5), date(2024, 3, 2)) == "first", (
        "a decision of a whole day does not see documents of that day"
    )
    assert memory.before("s", micros(4), None) is None, "closed"
    assert memory.before("unknown", micros(4), None) is None


def test_the_same_files_give_the_same_bytes(run: Path) -> None:
    case_run(run)
    assert viewer_of(run) == viewer_of(run)


def test_long_texts_are_cut_and_the_cut_is_said() -> None:
    lines = Lines()
    kept = lines.add("x" * (TEXT_LIMIT + 1500))
    assert len(lines.lines[kept[0]]) == TEXT_LIMIT
    assert lines.lines[kept[1]] == "[… 1,500 more characters are not kept in this page]"
    assert lines.add("a\nb\na") == [2, 3, 2]


def test_texts_are_left_out_beyond_the_limit_and_that_is_said(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case_run(run)
    monkeypatch.setattr(viewer, "TEXT_BYTES", -1)
    made = viewer_of(run)
    assert unpacked(made.chunks[0])["exchanges"] == {}
    assert any("Prompts and replies of 36 of 36 forecasts are left out" in note for note in made.notes)


def test_what_is_missing_is_said_once(run: Path) -> None:
    write_cell(run, rows("tiem", n=2))
    write_cell(run, rows("cot", n=2))
    notes = viewer_of(run).notes
    assert notes == (
        "All 2 cells lack evidence.parquet: the timeline and the skills of their forecasts cannot be shown.",
        "All 2 cells lack calls.parquet: their prompts, replies and single calls cannot be shown.",
        "All 2 cells lack the cache of replies: their prompts and replies cannot be shown.",
    )


def test_a_damaged_store_stops_nothing(run: Path) -> None:
    case_run(run)
    (store,) = (run / "cache").iterdir()
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("UPDATE replies SET reply = ?", (zlib.compress(b'{"no": "choices"}'),))
    chunk = unpacked(viewer_of(run).chunks[0])
    assert all("not a chat completion" in exchange["damaged"] for exchange in chunk["exchanges"].values())
    store.write_bytes(b"not SQLite")
    assert any("not a store of replies" in note for note in viewer_of(run).notes)


def test_the_first_of_two_runs_with_one_cell_counts(run: Path, tmp_path: Path) -> None:
    for folder in (run, tmp_path / "again"):
        write_cell(folder, rows("tiem", n=2))
    made = build_viewer([run, tmp_path / "again"], {"tiem__deepseek_v4_flash__astock__0a1b2c3d": "tiem"})
    assert made.forecasts == 2


def test_a_report_over_several_benchmarks_keeps_their_cases_apart(run: Path) -> None:
    for benchmark in ("astock", "edt"):
        some = rows("tiem", benchmark=benchmark, n=3)
        for row in some:
            row["catalyst_id"] = row["catalyst_id"].replace(benchmark, "same")
        write_cell(run, some)
    index = unpacked(viewer_of(run).index)
    assert index["cases"]["benchmark"] == ["astock"] * 3 + ["edt"] * 3
    assert len(set(index["cases"]["chunk"])) == 2, "a chunk holds one benchmark"


def test_messages_and_replies_in_their_odd_forms() -> None:
    called = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "search", "arguments": "{}"}}]}
    parts = {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}
    assert messages_of(json.dumps({"body": {"messages": [called, parts]}})) == [
        ("assistant", "search({})"),
        ("user", "one\ntwo"),
    ]
    refused = {"choices": [{"message": {"content": None, "refusal": "no"}, "finish_reason": "stop"}]}
    assert answer_of(json.dumps(refused)).content == "no"
    thought = {"choices": [{"message": {"content": "a", "reasoning_content": "hm \ud83d"}}]}
    assert answer_of(json.dumps(thought)).thinking == "hm \ufffd"
    for broken in ("{}", "[]", '{"choices": []}', '{"choices": [{"message": null}]}'):
        with pytest.raises(ValueError, match="not a chat completion"):
            answer_of(broken)
    with pytest.raises(ValueError, match="not a chat request"):
        messages_of('{"body": {"messages": [3]}}')


def test_valid_text_keeps_pairs_and_replaces_halves() -> None:
    assert valid_text("a😀\ud83d\ude00\ud83d沪") == "a😀😀\ufffd沪"


def test_every_table_and_figure_has_a_place(demo: Any) -> None:
    table = Table("never_heard_of", "A table", (), ())
    found = sections([*demo.tables, table], demo.figures)
    assert found[-1].id == MORE[0]
    assert found[-1].tables == (table,), "what is not placed is shown at the end, and everything of ours is placed"
    assert sum(len(section.tables) for section in found) == len(demo.tables) + 1
    assert [section.id for section in found] == [id_ for id_, *_ in (*PLACES, MORE) if id_ in {s.id for s in found}]
