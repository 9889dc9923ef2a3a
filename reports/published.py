"""The paper's figures beside ours. Only a cell of the same backbone is comparable; others are shown, and say so."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

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


@dataclass(frozen=True)
class Published:
    """One published row; values are fractions."""

    table: str
    backbone: str
    method: str
    benchmark: str
    acc: float
    mcc: float
    f1_macro: float


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
    folder = files("reports") / "published"
    return tuple(
        Published(
            table=table,
            backbone=row["backbone"],
            method=row["method"],
            benchmark=row["benchmark"],
            acc=round(float(row["acc_pct"]) / 100, 6),
            mcc=float(row["mcc"]),
            f1_macro=round(float(row["f1_macro_pct"]) / 100, 6),
        )
        for table, name in _FILES.items()
        for row in csv.DictReader((folder / name).read_text(encoding="utf-8").splitlines())
    )
