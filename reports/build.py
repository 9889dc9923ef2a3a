"""From run directories to a report on disk: load, score, compare, write."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.errors import DataError
from reports import contents, data_audit, figures, hunt, labels, page, probe_figures, probe_tables, probes, render
from reports.cautions import cautions
from reports.conventions import CONVENTIONS
from reports.data import as_json
from reports.drawing import Picture
from reports.findings import find
from reports.load import Loaded, load
from reports.narrative import narrative
from reports.pairs import REFERENCE
from reports.scores import Score
from reports.tables import Table
from reports.viewer import Viewer, build_viewer

HEADING = "Event-driven forecasting: evaluation report"


@dataclass(frozen=True)
class Report:
    """What was written to ``out``; ``data`` is the content of report.json."""

    out: Path
    title: str
    scores: tuple[Score, ...]
    tables: tuple[Table, ...]
    figures: tuple[Picture, ...]
    warnings: tuple[str, ...]
    data: Mapping[str, Any]


def build(run_dirs: list[Path], out: Path, *, reference: str | None = None, audits: Sequence[Path] = ()) -> Report:
    """Score every cell of ``run_dirs`` and write report.html, report.md, report.json, tables/ and figures/ to ``out``.

    The same Parquet files give the same bytes.

    Args:
        run_dirs: directories that hold cells/*/forecasts.parquet.
        out: directory to write to; made if missing, files of the same name replaced.
        reference: method that the others are paired with (default ``tiem``).
        audits: audits of the data, written by ``python -m benchmarks audit NAME --json FILE``.

    Raises:
        DataError: no cell of ``reference``, files that cannot be scored (the message names file, row, key and value), or ``out`` cannot be written.
    """
    loaded, probe_cells = probes.apart(load(run_dirs))
    _refuse_unknown(reference, loaded)
    f = find(loaded, reference or REFERENCE)
    probed = probes.find(loaded.cells, f.scores, probe_cells)
    audited, hunts = data_audit.read(audits), hunt.read(run_dirs)
    every_cell = (*loaded.cells, *probe_cells)
    warnings = (*cautions(f), *probed.warnings, *data_audit.doubts(audited, every_cell))
    title = labels.titled(HEADING, probed.every)
    data = as_json(f, title, warnings) | probes.as_json(probed) | {"label": labels.label(probed.every)}
    told = narrative(data)
    if not f.scores and probed.scores:
        told = tuple(s for s in told if s.topic == "label")  # the rest would speak of no cell
    data |= {"data_audit": audited, "leak_hunt": hunts}
    sentences = (*told, *data_audit.narrative(audited, every_cell), *probe_tables.narrative(probed))
    data["summary"] = [asdict(sentence) for sentence in sentences]
    viewer = build_viewer(run_dirs, labels.display_names(probed.every))
    data["viewer"] = {"forecasts": viewer.forecasts, "notes": list(viewer.notes)}
    report = Report(
        out,
        title,
        f.scores,
        (
            *contents.tables(f, data),
            *data_audit.tables(audited),
            *probe_tables.tables(probed, data),
            *hunt.tables(hunts),
        ),
        (*figures.pictures(f, data), *probe_figures.pictures(probed, data)),
        warnings,
        data,
    )
    try:
        _write(report, viewer, _reproducibility(f.loaded))
    except OSError as error:
        raise DataError(
            f"{error.filename or out}: the report cannot be written here ({error.strerror or error}). "
            "Give a directory that can be made or written with --out DIR, or move away what is in its place."
        ) from error
    return report


def _refuse_unknown(reference: str | None, loaded: Loaded) -> None:
    methods = sorted({cell.method for cell in loaded.cells})
    if reference is not None and reference not in methods:
        raise DataError(f"--reference {reference}: no cell is of this method. Methods here: {', '.join(methods)}.")


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


def _facts(scores: Sequence[Score], unbegun: int) -> list[tuple[str, str]]:
    """Counts at the head of the page; ``unbegun`` cells have no row yet. None where there are no methods at all."""
    if not scores and not unbegun:
        return []
    counted = [
        (name, len({getattr(s, key) for s in scores}))
        for name, key in (("cells", "cell"), ("methods", "method"), ("benchmarks", "benchmark"))
    ]
    backbones = len({s.backbone for s in scores if not s.no_llm})
    done = sum(s.state == "complete" for s in scores)
    facts = [*counted, ("backbones", backbones), ("forecast rows", sum(sum(s.counts.values()) for s in scores))]
    return [
        *((name if count != 1 else name.removesuffix("s"), f"{count:,}") for name, count in facts),
        ("cells complete", f"{done:,} of {len(scores) + unbegun:,}"),
    ]


def obsolete(report: Report) -> list[str]:
    """Files that an earlier report in the same place may have left and that ``report`` does not write, relative to ``out``."""
    tables = {table.name for table in report.tables}
    pictures = {picture.name for picture in report.figures}
    return [
        *(
            f"tables/{name}.{suffix}"
            for name in (*contents.NAMES, *probe_tables.NAMES, *data_audit.NAMES, *hunt.NAMES)
            if name not in tables
            for suffix in ("csv", "md", "tex")
        ),
        *(
            f"figures/{name}.{suffix}"
            for name in (*figures.NAMES, *probe_figures.NAMES)
            if name not in pictures
            for suffix in ("svg", "png")
        ),
    ]


def _write(report: Report, viewer: Viewer, reproducibility: list[dict[str, Any]]) -> None:
    for folder in ("tables", "figures"):
        (report.out / folder).mkdir(parents=True, exist_ok=True)
    for table in report.tables:
        for suffix, text in (("csv", table.to_csv()), ("md", table.to_markdown()), ("tex", table.to_latex())):
            _text(report.out / "tables" / f"{table.name}.{suffix}", text)
    for name in obsolete(report):
        (report.out / name).unlink(missing_ok=True)
    for picture in report.figures:
        (report.out / "figures" / f"{picture.name}.svg").write_bytes(picture.svg)
        (report.out / "figures" / f"{picture.name}.png").write_bytes(picture.png)
    context = {
        "report": report,
        "heading": HEADING,
        "label": report.data["label"],
        "facts": [*_facts(report.scores, len(report.data["unbegun"])), *probe_tables.facts(report.data["probe_cells"])],
        "sections": page.sections(report.tables, report.figures),
        "captions": page.CAPTIONS,
        "said": page.by_topic(report.data["summary"]),
        "conventions": CONVENTIONS,
        "reproducibility": reproducibility,
        "viewer": viewer,
    }
    viewer.write_beside(report.out)
    _text(report.out / "report.html", render.html(context))
    _text(report.out / "report.md", render.markdown(context))
    _text(
        report.out / "report.json",
        json.dumps(report.data, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n",
    )


def _text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
