"""Invented run directories for the tests, written by the harness's own schemas."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness.records import EVIDENCE_SCHEMA, FORECAST_SCHEMA

FIRST = datetime(2024, 3, 1, 7, 0, tzinfo=UTC)


def rows(
    method: str = "tiem",
    backbone: str = "deepseek_v4_flash",
    benchmark: str = "astock",
    *,
    n: int = 40,
    epochs: int = 1,
    skill: float = 0.3,
    seed: int = 7,
    **same: Any,
) -> list[dict[str, Any]]:
    """Seeded rows of one cell; ``skill`` in [0, 1] pulls probabilities to the label; ``same`` overrides columns."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.55  # the same labels for every method of one seed
    draws = np.random.default_rng([seed, *method.encode()])
    found = []
    for epoch in range(epochs):
        for i in range(n):
            prob = round(float(np.clip(draws.normal(0.5 + skill * (0.5 if truth[i] else -0.5), 0.2), 0.01, 0.99)), 3)
            at = FIRST + timedelta(hours=5 * i)
            label, direction = ("positive" if truth[i] else "negative"), ("positive" if prob >= 0.5 else "negative")
            row: dict[str, Any] = dict.fromkeys(FORECAST_SCHEMA.names)
            row |= {
                "cell": f"{method}__{backbone}__{benchmark}__0a1b2c3d", "method": method, "backbone": backbone,
                "benchmark": benchmark, "seed": 1, "epoch": epoch, "gate": "strict", "memory": "frozen",
                "embedder": "hashing", "catalyst_id": f"{benchmark}-{i:04d}", "stock": f"60{i % 7:04d}", "market": "CN",
                "catalyst_type": "earnings", "decision_time": at, "decision_day": at.date(),
                "decision_granularity": "minute", "resolve_time": at + timedelta(days=7), "label": label,
                "fwd_ret": 0.01 if truth[i] else -0.01, "prob_positive": prob, "direction": direction,
                "correct": label == direction, "status": "ok", "rationale": "Invented.", "n_calls": 2,
                "prompt_tokens": 900 + i, "completion_tokens": 80, "total_prompt_tokens": 1500 + i,
                "total_completion_tokens": 160, "cost_usd": 0.0004, "latency_s": 0.5, "rehearsal": False,
            } | same  # fmt: skip
            if row["status"] != "ok":
                row |= {"prob_positive": None, "direction": None, "correct": None}
            found.append(row)
    return found


def write_cell(
    run: Path,
    cell_rows: list[dict[str, Any]],
    *,
    meta: dict[str, Any] | None = None,
    evidence: list[dict[str, Any]] | None = None,
) -> Path:
    """Write one cell folder; returns its forecasts.parquet."""
    folder = run / "cells" / cell_rows[0]["cell"]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "forecasts.parquet"
    pq.write_table(pa.Table.from_pylist(cell_rows, schema=FORECAST_SCHEMA), path)
    if meta is not None:
        (folder / "cell.json").write_text(json.dumps(meta), encoding="utf-8")
    if evidence is not None:
        full = [dict.fromkeys(EVIDENCE_SCHEMA.names) | row for row in evidence]
        pq.write_table(pa.Table.from_pylist(full, schema=EVIDENCE_SCHEMA), folder / "evidence.parquet")
    return path


def meta_of(cell_rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A cell.json for ``cell_rows``."""
    first = cell_rows[0]
    keys = ("cell", "method", "backbone", "benchmark", "gate", "memory", "embedder", "seed", "rehearsal")
    return (
        {key: first[key] for key in keys}
        | {"status": "complete", "reason": None, "remedy": None, "n": len(cell_rows), "warnings": []}
        | more
    )


def evidence_of(cell_rows: list[dict[str, Any]], late: int = 0) -> list[dict[str, Any]]:
    """Two records a row; the first ``late`` rows have a late one."""
    found = []
    for i, row in enumerate(cell_rows):
        key = {"cell": row["cell"], "catalyst_id": row["catalyst_id"], "epoch": row["epoch"], "item_id": f"d{i}"}
        found.append(key | {"kind": "focal", "verdict": "ok"})
        found.append(key | {"kind": "prior", "verdict": "late" if i < late else "ok"})
    return found


MANIFEST = {
    "versions": {"python": "3.11.9", "ray": "2.60.0"},
    "git_commit": "0123456789abcdef0123456789abcdef01234567",
    "started_at": "2026-08-01T09:00:00+00:00",
    "finished_at": "2026-08-01T09:04:00+00:00",
    "command": ["launch.py", "experiment=demo"],
    "data": [{"benchmark": "astock", "path": "eval/Astock.json", "sha256": "ab" * 32, "rows": 40}],
    "cells": {},
}


def grid_run(run: Path) -> Path:
    """The paper's five benchmarks with two backbones: four methods, an ablation, a baseline, one cell of two epochs; files alone."""
    skills = {"tiem": 0.4, "tiem_wo_csm": 0.3, "zero_shot": 0.05, "vanilla_rag": 0.2, "always_positive": 0.0}
    for number, benchmark in enumerate(("astock", "finpure", "cmin_us", "edt", "csmd")):
        for backbone, worse in (("deepseek_v4_flash", 0.0), ("gpt_5_4_mini", 0.1)):
            for method, skill in skills.items():
                epochs = 2 if (method, benchmark) == ("vanilla_rag", "edt") else 1
                found = rows(method, backbone, benchmark, n=16, skill=skill - worse, seed=number, epochs=epochs)
                for i, row in enumerate(found):
                    row["fwd_ret"] *= 1 + i % 5
                    if method == "always_positive":
                        row |= {
                            "prob_positive": 1.0,
                            "direction": "positive",
                            "n_calls": 0,
                            "cost_usd": 0.0,
                        } | dict.fromkeys(
                            ("prompt_tokens", "completion_tokens", "total_prompt_tokens", "total_completion_tokens")
                        )
                    elif method != "zero_shot":
                        row["prompt_tokens"] += 1000
                        row["total_prompt_tokens"] += 3000
                write_cell(run, found)
    return run


def demo_run(run: Path, *, rehearsal: bool = False) -> Path:
    """A small run with a bit of everything: two backbones, two benchmarks, a baseline, failed and incomplete cells, a lifted gate."""
    backbone = "rehearsal" if rehearsal else "deepseek_v4_flash"
    for benchmark, seed in (("astock", 7), ("edt", 8)):
        for method, skill in (("tiem", 0.35), ("zero_shot", 0.05), ("vanilla_rag", 0.2)):
            some = rows(method, backbone, benchmark, skill=skill, seed=seed, rehearsal=rehearsal)
            if method == "zero_shot":
                for i, status in ((3, "invalid"), (9, "refused"), (11, "rate_limited")):
                    some[i] |= {"status": status, "prob_positive": None, "direction": None, "correct": None}
            write_cell(run, some, meta=meta_of(some), evidence=evidence_of(some))
        base = rows(
            "always_positive", backbone, benchmark, seed=seed, prob_positive=1.0, direction="positive", n_calls=0,
            prompt_tokens=None, completion_tokens=None, total_prompt_tokens=0, total_completion_tokens=0, cost_usd=0.0,
            memory=None, embedder=None, rehearsal=rehearsal,
        )  # fmt: skip
        write_cell(run, base, meta=meta_of(base))
    off = rows(
        "tiem",
        backbone,
        "astock",
        skill=0.1,
        gate="off",
        cell=f"tiem__{backbone}__astock__ffffffff",
        rehearsal=rehearsal,
    )
    write_cell(run, off, meta=meta_of(off), evidence=evidence_of(off, late=5))
    part = rows("cot", "gpt_5_4_mini", "astock", n=25, rehearsal=False)
    write_cell(
        run,
        part,
        meta=meta_of(part, n=40, status="incomplete", reason="interrupted", remedy="run the same command again"),
    )
    failed = meta_of(
        rows("mem0", "gpt_5_4_mini", "astock", n=1), n=40, status="failed", reason="the endpoint refused the key (401)", remedy="set OPENAI_API_KEY",
    )  # fmt: skip
    folder = run / "cells" / failed["cell"]
    folder.mkdir(parents=True)
    (folder / "cell.json").write_text(json.dumps(failed), encoding="utf-8")
    (run / "manifest.json").write_text(json.dumps(MANIFEST), encoding="utf-8")
    return run
