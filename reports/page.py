"""What stands where on the page: sections with their figures and tables, and the first screen's sentences by topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.drawing import Picture
from reports.tables import Table


@dataclass(frozen=True)
class Section:
    """A part of the page. ``id`` is its fragment, ``short`` its name in the navigation."""

    id: str
    short: str
    title: str
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()


PLACES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "results",
        "Results",
        "Results",
        ("results", "accuracy_forest", "hindsight", "table1", "precision", "unusable_answers"),
    ),
    ("pairs", "Pairs", "Pairs of methods", ("pairs", "differences", "spread")),
    ("ablation", "Ablation", "Ablation", ("ablation",)),
    ("shift", "Shift", "Reference and shift benchmarks", ("shift", "figure6")),
    ("consistency", "Agreement", "Agreement between backbones", ("consistency", "figure8")),
    (
        "calibration",
        "Cost",
        "Calibration, tokens and cost",
        ("calibration", "reliability", "efficiency", "figure7", "ledger"),
    ),
    ("finance", "Finance", "Finance view", ("finance",)),
    ("probes", "Probes", "Probes: what the backbone knows without evidence", ("probe", "ndp", "figure5", "cutoff")),
    ("published", "Published", "Beside the published figures", ("published",)),
    ("time_gate", "Time gate", "The time gate", ("time_gate",)),
    ("audit", "Audit", "Audit of the evidence", ("audit",)),
    ("data_audit", "Data", "Audit of the data", ("data_",)),
    ("leak_hunt", "Leak hunt", "Leak hunt", ("leak_hunt",)),
    ("cells", "Cells", "State of the cells", ("cells",)),
)
"""(id, short, title, how names of tables and figures begin that belong there), in the order of the page."""
CAPTIONS = {
    "accuracy_forest": "Dot: accuracy. Line: 95 % Wilson interval. Upright tick: base rate, the accuracy of always answering positive. Dotted line: 50 %.",
    "reliability": "Points: bins of equal count over all benchmarks, of 20 rows or more. Upright lines: 95 % Wilson intervals as if rows were independent. On the grey line things came true as often as was said.",
    "figure5_name_date": "Line: 95 % interval by decision day. Upright tick: base rate, the share of rises. Dotted line: 50 %, or no difference.",
}
"""How to read a figure, by its name; others say it in themselves."""
MORE = ("more", "More", "More tables and figures")
TOPICS = {
    "differences": "What differs",
    "undecided": "What is open",
    "constant": "What it is worth",
    "coverage": "Coverage",
    "audit": "Evidence",
    "data": "Data",
    "cost": "Cost",
    "probes": "Memory",
}


def sections(tables: Sequence[Table], pictures: Sequence[Picture]) -> list[Section]:
    """Every table and figure in its section; what has no place of its own goes to the last one, so that nothing is left out."""
    placed: dict[str, tuple[list[Picture], list[Table]]] = {}
    for picture in pictures:
        placed.setdefault(_place(picture.name), ([], []))[0].append(picture)
    for table in tables:
        placed.setdefault(_place(table.name), ([], []))[1].append(table)
    order = [*((id_, short, title) for id_, short, title, _ in PLACES), MORE]
    return [
        Section(id_, short, title, tuple(placed[id_][0]), tuple(placed[id_][1]))
        for id_, short, title in order
        if id_ in placed
    ]


def _place(name: str) -> str:
    """The section whose longest beginning ``name`` has."""
    fitting = [(len(begin), id_) for id_, _, _, begins in PLACES for begin in begins if name.startswith(begin)]
    return max(fitting)[1] if fitting else MORE[0]


def by_topic(narrative: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """(heading, sentences) in the order of the sentences; the label stands in the title and is left out."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for sentence in narrative:
        if sentence["topic"] != "label":
            found.setdefault(TOPICS[sentence["topic"]], []).append(sentence)
    return list(found.items())
