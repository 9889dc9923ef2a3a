"""Global search: all reports of a level in batches, points that the model draws from each, and the best of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from methods.graphrag.local import DELIMITER, Count, Entity, Report, csv_line

SHUFFLE_SEED = 86
COLUMNS = ("id", "title", "occurrence weight", "content", "rank")


@dataclass(frozen=True, slots=True)
class Point:
    """A point drawn from a batch of reports; ``score`` from 0 (no help) to 100."""

    answer: str
    score: int


def occurrence_weights(reports: Sequence[Report], entities: Iterable[Entity]) -> dict[str, float]:
    """Distinct units of the entities of each report's community ÷ the most of any."""
    units: dict[str, set[str]] = {report.community: set() for report in reports}
    for entity in entities:
        for community in entity.communities:
            if community in units:
                units[community].update(entity.units)
    most = max((len(found) for found in units.values()), default=0)
    return {community: len(found) / most if most else 0.0 for community, found in units.items()}


def report_batches(
    reports: Sequence[Report], weights: Mapping[str, float], size: int, count: Count, seed: int = SHUFFLE_SEED
) -> list[tuple[list[Report], str]]:
    """Reports shuffled, packed in batches of ``size``; within a batch by weight and rating. (reports, text) of each."""
    shuffled = list(reports)
    random.Random(seed).shuffle(shuffled)
    head = count(f"-----Reports-----\n{DELIMITER.join(COLUMNS)}\n")
    batches: list[list[Report]] = [[]]
    used = head
    for report in shuffled:
        line = count(DELIMITER.join(_cells(report, weights)) + "\n")
        if used + line > size and batches[-1]:
            batches.append([])
            used = head
        used += line
        batches[-1].append(report)
    ordered = [sorted(batch, key=lambda r: (weights[r.community], r.rank), reverse=True) for batch in batches if batch]
    return [(batch, csv_line(COLUMNS) + "".join(csv_line(_cells(r, weights)) for r in batch)) for batch in ordered]


def points_of(value: Mapping[str, Any] | None) -> list[Point]:
    """The points of a reply; one empty point of score 0 where there are none, as the official code has it."""
    listed = (value or {}).get("points")
    if not listed or not isinstance(listed, list):
        return [Point("", 0)]
    try:
        return [Point(p["description"], int(p["score"])) for p in listed if "description" in p and "score" in p]
    except (TypeError, ValueError):
        return []


def best_points(points: Sequence[Sequence[Point]], size: int, count: Count) -> str:
    """Points of all batches with a score, best first, as many as fit into ``size``."""
    listed = [(number, point) for number, some in enumerate(points, start=1) for point in some if point.score > 0]
    listed.sort(key=lambda numbered: numbered[1].score, reverse=True)
    kept: list[str] = []
    used = 0
    for number, point in listed:
        text = f"----Analyst {number}----\nImportance Score: {point.score}\n{point.answer}"
        used += count(text)
        if used > size:
            break
        kept.append(text)
    return "\n\n".join(kept)


def _cells(report: Report, weights: Mapping[str, float]) -> tuple[str, ...]:
    weight = str(weights[report.community])
    return report.short_id, report.title, weight, report.content, str(report.rank)
