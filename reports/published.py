"""The paper's figures beside ours. Only a cell of the same backbone is comparable; others are shown, and say so."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from reports.feasible import note
from reports.scores import Score

BACKBONES = {"deepseek_v4_flash": "DeepSeek-V4-Flash", "gpt_5_4_mini": "GPT-5.4-mini"}
_MAIN, _ABLATION, _GATE = "Table 1", "Table 2", "Table 5"
_FILES = {_MAIN: "table1_main.csv", _ABLATION: "table2_ablation.csv", _GATE: "table5_time_gate.csv"}
METHODS = {
    "tiem": (_MAIN, "TIEM"), "zero_shot": (_MAIN, "LLM Zero-shot"), "cot": (_MAIN, "CoT"),
    "vanilla_rag": (_MAIN, "Vanilla RAG"), "memgpt": (_MAIN, "MemGPT"), "mem0": (_MAIN, "Mem0"),
    "a_mem": (_MAIN, "A-MEM"), "hipporag": (_MAIN, "HippoRAG"), "graphrag": (_MAIN, "GraphRAG"),
    "lightrag": (_MAIN, "LightRAG"), "hypergraphrag": (_MAIN, "HyperGraphRAG"),
    "tiem_wo_eeh": (_ABLATION, "w/o EEH"), "tiem_wo_csm": (_ABLATION, "w/o CSM"), "tiem_wo_hefr": (_ABLATION, "w/o HEFR"),
}  # fmt: skip
AUDITED = {
    "Focal evidence": "focal", "Prior evidence": "prior", "Concurrent evidence": "concurrent", "Episodes": "episode",
    "Themes": "theme", "Retrieved CSM skills": "skill", "CSM provenance ancestors": "skill_ancestor",
}  # fmt: skip
"""Names in the paper's Table 4, and the kind of record in evidence.parquet."""


@dataclass(frozen=True)
class Published:
    """One published row; values are fractions. ``note`` says where they cannot come from the stated number of answers."""

    table: str
    backbone: str
    method: str
    benchmark: str
    acc: float
    mcc: float
    f1_macro: float
    note: str | None


@dataclass(frozen=True)
class PublishedAudit:
    """A row of the paper's Table 4: records of one kind that entered prompts of TIEM."""

    kind: str
    checked: int
    late: int
    unverifiable: int
    affected_queries: int


@dataclass(frozen=True)
class Comparison:
    """One cell beside one published row. ``published_in_ci`` is None where our accuracy is undefined."""

    score: Score
    published: Published
    comparable: bool
    published_in_ci: bool | None


def compare(scores: Sequence[Score]) -> list[Comparison]:
    """Every cell with its published rows: that of its own backbone, else of each published backbone, never as comparable."""
    found = []
    for s in scores:
        table, method = (
            (_GATE, "w/o Time Gate") if s.method == "tiem" and s.gate == "off" else METHODS.get(s.method, ("", ""))
        )
        if s.gate == "off" and table != _GATE:
            continue  # the paper lifts the gate for TIEM only
        for row in rows():
            own = BACKBONES.get(s.backbone)
            if (row.table, row.method, row.benchmark) == (table, method, s.benchmark) and own in (None, row.backbone):
                within = s.acc_ci[0] <= row.acc <= s.acc_ci[1] if s.acc_ci else None
                found.append(Comparison(s, row, own is not None and not s.rehearsal, within))
    return found


@cache
def rows() -> tuple[Published, ...]:
    """All published rows that ship with the package (arXiv 2608.13024)."""
    return tuple(_published(table, row) for table, name in _FILES.items() for row in _read(name))


@cache
def audit_rows() -> dict[str, PublishedAudit]:
    """The paper's Table 4, by kind of record."""
    found = {}
    for row in _read("table4_audit.csv"):
        counts = (int(row[name]) for name in ("checked_records", "late", "unverifiable", "affected_queries"))
        kind = AUDITED[row["audited_object"]]
        found[kind] = PublishedAudit(kind, *counts)
    return found


def _published(table: str, row: dict[str, str]) -> Published:
    acc, f1_macro = (round(float(row[name]) / 100, 6) for name in ("acc_pct", "f1_macro_pct"))
    mcc = float(row["mcc"])
    return Published(
        table, row["backbone"], row["method"], row["benchmark"], acc, mcc, f1_macro, note(acc, mcc, f1_macro)
    )


def _read(name: str) -> list[dict[str, str]]:
    text = (files("reports") / "published" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
