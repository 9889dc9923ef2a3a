"""Random skill memories: a dozen words, a vector each, ancestors on a grid of days."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import strategies as st

from harness.clock import Stamp, parse_stamp
from methods.tiem import skills
from methods.tiem.skills import Ancestor, Skill
from methods.tiem.stability import Stability
from methods.vectors import VectorTable

START = datetime(2020, 1, 1, 7, tzinfo=UTC)
WORDS = [f"w{n}" for n in range(12)]
DOMAINS = ["earnings", "ma"]
_RAW = np.random.default_rng(0).normal(size=(len(WORDS) + 1, 3))
_UNIT = (_RAW / np.linalg.norm(_RAW, axis=1, keepdims=True)).astype(np.float32)
VECTORS = VectorTable.of({f"{word}. {word}": vector for word, vector in zip(WORDS, _UNIT, strict=False)})
QUERY = _UNIT[-1]


def day(n: int) -> datetime:
    return START + timedelta(days=n)


def decision(n: int) -> Stamp:
    """T is the very instant at which outcome ``n`` resolves."""
    return parse_stamp(day(n).strftime("%Y-%m-%d %H:%M"), "UTC")


def ancestor(n: int, lesson: int = 0, resolve: datetime | None = None) -> Ancestor:
    return Ancestor(f"c{n}", day(n - 7), resolve or day(n), f"outcome{n}", f"lesson{n}.{lesson}")


def skill(word: str, n: int, *, domain: str = "earnings", advantage: float = 0.2) -> Skill:
    """A skill fresh from the case that resolves on day ``n``."""
    return Skill(word, word, domain, advantage, (f"tag{n}",), day(n), (f"c{n}",), (ancestor(n),))


fresh = st.builds(
    skill,
    st.sampled_from(WORDS),
    st.integers(0, 30),
    domain=st.sampled_from(DOMAINS),
    advantage=st.floats(-1, 1),
)


@st.composite
def memories(draw: st.DrawFn, damaged: bool = True) -> dict[str, Skill]:
    """Memories grown by EVOKE; with ``damaged``, some skills have lost a time or an ancestor, others are labelled."""
    state: dict[str, Skill] = {}
    for n, new in enumerate(draw(st.lists(fresh, max_size=8))):
        state = skills.fold(state, skills.evoke(state, skills.skill_id(f"c{n}", 0), new, VECTORS))
    if not damaged:
        return state
    return {key: draw(st.sampled_from(_versions(found))) for key, found in state.items()}


def _versions(found: Skill) -> list[Skill]:
    broken = replace(found.ancestors[0], resolve_time=None)
    return [
        found,
        replace(found, stability=Stability.STABLE, label_ancestors=(ancestor(29),)),
        replace(found, ancestors=()),
        replace(found, ancestors=(*found.ancestors, broken)),
        replace(found, time=None),
    ]
