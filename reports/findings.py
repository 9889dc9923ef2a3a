"""Everything the report says, computed once: the tables, figures, sentences and report.json only arrange it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reports.agreement import Agreement, agreements
from reports.answers import answers
from reports.audit import Tally, audit
from reports.calibration import Curve, curves
from reports.efficiency import Efficiency, efficiencies
from reports.finance import Finance, finance
from reports.gates import GateRow, gate_rows
from reports.hindsight import Hindsight, hindsight
from reports.load import Loaded
from reports.pairs import Pair, pairs
from reports.published import Comparison, compare
from reports.scores import Score, score
from reports.series import Member, Series, series
from reports.shift import Shift, shifts
from reports.spread import Spread, spreads


@dataclass(frozen=True)
class Findings:
    """Results over all loaded cells; ``warnings`` are those of the comparisons across cells."""

    loaded: Loaded
    reference: str
    scores: tuple[Score, ...]
    series: tuple[Series, ...]
    pairs: tuple[Pair, ...]
    comparisons: tuple[Comparison, ...]
    tallies: tuple[Tally, ...]
    gates: tuple[GateRow, ...]
    shifts: tuple[Shift, ...]
    tokens: tuple[Efficiency, ...]
    agreements: tuple[Agreement, ...]
    curves: tuple[Curve, ...]
    spreads: tuple[Spread, ...]
    finance: tuple[Finance, ...]
    hindsight: tuple[Hindsight, ...]
    warnings: tuple[str, ...]

    @cached_property
    def by_cell(self) -> dict[str, Score]:
        return {s.cell: s for s in self.scores}

    def behind(self, rows: Sequence[Mapping[str, Any]]) -> list[Score]:
        """The scores of the cells that ``rows`` of report.json are about."""
        cells = {cell for row in rows for cell in row.get("cells", (row.get("cell"),))}
        return [s for s in self.scores if s.cell in cells]


def find(loaded: Loaded, reference: str) -> Findings:
    """Score and compare ``loaded``; ``reference`` is the method that others are paired with."""
    scored = [answers(cell) for cell in loaded.cells]
    scores = tuple(score(cell, found) for cell, found in zip(loaded.cells, scored, strict=True))
    members = [Member(*parts) for parts in zip(loaded.cells, scores, scored, strict=True)]
    every, alike = series(members)
    moved, moved_warnings = shifts(every)
    tokens, tokens_warnings = efficiencies(every, loaded.cells)
    agreed, agreed_warnings = agreements(every)
    returns, returns_warnings = finance(loaded.cells)
    return Findings(
        loaded=loaded,
        reference=reference,
        scores=scores,
        series=tuple(every),
        pairs=tuple(pairs(loaded.cells, reference)),
        comparisons=tuple(compare(scores)),
        tallies=tuple(audit(loaded.cells)),
        gates=tuple(gate_rows(loaded.cells, scores)),
        shifts=tuple(moved),
        tokens=tuple(tokens),
        agreements=tuple(agreed),
        curves=tuple(curves(every)),
        spreads=tuple(spreads(members)),
        finance=tuple(returns),
        hindsight=tuple(hindsight(loaded.cells)),
        warnings=(*alike, *moved_warnings, *tokens_warnings, *agreed_warnings, *returns_warnings),
    )
