"""report.json: everything that a table, a figure or a sentence shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from reports import labels
from reports.findings import Findings
from reports.published import audit_rows
from reports.scores import Score

Row = dict[str, Any]


def as_json(f: Findings, title: str, warnings: Sequence[str]) -> Row:
    """The content of report.json but for its sentences, which are made from it; fractions, unrounded, None for undefined."""
    names = labels.display_names(f.scores)
    return {
        "title": title,
        "label": labels.label(f.scores),
        "reference": f.reference,
        "cells": [{**asdict(s), "name": names[s.cell], "notes": s.notes, "label": labels.label([s])} for s in f.scores],
        "pairs": [
            {
                **asdict(p),
                "name_a": names[p.cell_a],
                "name_b": names[p.cell_b],
                "significant": p.significant,
                "label": _label(f, (p.cell_a, p.cell_b)),
            }
            for p in f.pairs
        ],
        "shift": [_of_series(f, row) for row in f.shifts],
        "tokens": [_of_series(f, row) for row in f.tokens],
        "consistency": [_of_series(f, row) for row in f.agreements],
        "reliability": [_of_series(f, row) for row in f.curves],
        "spread": [{**asdict(row), "label": _label(f, row.cells)} for row in f.spreads],
        "finance": [{**asdict(row), "label": _label(f, (row.cell,))} for row in f.finance],
        "hindsight": [
            {**asdict(row), "label": labels.label([s for s in f.scores if s.benchmark == row.benchmark])}
            for row in f.hindsight
        ],
        "audit": audited(f),
        "time_gate": _gates(f),
        "published": _published(f),
        "ledger": [{"run": number, **found} for number, found in enumerate(f.loaded.ledgers, 1) if found],
        "unbegun": list(f.loaded.unbegun),
        "warnings": list(warnings),
        "manifests": list(f.loaded.manifests),
    }


def audited(f: Findings) -> list[Row]:
    """Tallies, those of TIEM under the strict gate beside the paper's."""
    paper = audit_rows()
    names = ("checked", "late", "unverifiable", "affected_queries")
    found = []
    for t in f.tallies:
        beside = paper.get(t.kind) if (t.method, t.gate) == ("tiem", "strict") else None
        found.append(
            {
                "method": t.method, "gate": t.gate, "kind": t.kind, "cells": sorted(t.cells), "n_cells": len(t.cells),
                "checked": t.checked, "late": t.late, "unverifiable": t.unverifiable, "affected_queries": len(t.affected),
                **{f"{name}_published": getattr(beside, name) if beside else None for name in names},
                "label": labels.label([s for s in f.scores if s.cell in t.cells]),
            }
        )  # fmt: skip
    return found


def _of_series(f: Findings, row: Any) -> Row:
    """A row over a series, with its setting in columns of its own and the label of its cells."""
    values = asdict(row)
    setting = values.pop("setting")
    return {**values, **setting, "label": _label(f, row.cells)}


def _label(f: Findings, cells: Sequence[str]) -> str:
    return labels.label([f.by_cell[cell] for cell in cells])


def _gates(f: Findings) -> list[Row]:
    return [
        {
            **_identity(g.score), "gate": g.score.gate, "acc": g.score.acc, "acc_ci": g.score.acc_ci, "mcc": g.score.mcc,
            "mcc_ci": g.score.mcc_ci, "f1_macro": g.score.f1_macro, "f1_ci": g.score.f1_ci,
            "acc_minus_strict": g.acc_minus_strict, "n_shared": g.n_shared, "prompts": g.prompts, "prompts_differ": g.prompts_differ,
        }
        for g in f.gates
    ]  # fmt: skip


def _published(f: Findings) -> list[Row]:
    return [
        {
            **_identity(c.score),
            "published_table": c.published.table, "published_method": c.published.method,
            "published_backbone": c.published.backbone, "comparable": c.comparable,
            "acc_published": c.published.acc, "mcc_published": c.published.mcc, "f1_published": c.published.f1_macro,
            "published_note": c.published.note,
            "acc": c.score.acc, "acc_ci": c.score.acc_ci, "mcc": c.score.mcc, "f1_macro": c.score.f1_macro,
            "published_in_ci": c.published_in_ci,
        }
        for c in f.comparisons
    ]  # fmt: skip


def _identity(s: Score) -> Row:
    return {
        "cell": s.cell, "method": s.method, "backbone": s.backbone, "benchmark": s.benchmark, "label": labels.label([s]),
    }  # fmt: skip
