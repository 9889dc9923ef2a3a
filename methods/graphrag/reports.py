"""Reports on communities: what the model is shown of one, and what it says."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from methods.graphrag.communities import Community
from methods.graphrag.tables import Tables
from methods.schemas import TEXT, json_object

SYSTEM, REPORT = "graphrag_report_system.j2", "graphrag_report.j2"
TEMPLATES = (SYSTEM, REPORT)
LEAST_ROW_TOKENS = 8
"""No row of a relation is shorter: how many of a giant community need to be looked at."""

_FINDING = json_object(summary=TEXT, explanation=TEXT)
SCHEMA = json_object(
    title=TEXT,
    summary=TEXT,
    rating={"type": "number", "minimum": 0, "maximum": 10},
    rating_explanation=TEXT,
    findings={"type": "array", "items": _FINDING},
)


@dataclass(frozen=True, slots=True)
class Written:
    """A report as the model wrote it."""

    title: str
    content: str
    rating: float


def written(value: Mapping[str, Any]) -> Written:
    """The reply ``value`` as one text with a heading for every finding."""
    findings = "".join(f"\n\n## {f['summary']}\n\n{f['explanation']}" for f in value["findings"])
    return Written(value["title"], f"# {value['title']}\n\n{value['summary']}{findings}", float(value["rating"]))


def relations_inside(community: Community, tables: Tables, max_tokens: int) -> list[int]:
    """Numbers of the relations within ``community``, the higher combined degree first, no more than could ever be shown.

    The official code takes one relation for each entity only.
    """
    nodes = set(community.nodes)
    found = {
        number
        for title in community.nodes
        for number in tables.touching.get(title, ())
        if tables.relations[number].source in nodes and tables.relations[number].target in nodes
    }
    ordered = sorted(found, key=lambda number: (-tables.rank(tables.relations[number]), number))
    return ordered[: max_tokens // LEAST_ROW_TOKENS]


def input_tables(
    relations: Sequence[int],
    tables: Tables,
    entity_texts: Mapping[str, str],
    relation_texts: Mapping[int, str],
    max_tokens: int,
    count: Callable[[str], int],
) -> tuple[str, int]:
    """Entities and relations as two tables, relation by relation until ``max_tokens`` are full; and how many relations fit.

    Args:
        relations: numbers, in the order to be shown.
        tables: the graph.
        entity_texts: description by title.
        relation_texts: description by number.
        max_tokens: of both tables; the first relation is always shown.
        count: tokens of a text.
    """
    heads = (
        "-----Entities-----\nid,title,description,degree\n",
        "-----Relationships-----\nid,source,target,description,combined_degree\n",
    )
    used = sum(map(count, heads))
    entities: dict[str, str] = {}
    lines: list[str] = []
    for number in relations:
        r = tables.relations[number]
        new = {title: _entity_line(title, tables, entity_texts) for title in (r.source, r.target)}
        new = {title: line for title, line in new.items() if title not in entities}
        line = _csv(number, r.source, r.target, relation_texts[number], tables.rank(r))
        used += count(line) + sum(map(count, new.values()))
        if used > max_tokens and lines:
            break
        entities |= new
        lines.append(line)
    return f"{heads[0]}{''.join(entities.values())}\n\n{heads[1]}{''.join(lines)}", len(lines)


def shaped_by(communities: Iterable[Community], tables: Tables) -> set[str]:
    """Units behind the reports on ``communities``."""
    return tables.shaped_by(title for community in communities for title in community.nodes)


def _entity_line(title: str, tables: Tables, texts: Mapping[str, str]) -> str:
    return _csv(tables.number[title], title, texts[title], tables.degree.get(title, 0))


def _csv(*cells: Any) -> str:
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerow(cells)
    return sink.getvalue()
