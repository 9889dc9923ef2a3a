"""The audit of the data in the report: what speaks against a benchmark itself, from ``python -m benchmarks audit NAME --json FILE``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import DataError
from reports.load import Cell
from reports.read import Schema, read_json
from reports.tables import Column, Table
from reports.wording import Row, Sentence, be, many

NAMES = ("data_audit", "data_figures")
SHORT = {"FAIL": "FAIL", "NOT TESTABLE": "n. t.", "PASS": "pass"}
"""Verdicts as shown, in the order of the table."""
_SEVERITIES = ("high", "medium", "low")
_EXAMPLES = 5
_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
SCHEMA: Schema = {
    "type": "object",
    "required": ["benchmark", "split", "findings", "stats"],
    "properties": {
        **dict.fromkeys(("benchmark", "split"), _TEXT),
        "stats": {"type": "object"},
        "findings": {
            "type": "array",
            "items": {
                "type": "object",
                "required": [
                    "id", "verdict", "count", "total", "unit", "severity", "examples", "definition", "effect", "remedy",
                ],
                "properties": {
                    **dict.fromkeys(("id", "unit", "definition", "effect", "remedy"), _TEXT),
                    **dict.fromkeys(("count", "total"), _COUNT),
                    "verdict": {"enum": list(SHORT)},
                    "severity": {"enum": list(_SEVERITIES)},
                    "examples": {"type": "array", "items": _TEXT},
                },
            },
        },
    },
}  # fmt: skip
"""What the report uses of an audit; other keys are free."""


def read(files: Sequence[Path]) -> list[Row]:
    """The audits in ``files``.

    Raises:
        DataError: a file is missing, or holds no audit; or two are of one split of one benchmark.
    """
    found: dict[tuple[str, str], Row] = {}
    for file in files:
        command = f"python -m benchmarks audit NAME --json {file}"
        audit = read_json(file, SCHEMA, f"Name a file written by {command}")
        if audit is None:
            raise DataError(f"{file}: no such file; write it with {command}")
        key = (audit["benchmark"], audit["split"])
        if key in found:
            raise DataError(f"{file}: a second audit of {key[0]} ({key[1]}); give one of each")
        found[key] = audit
    return [found[key] for key in sorted(found)]


def tables(audits: Sequence[Row]) -> tuple[Table, ...]:
    """Findings, what failed first and the most severe of it; the figures of each benchmark. Nothing without an audit."""
    if not audits:
        return ()
    about = [({"benchmark": audit["benchmark"], "split": audit["split"]}, audit) for audit in audits]
    findings = [
        {**which, **f, "verdict": SHORT[f["verdict"]], "examples": "; ".join(f["examples"][:_EXAMPLES])}
        for which, audit in about
        for f in audit["findings"]
    ]
    order = list(SHORT.values())
    findings.sort(
        key=lambda f: (f["benchmark"], f["split"], order.index(f["verdict"]), _SEVERITIES.index(f["severity"]), f["id"])
    )
    figures = [
        {**which, "figure": name, "value": value, "shown": _shown(value)}
        for which, audit in about
        for name, value in _flat(audit["stats"])
    ]
    where = (Column("benchmark", "Benchmark"), Column("split", "Split"))
    return (
        Table(
            "data_audit",
            "Audit of the data, before any model has seen it",
            (
                *where,
                Column("id", "Finding"),
                Column("verdict", "Verdict"),
                Column("count", "Count", "int"),
                Column("total", "Of", "int"),
                Column("unit", "What"),
                Column("severity", "Severity"),
                Column("effect", "What it can do to a result"),
                Column("remedy", "What to do"),
                Column("examples", "Examples"),
                Column("definition", "definition", shown=False),
            ),
            tuple(findings),
            "FAIL: the check found something. pass: it found nothing, which is no proof. n. t.: the files hold nothing to check. Counts are on the "
            "files as they are, before copies are dropped or anything is excluded.",
        ),
        Table(
            "data_figures",
            "Figures of the data",
            (*where, Column("figure", "Figure"), Column("value", "Value", text="shown")),
            tuple(figures),
        ),
    )


def doubts(audits: Sequence[Row], cells: Sequence[Cell]) -> list[str]:
    """Warnings about audits that are not of the data that ``cells`` ran on."""
    found = []
    for audit in audits:
        ran = _settings(audit["benchmark"], cells)
        if not ran:
            found.append(
                f"The audit of {audit['benchmark']} is about no cell of this report: none runs on that benchmark."
            )
            continue
        used = [(path, sha) for one in ran for path, sha in (one.get("files") or {}).items()]
        looked_at = {file["path"]: file["sha256"] for file in audit.get("files") or ()}
        other = sorted({path for path, sha in used if path in looked_at and looked_at[path] != sha})
        if other:
            found.append(
                f"The audit of {audit['benchmark']} looked at other bytes than the cells ran on: {', '.join(other)}. "
                f"Audit again: python -m benchmarks audit {audit['benchmark']} --json FILE"
            )
    return found


def narrative(audits: Sequence[Row], cells: Sequence[Cell]) -> Iterable[Sentence]:
    """A sentence a benchmark of ``cells``: how many checks found something, and which of it can leak or make a label wrong."""
    for audit in audits:
        ran = _settings(audit["benchmark"], cells)
        if not ran:
            continue
        away = set.intersection(*({*((one.get("settings") or {}).get("exclude") or ())} for one in ran))
        failed = [f for f in audit["findings"] if f["verdict"] == "FAIL"]
        high = [f for f in failed if f["severity"] == _SEVERITIES[0] and f["id"] not in away]
        text = f"The data of {audit['benchmark']} ({audit['split']}): {len(failed)} of {many(len(audit['findings']), 'check')} found something"
        if high:
            named = "; ".join(f"{f['id']} ({f['count']:,} of {f['total']:,} {f['unit']})" for f in high)
            text += f", of which {len(high)} {be(len(high))} severe: {named}"
        left_out = sorted(away & {f["id"] for f in failed})
        if left_out:
            text += f". All its cells leave out {', '.join(left_out)}"
        numbers = {
            "checks": len(audit["findings"]),
            "failed": len(failed),
            "severe": len(high),
            "left_out": len(left_out),
        }
        yield Sentence("data", f"{text}.", "care" if high else "plain", numbers, "data_audit")


def _settings(benchmark: str, cells: Sequence[Cell]) -> list[Row]:
    """What cell.json says of the benchmark that each of its cells ran on."""
    identities = ((cell.meta or {}).get("identity") or {} for cell in cells if cell.benchmark == benchmark)
    return [identity.get("benchmark") or {} for identity in identities]


def _flat(stats: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in stats.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _shown(value: Any) -> str:
    return "not defined" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
