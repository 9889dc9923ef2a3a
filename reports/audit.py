"""What the time gate saw: the paper's Table 4, for every method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.errors import DataError
from reports.load import Cell

VERDICTS = ("ok", "late", "unverifiable")


@dataclass
class Tally:
    """Records of one kind that entered prompts of one method under one gate, over all its cells.

    ``affected`` holds the (cell, catalyst, epoch) whose prompt had a late or unverifiable record of this kind.
    """

    method: str
    gate: str
    kind: str
    checked: int = 0
    late: int = 0
    unverifiable: int = 0
    cells: set[str] = field(default_factory=set)
    affected: set[tuple[str, str, int]] = field(default_factory=set)


def audit(cells: Sequence[Cell]) -> list[Tally]:
    """Count the verdicts of every ``evidence.parquet``, sorted by method, gate and kind.

    Raises:
        DataError: a verdict that is none of ok, late, unverifiable.
    """
    tallies: dict[tuple[str, str, str], Tally] = {}
    for cell in cells:
        evidence = cell.evidence or {}
        columns = (evidence.get(name, []) for name in ("catalyst_id", "epoch", "kind", "verdict"))
        for row, (catalyst, epoch, kind, verdict) in enumerate(zip(*columns, strict=True)):
            if verdict not in VERDICTS:
                raise DataError(
                    f"evidence.parquet of cell {cell.cell!r}: row {row}: verdict is {verdict!r}; known are {', '.join(VERDICTS)}."
                )
            key = (cell.method, cell.gate or "unknown", kind)
            tally = tallies.setdefault(key, Tally(*key))
            tally.checked += 1
            tally.cells.add(cell.cell)
            if verdict != "ok":
                tally.late += verdict == "late"
                tally.unverifiable += verdict == "unverifiable"
                tally.affected.add((cell.cell, catalyst, epoch))
    return [tallies[key] for key in sorted(tallies)]
