"""A small valid benchmark in the released layout, to be mutated."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import benchmarks
from harness.records import Benchmark

Content = dict[str, Any]

SMALL: Content = {
    "eval/Small.json": {
        "meta": {},
        "catalysts": [
            {
                "catalyst_id": f"c{i}",
                "stock_id": stock,
                "catalyst_type": "earnings",
                "decision_time": when,
                "resolve_date": "2021-02-01",
                "outcome": outcome,
                "fwd_ret": ret,
                "horizon_days": 5,
            }
            for i, (stock, when, outcome, ret) in enumerate(
                [
                    ("600001.SH", "2021-01-05 09:40", "positive", 0.03),
                    ("600001.SH", "2021-01-07", "negative", -0.02),
                    ("000002.SZ", "2021-01-06 16:00:30", "dropped", 0.001),
                    ("ACME.US", "2021-01-06 09:00", "positive", 0.0055),
                ],
                start=1,
            )
        ],
    },
    "event/Small.json": {
        "meta": {},
        "stocks": {
            "600001.SH": {"name": "甲公司", "industry": "steel"},
            "000002.SZ": {"name": "乙公司", "industry_l1": "food"},
            "ACME.US": {"name": "Acme"},
        },
        "text": [
            {"doc_id": f"d{i}", "ts": ts, "title": title, "body": body, "mentioned_stocks": stocks}
            for i, (ts, title, body, stocks) in enumerate(
                [
                    ("2021-01-05 09:40", "", "甲公司公告一。", ["600001.SH"]),
                    ("2021-01-06", "联合公告", "甲乙签约。", ["600001.SH", "000002.SZ"]),
                    ("2021-01-05 09:40:00", "News", "Acme speaks.", ["ACME.US"]),
                    ("2021-01-04", "Market", "No stock.", []),
                ],
                start=1,
            )
        ],
    },
    "prices/Small.json": {
        "prices": [
            {
                "doc_id": "d1",
                "stock_id": "600001.SH",
                "decision_time": "2021-01-05 09:40",
                "entry_session": "2021-01-07",
                "path": [[f"2021-01-{day:02}", 1.0, 1.0] for day in (8, 11, 12, 13, 14)],
                "catalysts": [{"catalyst_id": "c1", "split": "eval"}],
            }
        ]
    },
}

SETTINGS: dict[str, Any] = {
    "name": "small",
    "market": "CN",
    "convention": "entry_next_open",
    "horizon": 5,
    "eval": "eval/Small.json",
    "event": "event/Small.json",
    "prices": "prices/Small.json",
}


def write(root: Path, content: Content) -> None:
    """Write each entry below ``root``: bytes and text as they are, everything else as JSON."""
    for name, value in content.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = value if isinstance(value, bytes) else value if isinstance(value, str) else json.dumps(value)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())


def load_small(root: Path, **settings: Any) -> Benchmark:
    return benchmarks.load(**{**SETTINGS, "root": str(root), **settings})


@pytest.fixture
def content() -> Content:
    return copy.deepcopy(SMALL)


@pytest.fixture
def load_content(tmp_path: Path) -> Callable[..., Benchmark]:
    """Write a content and load it."""

    def run(content: Content, **settings: Any) -> Benchmark:
        write(tmp_path, content)
        return load_small(tmp_path, **settings)

    return run


@pytest.fixture
def released() -> Path:
    """The directory of the released files."""
    if not os.environ.get("HARNESS_DATA"):
        pytest.skip("HARNESS_DATA is not set: the released benchmark files are not here")
    return Path(os.environ["HARNESS_DATA"])
