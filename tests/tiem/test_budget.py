from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from methods.tiem.budget import SHARES, allocate, cut

ORDER = list(SHARES)
lengths = st.fixed_dictionaries({stream: st.integers(0, 12_000) for stream in ORDER})
totals = st.integers(0, 10_000)


@given(lengths, totals, st.permutations(ORDER))
def test_never_more_than_the_total_or_the_text(lengths: dict[str, int], total: int, order: list[str]) -> None:
    kept = allocate(lengths, SHARES, order, total)
    assert list(kept) == order
    assert sum(kept.values()) <= total
    assert all(0 <= kept[s] <= lengths[s] for s in order)


@given(lengths, totals)
def test_everybody_gets_the_smaller_of_need_and_share(lengths: dict[str, int], total: int) -> None:
    kept = allocate(lengths, SHARES, ORDER, total)
    assert all(kept[s] >= min(lengths[s], int(total * SHARES[s])) for s in ORDER)


@given(lengths, totals)
def test_a_text_is_cut_only_when_all_that_was_shared_out_is_used(lengths: dict[str, int], total: int) -> None:
    kept = allocate(lengths, SHARES, ORDER, total)
    shared_out = sum(int(total * share) for share in SHARES.values())
    if any(kept[s] < lengths[s] for s in ORDER):
        assert sum(kept.values()) == shared_out
    else:
        assert sum(kept.values()) <= shared_out


def test_the_rounding_remainder_is_not_handed_out() -> None:
    endless = dict.fromkeys(ORDER, 10_000)
    assert allocate(endless, SHARES, ORDER, 999) == {
        "focal": 199,
        "exp": 299,
        "episode": 179,
        "theme": 119,
        "prior": 199,
    }


def test_the_second_pass_serves_the_cut_in_order_of_priority() -> None:
    kept = allocate({"focal": 5_000, "exp": 5_000, "episode": 0, "theme": 0, "prior": 0}, SHARES, ORDER, 8_000)
    assert kept == {"focal": 1_600 + 3_400, "exp": 2_400 + 600, "episode": 0, "theme": 0, "prior": 0}


@pytest.mark.parametrize(
    ("lengths", "shares", "order", "total", "words"),
    [
        ({"a": 1}, {"a": 0.5, "b": 0.5}, ["a", "b"], 10, "not the same streams"),
        ({"a": 1}, {"a": 1.0}, ["a", "a"], 10, "not the same streams"),
        ({"a": -1}, {"a": 1.0}, ["a"], 10, "negative"),
        ({"a": 1}, {"a": 1.0}, ["a"], -1, "negative"),
        ({"a": 1, "b": 1}, {"a": 0.6, "b": 0.6}, ["a", "b"], 10, "more than 1"),
    ],
)
def test_a_budget_that_cannot_hold_is_refused(
    lengths: dict[str, int], shares: dict[str, float], order: list[str], total: int, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        allocate(lengths, shares, order, total)


@given(st.text(max_size=60), st.integers(0, 80), st.text(max_size=12))
def test_text_and_mark_fit_the_limit(text: str, limit: int, mark: str) -> None:
    shown = cut(text, limit, mark)
    assert len(shown) <= limit
    if len(text) <= limit:
        assert shown == text
    elif limit >= len(mark):
        assert len(shown) == limit
        assert shown.endswith(mark)
        assert text.startswith(shown[: limit - len(mark)])
    else:
        assert shown == text[:limit]
