"""``python -m benchmarks audit``: its files, messages and exit codes, and what it finds in the released benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import benchmarks.settings
from benchmarks.__main__ import main
from benchmarks.audit.audit import CHECKS
from benchmarks.audit.raw import read_raw
from benchmarks.files import open_folder
from benchmarks.settings import parameters_of

HARBOUR = """\
_target_: benchmarks.load
name: harbour
root: null
format: table
market: CN
convention: entry_next_open
horizon: 5
eval: harbour/catalysts.csv
event: harbour/documents.jsonl
stocks: harbour/stocks.csv
"""
CATALYSTS = """\
catalyst_id,stock_id,catalyst_type,decision_time,outcome,fwd_ret
h1,000001,earnings,2021-03-15 18:30,positive,0.041
h2,000777,regulatory,2021-03-16,negative,-0.0125
"""
DOCUMENTS = """\
{"doc_id": "n1", "ts": "2021-03-15 18:30", "mentioned_stocks": ["000001"], "body": "净利润增长三成。"}
{"doc_id": "n2", "ts": "2021-03-15 19:30", "mentioned_stocks": "000777;000001", "body": "净利润增长三成。"}
"""

KNOWN: dict[str, dict[str, tuple[int, int]]] = {
    "edt": {
        "truncated_body": (870, 871),
        "name_is_ticker": (688, 688),
        "resolve_early": (18, 128),
        "no_prior": (128 - 30, 128),
        "stamp_shifted": (0, 871),
    },
    "cmin_us": {
        "shared_body": (47, 2334),
        "resolve_early": (15, 128),
        "no_prior": (128 - 111, 128),
        "repeated_body": (13, 907),
    },
    "csmd": {
        "repeated_body": (432, 898),
        "focal_repeated": (64, 128),
        "resolve_early": (20, 128),
        "return_beyond_limit": (5, 128),
        "few_decision_days": (0, 1),
    },
    "astock": {
        "resolve_early": (123, 128),
        "stamp_shifted": (160, 2954),
        "return_beyond_limit": (5, 128),
        "return_not_in_prices": (0, 25),
        "no_focal": (53, 128),
    },
    "finpure": {
        "few_decision_days": (1, 1),
        "return_beyond_limit": (2, 128),
        "resolve_early": (0, 128),
        "repeated_body": (0, 0),
    },
}


def run(*arguments: str) -> int:
    return main(["audit", *arguments])


def audited(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    file = tmp_path / "deep" / "audit.json"
    assert run(*arguments, "--json", str(file)) == 0
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


@pytest.fixture
def harbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own benchmark, its YAML beside the shipped ones."""
    (tmp_path / "conf" / "benchmark").mkdir(parents=True)
    (tmp_path / "conf" / "benchmark" / "harbour.yaml").write_text(HARBOUR, "utf-8")
    monkeypatch.setattr(benchmarks.settings, "CONF", tmp_path / "conf")
    (tmp_path / "harbour").mkdir()
    for name, text in (
        ("catalysts.csv", CATALYSTS),
        ("documents.jsonl", DOCUMENTS),
        ("stocks.csv", "stock_id,name\n000001,北港物流\n000777,000777\n"),
    ):
        (tmp_path / "harbour" / name).write_text(text, "utf-8")
    return tmp_path


def test_the_json_has_the_documented_shape(tmp_path: Path) -> None:
    found = audited(tmp_path, "sample")
    assert {"benchmark", "files", "findings", "stats"} <= found.keys()
    assert all({"path", "sha256", "rows"} == file.keys() for file in found["files"])
    for finding in found["findings"]:
        assert {"id", "count", "total", "severity", "examples", "effect", "remedy"} <= finding.keys()
        assert finding["verdict"] == (
            "NOT TESTABLE" if not finding["total"] else "FAIL" if finding["count"] else "PASS"
        )
        assert len(finding["examples"]) == min(finding["count"], 10)
    assert {
        "n", "stocks", "documents", "decision_days", "first", "last", "positive_share", "label_icc_day",
        "design_effect_day", "effective_n_day", "base_rates", "future_documents_per_query_median",
    } <= found["stats"].keys()  # fmt: skip
    assert found["stats"]["base_rates"].keys() == {"always_positive", "type_majority", "day_majority_hindsight"}


def test_the_terminal_shows_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sample") == 0
    text = capsys.readouterr().out
    assert text.startswith("# Audit of sample (eval)\n")
    assert "| repeated_body | FAIL | 3 | 196 |" in text
    assert "## repeated_body: 3 of 196 documents" in text
    assert "clean" not in text.lower()
    assert "leak-free" not in text.lower()


def test_the_experience_split(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sample", "--split", "experience") == 0
    assert "# Audit of sample (experience)" in capsys.readouterr().out


def test_a_users_own_benchmark(harbour: Path, tmp_path: Path) -> None:
    found = audited(tmp_path, "harbour", "--root", str(harbour))
    counts = {finding["id"]: finding["count"] for finding in found["findings"]}
    assert (counts["name_is_ticker"], counts["repeated_body"], counts["shared_body"]) == (1, 1, 0)
    assert counts["mixed_granularity"] == 1
    assert counts["few_decision_days"] == 1
    assert [file["path"] for file in found["files"]] == [
        "harbour/catalysts.csv",
        "harbour/documents.jsonl",
        "harbour/stocks.csv",
    ]


def test_without_an_experience_split(harbour: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("harbour", "--root", str(harbour), "--split", "experience") == 2
    assert "no experience split" in capsys.readouterr().err


def test_bad_rows_are_counted_not_refused(harbour: Path, tmp_path: Path) -> None:
    file = harbour / "harbour" / "catalysts.csv"
    file.write_text(CATALYSTS + "h3,000001,earnings,someday,positive,0.02\n", "utf-8")
    found = {f["id"]: f for f in audited(tmp_path, "harbour", "--root", str(harbour))["findings"]}
    assert found["unreadable_row"]["count"] == 1
    assert "harbour/catalysts.csv, line 4 (h3): decision_time = 'someday'" in found["unreadable_row"]["examples"][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "has astock, cmin_us, csmd, edt, finpure, sample"),
        (("edt", "--root", "/nowhere"), "no such directory"),
        (("edt",), "benchmark.root: not set"),
    ],
)
def test_what_cannot_be_audited(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HARNESS_DATA", raising=False)
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


def test_a_missing_or_broken_file(harbour: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (harbour / "harbour" / "documents.jsonl").write_text('{"doc_id": ', "utf-8")
    assert run("harbour", "--root", str(harbour)) == 2
    assert "harbour/documents.jsonl: invalid JSON at line 1" in capsys.readouterr().err
    (harbour / "harbour" / "documents.jsonl").unlink()
    assert run("harbour", "--root", str(harbour)) == 2
    assert "no such file" in capsys.readouterr().err


def test_json_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    assert run("sample", "--json", str(tmp_path / "file" / "audit.json")) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.data
@pytest.mark.parametrize("name", KNOWN)
def test_known_answers(name: str, released: Path, tmp_path: Path) -> None:
    found = {f["id"]: f for f in audited(tmp_path, name, "--root", str(released))["findings"]}
    assert {i: (found[i]["count"], found[i]["total"]) for i in KNOWN[name]} == KNOWN[name]


@pytest.mark.data
def test_known_figures(released: Path, tmp_path: Path) -> None:
    stats = audited(tmp_path, "finpure", "--root", str(released))["stats"]
    assert (stats["decision_days"], stats["n"]) == (11, 128)
    assert stats["label_icc_day"] == pytest.approx(0.3799, abs=1e-4)
    assert stats["effective_n_day"] == pytest.approx(15.05, abs=0.01)
    shift = audited(tmp_path, "astock", "--root", str(released))["stats"]["stamp_shift"]
    assert (shift["first"], shift["last"]) == ("2018-07-28 05:49", "2019-10-24 03:37")
    assert (shift["documents_between"], shift["contradicted_by_date"]) == (1047, 26)


@pytest.mark.data
def test_no_stamp_is_called_shifted_that_the_price_file_calls_right(released: Path) -> None:
    parameters = parameters_of("astock", str(released))
    raw = read_raw(open_folder(parameters), parameters, parameters.eval, "benchmark")
    prices = json.loads((released / "prices" / "Astock.partial.json").read_text("utf-8"))["prices"]
    clocks = {row["doc_id"]: row["clock"] for row in prices}
    (check,) = (check for check in CHECKS if check.id == "stamp_shifted")
    assert {clocks[hit.name] for hit in check.find(raw).hits} == {"shifted"}


@pytest.mark.data
def test_the_experience_of_astock(released: Path, tmp_path: Path) -> None:
    found = audited(tmp_path, "astock", "--root", str(released), "--split", "experience")["findings"]
    assert [(f["count"], f["total"]) for f in found if f["id"] == "resolve_early"] == [(1942, 3000)]
