"""Every kind of bad input is refused with a message that names file, row, field and value."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.errors import DataError
from tests.benchmarks.conftest import Content, load_small, write

EVAL, EVENT, PRICES = "eval/Small.json", "event/Small.json", "prices/Small.json"
REMOVED = object()


@dataclass(frozen=True)
class Bad:
    """Set ``field`` of the ``row``-th (1-based) entry of ``file``'s array to ``value``; ``says`` must be in the message."""

    file: str
    field: str
    value: Any
    says: tuple[str, ...] = ()
    row: int = 2

    @property
    def array(self) -> str:
        return {EVAL: "catalysts", EVENT: "text", PRICES: "prices"}[self.file]


def missing(file: str, field: str, row: int = 2) -> Bad:
    return Bad(file, field, REMOVED, ("is missing",), row)


BAD = [
    *(missing(EVAL, f) for f in ("stock_id", "catalyst_type", "decision_time", "resolve_date", "outcome", "fwd_ret")),
    missing(EVAL, "catalyst_id"),
    *(missing(EVENT, f) for f in ("doc_id", "ts", "body", "mentioned_stocks")),
    *(missing(PRICES, f, 1) for f in ("stock_id", "decision_time", "entry_session", "path")),
    Bad(EVAL, "decision_time", None, ("= null",)),
    Bad(EVAL, "catalyst_id", 7, ("is a number",)),
    Bad(EVAL, "catalyst_id", "", ("is empty",)),
    Bad(EVAL, "catalyst_id", "c1", ("duplicate", "row 1")),
    Bad(EVAL, "stock_id", "  ", ("is empty",)),
    Bad(EVAL, "stock_id", "600009.SH", ("unknown stock", EVENT)),
    Bad(EVAL, "catalyst_type", "merger", ("unknown", "regulatory")),
    Bad(EVAL, "catalyst_type", ["ma"], ("unknown",)),
    Bad(EVAL, "decision_time", "2021-02-30", ("impossible",)),
    Bad(EVAL, "decision_time", "2021-01-05T09:40:00+08:00", ("without a time zone",)),
    Bad(EVAL, "decision_time", "2021-01-05 09:40Z", ("without a time zone",)),
    Bad(EVAL, "decision_time", "05/01/2021", ("unparsable",)),
    Bad(EVAL, "decision_time", 20210105, ("missing timestamp",)),
    Bad(EVAL, "decision_time", "2031-01-06", ("calendar of XSHG",)),
    Bad(EVAL, "decision_time", "1970-01-06", ("calendar of XSHG",)),
    Bad(EVAL, "decision_time", "9999-12-31", ("calendar of XSHG",)),
    Bad(EVAL, "decision_time", "0001-01-01 00:00", ("impossible",)),
    Bad(EVAL, "decision_time", "2026-12-30", ("ends on 2026-12-31",)),
    Bad(EVAL, "resolve_date", "soon", ("unparsable",)),
    Bad(EVAL, "outcome", "up", ("unknown", "dropped")),
    Bad(EVAL, "outcome", "positive", ("contradicts fwd_ret = -0.02",)),
    Bad(EVAL, "outcome", "dropped", ("contradicts", "is negative")),
    Bad(EVAL, "fwd_ret", float("nan"), ("nan", "finite")),
    Bad(EVAL, "fwd_ret", float("-inf"), ("-inf", "finite")),
    Bad(EVAL, "fwd_ret", 10**400, ("finite",)),
    Bad(EVAL, "fwd_ret", "-0.02", ("is text",)),
    Bad(EVAL, "fwd_ret", True, ("truth value",)),
    Bad(EVAL, "horizon_days", 0, ("1 to 250",)),
    Bad(EVAL, "horizon_days", 5.5, ("whole number",)),
    Bad(EVAL, "horizon_days", True, ("whole number",)),
    Bad(EVAL, "horizon_days", 10**9, ("1 to 250",)),
    Bad(EVAL, "market", "MARS", ("unknown", "CN, US")),
    Bad(EVAL, "convention", "next_week", ("unknown", "close_to_close")),
    Bad(EVENT, "doc_id", "d1", ("duplicate", "row 1")),
    Bad(EVENT, "ts", "2021-13-01", ("impossible",)),
    Bad(EVENT, "body", "", ("is empty",)),
    Bad(EVENT, "body", 3, ("is a number",)),
    Bad(EVENT, "title", {"zh": "题"}, ("is an object",)),
    Bad(EVENT, "mentioned_stocks", "600001.SH", ("is text",)),
    Bad(EVENT, "mentioned_stocks", [1], ("item 1",)),
    Bad(EVENT, "mentioned_stocks", ["600009.SH"], ("not among the stocks",)),
    Bad(EVENT, "mentioned_stocks", ["600001.SH", "ACME.US"], ("local time",)),
    Bad(PRICES, "entry_session", "2021-01-04", ("is before 2021-01-05",), 1),
    Bad(PRICES, "entry_session", "2021-01-07 09:30", ("time of day",), 1),
    Bad(PRICES, "path", [["2021-01-08", 1, 1]], ("shorter",), 1),
    Bad(PRICES, "path", [["2021-01-07", 1, 1]], ("not later than the session before it (2021-01-07)",), 1),
    Bad(PRICES, "path", "none", ("list",), 1),
    Bad(PRICES, "path", [["x", 1, 1]], ("step ['x', 1, 1]",), 1),
    Bad(PRICES, "path", [[f"2021-01-{d:02}", 1, 1] for d in (8, 9, 10, 11, 12)], ("2021-01-09 is not a session",), 1),
    Bad(PRICES, "catalysts", [3], ("catalyst_id",), 1),
]  # fmt: skip


@pytest.mark.parametrize(
    "bad", BAD, ids=lambda b: f"{b.file[:5]}-{b.field}-{b.value if b.value is not REMOVED else 'missing'}"[:40]
)
def test_the_message_names_file_row_field_and_value(
    bad: Bad, content: Content, load_content: Callable[..., Any]
) -> None:
    row = content[bad.file][bad.array][bad.row - 1]
    if bad.value is REMOVED:
        del row[bad.field]
    else:
        row[bad.field] = bad.value
    with pytest.raises(DataError) as caught:
        load_content(content)
    message = str(caught.value)
    assert f"{bad.file}, row {bad.row}" in message
    assert f": {bad.field} " in message
    for part in bad.says:
        assert part in message
    if not bad.says or bad.value in (REMOVED, None, 10**400):
        return
    assert repr(bad.value)[:60] in message


FILES: list[tuple[str, Any, str]] = [
    ("empty", b"", "eval/Small.json: the file is empty"),
    ("only a byte order mark", b"\xef\xbb\xbf\r\n", "the file is empty"),
    ("truncated", json.dumps({"catalysts": [{"a": 1}]}, indent=1)[:-8], r"invalid JSON at line \d+, column \d+"),
    ("not JSON", "catalyst_id,stock_id\n", "invalid JSON at line 1, column 1"),
    ("deep", "[" * 200_000, "invalid JSON"),
    ("huge number", "[" + "9" * 5000 + "]", "invalid JSON"),
    ("not UTF-8", '{"catalysts": "贵州"}'.encode("gbk"), r"not UTF-8: byte 0x\w\w at offset 15"),
    ("UTF-16", '{"catalysts": []}'.encode("utf-16"), "not UTF-8: byte 0xff at offset 0"),
    ("text at the top", '"hello"', "the top level is 'hello'"),
    ("another key", {"rows": []}, '"catalysts" is missing'),
    ("no array", {"catalysts": {"a": 1}}, '"catalysts" is {'),
    ("no rows", {"catalysts": []}, "has no rows"),
    ("a row that is text", {"catalysts": ["c1"]}, r"eval/Small.json, row 1: 'c1': is not an object"),
    ("a row that is null", {"catalysts": [None]}, r"eval/Small.json, row 1: None: is not an object"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "says"), [pytest.param(d, s, id=i) for i, d, s in FILES])
def test_a_file_that_is_no_benchmark_file(
    data: Any, says: str, content: Content, load_content: Callable[..., Any]
) -> None:
    with pytest.raises(DataError, match=says):
        load_content({**content, EVAL: data})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"stocks": None}, '"stocks" is missing'),
        ({"stocks": []}, r'"stocks" is \[\]'),
        ({"stocks": {"600001.SH": {}}}, r"event/Small.json \(stocks\), row 1 \(600001.SH\): name is missing"),
        ({"stocks": {"600001.SH": "甲"}}, r"row 1: '甲': is not an object"),
        ({"stocks": {"600001.SH": {"name": "甲", "market": "XX"}}}, "market = 'XX'"),
        ({"text": []}, '"text" has no rows'),
    ],
)
def test_a_bad_event_file(change: Content, says: str, content: Content, load_content: Callable[..., Any]) -> None:
    content[EVENT].update(change)
    with pytest.raises(DataError, match=says):
        load_content(content)


def test_missing_files_are_listed(tmp_path: Path, content: Content) -> None:
    write(tmp_path, content)
    with pytest.raises(DataError, match=r"eval/None.json: cannot be read: No such file.*benchmark.root"):
        load_small(tmp_path, eval="eval/None.json")
    with pytest.raises(DataError, match=r"benchmark.event: no such file: .*a.json or .*b.json"):
        load_small(tmp_path, event=["a.json", "b.json"])


def test_ten_at_a_time_and_all_counted(content: Content, load_content: Callable[..., Any]) -> None:
    row = content[EVAL]["catalysts"][0]
    content[EVAL]["catalysts"] = [{**row, "catalyst_id": f"c{i}", "outcome": "up"} for i in range(45)]
    content[EVENT]["text"][0]["ts"] = "never"
    content[EVENT]["text"][1]["body"] = None
    with pytest.raises(DataError) as caught:
        load_content(content)
    lines = str(caught.value).splitlines()
    assert lines[0] == "benchmark small: 47 bad rows; nothing was run."
    assert len(lines) == 12
    assert lines[-1].strip() == "… and 37 more"
