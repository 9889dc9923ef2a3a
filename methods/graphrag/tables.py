"""Entities and relations of a set of units: mentions merged, ranked, with everything that shaped them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from methods.graphrag.extraction import EntityMention, Extract, RelationMention


@dataclass(frozen=True, slots=True)
class EntityGroup:
    """Mentions of one (title, type); ``units`` names the unit of each mention."""

    title: str
    type: str
    descriptions: tuple[str, ...]
    units: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RelationGroup:
    """Mentions of one directed (source, target); weights are summed."""

    source: str
    target: str
    descriptions: tuple[str, ...]
    units: tuple[str, ...]
    weight: float


def merge_entities(extracts: Mapping[str, Extract]) -> list[EntityGroup]:
    """Mentions of the units by (title, type), in the order of their first mention."""
    groups: dict[tuple[str, str], list[tuple[str, EntityMention]]] = defaultdict(list)
    for unit, extract in extracts.items():
        for mention in extract.entities:
            groups[mention.title, mention.type].append((unit, mention))
    return [
        EntityGroup(title, kind, tuple(m.description for _, m in found), tuple(unit for unit, _ in found))
        for (title, kind), found in groups.items()
    ]


def merge_relations(extracts: Mapping[str, Extract]) -> list[RelationGroup]:
    """Mentions of the units by (source, target), in the order of their first mention; unknown ends included."""
    groups: dict[tuple[str, str], list[tuple[str, RelationMention]]] = defaultdict(list)
    for unit, extract in extracts.items():
        for mention in extract.relations:
            groups[mention.source, mention.target].append((unit, mention))
    return [
        RelationGroup(
            source,
            target,
            tuple(m.description for _, m in found),
            tuple(unit for unit, _ in found),
            sum(m.weight for _, m in found),
        )
        for (source, target), found in groups.items()
    ]


def without_orphans(relations: Iterable[RelationGroup], entities: Iterable[EntityGroup]) -> list[RelationGroup]:
    """Relations both of whose ends are entities."""
    titles = {entity.title for entity in entities}
    return [r for r in relations if r.source in titles and r.target in titles]


@dataclass(frozen=True)
class Tables:
    """The graph of one snapshot.

    Attributes:
        entities: the first group of every title, in the order of their first mention; a place in it is the entity's number.
        relations: those between entities, likewise.
    """

    entities: tuple[EntityGroup, ...]
    relations: tuple[RelationGroup, ...]

    @classmethod
    def of(cls, extracts: Mapping[str, Extract]) -> Tables:
        """The graph of units by id, in the order of time."""
        groups = merge_entities(extracts)
        first: dict[str, EntityGroup] = {}
        for group in groups:
            first.setdefault(group.title, group)
        return cls(tuple(first.values()), tuple(without_orphans(merge_relations(extracts), groups)))

    @cached_property
    def number(self) -> dict[str, int]:
        """Number of an entity by title."""
        return {entity.title: number for number, entity in enumerate(self.entities)}

    @cached_property
    def touching(self) -> dict[str, list[int]]:
        """Numbers of the relations at each entity, in order."""
        found: dict[str, list[int]] = defaultdict(list)
        for number, relation in enumerate(self.relations):
            for title in {relation.source, relation.target}:
                found[title].append(number)
        return dict(found)

    @cached_property
    def degree(self) -> dict[str, int]:
        """Distinct neighbours of each entity that has any."""
        neighbours: dict[str, set[str]] = defaultdict(set)
        for relation in self.relations:
            if relation.source != relation.target:
                neighbours[relation.source].add(relation.target)
                neighbours[relation.target].add(relation.source)
        return {title: len(others) for title, others in neighbours.items()}

    def rank(self, relation: RelationGroup) -> int:
        """Combined degree of a relation's ends."""
        return self.degree.get(relation.source, 0) + self.degree.get(relation.target, 0)

    def shaped_by(self, titles: Iterable[str]) -> set[str]:
        """Units of everything that shapes what is said of ``titles``: their mentions, and the relations their degrees count."""
        units: set[str] = set()
        for title in titles:
            units.update(self.entities[self.number[title]].units)
            for number in self.touching.get(title, ()):
                units.update(self.relations[number].units)
        return units


def distinct(descriptions: Sequence[str]) -> tuple[str, ...]:
    """Descriptions without repeats, sorted: what a merged description depends on."""
    return tuple(sorted(set(descriptions)))
