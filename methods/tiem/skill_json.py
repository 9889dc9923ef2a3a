"""A skill as the canonical JSON text that the memory log holds, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from methods.tiem.recall import complete
from methods.tiem.skills import Ancestor, Skill, isoformat
from methods.tiem.stability import Stability


def encoded(skill: Skill) -> str:
    """``skill`` as JSON: keys sorted, times ISO in UTC, so equal skills are equal texts."""
    value = {
        "name": skill.name,
        "description": skill.description,
        "domain": skill.domain,
        "advantage": skill.advantage,
        "tags": list(skill.tags),
        "time": _iso(skill.time),
        "provenance": list(skill.provenance),
        "ancestors": [_ancestor_value(a) for a in skill.ancestors],
        "label_ancestors": [_ancestor_value(a) for a in skill.label_ancestors],
        "stability": str(skill.stability),
        "merge_count": skill.merge_count,
    }
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def decoded(text: str) -> Skill:
    """The skill that ``encoded`` made ``text`` of."""
    return _read(text)[0]


def decoded_state(state: Mapping[str, str]) -> tuple[dict[str, Skill], int]:
    """The skills of ``state`` by id, and how many of them have an incomplete ancestry."""
    read = {key: _read(text) for key, text in state.items()}
    return {key: skill for key, (skill, _) in read.items()}, sum(not whole for _, whole in read.values())


@lru_cache(maxsize=16_384)  # the versions in use at one time; each is parsed once, thousands are looked at per recall
def _read(text: str) -> tuple[Skill, bool]:
    value = json.loads(text)
    skill = Skill(
        name=value["name"],
        description=value["description"],
        domain=value["domain"],
        advantage=value["advantage"],
        tags=tuple(value["tags"]),
        time=_time(value["time"]),
        provenance=tuple(value["provenance"]),
        ancestors=tuple(_ancestor(a) for a in value["ancestors"]),
        label_ancestors=tuple(_ancestor(a) for a in value["label_ancestors"]),
        stability=Stability(value["stability"]),
        merge_count=value["merge_count"],
    )
    return skill, complete(skill)


def _ancestor_value(ancestor: Ancestor) -> dict[str, str | None]:
    return {
        "case": ancestor.source_catalyst_id,
        "decided": _iso(ancestor.decision_time),
        "resolved": _iso(ancestor.resolve_time),
        "outcome": ancestor.outcome_hash,
        "lesson": ancestor.distillation_hash,
    }


def _ancestor(value: Mapping[str, Any]) -> Ancestor:
    return Ancestor(value["case"], _time(value["decided"]), _time(value["resolved"]), value["outcome"], value["lesson"])


def _iso(time: datetime | None) -> str | None:
    if time is None:
        return None
    # A time without a zone stays one: it must go on being refused, not be taken for this machine's local time.
    return isoformat(time if time.utcoffset() is None else time.astimezone(UTC))


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
