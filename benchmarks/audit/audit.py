"""The audit of one set of cases: every check, in a fixed order, and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.audit import on_outcomes, on_rows, on_texts
from benchmarks.audit.finding import Check, Finding
from benchmarks.audit.raw import Raw, read_raw
from benchmarks.audit.stats import statistics_of
from benchmarks.files import open_folder
from benchmarks.params import Parameters
from harness.errors import ConfigError
from harness.records import DataFile

CHECKS: tuple[Check, ...] = (*on_rows.CHECKS, *on_texts.CHECKS, *on_outcomes.CHECKS)

Split = Literal["eval", "experience"]


@dataclass(frozen=True)
class Audit:
    """What was read and what was found.

    Attributes:
        benchmark: its name.
        split: the cases that were looked at.
        files: with their SHA-256 and numbers of rows.
        warnings: sentences of the reader.
        findings: one a check, those without a hit included.
        stats: figures by name, as in the JSON.
    """

    benchmark: str
    split: Split
    files: Sequence[DataFile]
    warnings: Sequence[str]
    findings: Sequence[Finding]
    stats: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The audit as plain data."""
        return {
            "benchmark": self.benchmark,
            "split": self.split,
            "files": [{"path": f.path, "sha256": f.sha256, "rows": f.rows} for f in self.files],
            "warnings": list(self.warnings),
            "findings": [finding.as_json() for finding in self.findings],
            "stats": self.stats,
        }


def findings_of(raw: Raw) -> list[Finding]:
    """The answers of all checks."""
    return [Finding(check, check.find(raw)) for check in CHECKS]


def audit(parameters: Parameters, split: Split = "eval") -> Audit:
    """Audit the files of a benchmark as they lie on disk, before copies are dropped or anything is excluded.

    Raises:
        ConfigError: no root, or the benchmark has no experience split.
        DataError: a file is missing or cannot be decoded.
    """
    folder = open_folder(parameters)
    past = parameters.experience
    if split == "eval":
        raw = read_raw(folder, parameters, parameters.eval, "benchmark")
    elif past is not None:
        raw = read_raw(folder, past, past.catalysts, "benchmark.experience")
    else:
        raise ConfigError(f"benchmark {parameters.name} has no experience split; leave out --split experience")
    files = [folder.files[name] for name in sorted(folder.files)]
    return Audit(parameters.name, split, files, tuple(folder.warnings), findings_of(raw), statistics_of(raw))
