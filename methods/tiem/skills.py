"""The Case-based Skill Memory (CSM) as pure functions: a state and what is proposed give the changes.

A state maps skill ids to skills. An operation reads it and returns changes; it calls nothing and alters nothing, so the
memory at any T is the fold of the changes before T. Vectors are looked up by the text they belong to (``Skill.text``): a
skill whose words change can never be compared by its old vector.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache

from methods.tiem.stability import Stability, StabilityResult
from methods.vectors import VectorTable

MERGE_AT = 0.85
"""τ: cosine from which EVOKE merges instead of adding."""

DECAY = 0.9
"""λ_a: weight of the old advantage in an auto-merge."""

DESCRIPTION_CHARS = 500


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A case whose outcome shaped a skill. Times are instants; None where missing or unparsable (the gate then rejects)."""

    source_catalyst_id: str
    decision_time: datetime | None
    resolve_time: datetime | None
    outcome_hash: str
    distillation_hash: str


@dataclass(frozen=True, slots=True)
class Skill:
    """σ of the paper, without its vector.

    Attributes:
        domain: a catalyst type.
        advantage: a in [-1, 1].
        tags: sorted, without repeats.
        time: resolve time of the outcome it was first distilled from; a merge keeps it.
        provenance: ids of the cases it was distilled from, oldest first.
        ancestors: one for each case and lesson that went into it, in canonical order.
        label_ancestors: cases its stability was judged on. They outlive the label: it decided that the skill stayed.
        merge_count: auto-merges and merges it went through.
        text: what is embedded; made once, since thousands are looked up at every recall.
    """

    name: str
    description: str
    domain: str
    advantage: float
    tags: tuple[str, ...]
    time: datetime | None
    provenance: tuple[str, ...]
    ancestors: tuple[Ancestor, ...]
    label_ancestors: tuple[Ancestor, ...] = ()
    stability: Stability = Stability.UNEVALUABLE
    merge_count: int = 0
    text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not -1 <= self.advantage <= 1:
            raise ValueError(f"skill {self.name!r}: advantage {self.advantage} is outside [-1, 1]")
        object.__setattr__(self, "text", f"{self.name}. {self.description}")


@dataclass(frozen=True, slots=True)
class Put:
    """Set ``skill_id`` to ``skill``."""

    skill_id: str
    skill: Skill


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove ``skill_id``."""

    skill_id: str


Change = Put | Delete


def fold(state: Mapping[str, Skill], changes: Iterable[Change]) -> dict[str, Skill]:
    """``state`` after ``changes``, in their order."""
    after = dict(state)
    for change in changes:
        if isinstance(change, Put):
            after[change.skill_id] = change.skill
        else:
            del after[change.skill_id]
    return after


def skill_id(source_catalyst_id: str, index: int) -> str:
    """Id of the ``index``-th skill distilled from a case: a function of both, so a rerun names the same skill the same."""
    return "sk_" + hashlib.sha256(f"{source_catalyst_id}\x1f{index}".encode()).hexdigest()[:16]


def evoke(
    state: Mapping[str, Skill],
    new_id: str,
    new: Skill,
    vectors: VectorTable,
    *,
    merge_at: float = MERGE_AT,
    decay: float = DECAY,
) -> list[Change]:
    """EVOKE: merge ``new`` into the nearest skill of its domain if their cosine is at least ``merge_at``, else add it.

    Of equally near skills the smallest id is taken. ``vectors`` must hold the text of ``new`` and of every skill of its
    domain.

    Raises:
        ValueError: ``new_id`` is in the state already.
    """
    if new_id in state:
        raise ValueError(f"skill {new_id} is in the memory already: an id is given once")
    rivals = sorted(key for key, skill in state.items() if skill.domain == new.domain)
    if rivals:
        scores = vectors.cosines([state[key].text for key in rivals], vectors[new.text])
        nearest = int(scores.argmax())
        if scores[nearest] >= merge_at:
            return [Put(rivals[nearest], auto_merge(state[rivals[nearest]], new, decay))]
    return [Put(new_id, new)]


def auto_merge(old: Skill, new: Skill, decay: float = DECAY) -> Skill:
    """``old`` after meeting ``new``: ``a <- λ a + (1 - λ) g``; words, domain and time stay; stability is to be judged anew."""
    advantage = decay * old.advantage + (1 - decay) * new.advantage
    return _united(old, new, advantage=_clamped(advantage))


def merge(state: Mapping[str, Skill], into: str, other: str) -> list[Change]:
    """MERGE(i, j): descriptions joined and cut at 500 characters, advantage is the mean; ``other`` is removed.

    Raises:
        ValueError: a skill cannot be merged into itself.
        KeyError: no such skill.
    """
    if into == other:
        raise ValueError(f"skill {into} cannot be merged into itself")
    first, second = state[into], state[other]
    merged = _united(
        first,
        second,
        advantage=_clamped((first.advantage + second.advantage) / 2),
        description=f"{first.description} | {second.description}"[:DESCRIPTION_CHARS],
    )
    return [Put(into, merged), Delete(other)]


def revise(
    state: Mapping[str, Skill],
    key: str,
    *,
    advantage: float | None = None,
    description: str | None = None,
    because_of: Iterable[Ancestor] = (),
) -> list[Change]:
    """REVISE: a new advantage (clamped to [-1, 1]) and/or description (cut at 500 characters).

    Args:
        state: the memory.
        key: id of the skill.
        advantage: None to keep.
        description: None to keep.
        because_of: the cases whose outcome led to the revision: they become ancestors.
    """
    old = state[key]
    revised = replace(
        old,
        advantage=old.advantage if advantage is None else _clamped(advantage),
        description=old.description if description is None else description[:DESCRIPTION_CHARS],
        ancestors=_union(old.ancestors, because_of),
    )
    return [Put(key, revised)]


def retire(state: Mapping[str, Skill], key: str) -> list[Change]:
    """RETIRE: removed."""
    if key not in state:
        raise KeyError(key)
    return [Delete(key)]


def relabel(
    state: Mapping[str, Skill], key: str, found: StabilityResult, judged_on: Iterable[Ancestor]
) -> list[Change]:
    """The skill with its new stability and the cases it was judged on as ancestors of the label; ``miss`` retires it."""
    if found.label is Stability.MISS:
        return retire(state, key)
    old = state[key]
    labelled = replace(old, stability=found.label, label_ancestors=_union(old.label_ancestors, judged_on))
    return [Put(key, labelled)]


def _united(old: Skill, other: Skill, *, advantage: float, description: str | None = None) -> Skill:
    return replace(
        old,
        advantage=advantage,
        description=old.description if description is None else description,
        tags=tuple(sorted({*old.tags, *other.tags})),
        provenance=tuple(dict.fromkeys((*old.provenance, *other.provenance))),
        ancestors=_union(old.ancestors, other.ancestors),
        label_ancestors=_union(old.label_ancestors, other.label_ancestors),
        stability=Stability.UNEVALUABLE,
        merge_count=old.merge_count + other.merge_count + 1,
    )


def _union(ours: Iterable[Ancestor], theirs: Iterable[Ancestor]) -> tuple[Ancestor, ...]:
    return tuple(sorted({*ours, *theirs}, key=_canonical))


def _canonical(ancestor: Ancestor) -> tuple[str, ...]:
    times = (ancestor.decision_time, ancestor.resolve_time)
    stamps = ("" if t is None else isoformat(t) for t in times)
    return (ancestor.source_catalyst_id, *stamps, ancestor.outcome_hash, ancestor.distillation_hash)


@lru_cache(maxsize=65_536)  # a few thousand instants, looked at with every version of every skill that they shaped
def isoformat(time: datetime) -> str:
    """``time`` as ISO text."""
    return time.isoformat()


def _clamped(advantage: float) -> float:
    return min(1.0, max(-1.0, advantage))
