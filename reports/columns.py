"""Columns and rows that several tables share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports.labels import backbone_name, display_names, label
from reports.scores import Score
from reports.tables import Column

WHO = (
    Column("benchmark", "Benchmark"),
    Column("backbone", "Backbone"),
    Column("method", "Method"),
)


def hidden(*keys: str) -> tuple[Column, ...]:
    """Columns of the CSV only."""
    return tuple(Column(key, key, shown=False) for key in keys)


IDENTITY = hidden("cell", "gate", "memory", "embedder", "feed", "context", "exclude", "seed", "label")
_KEPT_APART = ("gate", "seed", "memory", "embedder", "feed", "context", "exclude")
SETTING = hidden(*_KEPT_APART, "label")


def cell_row(s: Score, names: Mapping[str, str]) -> dict[str, Any]:
    """All of a score, with the names that people read."""
    values = {name: getattr(s, name) for name in Score.__dataclass_fields__}
    return values | {
        "method": names[s.cell],
        "backbone": backbone_name(s),
        "n_shown": s.n_shown,
        "notes": s.notes,
        "label": label([s]),
    }


def cell_rows(scores: Sequence[Score]) -> tuple[Mapping[str, Any], ...]:
    """A row a cell."""
    names = display_names(scores)
    return tuple(cell_row(s, names) for s in scores)


def series_rows(rows: Sequence[Mapping[str, Any]], by_cell: Mapping[str, Score]) -> tuple[Mapping[str, Any], ...]:
    """Rows of report.json over several cells: the method named apart from its likes, marks of the cells as notes."""
    names = series_names(rows, display_names(list(by_cell.values())))
    found = []
    for row, name in zip(rows, names, strict=True):
        scores = [by_cell[cell] for cell in row["cells"]]
        notes = dict.fromkeys(note for s in scores for note in s.notes if note != "MCC 0 by convention")
        found.append({**row, "method": name, "notes": tuple(notes)})
    return tuple(found)


def series_names(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> list[str]:
    """A name a row over several cells: that of the first cell (``names``), and what tells it from a row of the same name.

    Cells are named apart within a benchmark; rows whose first cells stand on different benchmarks may share a name.
    """
    firsts = [names[row["cells"][0]] for row in rows]
    alike: dict[tuple[Any, ...], list[int]] = {}
    for i, (row, name) in enumerate(zip(rows, firsts, strict=True)):
        beside = (row.get(key) for key in ("backbone", "backbone_a", "backbone_b", "benchmark"))
        alike.setdefault((name, *beside), []).append(i)
    found = list(firsts)
    for same in alike.values():
        varying = [key for key in _KEPT_APART if len({rows[i][key] for i in same}) > 1]
        for i in same:
            words = ", ".join(f"{key}={rows[i][key]}" for key in varying if f"{key}=" not in firsts[i])
            if words:
                found[i] = f"{firsts[i][:-1]}, {words})" if firsts[i].endswith(")") else f"{firsts[i]} ({words})"
    return found
