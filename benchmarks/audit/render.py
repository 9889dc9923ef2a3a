"""An audit as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.audit.audit import Audit
from benchmarks.audit.finding import Finding, Verdict

_SHOWN = 5


def markdown(audit: Audit) -> str:
    """Verdicts of all checks in one table, then each failed one in full, then the figures."""
    return "\n".join(_lines(audit)) + "\n"


def _lines(audit: Audit) -> Iterator[str]:
    yield f"# Audit of {audit.benchmark} ({audit.split})"
    yield ""
    yield "PASS: this check found nothing, which is not a proof. NOT TESTABLE: the files hold nothing to check."
    yield "Counts are on the files as they are, before copies are dropped or anything is excluded."
    yield ""
    yield "| file | rows | SHA-256 |"
    yield "|---|---:|---|"
    yield from (f"| {f.path} | {f.rows} | {f.sha256} |" for f in audit.files)
    yield ""
    if audit.warnings:
        yield from (f"- {warning}" for warning in audit.warnings)
        yield ""
    yield "| finding | verdict | count | of | what | severity |"
    yield "|---|---|---:|---:|---|---|"
    yield from map(_row, audit.findings)
    yield ""
    for finding in audit.findings:
        if finding.verdict is Verdict.FAIL:
            yield from _section(finding)
    yield "## Figures"
    yield ""
    yield "| figure | value |"
    yield "|---|---|"
    yield from (f"| {name} | {_value(value)} |" for name, value in _flat(audit.stats))


def _row(finding: Finding) -> str:
    check = finding.check
    return f"| {check.id} | {finding.verdict} | {finding.count} | {finding.found.total} | {_cell(check.unit)} | {finding.severity} |"


def _section(finding: Finding) -> Iterator[str]:
    check = finding.check
    more = finding.count - _SHOWN
    yield f"## {check.id}: {finding.count} of {finding.found.total} {check.unit}"
    yield ""
    yield f"- What counts: {check.definition}."
    yield f"- Effect ({finding.severity}): {finding.effect}."
    yield f"- Remedy: {check.remedy}"
    yield "- Examples: " + "; ".join(finding.examples[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    yield ""


def _flat(stats: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in stats.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _value(value: Any) -> str:
    if value is None:
        return "not defined"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
