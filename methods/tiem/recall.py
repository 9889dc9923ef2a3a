"""What the skill memory answers at T: the ancestry gate, then the ranking of Eq. 9."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import groupby, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.clock import Stamp, resolved_before
from methods.ranking import DECIMALS
from methods.tiem.skills import Ancestor, Skill
from methods.tiem.stability import Stability
from methods.vectors import VectorTable

_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


class Ancestry(StrEnum):
    """What the gate says of a skill; the words are those of the audit."""

    OK = "ok"
    LATE = "late"
    UNVERIFIABLE = "unverifiable"


@dataclass(frozen=True, slots=True)
class Admission:
    """Skills that may be seen at T, and the ids of the rejected ones, by reason."""

    skills: Mapping[str, Skill]
    late: tuple[str, ...]
    unverifiable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recalled:
    """A retrieved skill with its cosine and its score q."""

    skill_id: str
    skill: Skill
    cosine: float
    score: float


def ancestry(skill: Skill, decision: Stamp) -> Ancestry:
    """Whether everything that shaped ``skill`` was known before T.

    Complete ancestry: a time, at least one ancestor, and every ancestor (those of the stability label included) with
    source, both times and both hashes. Incomplete is ``unverifiable``, even if something is late as well.
    """
    if not complete(skill):
        return Ancestry.UNVERIFIABLE
    shaped_by = (*skill.ancestors, *skill.label_ancestors)
    known = all(resolved_before(t, decision) for t in (skill.time, *(a.resolve_time for a in shaped_by)))
    return Ancestry.OK if known else Ancestry.LATE


def complete(skill: Skill) -> bool:
    """Whether all that shaped ``skill`` is on record; whatever T is."""
    shaped_by = (*skill.ancestors, *skill.label_ancestors)
    return bool(skill.ancestors) and _aware(skill.time) and all(_complete(a) for a in shaped_by)


def known_at(skill: Skill) -> datetime | None:
    """The instant from which this version of ``skill`` could have been known; None if that cannot be told."""
    times = [skill.time, *(a.resolve_time for a in (*skill.ancestors, *skill.label_ancestors))]
    aware = [t for t in times if t is not None and _aware(t)]
    return max(aware) if len(aware) == len(times) and skill.ancestors else None


def admit(state: Mapping[str, Skill], decision: Stamp) -> Admission:
    """The gate: each skill by itself, so what it says of one does not depend on the others."""
    found = {key: ancestry(skill, decision) for key, skill in state.items()}
    return Admission(
        skills={key: state[key] for key, verdict in found.items() if verdict is Ancestry.OK},
        late=tuple(sorted(key for key, verdict in found.items() if verdict is Ancestry.LATE)),
        unverifiable=tuple(sorted(key for key, verdict in found.items() if verdict is Ancestry.UNVERIFIABLE)),
    )


def everything(skill: Skill) -> bool:
    """The gate that admits every skill."""
    return True


def recall(
    skills: Mapping[str, Skill],
    query: NDArray[np.floating[Any]],
    catalyst_type: str,
    vectors: VectorTable,
    *,
    k: int = 5,
    min_sim: float = 0.30,
    gamma: float = 0.0,
    stability_weights: Mapping[Stability, float] | None = None,
    admits: Callable[[Skill], bool] = everything,
) -> list[Recalled]:
    """The top ``k`` admitted ``skills`` by q (Eq. 9), then of those the ones with cosine >= ``min_sim``, best first.

    ``b = cos + γ·1[D = κ]``, ``q = b·(3 + a)/2``, times the weight of its stability if ``stability_weights`` are given.
    Ties: the more recently known, then the id.

    Args:
        skills: the memory, or what the gate admits of it.
        query: unit vector (d,).
        catalyst_type: κ.
        vectors: must hold the text of every skill.
        k: skills at most.
        min_sim: μ, applied after the top k, so fewer than k can be left.
        gamma: γ, the bonus for a skill of κ's own domain.
        stability_weights: None to rank without the stability of skills.
        admits: the gate. It judges each skill by itself, so it is asked of the best first until k are found: the answer is
            the same as for skills that were gated before they were ranked.
    """
    if not skills:
        return []
    ids = sorted(skills)
    ordered = [skills[i] for i in ids]
    cosines = vectors.cosines([s.text for s in ordered], query)
    same_domain = np.array([s.domain == catalyst_type for s in ordered])
    advantages = np.array([s.advantage for s in ordered])
    scores = (cosines + gamma * same_domain) * (3 + advantages) / 2
    if stability_weights is not None:
        scores = scores * np.array([stability_weights[s.stability] for s in ordered])
    scores = np.round(scores, DECIMALS)
    top = islice((i for i in _best_first(scores, ordered) if admits(ordered[i])), k)
    return [Recalled(ids[i], ordered[i], float(cosines[i]), float(scores[i])) for i in top if cosines[i] >= min_sim]


def _best_first(scores: NDArray[np.float64], skills: Sequence[Skill]) -> Iterator[int]:
    """Indices by score, then the more recently known, then the given order. Only ties look into the ancestry."""

    def newest_first(i: int) -> float:
        return -(known_at(skills[i]) or _BEFORE_ALL).timestamp()

    by_score = (int(i) for i in np.argsort(-scores, kind="stable"))
    for _, tied in groupby(by_score, key=lambda i: float(scores[i])):
        same = list(tied)
        yield from sorted(same, key=newest_first) if len(same) > 1 else same


def _complete(ancestor: Ancestor) -> bool:
    names = (ancestor.source_catalyst_id, ancestor.outcome_hash, ancestor.distillation_hash)
    return all(names) and _aware(ancestor.decision_time) and _aware(ancestor.resolve_time)


def _aware(time: datetime | None) -> bool:
    """Whether ``time`` is an instant: a time of day without a zone cannot be held against T."""
    return time is not None and time.utcoffset() is not None
