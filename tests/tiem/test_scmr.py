from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from methods.tiem.scmr import Judgement, judgement, vote
from methods.tiem.stability import STABILITY_WEIGHTS, Stability

judgements = st.one_of(st.none(), st.builds(Judgement, st.booleans(), st.floats(0, 1)))
paths = st.lists(st.tuples(st.sampled_from(Stability), judgements), max_size=3)


@given(paths)
def test_a_vote_is_a_probability_and_its_mirror_the_complement(given_paths: list[tuple[Stability, Any]]) -> None:
    mirrored = [(s, Judgement(not j.positive, j.support) if j else None) for s, j in given_paths]
    found, opposite = vote(given_paths), vote(mirrored)
    if found is None:
        assert opposite is None
        assert all(j is None or STABILITY_WEIGHTS[s] * j.support == 0 for s, j in given_paths)
    else:
        assert 0 <= found <= 1
        assert found + opposite == pytest.approx(1)  # type: ignore[operator]


def test_a_tie_is_one_half_and_a_miss_has_no_voice() -> None:
    yes, no = Judgement(True, 0.5), Judgement(False, 0.5)
    assert vote([(Stability.STABLE, yes), (Stability.STABLE, no)]) == 0.5
    assert vote([(Stability.MISS, yes), (Stability.STABLE, no)]) == 0.0
    assert vote([(Stability.MISS, yes)]) is None


@pytest.mark.parametrize(
    "reply",
    [
        None,
        [],
        {},
        {"direction": "abstain", "support": 0.9},
        {"direction": "up", "support": 0.9},
        {"direction": "positive"},
        {"direction": "positive", "support": None},
        {"direction": "positive", "support": "0.9"},
        {"direction": "positive", "support": True},
        {"direction": "positive", "support": math.nan},
    ],
)
def test_an_abstention_or_a_malformed_reply_is_no_judgement(reply: Any) -> None:
    assert judgement(reply) is None


@pytest.mark.parametrize(("support", "kept"), [(0, 0.0), (-1, 0.0), (0.4, 0.4), (7, 1.0)])
def test_support_is_clamped_and_zero_stays_zero(support: float, kept: float) -> None:
    assert judgement({"direction": "negative", "support": support}) == Judgement(False, kept)
