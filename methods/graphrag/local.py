"""Local search: reports, entities, relations and units around the entities nearest to a question, packed into one context.

The layout and the order of packing are those of ``LocalSearchMixedContext``. One fault is not repeated: there the number of links of a
relation is left over from earlier questions; here every question starts afresh.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

DELIMITER = "|"
OVERSAMPLING = 2
"""The nearest ``2 k`` entities are selected: the official code asks for twice as many and does not cut the list back."""

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity as it is shown. ``attributes`` are further columns; ``communities`` and ``units`` are ids."""

    id: str
    short_id: str
    title: str
    description: str
    communities: tuple[str, ...]
    units: tuple[str, ...]
    rank: int
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation as it is shown; ``rank`` is the combined degree of its ends."""

    id: str
    short_id: str
    source: str
    target: str
    description: str
    weight: float
    rank: int
    units: tuple[str, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A text unit as it is shown."""

    id: str
    short_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """A report on a community; ``rank`` is its rating."""

    id: str
    short_id: str
    title: str
    community: str
    content: str
    rank: float


@dataclass(frozen=True, slots=True)
class Budget:
    """Size of the context and its division; entities and relations get what reports and units leave.

    Attributes:
        size: of the whole, in units of the counter.
        units: share of text units.
        reports: share of community reports.
        relations_per_entity: relations that leave the selected entities, at most so many for each.
    """

    size: int
    units: float = 0.5
    reports: float = 0.15
    relations_per_entity: int = 10

    @property
    def local(self) -> int:
        """Size of the entity and relation tables together."""
        return max(int(self.size * (1 - self.reports - self.units)), 0)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: id of what it shows, its cells, its line."""

    id: str
    cells: tuple[str, ...]
    line: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the context, as text with its heading and as rows."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def head(self) -> str:
        """The lines before the rows."""
        return f"-----{self.heading}-----\n{DELIMITER.join(self.columns)}\n"

    @property
    def text(self) -> str:
        """The whole table."""
        return self.head + "".join(row.line for row in self.rows)


@dataclass(frozen=True, slots=True)
class MixedContext:
    """What local search shows; a table is None where there is nothing to choose from.

    ``links`` are the link counts of the relations by id, as they stood at the end.
    """

    reports: Table | None
    entities: Table | None
    relations: Table | None
    units: Table | None
    links: Mapping[str, int]

    @property
    def tables(self) -> list[tuple[str, Table]]:
        """(kind of evidence, table) in the order shown."""
        named = (
            ("community", self.reports),
            ("entity", self.entities),
            ("relation", self.relations),
            ("chunk", self.units),
        )
        return [(kind, table) for kind, table in named if table is not None]


def mixed_context(
    selected: Sequence[Entity],
    relations: Sequence[Relation],
    units: Mapping[str, TextUnit],
    reports: Mapping[str, Report],
    budget: Budget,
    count: Count,
    links: Mapping[str, int] | None = None,
) -> MixedContext:
    """Pack the context around ``selected`` entities, nearest first.

    Args:
        selected: the entities nearest to the question.
        relations: all relations, or at least those at a selected entity, in the order of their table.
        units: text units by id.
        reports: reports by community id.
        budget: its size and division.
        count: size of a text.
        links: link counts to start from.
    """
    chosen = reports_by_matches(selected, reports)
    report_table = pack_reports(chosen, max(int(budget.size * budget.reports), 0), count) if chosen else None
    entity_table = _entity_table(selected, budget.local, count) if selected else None
    left = budget.local - (count(entity_table.text) if entity_table else 0)
    relation_table, links = _relations_within(selected, relations, budget, left, count, dict(links or {}))
    near = units_of(selected, relations, units)
    unit_rows = [Row(u.id, cells := (u.short_id, u.text), _line(cells)) for u in near]
    size = max(int(budget.size * budget.units), 0)
    unit_table = _packed("Sources", ("id", "text"), unit_rows, size, count) if near else None
    return MixedContext(report_table, entity_table, relation_table, unit_table, links)


def reports_by_matches(selected: Sequence[Entity], reports: Mapping[str, Report]) -> list[Report]:
    """Reports on the communities of ``selected``: those of most entities first, then the higher rating."""
    matches = Counter(community for entity in selected for community in entity.communities)
    found = [reports[community] for community in matches if community in reports]
    return sorted(found, key=lambda r: (matches[r.community], r.rank), reverse=True)


def pack_reports(chosen: Sequence[Report], size: int, count: Count) -> Table | None:
    """The first of ``chosen`` that fit; None if not even one does."""
    columns = ("id", "title", "content")
    rows = [Row(r.id, cells := (r.short_id, r.title, r.content), _line(cells)) for r in chosen]
    table = _packed("Reports", columns, rows, size, count)
    quoted = tuple(Row(row.id, row.cells, csv_line(row.cells)) for row in table.rows)
    return Table(table.heading, columns, quoted) if quoted else None


def ranked_relations(
    selected: Sequence[Entity], relations: Sequence[Relation], per_entity: int, links: dict[str, int]
) -> list[Relation]:
    """Relations among ``selected`` by rank, then those that lead out, by links of the outer entity and rank.

    ``links`` is brought up to date: a relation that leads out gets the number of selected entities its outer end is linked to.
    """
    names = {entity.title for entity in selected}
    inside = [r for r in relations if r.source in names and r.target in names]
    if len(inside) > 1:
        inside.sort(key=lambda r: r.rank, reverse=True)
    outside = [r for r in relations if r.source in names and r.target not in names]
    outside += [r for r in relations if r.target in names and r.source not in names]
    outside.sort(key=lambda r: r.rank, reverse=True)
    if len(outside) <= 1:
        return inside + outside
    partners: dict[str, set[str]] = defaultdict(set)
    for r in outside:
        partners[r.source].add(r.target)
        partners[r.target].add(r.source)
    for r in outside:
        links[r.id] = len(partners[r.source if r.source not in names else r.target])
    outside.sort(key=lambda r: (links[r.id], r.rank), reverse=True)
    return inside + outside[: per_entity * len(selected)]


def units_of(
    selected: Sequence[Entity], relations: Sequence[Relation], units: Mapping[str, TextUnit]
) -> list[TextUnit]:
    """Units of ``selected``, by the order of the entities, then by the entity's relations in the unit."""
    found: dict[str, tuple[int, int]] = {}
    for place, entity in enumerate(selected):
        own = [r for r in relations if entity.title in (r.source, r.target)]
        for unit in entity.units:
            if unit in units and unit not in found:
                found[unit] = (place, -sum(unit in r.units for r in own))
    return [units[unit] for unit in sorted(found, key=lambda unit: found[unit])]


def csv_line(cells: Sequence[str]) -> str:
    """Cells as a line of CSV, quoted where they must be."""
    sink = io.StringIO()
    csv.writer(sink, delimiter=DELIMITER, lineterminator="\n").writerow(cells)
    return sink.getvalue()


def _entity_table(selected: Sequence[Entity], size: int, count: Count) -> Table:
    extra = tuple(selected[0].attributes)
    columns = ("id", "entity", "description", "number of relationships", *extra)
    rows = []
    for e in selected:
        cells = (e.short_id, e.title, e.description, str(e.rank), *(e.attributes.get(name, "") for name in extra))
        rows.append(Row(e.id, cells, _line(cells)))
    return _packed("Entities", columns, rows, size, count)


def _relations_within(
    selected: Sequence[Entity],
    relations: Sequence[Relation],
    budget: Budget,
    left: int,
    count: Count,
    links: dict[str, int],
) -> tuple[Table | None, dict[str, int]]:
    """The relation table of as many entities as fit, added one by one; the step that overflows is undone."""
    kept: Table | None = None
    for number in range(1, len(selected) + 1):
        ranked = ranked_relations(selected[:number], relations, budget.relations_per_entity, links)
        table = _relation_table(ranked, links, budget.local, count) if ranked else None
        if (count(table.text) if table else 0) > left:
            break
        kept = table
    return kept, links


def _relation_table(ranked: Sequence[Relation], links: Mapping[str, int], size: int, count: Count) -> Table:
    first = ranked[0]
    extra = (*first.attributes, *(["links"] if first.id in links else []))
    columns = ("id", "source", "target", "description", "weight", *extra)
    rows = []
    for r in ranked:
        further = {**r.attributes, "links": str(links[r.id]) if links.get(r.id) else ""}
        weight = str(r.weight) if r.weight else ""
        cells = (r.short_id, r.source, r.target, r.description, weight, *(further.get(name, "") for name in extra))
        rows.append(Row(r.id, cells, _line(cells)))
    return _packed("Relationships", columns, rows, size, count)


def _packed(heading: str, columns: tuple[str, ...], rows: Sequence[Row], size: int, count: Count) -> Table:
    """The longest prefix of ``rows`` that fits into ``size`` with its head."""
    used = count(Table(heading, columns, ()).head)
    kept: list[Row] = []
    for row in rows:
        used += count(row.line)
        if used > size:
            break
        kept.append(row)
    return Table(heading, columns, tuple(kept))


def _line(cells: Sequence[str]) -> str:
    return DELIMITER.join(cells) + "\n"
