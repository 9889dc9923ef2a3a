"""From run directories to a report on disk: load, score, compare, write."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.errors import DataError
from reports import contents, figures, hunt, labels, render
from reports.audit import Tally, audit
from reports.conventions import CONVENTIONS
from reports.gates import GateRow, gate_rows
from reports.load import Cell, Loaded, load
from reports.pairs import REFERENCE, Pair, pairs
from reports.published import Comparison, compare
from reports.scores import Score, score
from reports.tables import Table

LATER = ("shift", "tokens", "consistency", "ndp")

HEADING = "Event-driven forecasting: evaluation report"
SECTIONS = (
    ("results", "Results"),
    ("pairs", "Pairs"),
    ("calibration", "Calibration and cost"),
    ("published", "Published figures"),
    ("time_gate", "Time gate"),
    ("audit", "Audit"),
    ("cells", "State of the cells"),
    ("warnings", "Warnings"),
    ("how", "How to read this"),
    ("reproducibility", "Reproducibility"),
)


@dataclass(frozen=True)
class Report:
    """What was written to ``out``; ``data`` is the content of report.json."""

    out: Path
    title: str
    scores: tuple[Score, ...]
    tables: tuple[Table, ...]
    figures: tuple[figures.Picture, ...]
    warnings: tuple[str, ...]
    data: Mapping[str, Any]


def build(run_dirs: list[Path], out: Path, *, reference: str | None = None) -> Report:
    """Score every cell of ``run_dirs`` and write report.html, report.md, report.json, tables/ and figures/ to ``out``.

    The same Parquet files give the same bytes.

    Args:
        run_dirs: directories that hold cells/*/forecasts.parquet.
        out: directory to write to; made if missing, files of the same name replaced.
        reference: method that the others are paired with (default ``tiem``).

    Raises:
        DataError: files that cannot be scored (the message names file, row, key and value), or ``out`` cannot be written.
    """
    loaded = load(run_dirs)
    scores = tuple(score(cell) for cell in loaded.cells)
    comparisons = compare(scores)
    tallies = audit(loaded.cells)
    compared = pairs(loaded.cells, reference or REFERENCE)
    gates = gate_rows(loaded.cells, scores)
    warnings = _warnings(loaded, scores, compared, comparisons, tallies, gates, reference or REFERENCE)
    title = labels.titled(HEADING, scores)
    tables = (
        *contents.tables(scores, compared, comparisons, tallies, gates, loaded.ledgers),
        *hunt.tables(run_dirs),
    )
    pictures = tuple(picture for picture in (figures.forest(scores),) if picture)
    data = _data(title, scores, compared, comparisons, tallies, gates, warnings, loaded.manifests)
    report = Report(out, title, scores, tables, pictures, warnings, data)
    try:
        _write(report, _reproducibility(loaded))
    except OSError as error:
        raise DataError(
            f"{error.filename or out}: the report cannot be written here ({error.strerror or error}). "
            "Give a directory that can be made or written with --out DIR, or move away what is in its place."
        ) from error
    return report


def _warnings(
    loaded: Loaded,
    scores: Sequence[Score],
    compared: Sequence[Pair],
    comparisons: Sequence[Comparison],
    tallies: Sequence[Tally],
    gates: Sequence[GateRow],
    reference: str,
) -> tuple[str, ...]:
    """Sentences for the reader; one that is true of several cells is said once and names them."""
    found = list(loaded.warnings)
    for number, manifest in enumerate(loaded.manifests, 1):
        if manifest is None:
            found.append(
                f"manifest.json is missing in run {number}: versions, git commit and data checksums are unknown."
            )
    for absent, consequence in (
        (
            [c for c in loaded.cells if c.meta is None],
            "cell.json is missing: n is the number of rows, so a catalyst that was never asked goes unnoticed",
        ),
        (
            [c for c in loaded.cells if c.evidence is None],
            "evidence.parquet is missing: the audit leaves these cells out",
        ),
    ):
        if absent:
            found.append(_about(consequence, absent, len(scores)))
    by_text: dict[str, list[Score]] = {}
    for s in scores:
        if s.state != "complete":
            why = [
                f"the cell is {s.state}",
                f": {s.reason.rstrip('.')}" if s.reason else "",
                f". What to do: {s.remedy}" if s.remedy else "",
            ]
            by_text.setdefault("".join(why), []).append(s)
        for text in s.warnings:
            by_text.setdefault(text, []).append(s)
    found += [_about(text, cells, len(scores)) for text, cells in by_text.items()]
    found += [f"{pair.cell_a} and {pair.cell_b}: {text}." for pair in compared for text in pair.warnings]
    if not compared:
        found.append(_no_pairs(scores, reference))
    for t in tallies:
        if t.gate == "strict" and t.late:
            found.append(
                f"{t.method}: {t.late} late records of kind {t.kind} entered prompts under the strict gate; its figures cannot be trusted."
            )
    if not gates:
        found.append("time_gate is empty: no cell was run under more than one gate.")
    if not comparisons:
        found.append("No published figure belongs to these methods and benchmarks: published is empty.")
    found.append(f"{', '.join(LATER)} are empty: they are not part of this version of the report.")
    return tuple(found)


def _no_pairs(scores: Sequence[Score], reference: str) -> str:
    """Why nothing is compared; where the reference is absent, which methods could take its place."""
    if any(s.method == reference for s in scores):
        return f"pairs is empty: no cell of the reference method {reference!r} shares backbone, benchmark, gate and seed with another method."
    text = f"pairs is empty: there is no cell of the reference method {reference!r}."
    others = sorted({s.method for s in scores if s.n_scored and not s.no_llm})
    if len(others) < 2:
        return text
    return f"{text} Methods here: {', '.join(others)}. Compare one of them with the rest: python -m reports RUN --reference NAME."


def _about(text: str, cells: Sequence[Cell] | Sequence[Score], total: int) -> str:
    if total > 1 and len(cells) == total:
        return f"All {total} cells: {text.rstrip('.')}."
    return f"{'; '.join(cell.cell for cell in cells)}: {text.rstrip('.')}."


def _data(
    title: str,
    scores: Sequence[Score],
    compared: Sequence[Pair],
    comparisons: Sequence[Comparison],
    tallies: Sequence[Tally],
    gates: Sequence[GateRow],
    warnings: Sequence[str],
    manifests: Sequence[Mapping[str, Any] | None],
) -> dict[str, Any]:
    return {
        "title": title,
        "label": labels.label(scores),
        "cells": [{**asdict(s), "notes": s.notes, "label": labels.label([s])} for s in scores],
        "pairs": [asdict(pair) for pair in compared],
        "shift": [],
        "tokens": [],
        "consistency": [],
        "audit": [
            {
                "method": t.method, "gate": t.gate, "kind": t.kind, "cells": sorted(t.cells), "checked": t.checked,
                "late": t.late, "unverifiable": t.unverifiable, "affected_queries": len(t.affected),
            }
            for t in tallies
        ],
        "time_gate": [
            {
                "cell": g.score.cell, "method": g.score.method, "backbone": g.score.backbone, "benchmark": g.score.benchmark,
                "gate": g.score.gate, "acc": g.score.acc, "acc_ci": g.score.acc_ci, "mcc": g.score.mcc, "f1_macro": g.score.f1_macro,
                "acc_minus_strict": g.acc_minus_strict, "prompts": g.prompts, "prompts_differ": g.prompts_differ,
                "label": labels.label([g.score]),
            }
            for g in gates
        ],
        "ndp": [],
        "published": [
            {
                "cell": c.score.cell, "method": c.score.method, "backbone": c.score.backbone, "benchmark": c.score.benchmark,
                "published_table": c.published.table, "published_method": c.published.method,
                "published_backbone": c.published.backbone, "comparable": c.comparable,
                "acc_published": c.published.acc, "mcc_published": c.published.mcc, "f1_published": c.published.f1_macro,
                "acc": c.score.acc, "acc_ci": c.score.acc_ci, "mcc": c.score.mcc, "f1_macro": c.score.f1_macro,
                "published_in_ci": c.published_in_ci, "label": labels.label([c.score]),
            }
            for c in comparisons
        ],
        "warnings": list(warnings),
        "manifests": list(manifests),
    }  # fmt: skip


def _reproducibility(loaded: Loaded) -> list[dict[str, Any]]:
    """What the page says of each run's origin: (name, value) pairs, and the data files."""
    found = []
    for manifest in loaded.manifests:
        known = manifest or {}
        facts = [
            (name, known[key])
            for name, key in (("Git commit", "git_commit"), ("Started", "started_at"), ("Finished", "finished_at"))
            if known.get(key)
        ]
        if known.get("command"):
            facts.append(("Command", " ".join(map(str, known["command"]))))
        facts += sorted((known.get("versions") or {}).items())
        found.append({"missing": manifest is None, "facts": facts, "data": known.get("data") or []})
    return found


def _facts(scores: Sequence[Score]) -> list[tuple[str, str]]:
    """Counts at the head of the page."""
    counted = [
        (name, len({getattr(s, key) for s in scores}))
        for name, key in (("cells", "cell"), ("methods", "method"), ("benchmarks", "benchmark"))
    ]
    backbones = len({s.backbone for s in scores if not s.no_llm})
    done = sum(s.state == "complete" for s in scores)
    facts = [*counted, ("backbones", backbones), ("forecast rows", sum(sum(s.counts.values()) for s in scores))]
    return [*((name, f"{count:,}") for name, count in facts), ("cells complete", f"{done:,} of {len(scores):,}")]


def _write(report: Report, reproducibility: list[dict[str, Any]]) -> None:
    for folder in ("tables", "figures"):
        (report.out / folder).mkdir(parents=True, exist_ok=True)
    for table in report.tables:
        for suffix, text in (("csv", table.to_csv()), ("md", table.to_markdown()), ("tex", table.to_latex())):
            _text(report.out / "tables" / f"{table.name}.{suffix}", text)
    if all(table.name != contents.LEDGER for table in report.tables):
        for suffix in ("csv", "md", "tex"):
            (report.out / "tables" / f"{contents.LEDGER}.{suffix}").unlink(missing_ok=True)
    if not report.figures:  # none of an earlier report may stay behind
        for suffix in ("svg", "png"):
            (report.out / "figures" / f"{figures.FOREST}.{suffix}").unlink(missing_ok=True)
    for picture in report.figures:
        (report.out / "figures" / f"{picture.name}.svg").write_bytes(picture.svg)
        (report.out / "figures" / f"{picture.name}.png").write_bytes(picture.png)
    context = {
        "report": report,
        "heading": HEADING,
        "label": report.data["label"],
        "facts": _facts(report.scores),
        "sections": SECTIONS,
        "conventions": CONVENTIONS,
        "tables": {table.name: table for table in report.tables},
        "reproducibility": reproducibility,
    }
    _text(report.out / "report.html", render.html(context))
    _text(report.out / "report.md", render.markdown(context))
    _text(
        report.out / "report.json",
        json.dumps(report.data, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n",
    )


def _text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
