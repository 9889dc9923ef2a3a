"""What loading guarantees: order, times, outcomes, hashes, warnings."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import benchmarks
from benchmarks import files
from benchmarks.catalysts import label_of
from harness.errors import ConfigError, DataError
from harness.records import Benchmark, Catalyst, Stock
from tests.benchmarks.conftest import SETTINGS, SMALL, Content, load_small, write

Load = Callable[..., Benchmark]


def test_records(content: Content, load_content: Load) -> None:
    loaded = load_content(content)
    assert [c.catalyst_id for c in loaded.evaluation.catalysts] == ["c1", "c3", "c4", "c2"]
    first = loaded.evaluation.catalysts[0]
    assert (first.company, first.market, first.horizon) == ("甲公司", "CN", 5)
    assert loaded.evaluation.corpus.stocks["600001.SH"] == Stock("600001.SH", "甲公司", "steel")
    assert loaded.evaluation.corpus.stocks["000002.SZ"].industry == "food"
    assert [d.doc_id for d in loaded.evaluation.corpus.documents] == ["d4", "d1", "d3", "d2"]
    assert loaded.evaluation.corpus.documents[3].stocks == ("600001.SH", "000002.SZ")
    assert loaded.warnings == ()
    assert not {"outcome", "fwd_ret", "label"} & set(Catalyst.__dataclass_fields__)


def test_stamps_are_local_to_the_exchange_of_the_stock(content: Content, load_content: Load) -> None:
    loaded = load_content(content)
    times = {d.doc_id: d.time.instant for d in loaded.evaluation.corpus.documents if d.time}
    assert times["d1"] == datetime(2021, 1, 5, 1, 40, tzinfo=UTC)
    assert times["d3"] == datetime(2021, 1, 5, 14, 40, tzinfo=UTC)
    assert {c.catalyst_id: c.market for c in loaded.evaluation.catalysts}["c4"] == "US"


def test_a_stated_market_wins_over_the_suffix(content: Content, load_content: Load) -> None:
    content["event/Small.json"]["stocks"]["600001.SH"]["market"] = "US"
    content["event/Small.json"]["text"][1]["mentioned_stocks"] = ["600001.SH"]
    loaded = load_content(content, prices=None)
    assert {c.catalyst_id: c.market for c in loaded.evaluation.catalysts}["c1"] == "US"
    assert next(d for d in loaded.evaluation.corpus.documents if d.doc_id == "d1").time.instant.hour == 14  # type: ignore[union-attr]


def test_another_market_by_its_calendar(content: Content, load_content: Load) -> None:
    rows = content["eval/Small.json"]["catalysts"]
    rows[0]["market"] = "HK"
    loaded = load_content(content, market="HK", calendar="XHKG", prices=None)
    assert loaded.evaluation.outcomes["c1"].resolve_at == datetime(2021, 1, 12, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fwd_ret", "label"),
    [(0.0055, "positive"), (0.00549, "dropped"), (-0.005, "negative"), (-0.00499, "dropped"), (0, "dropped")],
)
def test_label_rule(fwd_ret: float, label: str) -> None:
    assert label_of(fwd_ret) == label


def test_a_price_path_shows_the_suspension(content: Content, load_content: Load) -> None:
    with_path = load_content(content).evaluation.outcomes["c1"]
    by_calendar = load_content(content, prices=None).evaluation.outcomes["c1"]
    assert (with_path.entry_session, with_path.resolve_session) == (date(2021, 1, 7), date(2021, 1, 14))
    assert with_path.resolve_at == datetime(2021, 1, 14, 7, 0, tzinfo=UTC)
    assert (by_calendar.entry_session, by_calendar.resolve_session) == (date(2021, 1, 5), date(2021, 1, 12))


@pytest.mark.parametrize("field", ["stock_id", "decision_time"])
def test_a_path_of_another_stock_or_time_is_not_used(field: str, content: Content, load_content: Load) -> None:
    content["prices/Small.json"]["prices"][0][field] = {"stock_id": "000002.SZ", "decision_time": "2021-01-05 09:41"}[
        field
    ]
    assert load_content(content).evaluation.outcomes["c1"].resolve_session == date(2021, 1, 12)


def test_released_resolve_dates_count_to_the_end_of_the_day(content: Content, load_content: Load) -> None:
    outcome = load_content(content, resolve="released").evaluation.outcomes["c1"]
    assert outcome.resolve_at == datetime(2021, 2, 1, 15, 59, 59, 999999, tzinfo=UTC)
    assert outcome.resolve_session == date(2021, 2, 1)


def test_the_row_wins_over_the_yaml(content: Content, load_content: Load) -> None:
    row = content["eval/Small.json"]["catalysts"][3]
    row |= {"horizon_days": 1, "convention": "entry_day_is_first"}
    del content["eval/Small.json"]["catalysts"][1]["horizon_days"]
    loaded = load_content(content, horizon=2)
    assert {c.catalyst_id: c.horizon for c in loaded.evaluation.catalysts} == {"c1": 5, "c2": 2, "c3": 5, "c4": 1}
    assert loaded.evaluation.outcomes["c4"].resolve_session == date(2021, 1, 6)


@given(order=st.permutations(range(4)), other=st.permutations(range(4)))
@settings(max_examples=15, deadline=None)
def test_the_order_of_rows_does_not_matter(order: list[int], other: list[int]) -> None:
    shuffled = copy.deepcopy(SMALL)
    for name, key, by in (("eval/Small.json", "catalysts", order), ("event/Small.json", "text", other)):
        shuffled[name][key] = [shuffled[name][key][i] for i in by]
    stocks = shuffled["event/Small.json"]["stocks"]
    shuffled["event/Small.json"]["stocks"] = dict(sorted(stocks.items(), key=lambda item: order[len(item[0]) % 4]))
    loaded = []
    for version in (SMALL, shuffled):
        with TemporaryDirectory() as root:
            write(Path(root), version)
            loaded.append(replace(load_small(Path(root)), files=()))
    assert loaded[0] == loaded[1]
    assert list(loaded[0].evaluation.outcomes) == list(loaded[1].evaluation.outcomes)


def test_byte_order_mark_and_crlf_load(tmp_path: Path, content: Content) -> None:
    write(tmp_path, content)
    plain = load_small(tmp_path)
    for name, value in content.items():
        text = json.dumps(value, indent=1, ensure_ascii=False).replace("\n", "\r\n")
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert replace(load_small(tmp_path), files=()) == replace(plain, files=())


def test_lone_surrogates_are_replaced_and_counted(content: Content, load_content: Load) -> None:
    content["event/Small.json"]["text"][0]["body"] = "bad \ud800 and \udc00, good 😀"
    loaded = load_content(content)
    assert next(d for d in loaded.evaluation.corpus.documents if d.doc_id == "d1").body == "bad � and �, good 😀"
    assert loaded.warnings == ("event/Small.json: 2 lone surrogates are replaced by U+FFFD.",)


def test_title_may_be_missing_and_a_bare_list_is_enough(content: Content, load_content: Load) -> None:
    del content["event/Small.json"]["text"][2]["title"]
    content["event/Small.json"]["text"][1]["title"] = None
    content["eval/Small.json"] = content["eval/Small.json"]["catalysts"]
    loaded = load_content(content)
    assert {d.doc_id: d.title for d in loaded.evaluation.corpus.documents}["d3"] == ""


def test_every_file_is_hashed(tmp_path: Path, content: Content) -> None:
    write(tmp_path, content)
    loaded = load_small(tmp_path)
    assert [(f.path, f.rows, f.pinned) for f in loaded.files] == [
        ("eval/Small.json", 4, None),
        ("event/Small.json", 4, None),
        ("prices/Small.json", 1, None),
    ]
    for file in loaded.files:
        assert file.sha256 == hashlib.sha256((tmp_path / file.path).read_bytes()).hexdigest()


def test_a_known_file_with_other_bytes_is_a_warning(
    content: Content, load_content: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "pinned", lambda: {"eval/Small.json": "0" * 64})
    loaded = load_content(content)
    assert loaded.files[0].pinned is False
    assert "eval/Small.json differs from the pinned release" in loaded.warnings[0]


def test_without_an_event_file_there_is_one_warning_with_counts(content: Content, load_content: Load) -> None:
    loaded = load_content(content, event=["event/Absent.json", None], prices=None)
    assert not loaded.evaluation.corpus.present
    assert len(loaded.warnings) == 1
    assert "no event file (event/Absent.json): 4 of 4 catalysts have no event text" in loaded.warnings[0]
    assert loaded.evaluation.catalysts[0].company == "600001.SH"


def test_unknown_stocks_of_a_partial_file_are_one_warning(content: Content, load_content: Load) -> None:
    content["event/Small.json"]["meta"]["partial"] = True
    content["eval/Small.json"]["catalysts"][2]["stock_id"] = "000009.SZ"
    loaded = load_content(content)
    assert loaded.warnings == (
        "benchmark small: event/Small.json is partial: 1 of 4 catalysts are of stocks without an entry and go by their id.",
    )


def test_experience_shares_the_corpus_and_may_not_share_a_case(content: Content, load_content: Load) -> None:
    past = copy.deepcopy(content["eval/Small.json"])
    for row in past["catalysts"]:
        row["catalyst_id"] += "_past"
    content["expr/Small.json"] = past
    shared = ("name", "market", "convention", "horizon", "event", "prices")
    experience = {key: SETTINGS[key] for key in shared} | {"catalysts": "expr/Small.json"}
    loaded = load_content(content, experience=experience)
    assert loaded.experience is not None
    assert loaded.experience.corpus is loaded.evaluation.corpus
    with pytest.raises(DataError, match="4 catalysts are in the evaluation and in the experience"):
        load_content(content, experience=experience | {"catalysts": "eval/Small.json"})
    content["prices/Small.json"]["prices"][0]["path"] = None
    with pytest.raises(DataError, match="1 bad row;"):  # of a file that both sets read
        load_content(content, experience=experience)


def test_root_from_the_environment(tmp_path: Path, content: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, content)
    monkeypatch.setenv("HARNESS_DATA", str(tmp_path))
    assert len(benchmarks.load(**SETTINGS).evaluation.catalysts) == 4
    monkeypatch.delenv("HARNESS_DATA")
    with pytest.raises(ConfigError, match=r"benchmark\.root: not set .* HARNESS_DATA=DIR"):
        benchmarks.load(**SETTINGS)
    with pytest.raises(ConfigError, match=r"benchmark\.root = '/nowhere': no such directory"):
        benchmarks.load(**SETTINGS, root="/nowhere")


def test_bundled_files_are_used_unless_the_root_has_one(
    tmp_path: Path, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "package" / "small", content)
    monkeypatch.setattr(files, "_HERE", tmp_path / "package")
    monkeypatch.setattr(files, "pinned", dict)
    (tmp_path / "other").mkdir()
    for root in (None, str(tmp_path / "other")):
        assert len(benchmarks.load(**SETTINGS, root=root, bundled="small").evaluation.catalysts) == 4
    write(tmp_path / "other", {"event/Small.json": content["event/Small.json"]})
    with pytest.raises(DataError, match=r"other/eval/Small\.json: cannot be read"):
        benchmarks.load(**SETTINGS, root=str(tmp_path / "other"), bundled="small")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"horizn": 5}, r"benchmark\.horizn: unknown key; did you mean horizon\?"),
        ({"zzz": 5}, r"benchmark\.zzz: unknown key; known keys: bundled, calendar"),
        ({"horizon": 0}, r"benchmark\.horizon = 0: .*greater than or equal to 1"),
        ({"horizon": True}, r"benchmark\.horizon = True"),
        ({"convention": "x"}, r"benchmark\.convention = 'x': .*entry_next_open"),
        ({"market": "HK"}, r"benchmark\.market = 'HK': unknown market; use one of CN, US, or .*benchmark\.calendar"),
        ({"calendar": "XXXX"}, r"benchmark\.calendar = 'XXXX': unknown exchange calendar"),
        ({"eval": None}, r"benchmark\.eval"),
        ({"resolve": "maybe"}, r"benchmark\.resolve = 'maybe'"),
        ({"stocks": "s.csv"}, r"benchmark\.stocks: only for format: table"),
        (
            {"experience": {"catalists": "x"}},
            r"benchmark\.experience\.catalists: unknown key; did you mean catalysts\?",
        ),
        ({"experience": {}, "name": "a/b"}, r"benchmark\.name = 'a/b'"),
    ],
)
def test_bad_settings(change: dict[str, Any], says: str, content: Content, load_content: Load) -> None:
    with pytest.raises(ConfigError, match=says):
        load_content(content, **change)
