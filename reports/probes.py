"""Probe cells, kept apart from forecasts: what a backbone knows of a case by name and date, and what it makes of changed input.

One line joins them: ``apart`` takes them out of what is loaded, ``find`` makes of them everything that the report says.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness.errors import DataError
from harness.records import PROBE_PREFIX, Status
from reports import cutoff, labels
from reports.answers import Answers, Key, answers
from reports.cutoff import Curve
from reports.load import Cell, Loaded
from reports.probe_effects import Effect, Identity, NameDate, effects, identities, name_dates
from reports.probe_tests import Finding, judged, tests
from reports.scores import Score, score

Row = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """What all cells of one set of probes share."""

    benchmark: str
    backbone: str
    gate: str | None
    seed: int | None


@dataclass(frozen=True)
class Probed:
    """The probes of one setting, by name without the prefix.

    Attributes:
        answers: scored rows of each probe.
        said: ``probe_answer`` of each usable row that has one.
        returns: the return of each catalyst, where it is known.
        cells: the cells behind them.
    """

    setting: Setting
    answers: Mapping[str, Answers]
    said: Mapping[str, Mapping[Key, Mapping[str, Any]]]
    returns: Mapping[str, float]
    cells: Mapping[str, str]


@dataclass(frozen=True)
class Findings:
    """Results over all probe cells; ``cutoffs`` over forecasts too, with ``every`` score behind them."""

    scores: tuple[Score, ...]
    every: tuple[Score, ...]
    name_dates: tuple[NameDate, ...]
    tests: tuple[Finding, ...]
    effects: tuple[Effect, ...]
    identities: tuple[Identity, ...]
    cutoffs: tuple[Curve, ...]
    warnings: tuple[str, ...]


def apart(loaded: Loaded) -> tuple[Loaded, tuple[Cell, ...]]:
    """What is loaded without the probes, and the probes."""
    probes = tuple(cell for cell in loaded.cells if cell.method.startswith(PROBE_PREFIX))
    return replace(loaded, cells=tuple(cell for cell in loaded.cells if cell not in probes)), probes


def find(forecasts: Sequence[Cell], scores: Sequence[Score], probes: Sequence[Cell]) -> Findings:
    """Everything that is said of ``probes``, and of all cells (``scores`` are those of ``forecasts``) against their backbones' cutoffs."""
    warnings: list[str] = []
    groups = _grouped(probes, warnings)
    rows = [row for group in groups for row in name_dates(group)]
    if not rows:
        warnings.append("ndp is empty: it belongs to the name-date probe, which was not run.")
    curves, told = cutoff.curves([*forecasts, *probes])
    own = tuple(score(cell, answers(cell)) for cell in probes)
    return Findings(
        scores=own,
        every=(*scores, *own),
        name_dates=tuple(rows),
        tests=tuple(test for group in groups for test in judged(tests(group))),
        effects=tuple(effect for group in groups for effect in effects(group)),
        identities=tuple(identity for group in groups for identity in identities(group)),
        cutoffs=tuple(curves),
        warnings=(*warnings, *_unfinished(probes), *(told if probes or curves else ())),
    )


def as_json(f: Findings) -> Row:
    """The keys of report.json that belong to probes; fractions, unrounded, None for undefined."""
    by_cell = {s.cell: s for s in f.every}

    def rows(found: Sequence[Any]) -> list[Row]:
        return [{**asdict(row), "label": labels.label([by_cell[cell] for cell in row.cells])} for row in found]

    return {
        "ndp": rows(f.name_dates),
        "probes": rows(f.tests),
        "probe_effects": rows(f.effects),
        "probe_identity": rows(f.identities),
        "probe_cells": [{**asdict(s), "notes": s.notes, "label": labels.label([s])} for s in f.scores],
        "cutoff": rows(f.cutoffs),
    }


def _grouped(probes: Sequence[Cell], warnings: list[str]) -> list[Probed]:
    """Probes of one setting together; of several cells of one probe the largest counts."""
    found: dict[Setting, dict[str, Cell]] = defaultdict(dict)
    for cell in sorted(probes, key=lambda c: (-c.size, c.cell)):
        setting = Setting(cell.benchmark, cell.backbone, cell.gate, cell.seed)
        name = cell.method.removeprefix(PROBE_PREFIX)
        kept = found[setting].setdefault(name, cell)
        if kept is not cell:
            warnings.append(f"{cell.cell}: left out, because {kept.cell} is the same probe with as many rows or more.")
    return [_probed(setting, cells) for setting, cells in sorted(found.items(), key=lambda item: str(item[0]))]


def _probed(setting: Setting, cells: Mapping[str, Cell]) -> Probed:
    returns = {
        catalyst: value
        for cell in cells.values()
        for catalyst, value in zip(cell.rows["catalyst_id"], cell.rows["fwd_ret"], strict=True)
        if value is not None
    }
    return Probed(
        setting,
        {name: answers(cell) for name, cell in cells.items()},
        {name: _said(cell) for name, cell in cells.items()},
        returns,
        {name: cell.cell for name, cell in cells.items()},
    )


def _said(cell: Cell) -> dict[Key, Mapping[str, Any]]:
    """What was said or done besides the probability.

    Raises:
        DataError: not a JSON object.
    """
    found: dict[Key, Mapping[str, Any]] = {}
    rows = cell.rows
    for catalyst, epoch, status, text in zip(
        rows["catalyst_id"], rows["epoch"], rows["status"], rows["probe_answer"], strict=True
    ):
        if text is None or status != Status.OK:
            continue
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise DataError(
                f"forecasts.parquet of cell {cell.cell!r}: catalyst {catalyst!r}: probe_answer is {text!r}; it must be a JSON object. "
                "Run the cell again, or remove its folder."
            )
        found[(catalyst, epoch)] = value
    return found


def _unfinished(probes: Sequence[Cell]) -> list[str]:
    """Probe cells that lack rows or answers."""
    found = []
    for cell in probes:
        expected = max(int((cell.meta or {}).get("n") or 0), cell.size)
        ended = sum(Status(status).final for status in cell.rows["status"])
        if ended < expected:
            found.append(
                f"{cell.cell}: {expected - ended} of {expected} answers are missing; run the same command again to go on."
            )
    return found
