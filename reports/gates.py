"""What the time gate changes: cells that differ in nothing but the gate, side by side (the paper's Table 5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from reports.answers import answers
from reports.answers import shared as both_scored
from reports.load import Cell
from reports.scores import Score

REFERENCE_GATE = "strict"
_ORDER = {"strict": 0, "paper": 1, "off": 2}


@dataclass(frozen=True)
class GateRow:
    """One cell of a group, compared with the group's cell under ``strict``.

    Attributes:
        prompts: forecasts of both cells whose final prompt is on file.
        prompts_differ: those among them whose prompt is not the same; None without a strict cell to compare with.
        n_shared: rows scored in both; ``n_strict``: in the strict cell.
        acc_minus_strict: difference of accuracy on these, as a fraction; None without one.
    """

    score: Score
    prompts: int | None
    prompts_differ: int | None
    n_shared: int | None
    n_strict: int | None
    acc_minus_strict: float | None


def gate_rows(cells: Sequence[Cell], scores: Sequence[Score]) -> list[GateRow]:
    """Groups of cells that were run under more than one gate, strict first."""
    groups: dict[tuple[object, ...], list[tuple[Cell, Score]]] = defaultdict(list)
    for cell, score in zip(cells, scores, strict=True):
        same = (
            cell.benchmark,
            cell.backbone,
            cell.method,
            cell.seed,
            cell.memory,
            cell.embedder,
            cell.feed,
            cell.context,
            cell.exclude,
        )
        groups[same].append((cell, score))
    rows = []
    for key in sorted(groups, key=str):
        group = sorted(groups[key], key=lambda pair: _ORDER.get(pair[1].gate or "", 9))
        if len({score.gate for _, score in group}) > 1:
            strict = next((pair for pair in group if pair[1].gate == REFERENCE_GATE), None)
            rows += [_compared(cell, score, strict) for cell, score in group]
    return rows


def _compared(cell: Cell, score: Score, strict: tuple[Cell, Score] | None) -> GateRow:
    if strict is None:
        return GateRow(score, None, None, None, None, None)
    here, there = _prompts(cell), _prompts(strict[0])
    shared = here.keys() & there.keys()
    a, b = both_scored(answers(cell), answers(strict[0]))
    difference = float((a.hits - b.hits).mean()) if a.size else None
    return GateRow(score, len(shared), sum(here[k] != there[k] for k in shared), a.size, strict[1].n_scored, difference)


def _prompts(cell: Cell) -> dict[tuple[str, int], str]:
    columns = (cell.rows["catalyst_id"], cell.rows["epoch"], cell.rows["prompt_sha256"])
    return {(case, epoch): sha for case, epoch, sha in zip(*columns, strict=True) if sha is not None}
