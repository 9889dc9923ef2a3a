"""A benchmark in which the audit finds nothing, to plant one fault at a time into."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

from benchmarks.audit.audit import Audit, audit
from benchmarks.audit.finding import Finding
from benchmarks.params import parse
from harness.clock import Convention, exchange_sessions, parse_stamp
from tests.benchmarks.conftest import Content, write

N = 31
SETTINGS: dict[str, Any] = {
    "name": "quiet",
    "market": "CN",
    "convention": "entry_next_open",
    "horizon": 5,
    "eval": "eval/Quiet.json",
    "event": "event/Quiet.json",
    "prices": "prices/Quiet.json",
}
_SUBJECTS = ("订单", "产能", "合同", "专利", "新厂房")


def quiet() -> Content:
    """31 stocks with a catalyst each, on 31 days; an older document and one at T; a price path for the first."""
    sessions = exchange_sessions("XSHG", 2021, 2021)
    days = [date(2021, 3, 1) + timedelta(days=i) for i in range(N)]
    catalysts, texts, stocks = [], [], {}
    for i, day in enumerate(days):
        stock = f"6000{i:02}.SH"
        when = f"{day} 17:30"
        known = sessions.resolve(parse_stamp(when, sessions.tz), 5, Convention.ENTRY_NEXT_OPEN)
        up = i % 2 == 0
        catalysts.append(
            {
                "catalyst_id": f"c{i}",
                "stock_id": stock,
                "catalyst_type": "earnings",
                "decision_time": when,
                "resolve_date": str(known.resolve_session),
                "outcome": "positive" if up else "negative",
                "fwd_ret": 0.03 if up else -0.03,
                "horizon_days": 5,
            }
        )
        stocks[stock] = {"name": f"第{i}公司", "industry": "steel"}
        for kind, at in (("a", f"{day - timedelta(days=3)} 10:00"), ("b", when)):
            body = f"第{i}公司公布{_SUBJECTS[i % 5] * (1 + i % 3)}的进展，编号{kind}{i}。"
            texts.append({"doc_id": f"d{i}{kind}", "ts": at, "title": "", "body": body, "mentioned_stocks": [stock]})
    path = [
        [f"2021-03-{day:02}", 10.0, close] for day, close in ((3, 10.1), (4, 10.2), (5, 10.2), (8, 10.3), (9, 10.3))
    ]
    price = {
        "doc_id": "d0b",
        "stock_id": "600000.SH",
        "decision_time": catalysts[0]["decision_time"],
        "entry_session": "2021-03-02",
        "entry_price": 10.0,
        "entry_basis": "open",
        "path": path,
        "catalysts": [{"catalyst_id": "c0"}],
    }
    return {
        "eval/Quiet.json": {"meta": {}, "catalysts": catalysts},
        "event/Quiet.json": {"meta": {}, "stocks": stocks, "text": texts},
        "prices/Quiet.json": {"prices": [price]},
    }


def cases(content: Content) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = content["eval/Quiet.json"]["catalysts"]
    return rows


def texts(content: Content) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = content["event/Quiet.json"]["text"]
    return rows


def audit_of(root: Path, content: Content, **settings: Any) -> Audit:
    """Write ``content`` below ``root`` and audit it."""
    write(root, content)
    return audit(parse({**SETTINGS, "root": str(root), **settings}))


def finding(found: Audit, name: str) -> Finding:
    return next(f for f in found.findings if f.check.id == name)
