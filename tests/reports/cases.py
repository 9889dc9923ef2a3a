"""Invented runs with evidence, calls, a memory and stored replies: what the case viewer shows."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.gateway.cache import ReplyCache
from harness.gateway.request import canonical_json
from harness.memory import MEMORY_SCHEMA
from harness.records import CALL_SCHEMA
from tests.reports.runs import FIRST, meta_of, rows, write_cell

Row = dict[str, Any]
Words = Callable[[Row], str]
SKILL = "sk_1"


def _a_document(row: Row) -> str:
    return f"{row['stock']} reports for {row['catalyst_id']}. Orders rose, costs fell."


def request_of(row: Row, words: Words = _a_document) -> str:
    """The stored request of a forecast: the harness's own headings, ``words`` as the focal document and as retrieved text."""
    user = (
        f"## Catalyst\nCompany: {row['stock']}\n\n## Focal document\n{words(row)}\n\n"
        "## Other documents about the company on the same day\nNone.\n"
    )
    if row["method"] != "zero_shot":
        user += f"\n## Retrieved context\n### Experience: rules\nIF orders rise THEN up ({row['method']})\n"
    user += "\n## Your answer\nReply with one JSON object."
    messages = [{"role": "system", "content": "You are an analyst."}, {"role": "user", "content": user}]
    return canonical_json({"endpoint": row["backbone"], "body": {"messages": messages}, "sample": [0, row["epoch"]]})


def reply_of(row: Row, words: Words = _a_document) -> str:
    """The stored reply; a lone surrogate stands in it as an escape."""
    content = json.dumps({"reasoning": words(row), "prob_positive": row["prob_positive"]}, ensure_ascii=False)
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]})


def sha_of(request: str) -> str:
    return hashlib.sha256(request.encode()).hexdigest()


def write_exchanges(run: Path, cell_rows: Sequence[Row], words: Words = _a_document) -> None:
    """Store what each ok row asked and was answered, in the store of its backbone."""
    path = run / "cache" / f"replies-{cell_rows[0]['backbone']}.sqlite"
    ReplyCache(path).close()  # makes the file
    kept = [(request_of(row, words), reply_of(row, words)) for row in cell_rows if row["status"] == "ok"]
    with closing(sqlite3.connect(path)) as db, db:
        db.executemany(
            "INSERT OR IGNORE INTO replies VALUES (?, 'e', '2026-01-01', ?, ?, NULL)",
            [
                (sha_of(request), zlib.compress(request.encode()), zlib.compress(reply.encode()))
                for request, reply in kept
            ],
        )


def write_calls(folder: Path, cell_rows: Sequence[Row], words: Words = _a_document) -> None:
    """One forecast call a row."""
    found = [
        dict.fromkeys(CALL_SCHEMA.names)
        | {
            "cell": row["cell"], "catalyst_id": row["catalyst_id"], "epoch": row["epoch"], "purpose": "forecast",
            "stage": "forecast", "request_sha256": sha_of(request_of(row, words)), "model": "m", "attempts": 1,
            "cache_hit": False, "prompt_tokens": 900, "completion_tokens": 80, "cost_usd": 0.0004, "status": row["status"],
            "http_status": 200, "latency_s": 0.5, "sent_at": FIRST,
        }
        for row in cell_rows
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(found, schema=CALL_SCHEMA), folder / "calls.parquet")


def evidence_rows(row: Row, *, late: bool = False, ancestors: int = 3) -> list[Row]:
    """A focal document, two earlier ones, a skill with its ancestors; the last earlier one is late where asked."""
    at: datetime = row["decision_time"]
    key = {"cell": row["cell"], "catalyst_id": row["catalyst_id"], "epoch": row["epoch"], "stock": row["stock"]}

    def record(kind: str, item: str, when: datetime, **more: Any) -> Row:
        times = dict.fromkeys(("ts_start", "ts_end", "known_at", "visible_from"), when)
        return (
            key | times | {"kind": kind, "item_id": item, "gate_rule": "avail<T", "verdict": "ok", "chars": 90} | more
        )

    found = [record("focal", row["catalyst_id"], at - timedelta(minutes=9), gate_rule="avail<=T")]
    found.append(record("prior", "doc-1", at - timedelta(days=3), rank=1, score=0.5))
    moment, verdict = (at + timedelta(hours=2), "late") if late else (at - timedelta(days=40), "ok")
    found.append(record("prior", "doc-2", moment, rank=2, score=0.4, verdict=verdict))
    found.append(record("skill", SKILL, at - timedelta(days=60), rank=1, score=0.9, gate_rule="resolve<T"))
    found += [
        record("skill_ancestor", f"case:old-{i}", at - timedelta(days=60 + i), rank=1, gate_rule="resolve<T", chars=0)
        for i in range(ancestors)
    ]
    return found


def write_memory(folder: Path) -> None:
    """A skill that changes after the first decisions: what was shown is what it said before each of them."""
    value = {"name": "Orders", "description": "IF orders rise THEN up", "domain": "earnings", "advantage": 0.2}
    later = value | {"description": "A rule of the future"}
    found = [
        dict.fromkeys(MEMORY_SCHEMA.names)
        | {"seq": i, "op": "evoke", "object_id": SKILL, "value": json.dumps(v), "valid_from": at, "decision_time": at}
        for i, (at, v) in enumerate(((FIRST - timedelta(days=60), value), (FIRST + timedelta(days=900), later)))
    ]
    pq.write_table(pa.Table.from_pylist(found, schema=MEMORY_SCHEMA), folder / "memory.parquet")


def full_cell(
    run: Path, cell_rows: list[Row], words: Words = _a_document, *, late: int = 0, ancestors: int = 3
) -> Path:
    """A cell with all its files; the first ``late`` rows have a late record."""
    evidence = [
        record for i, row in enumerate(cell_rows) for record in evidence_rows(row, late=i < late, ancestors=ancestors)
    ]
    folder = write_cell(run, cell_rows, meta=meta_of(cell_rows), evidence=evidence).parent
    write_calls(folder, cell_rows, words)
    write_memory(folder)
    write_exchanges(run, cell_rows, words)
    return folder


def case_run(run: Path, n: int = 12) -> Path:
    """Two methods on one benchmark, one row invalid, one prompt with a late record, a baseline that asks no model."""
    tiem, zero = rows("tiem", n=n, gate="off", rehearsal=True), rows("zero_shot", n=n, gate="off", rehearsal=True)
    zero[3] |= {"status": "invalid", "reason": "no JSON object", "prob_positive": None, "direction": None}
    full_cell(run, tiem, late=1)
    full_cell(run, zero)
    base = rows("always_positive", n=n, prob_positive=1.0, n_calls=0, rehearsal=True, gate="off")
    write_cell(run, base, meta=meta_of(base), evidence=[])
    return run


def grid_run(run: Path, cases: int, methods: int = 11, backbones: int = 2, ancestors: int = 30) -> Path:
    """The paper's grid in size: ``cases`` × ``methods`` × ``backbones`` forecasts over five benchmarks, prompts of about 4 kB."""
    filler = [f"{i}: sentence {i * 7919 % 1009} of a document about orders, margins and guidance." for i in range(4000)]

    def words(row: Row) -> str:
        start = int(row["catalyst_id"][-4:]) * 13 % 3900 + len(row["method"])
        return "\n".join(filler[start : start + 50])

    for benchmark in ("astock", "finpure", "cmin_us", "edt", "csmd"):
        for backbone in [f"backbone_{i}" for i in range(backbones)]:
            for method in [f"method_{i:02d}" for i in range(methods)]:
                full_cell(run, rows(method, backbone, benchmark, n=cases // 5), words, ancestors=ancestors)
    return run
