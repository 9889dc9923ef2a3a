"""The leak hunt in the report: a table method × detector, what speaks against a method, and what each detector can see.

Reads ``leak_hunt.json`` of a run directory. A directory with cells shows the tables in its report; one that holds nothing but a hunt gets
a page of its own (``build``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import DataError
from reports import render
from reports.read import read_json
from reports.tables import Column, Table

FILE = "leak_hunt.json"
NAMES = ("leak_hunt", "leak_hunt_findings", "leak_hunt_detectors")
HEADING = "Leak hunt"
SAID = (
    "pass: what the detector plants showed nowhere. FAIL: it did. n. t.: not testable here, the second table says why. No detector says that "
    "there is no leak."
)
SHORT = {"PASS": "pass", "FAIL": "FAIL", "NOT TESTABLE": "n. t."}

_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_WITNESS = {
    "type": ["object", "null"],
    "properties": {
        **dict.fromkeys(("catalyst", "world", "place"), _TEXT),
        **dict.fromkeys(("expected", "found"), _TEXT_OR_NULL),
    },
    "required": ["catalyst", "world", "place", "expected", "found"],
}
SCHEMA = {
    "type": "object",
    "required": ["detectors", "hunted"],
    "properties": {
        "detectors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "sees", "blind_to"],
                "properties": dict.fromkeys(("name", "sees", "blind_to"), _TEXT),
            },
        },
        "hunted": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["method", "benchmark", "gate", "catalysts", "documents", "worlds", "findings"],
                "properties": {
                    **dict.fromkeys(("method", "benchmark", "gate"), _TEXT),
                    "catalysts": {"type": "array", "items": _TEXT},
                    "documents": {"type": "integer", "minimum": 0},
                    "worlds": {"type": "integer", "minimum": 0},
                    "findings": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["detector", "verdict", "why", "witness"],
                            "properties": {
                                **dict.fromkeys(("detector", "why"), _TEXT),
                                "verdict": {"enum": list(SHORT)},
                                "witness": _WITNESS,
                            },
                        },
                    },
                },
            },
        },
    },
}
"""What the report uses of leak_hunt.json; other keys are free."""


def read(run_dirs: Sequence[Path]) -> list[Mapping[str, Any]]:
    """The hunts in ``run_dirs``.

    Raises:
        DataError: a file that is no hunt's.
    """
    return [found for path in run_dirs if (found := read_json(path / FILE, SCHEMA)) is not None]


def tables(hunts: Sequence[Mapping[str, Any]]) -> tuple[Table, ...]:
    """The tables of all ``hunts``; none where nothing was hunted."""
    hunted = [one for found in hunts for one in found["hunted"]]
    if not hunted:
        return ()
    detectors = {d["name"]: d for found in hunts for d in found["detectors"]}
    return _verdicts(hunted, list(detectors)), _reasons(hunted), _detectors(list(detectors.values()))


def _verdicts(hunted: Sequence[Mapping[str, Any]], detectors: Sequence[str]) -> Table:
    rows = tuple(
        {
            "benchmark": one["benchmark"],
            "method": one["method"],
            "gate": one["gate"],
            "asked": len(one["catalysts"]),
            "documents": one["documents"],
            "worlds": one["worlds"],
            **{f["detector"]: SHORT[f["verdict"]] for f in one["findings"]},
        }
        for one in hunted
    )
    columns = (
        Column("benchmark", "Benchmark"),
        Column("method", "Method"),
        Column("gate", "Gate"),
        *(Column(name, name.capitalize()) for name in detectors),
        Column("asked", "Asked", "int"),
        Column("documents", "Documents", "int"),
        Column("worlds", "Worlds", "int"),
    )
    return Table("leak_hunt", "Leak hunt: method × detector (rehearsal endpoint, no model)", columns, rows, SAID)


def _reasons(hunted: Sequence[Mapping[str, Any]]) -> Table:
    rows = [
        {
            "benchmark": one["benchmark"],
            "method": one["method"],
            "detector": finding["detector"],
            "verdict": finding["verdict"],
            "why": finding["why"],
            **(finding["witness"] or {}),
        }
        for one in hunted
        for finding in one["findings"]
    ]
    rows.sort(key=lambda row: list(SHORT).index(row["verdict"]) if row["verdict"] != "FAIL" else -1)
    return Table(
        "leak_hunt_findings",
        "Leak hunt: findings and their witnesses",
        (
            Column("benchmark", "Benchmark"),
            Column("method", "Method"),
            Column("detector", "Detector"),
            Column("verdict", "Verdict"),
            Column("why", "Why"),
            Column("catalyst", "Catalyst"),
            Column("place", "Seen in"),
            Column("expected", "Line as it is"),
            Column("found", "Line in the changed world"),
            Column("world", "world", shown=False),
        ),
        tuple(rows),
        "A witness is the first line that is another one in a world that differs only in what must not be known, or the line in which a canary was seen.",
    )


def _detectors(detectors: Sequence[Mapping[str, Any]]) -> Table:
    return Table(
        "leak_hunt_detectors",
        "Leak hunt: what the detectors see and do not see",
        (Column("name", "Detector"), Column("sees", "Sees"), Column("blind_to", "Cannot see")),
        tuple(detectors),
    )


def build(run_dir: Path, out: Path) -> None:
    """Write report.html, report.md and tables/ of a run directory that holds a hunt and no cells.

    Raises:
        DataError: there was no hunt in ``run_dir``, or ``out`` cannot be written.
    """
    found = tables(read([run_dir]))
    if not found:
        raise DataError(f"{run_dir / FILE}: missing; run python launch.py experiment=leak_hunt run.dir={run_dir}")
    try:
        (out / "tables").mkdir(parents=True, exist_ok=True)
        for table in found:
            for suffix, text in (("csv", table.to_csv()), ("md", table.to_markdown()), ("tex", table.to_latex())):
                (out / "tables" / f"{table.name}.{suffix}").write_text(text, "utf-8")
        page = render.page("hunt.html.j2", {"heading": HEADING, "said": SAID, "tables": found})
        (out / "report.html").write_text(page, "utf-8")
        markdown = "\n".join(table.to_markdown() for table in found)
        (out / "report.md").write_text(f"# {HEADING}\n\n{SAID}\n\n{markdown}", "utf-8")
    except OSError as error:
        raise DataError(
            f"{error.filename or out}: the report cannot be written here ({error.strerror or error}); move away what is in its place"
        ) from error
