"""The shipped sample: reproducible, consistent with its own prices, and holding every case it was made to hold."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.catalysts import label_of
from benchmarks.markets import CALENDARS
from benchmarks.sample import generate
from benchmarks.sample.content import HERE, TIME_ZONES
from harness.clock import Convention, Stamp, parse_stamp, published_by, sessions_for, zone
from harness.records import CATALYST_TOPICS

Row = dict[str, Any]
FILES = ("eval/Sample.json", "event/Sample.json", "expr/Sample.json", "prices/Sample.json")


def read(path: str) -> Any:
    return json.loads((HERE / path).read_text(encoding="utf-8"))


EVAL: list[Row] = read("eval/Sample.json")["catalysts"]
EXPR: list[Row] = read("expr/Sample.json")["catalysts"]
CASES = EXPR + EVAL
STOCKS: dict[str, Row] = read("event/Sample.json")["stocks"]
TEXTS: list[Row] = read("event/Sample.json")["text"]
PRICES: dict[str, Row] = {row["catalysts"][0]: row for row in read("prices/Sample.json")["prices"]}
SPLITS = pytest.mark.parametrize("split", [EXPR, EVAL], ids=["expr", "eval"])


def when(case: Row) -> Stamp:
    return parse_stamp(case["decision_time"], TIME_ZONES[case["market"]])


def written(text: Row) -> Stamp:
    return parse_stamp(text["ts"], TIME_ZONES[STOCKS[text["mentioned_stocks"][0]]["market"]])


def known(case: Row) -> datetime:
    local = datetime.strptime(PRICES[case["catalyst_id"]]["true_resolve"], "%Y-%m-%d %H:%M")
    return local.replace(tzinfo=zone(TIME_ZONES[case["market"]]))


def texts_of(stock: str) -> list[Row]:
    return [text for text in TEXTS if stock in text["mentioned_stocks"]]


def is_session(market: str, day: date) -> bool:
    return sessions_for(CALENDARS[market], [day]).is_session(day)


def copies() -> list[Row]:
    seen: set[tuple[str, str]] = set()
    found = []
    for text in sorted(TEXTS, key=lambda t: (written(t).instant, t["doc_id"])):
        keys = {(stock, text["body"]) for stock in text["mentioned_stocks"]}
        if keys & seen:
            found.append(text)
        seen |= keys
    return found


def test_the_generator_rewrites_the_committed_files_byte_for_byte(tmp_path: Path) -> None:
    generate.write(tmp_path)
    for path in FILES:
        assert (tmp_path / path).read_bytes() == (HERE / path).read_bytes(), path


def test_a_planted_case_that_is_no_catalyst_is_refused() -> None:
    content = generate.load_content()
    cases = generate._candidates(content, generate.PriceBook(content.companies))
    lost = ("QVRK.US", "2020-11-25 16:05:00")
    assert lost in generate._kept(content)
    with pytest.raises(ValueError, match="2020-11-25 16:05:00"):
        generate._choose([case for case in cases if case.key != lost], generate._kept(content))
    with pytest.raises(ValueError, match=r"expr: .* 72 needed"):
        generate._choose(cases[:5], set())


def test_sizes() -> None:
    assert Counter(c["outcome"] == "dropped" for c in EVAL) == {False: 32, True: 1}
    assert Counter(c["outcome"] == "dropped" for c in EXPR) == {False: 72, True: 2}
    assert 180 <= len(TEXTS) <= 200
    assert Counter(s["market"] for s in STOCKS.values()) == {"CN": 8, "US": 8}


def test_layout() -> None:
    fields = {"catalyst_id", "stock_id", "catalyst_type", "decision_time", "resolve_date", "outcome", "fwd_ret"}
    assert all(set(c) == fields | {"horizon_days", "market", "convention"} for c in CASES)
    assert all(set(t) == {"doc_id", "ts", "title", "body", "mentioned_stocks"} for t in TEXTS)
    assert all(read(path)["meta"]["invented"] is True for path in FILES)
    assert not any("fwd_ret" in t or "outcome" in t for t in TEXTS)


def test_ids_are_unique_and_resolvable() -> None:
    assert len({c["catalyst_id"] for c in CASES}) == len(CASES) == len(PRICES)
    assert len({t["doc_id"] for t in TEXTS}) == len(TEXTS)
    assert {s for t in TEXTS for s in t["mentioned_stocks"]} == set(STOCKS) == {c["stock_id"] for c in CASES}
    assert {p["doc_id"] for p in PRICES.values()} - {None} <= {t["doc_id"] for t in TEXTS}


def test_codes_cannot_be_real_ones() -> None:
    for code, stock in STOCKS.items():
        assert code.startswith("99") if stock["market"] == "CN" else code[0] in "QX", code


def test_industries_are_shared_by_stocks_and_markets() -> None:
    members = defaultdict(list)
    for stock in STOCKS.values():
        members[stock["industry"]].append(stock["market"])
    assert len(members) >= 4
    assert all(sorted(markets) == ["CN", "CN", "US", "US"] for markets in members.values())


@SPLITS
def test_every_stock_and_catalyst_type_in_each_split(split: list[Row]) -> None:
    assert {c["catalyst_type"] for c in split} == set(CATALYST_TOPICS)
    assert {c["stock_id"] for c in split} == set(STOCKS)


@SPLITS
def test_labels_are_roughly_balanced(split: list[Row]) -> None:
    labels = Counter(c["outcome"] for c in split)
    assert 0.45 <= labels["positive"] / (labels["positive"] + labels["negative"]) <= 0.60


def test_splits_follow_the_calendar_and_overlap_in_what_is_known() -> None:
    assert {when(c).day.month for c in EXPR} == set(range(1, 9))
    assert {when(c).day.month for c in EVAL} == {9, 10, 11, 12}
    last_outcome = max(known(c) for c in EXPR)
    assert sum(when(c).instant < last_outcome for c in EVAL) >= 2


def test_conventions_horizons_and_granularities() -> None:
    kinds = {(c["market"], c["convention"], c["horizon_days"]) for c in CASES}
    assert kinds == {("CN", "entry_next_open", 5), ("US", "close_to_close", 5), ("US", "entry_day_is_first", 3)}
    for split in (EXPR, EVAL):
        assert {when(c).granularity.value for c in split} == {"day", "minute", "second"}
    assert all(when(c).date_only == (c["convention"] == "close_to_close") for c in CASES if c["market"] == "US")


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["catalyst_id"])
def test_outcome_follows_from_the_prices_and_the_calendar(case: Row) -> None:
    price = PRICES[case["catalyst_id"]]
    sessions = sessions_for(CALENDARS[case["market"]], [when(case).day])
    expected = sessions.resolve(when(case), case["horizon_days"], Convention(case["convention"]))
    closes = {day: close for day, _, close in price["path"]}
    entry = sessions.sessions.index(expected.entry_session)

    assert (price["stock_id"], price["decision_time"]) == (case["stock_id"], case["decision_time"])
    assert price["entry_session"] == expected.entry_session.isoformat()
    assert list(closes) == [day.isoformat() for day in sessions.sessions[entry + 1 : entry + 6]]
    assert known(case) == expected.resolve_at
    assert case["fwd_ret"] == round(closes[expected.resolve_session.isoformat()] / price["entry_price"] - 1, 6)
    assert case["outcome"] == label_of(case["fwd_ret"])
    assert price["label"] == {"dropped": "deadband"}.get(case["outcome"], case["outcome"])
    assert abs(case["fwd_ret"]) < 0.25


def test_prices_of_overlapping_windows_agree() -> None:
    closes: dict[tuple[str, str], set[tuple[float, float]]] = defaultdict(set)
    for price in PRICES.values():
        for day, opening, close in price["path"]:
            closes[price["stock_id"], day].add((opening, close))
    assert all(len(bars) == 1 for bars in closes.values())


def test_label_rule_at_its_edges() -> None:
    assert [label_of(r) for r in (0.0055, 0.005499, 0.0, -0.004999, -0.005)] == [
        "positive", "dropped", "dropped", "dropped", "negative",
    ]  # fmt: skip


@SPLITS
def test_claimed_resolve_dates_are_mostly_true_and_sometimes_early(split: list[Row]) -> None:
    early = [c for c in split if c["resolve_date"] < known(c).date().isoformat()]
    late = [c for c in split if c["resolve_date"] > known(c).date().isoformat()]
    assert not late
    assert 3 <= len(early) < len(split) / 2


def test_focal_documents() -> None:
    """A document at T, or up to a quarter of an hour before it, for all but two decisions."""
    without = []
    for case in CASES:
        own = PRICES[case["catalyst_id"]]["doc_id"]
        if own is None:
            without.append(case)
            continue
        text = next(t for t in TEXTS if t["doc_id"] == own)
        assert text["mentioned_stocks"] == [case["stock_id"]]
        assert 0 <= (when(case).instant - written(text).instant).total_seconds() <= 15 * 60
        latest = max(
            (t for t in texts_of(case["stock_id"]) if published_by(written(t), when(case))),
            key=lambda t: (written(t).instant, t["doc_id"]),
        )
        assert latest["doc_id"] == own
    assert len(without) == 2
    seen = [[t for t in texts_of(c["stock_id"]) if published_by(written(t), when(c))] for c in without]
    assert sorted(bool(texts) for texts in seen) == [False, True]


def test_holidays_are_inside_windows() -> None:
    def spans(market: str, day: date) -> int:
        cases = [c for c in EVAL if c["market"] == market]
        return sum(when(c).day <= day <= known(c).date() for c in cases)

    assert spans("CN", date(2020, 10, 5)) >= 3
    assert spans("US", date(2020, 11, 26)) >= 3
    after_early_close = [c for c in EVAL if c["decision_time"] == "2020-11-27 14:30:00"]
    assert [PRICES[c["catalyst_id"]]["entry_session"] for c in after_early_close] == ["2020-11-30"]
    assert any(c["decision_time"] == "2020-10-05" for c in EVAL)
    assert any(when(c).day == date(2020, 11, 26) for c in EVAL)
    assert sum(PRICES[c["catalyst_id"]]["true_resolve"].endswith("2020-11-27 13:00") for c in EVAL) >= 1


def test_documents_on_weekends_and_after_the_close() -> None:
    assert sum(written(t).day.weekday() >= 5 for t in TEXTS) >= 10
    assert sum(len(t["ts"]) > 10 and t["ts"][11:16] > "16:00" for t in TEXTS) >= 20
    days = [(STOCKS[t["mentioned_stocks"][0]]["market"], written(t).day) for t in TEXTS]
    assert any(day.weekday() < 5 and not is_session(market, day) for market, day in days)


def test_copies_and_shared_bodies() -> None:
    found = copies()
    assert len(found) == 3
    stands_in = [
        c for c in CASES for t in found if (t["mentioned_stocks"], t["ts"]) == ([c["stock_id"]], c["decision_time"])
    ]
    assert len(stands_in) == 1
    holders = defaultdict(set)
    for text in TEXTS:
        holders[text["body"]].add(tuple(text["mentioned_stocks"]))
    assert sum(len(stocks) > 1 for stocks in holders.values()) == 2
    assert len(holders) == len(TEXTS) - len(found) - 2


def test_notes_name_several_stocks_of_one_market() -> None:
    notes = [t for t in TEXTS if len(t["mentioned_stocks"]) > 1]
    assert len(notes) == 32
    for note in notes:
        assert len({(STOCKS[s]["market"], STOCKS[s]["industry"]) for s in note["mentioned_stocks"]}) == 1
        assert all(STOCKS[s]["name"] in note["body"] for s in note["mentioned_stocks"])


def test_telltales_come_minutes_after_the_decision_and_tell_the_outcome() -> None:
    found = []
    for case in EVAL:
        move = f"{abs(case['fwd_ret']) * 100:.1f}"
        for text in texts_of(case["stock_id"]):
            told = move in text["body"] and known(case).date().isoformat() in text["body"]
            if told and written(text).day == when(case).day:
                assert not published_by(written(text), when(case))
                assert 0 < (written(text).instant - when(case).instant).total_seconds() <= 3600
                found.append(case["market"])
    assert Counter(found) == {"CN": 4, "US": 3}


def test_date_only_documents_on_the_day_of_timed_decisions() -> None:
    pairs = [
        (case, text)
        for case in EVAL
        for text in texts_of(case["stock_id"])
        if written(text).date_only and not when(case).date_only and written(text).day == when(case).day
    ]
    assert {case["market"] for case, _ in pairs} == {"CN", "US"}
    assert not any(published_by(written(text), when(case)) for case, text in pairs)


def test_each_stock_has_chains_within_a_fortnight() -> None:
    for stock in STOCKS:
        days = sorted(written(t).day for t in texts_of(stock) if len(t["mentioned_stocks"]) == 1)
        chains = sum((c - a).days <= 14 for a, c in zip(days, days[2:], strict=False))
        assert chains >= 3, stock
        assert len({day.month for day in days}) >= 3, stock


def test_languages_follow_the_market() -> None:
    for text in TEXTS:
        chinese = any("一" <= char <= "鿿" for char in text["body"])
        assert chinese == (STOCKS[text["mentioned_stocks"][0]]["market"] == "CN"), text["doc_id"]
        assert "{" not in text["title"] + text["body"]


@SPLITS
def test_words_agree_with_labels_a_little_more_often_than_not(split: list[Row]) -> None:
    bodies = {t["doc_id"]: t["body"] for t in TEXTS}
    good = {step.tones[True] for steps in generate.load_content().stories.values() for step in steps}
    fixed = [max(sentence.replace("{", "}").split("}")[::2], key=len) for sentence in good]
    agree = [
        any(part in bodies[own] for part in fixed) == (case["outcome"] == "positive")
        for case in split
        if case["outcome"] != "dropped" and (own := PRICES[case["catalyst_id"]]["doc_id"])
    ]
    assert 0.55 <= sum(agree) / len(agree) <= 0.67
