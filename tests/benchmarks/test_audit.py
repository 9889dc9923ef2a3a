"""Each finding: its planted fault is found, and only where it was planted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.audit.audit import CHECKS
from benchmarks.audit.finding import Severity, Verdict
from tests.benchmarks.conftest import Content
from tests.benchmarks.quiet import audit_of, cases, finding, quiet, texts

CONTRACT = {
    "duplicate_id", "duplicate_document", "repeated_body", "focal_repeated", "shared_body", "truncated_body",
    "no_stock", "unknown_stock", "name_is_ticker", "no_focal", "no_prior", "mixed_granularity", "resolve_early",
    "resolve_not_a_session", "label_contradicts_return", "label_in_deadband", "return_beyond_limit", "stamp_shifted",
    "same_day_price_text", "later_date_text", "overlapping_windows", "few_decision_days",
}  # fmt: skip

Plant = Callable[[Content], None]
PLANTS: list[tuple[str, list[str], Plant]] = []


def plants(name: str, *examples: str) -> Callable[[Plant], Plant]:
    """Register a fault: the finding it is, and the examples it must be shown with (a prefix of each is enough)."""

    def register(plant: Plant) -> Plant:
        PLANTS.append((name, list(examples), plant))
        return plant

    return register


@plants("unreadable_row", "eval/Quiet.json, row 3 (c2): decision_time")
def _(content: Content) -> None:
    cases(content)[2]["decision_time"] = "yesterday"


@plants("unreadable_row", "event/Quiet.json, row 1 (d0a): body")
def _(content: Content) -> None:
    del texts(content)[0]["body"]


@plants("unreadable_row", "prices/Quiet.json, row 1 (d0b): path")
def _(content: Content) -> None:
    del content["prices/Quiet.json"]["prices"][0]["path"][1:]  # too short for the horizon of c0


@plants("duplicate_id", "c4")
def _(content: Content) -> None:
    cases(content)[5]["catalyst_id"] = "c4"


@plants("duplicate_id", "d0a")
def _(content: Content) -> None:
    texts(content)[8]["doc_id"] = "d0a"


@plants("duplicate_document", "d0x")
def _(content: Content) -> None:
    texts(content).append({**texts(content)[0], "doc_id": "d0x"})


@plants("repeated_body", "d7b")
def _(content: Content) -> None:
    texts(content)[15]["body"] = texts(content)[14]["body"]


@plants("focal_repeated", "c7")
def _(content: Content) -> None:
    texts(content)[15]["body"] = texts(content)[14]["body"]


@plants("shared_body", "d3a, d5a: 同一段")
def _(content: Content) -> None:
    for i in (6, 10):
        texts(content)[i]["body"] += " | 同一段"


@plants("truncated_body", "d0a", "d0b", "d1a", "d1b", "d2a")
def _(content: Content) -> None:
    for i, text in enumerate(texts(content)[:5]):
        text["body"] = text["body"] + str(i) * (60 - i % 2 - len(text["body"]))


@plants("truncated_body", "d0a", "d0b", "d1a", "d1b", "d2a")
def _(content: Content) -> None:
    for i, text in enumerate(texts(content)[:5]):
        text["body"] = text["body"].ljust(45, str(i)) + " | " + text["doc_id"]


@plants("no_stock", "d6a")
def _(content: Content) -> None:
    texts(content)[12]["mentioned_stocks"] = []


@plants("unknown_stock", "c9", "d9a", "d9b")
def _(content: Content) -> None:
    del content["event/Quiet.json"]["stocks"]["600009.SH"]


@pytest.mark.parametrize("name", ["600003", "600003.sh"])
def test_a_name_that_is_the_ticker(tmp_path: Path, name: str) -> None:
    content = quiet()
    content["event/Quiet.json"]["stocks"]["600003.SH"]["name"] = name
    assert finding(audit_of(tmp_path, content), "name_is_ticker").examples == ["600003.SH"]


@plants("no_focal", "c10")
def _(content: Content) -> None:
    for i, text in ((20, "a"), (21, "b")):
        texts(content)[i]["ts"] = f"2021-06-0{'ab'.index(text) + 1} 10:00"


@plants("no_focal", "c0")  # a date-only stamp is known at the end of its day only, so not at 17:30
def _(content: Content) -> None:
    texts(content)[0]["ts"] = texts(content)[1]["ts"] = "2021-03-01"


@plants("no_prior", "c11")
def _(content: Content) -> None:
    texts(content)[22]["ts"] = texts(content)[23]["ts"][:10] + " 08:00"


@plants("mixed_granularity", "d4a")
def _(content: Content) -> None:
    texts(content)[8]["ts"] = texts(content)[8]["ts"][:10]


@plants("stamp_shifted", "d1a")
def _(content: Content) -> None:
    texts(content)[2].update(ts="2021-02-27 03:10", body="公司2月26日晚间公告，拟回购股份。")


@plants("stamp_shifted", "d1a")
def _(content: Content) -> None:
    texts(content)[2].update(ts="2021-02-27 03:10", body="26日晚，公司公告拟回购股份。")


@plants("stamp_shifted", "d1a")
def _(content: Content) -> None:
    texts(content)[2].update(ts="2021-02-27 03:10", body="公司晚间公告，拟回购股份。")


@plants("stamp_shifted", "d1a")
def _(content: Content) -> None:
    texts(content)[2]["body"] = "Plant opens SHANGHAI, March 1, 2021 /PRNewswire/ -- The plant opens."


@plants("same_day_price_text", "c2", "c3", "c4")
def _(content: Content) -> None:
    texts(content)[5]["body"] += "公司股价今日上涨3%。"
    texts(content)[7]["body"] += " Shares rose after the report."
    texts(content)[9]["body"] += "尾盘封住涨停。"


@plants("later_date_text", "c2", "c3", "c4")
def _(content: Content) -> None:
    texts(content)[5]["body"] += "股东大会定于2021年5月20日召开。"
    texts(content)[7]["body"] += " A call follows on April 9."
    texts(content)[9]["body"] += "将于3月31日披露年报。"


@plants("resolve_early", "c8")
def _(content: Content) -> None:
    day = cases(content)[8]["resolve_date"]
    cases(content)[8]["resolve_date"] = f"{day[:-2]}{int(day[-2:]) - 1:02}"


@plants("resolve_early", "c0")  # by the calendar 9 March; the stock was suspended for a day
def _(content: Content) -> None:
    for step, day in zip(content["prices/Quiet.json"]["prices"][0]["path"][2:], (8, 9, 10), strict=True):
        step[0] = f"2021-03-{day:02}"


@plants("resolve_not_a_session", "c8")
def _(content: Content) -> None:
    cases(content)[8]["resolve_date"] = "2021-04-05"  # Qingming


@plants("label_contradicts_return", "c5", "c6")
def _(content: Content) -> None:
    cases(content)[5]["outcome"] = "positive"
    cases(content)[6]["outcome"] = "dropped"


@plants("label_in_deadband", "c5")
def _(content: Content) -> None:
    cases(content)[5]["fwd_ret"] = -0.0049


@plants("return_beyond_limit", "c5")
def _(content: Content) -> None:
    cases(content)[5]["fwd_ret"] = -0.25


@plants("return_beyond_limit", "c0")
def _(content: Content) -> None:
    content["prices/Quiet.json"]["prices"][0]["path"][2][2] = 8.9  # from 10.2, then back


@plants("return_not_in_prices", "c0")
def _(content: Content) -> None:
    cases(content)[0]["fwd_ret"] = 0.05


@plants("overlapping_windows", "c3, c3x")
def _(content: Content) -> None:
    cases(content).append({**cases(content)[3], "catalyst_id": "c3x", "decision_time": "2021-03-08 18:00"})


@plants("few_decision_days", "29 decision days")
def _(content: Content) -> None:
    del cases(content)[29:]


@pytest.mark.parametrize(("name", "examples", "plant"), PLANTS, ids=[f"{i}-{p[0]}" for i, p in enumerate(PLANTS)])
def test_a_planted_fault_is_found(tmp_path: Path, name: str, examples: list[str], plant: Plant) -> None:
    content = quiet()
    plant(content)
    found = finding(audit_of(tmp_path, content), name)
    assert found.verdict is Verdict.FAIL
    assert found.count == len(examples)
    pairs = zip(sorted(found.examples), sorted(examples), strict=True)
    assert all(got.startswith(wanted) for got, wanted in pairs), found.examples


def test_every_finding_has_a_planted_fault() -> None:
    assert {name for name, _, _ in PLANTS} | {"name_is_ticker"} == {check.id for check in CHECKS}
    assert {check.id for check in CHECKS} >= CONTRACT
    assert len({check.id for check in CHECKS}) == len(CHECKS)


def test_nothing_is_found_where_nothing_was_planted(tmp_path: Path) -> None:
    found = audit_of(tmp_path, quiet())
    assert [(f.check.id, f.examples) for f in found.findings if f.count] == []
    assert {f.check.id for f in found.findings if f.verdict is Verdict.NOT_TESTABLE} == {"overlapping_windows"}


@pytest.mark.parametrize(
    "body",
    [
        "公司昨日晚间公告，拟回购股份。",  # the next morning may say so
        "公司2月20日晚间公告，拟回购股份。",  # a week ago
        "Plant opens SHANGHAI, Feb. 26, 2021 /PRNewswire/ -- The plant opens.",
    ],
)
def test_a_morning_text_may_speak_of_an_earlier_evening(tmp_path: Path, body: str) -> None:
    content = quiet()
    texts(content)[2].update(ts="2021-02-27 08:10", body=body)
    assert finding(audit_of(tmp_path, content), "stamp_shifted").examples == []


def test_an_evening_stamp_agrees_with_the_evening(tmp_path: Path) -> None:
    content = quiet()
    texts(content)[2].update(ts="2021-02-27 19:10", body="公司27日晚间公告，拟回购股份。")
    assert finding(audit_of(tmp_path, content), "stamp_shifted").examples == []


def test_a_price_of_an_earlier_day_is_no_price_of_today(tmp_path: Path) -> None:
    content = quiet()
    texts(content)[4]["body"] += "公司股价今日上涨3%。"  # the older document
    del texts(content)[5]  # which is now the focal one, three days old
    assert finding(audit_of(tmp_path, content), "same_day_price_text").examples == []


MOVE = "公司股价今日上涨3%。"


@pytest.mark.parametrize(
    ("decision", "stamp", "convention", "severity"),
    [
        (
            "2021-03-03 10:45",
            "2021-03-03 10:30",
            "entry_next_open",
            Severity.HIGH,
        ),  # the return starts at 09:30 of that day
        ("2021-03-03 10:45", "2021-03-03 10:30", "entry_day_is_first", Severity.HIGH),
        ("2021-03-03 10:45", "2021-03-03 08:30", "entry_next_open", Severity.LOW),  # tells of yesterday's session
        ("2021-03-03 17:30", "2021-03-03 17:30", "entry_next_open", Severity.LOW),  # starts at tomorrow's open
        ("2021-03-06 10:45", "2021-03-06 10:30", "entry_next_open", Severity.LOW),  # a Saturday
        ("2021-03-03", "2021-03-03", "entry_next_open", Severity.LOW),
        ("2021-03-03 10:45", "2021-03-03 10:30", "close_to_close", Severity.LOW),  # starts at that day's close
        ("2021-03-03", "2021-03-03", "close_to_close", Severity.LOW),
    ],
)
def test_a_price_text_is_severe_only_where_the_return_has_begun(
    tmp_path: Path, decision: str, stamp: str, convention: str, severity: Severity
) -> None:
    content = quiet()
    cases(content)[2]["decision_time"] = decision
    texts(content)[5]["ts"] = stamp
    texts(content)[5]["body"] += MOVE
    found = finding(audit_of(tmp_path, content, convention=convention, prices=None), "same_day_price_text")
    assert (found.examples, found.severity, found.harmless) == (["c2"], severity, severity is Severity.LOW)


def test_one_text_that_tells_of_the_return_makes_the_finding_severe(tmp_path: Path) -> None:
    content = quiet()
    for i, (decision, stamp) in enumerate([("17:30", "17:30"), ("10:45", "10:30")], 2):
        day = cases(content)[i]["decision_time"][:10]
        cases(content)[i]["decision_time"] = f"{day} {decision}"
        texts(content)[2 * i + 1]["ts"] = f"{day} {stamp}"
        texts(content)[2 * i + 1]["body"] += MOVE
    found = finding(audit_of(tmp_path, content), "same_day_price_text")
    assert (found.severity, found.harmless, found.examples) == (Severity.HIGH, 1, ["c3", "c2"])
    assert "harmless in 1 of 2: " in found.effect
    assert found.as_json()["severity"] == "high"


@pytest.mark.parametrize(
    ("words", "severity"), [("Shares fell 5%", Severity.LOW), ("Shares fell 5% in after-hours trading", Severity.HIGH)]
)
def test_a_close_does_not_end_what_is_traded_after_it(tmp_path: Path, words: str, severity: Severity) -> None:
    content = quiet()
    cases(content)[2]["decision_time"] = texts(content)[5]["ts"] = "2021-03-03"
    texts(content)[5]["body"] += f" {words}."
    found = audit_of(tmp_path, content, convention="close_to_close", prices=None)
    assert finding(found, "same_day_price_text").severity is severity


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("The value of payments is up 10.8%.", []),
        ("Paypal (PYPL) Up 6% Since Report", ["c2"]),
        ("Why AMD Stock Just Lit Up 4%", ["c2"]),
    ],
)
def test_not_every_figure_that_is_up_is_a_price(tmp_path: Path, words: str, found: list[str]) -> None:
    content = quiet()
    texts(content)[5]["body"] += words
    assert finding(audit_of(tmp_path, content), "same_day_price_text").examples == found


def test_a_document_of_two_stocks_is_not_shared_text(tmp_path: Path) -> None:
    content = quiet()
    texts(content)[6]["mentioned_stocks"].append("600004.SH")
    texts(content).append({**texts(content)[6], "doc_id": "d3x", "ts": "2021-03-02 10:00"})
    found = audit_of(tmp_path, content)
    assert finding(found, "shared_body").examples == []
    assert finding(found, "repeated_body").examples == ["d3x"]


def test_without_event_text_nothing_is_said_of_texts(tmp_path: Path) -> None:
    found = audit_of(tmp_path, quiet(), event=[None])
    untested = {f.check.id for f in found.findings if f.verdict is Verdict.NOT_TESTABLE}
    assert untested >= {"repeated_body", "focal_repeated", "shared_body", "truncated_body", "stamp_shifted", "no_stock"}
    assert finding(found, "no_focal").count == finding(found, "no_prior").count == 31
    assert found.stats["future_documents_per_query_median"] is None


ODD = (
    None,
    "",
    " ",
    0,
    True,
    1e400,
    float("nan"),
    [],
    [None],
    {},
    "0001-01-01",
    "9999-12-31 23:59",
    "2021-13-01",
    "\ud800",
    -1,
)


@pytest.mark.parametrize("file", ["eval/Quiet.json", "event/Quiet.json", "prices/Quiet.json"])
def test_no_value_stops_an_audit(tmp_path: Path, file: str) -> None:
    for odd in ODD:
        content = quiet()
        rows = content[file][{"eval": "catalysts", "event": "text", "prices": "prices"}[file.partition("/")[0]]]
        fields = list(rows[0])
        for i, field in enumerate(fields):
            rows[i % len(rows)] = {**rows[i % len(rows)], field: odd}
        rows.append(odd)
        json.dumps(audit_of(tmp_path, content).as_json(), allow_nan=False)


def test_outside_china_only_prices_tell_of_a_split(tmp_path: Path) -> None:
    content = quiet()
    for row in [*cases(content), *content["prices/Quiet.json"]["prices"]]:
        row["market"] = "US"
    cases(content)[5]["fwd_ret"] = -0.6
    path = content["prices/Quiet.json"]["prices"][0]["path"]
    assert finding(audit_of(tmp_path, content), "return_beyond_limit").count == 0
    path[2][2] = 5.1
    assert finding(audit_of(tmp_path, content), "return_beyond_limit").examples == ["c0"]
