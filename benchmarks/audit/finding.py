"""What an audit says: a check, what it found, and how that is written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from benchmarks.audit.raw import Raw
from benchmarks.rows import Row

EXAMPLES = 10


class Severity(StrEnum):
    """What a finding can do to a result."""

    HIGH = "high"  # it can leak the future, or make the label wrong
    MEDIUM = "medium"  # it changes what the evidence or the interval means
    LOW = "low"  # it limits what the benchmark can tell


class Verdict(StrEnum):
    """``PASS`` says that this check found nothing, not that there is nothing."""

    PASS = "PASS"
    FAIL = "FAIL"
    NOT_TESTABLE = "NOT TESTABLE"


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing found: its name (an id wherever there is one), and the rows that are left out if it is excluded.

    ``harmless`` where it cannot have the check's effect under the benchmark's own convention.
    """

    name: str
    rows: tuple[Row, ...] = ()
    harmless: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a check found among ``total`` things that it could look at."""

    total: int
    hits: Sequence[Hit]


@dataclass(frozen=True, slots=True)
class Check:
    """One question to the data.

    Attributes:
        id: name of the finding, as in ``benchmark.exclude``.
        severity: what it can do at worst.
        unit: what is counted, in the plural.
        definition: what counts, in one sentence.
        effect: what it can do to a result.
        excludes: what ``benchmark.exclude=[id]`` leaves out, in the plural; None where the finding is about the whole benchmark.
        find: the check.
        advice: what else can be done, a sentence or nothing.
        harmless: what makes a hit a harmless one; empty where none can be.
    """

    id: str
    severity: Severity
    unit: str
    definition: str
    effect: str
    excludes: str | None
    find: Callable[[Raw], Found]
    advice: str = ""
    harmless: str = ""

    @property
    def remedy(self) -> str:
        """Which switch leaves it out, and what else can be done."""
        switch = f"benchmark.exclude=[{self.id}] leaves out {self.excludes}." if self.excludes else ""
        return " ".join(filter(None, (switch, self.advice)))


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of a check."""

    check: Check
    found: Found

    @property
    def count(self) -> int:
        return len(self.found.hits)

    @property
    def harmless(self) -> int:
        """How many of ``count`` cannot have the effect."""
        return sum(hit.harmless for hit in self.found.hits)

    @property
    def severity(self) -> Severity:
        """The check's, but low where everything that was found is harmless."""
        return Severity.LOW if self.count and self.harmless == self.count else self.check.severity

    @property
    def effect(self) -> str:
        """The check's effect, and in how many cases it is none."""
        told = f"; harmless in {self.harmless} of {self.count}: {self.check.harmless}" if self.harmless else ""
        return self.check.effect + told

    @property
    def verdict(self) -> Verdict:
        if not self.found.total:
            return Verdict.NOT_TESTABLE
        return Verdict.FAIL if self.count else Verdict.PASS

    @property
    def examples(self) -> list[str]:
        return [hit.name for hit in self.found.hits[:EXAMPLES]]

    def as_json(self) -> dict[str, Any]:
        """The finding as an entry of ``findings``."""
        check = self.check
        return {
            "id": check.id,
            "verdict": str(self.verdict),
            "count": self.count,
            "total": self.found.total,
            "unit": check.unit,
            "severity": str(self.severity),
            "harmless": self.harmless,
            "examples": self.examples,
            "definition": check.definition,
            "effect": self.effect,
            "remedy": check.remedy,
        }
