from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.clock import Stamp, parse_stamp
from methods.tiem.records import Episode, Theme
from methods.tiem.themes import (
    GRID_ORIGIN,
    ClusterRule,
    auto_min_industries,
    cluster,
    deduplicate,
    keep,
    known_industries,
    members,
    most_connected,
    theme_windows,
    visible_themes,
)

RULE = ClusterRule()


def stamp(text: str) -> Stamp:
    return parse_stamp(text, "Asia/Shanghai")


def episode(name: str, stock: str, n: int = 2, end: str = "2021-01-05") -> Episode:
    return Episode(name, stock, "other", name, stamp("2021-01-01"), stamp(end), tuple(map(str, range(n))), 0.9)


def theme(
    name: str, confidence: float = 0.8, stocks: str = "AB", episodes: str = "xy", end: str = "2021-02-01"
) -> Theme:
    known = datetime(2021, 3, 1, tzinfo=UTC)
    return Theme(
        name, name, "", "other", confidence, tuple(stocks), (), tuple(episodes), stamp("2021-01-01"), stamp(end), known
    )


@given(st.datetimes(datetime(1999, 1, 1), datetime(2030, 1, 1)))
def test_every_instant_lies_in_three_windows_of_the_grid(naive: datetime) -> None:
    end = naive.replace(tzinfo=UTC)
    found = theme_windows([end])
    assert len(found) == 3
    for window in found:
        assert window.start <= end < window.close
        assert (window.start - GRID_ORIGIN) % timedelta(days=30) == timedelta(0)
        assert window.close - window.start == timedelta(days=90)


def test_windows_are_listed_once_oldest_first_and_members_in_order_of_time() -> None:
    episodes = [
        episode("b", "A"),
        episode("a", "B"),
        episode("c", "C", end="2021-01-04"),
        episode("d", "D", end="2021-05-01"),
    ]
    found = theme_windows(e.end.instant for e in episodes)
    assert found == sorted(set(found), key=lambda w: w.start)
    first = next(w for w in found if w.start <= stamp("2021-01-04").instant < w.close)
    assert [e.episode_id for e in members(first, episodes)] == ["c", "a", "b"]


def test_the_close_is_not_part_of_a_window() -> None:
    window = theme_windows([GRID_ORIGIN])[-1]
    edge = Episode("e", "A", "other", "", stamp("2000-01-01"), parse_stamp("2000-03-31 00:00", "UTC"), (), 0.9)
    assert edge.end.instant == window.close
    assert members(window, [edge]) == []


@st.composite
def clouds(draw: st.DrawFn) -> Any:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    centres = rng.normal(size=(draw(st.integers(1, 4)), 6))
    points = np.repeat(centres, draw(st.integers(1, 5)), axis=0)
    points = points + 0.1 * rng.normal(size=points.shape)
    return points / np.linalg.norm(points, axis=1, keepdims=True), rng.permutation(len(points))


@settings(max_examples=40)
@given(clouds())
def test_clusters_do_not_depend_on_the_order_of_episodes(cloud: Any) -> None:
    points, order = cloud
    found = cluster(points)
    assert found == sorted(found)
    assert len({row for rows in found for row in rows}) == sum(map(len, found))
    shuffled = {frozenset(int(order[row]) for row in rows) for rows in cluster(points[order])}
    assert shuffled == {frozenset(rows) for rows in found}


def on_a_circle(degrees: list[int]) -> Any:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.mark.parametrize(
    ("degrees", "order"),
    [
        ([66, 96, 69, 21, 102, 36, 99, 18], [7, 4, 6, 1, 3, 2, 0, 5]),
        ([12, 0, 84, 60, 90, 30, 36, 96], [3, 5, 2, 4, 0, 7, 1, 6]),
        ([27, 96, 33, 15, 63, 66, 9, 117], [7, 4, 3, 2, 0, 6, 1, 5]),
    ],
)
def test_equal_distances_are_no_matter_of_order(degrees: list[int], order: list[int]) -> None:
    """Rows that HDBSCAN, given them as they come, partitions differently in the two orders."""
    points = on_a_circle(degrees)
    shuffled = {frozenset(order[row] for row in rows) for rows in cluster(points[order])}
    assert shuffled == {frozenset(rows) for rows in cluster(points)}


@pytest.mark.parametrize(
    ("degrees", "clusters"),
    [
        ([21, 28, 38, 39, 77, 86, 94, 118], [(0, 1, 2, 3), (4, 5, 6, 7)]),
        ([3, 15, 16, 59, 70, 72, 85, 95], [(0, 1, 2), (3, 4, 5, 6, 7)]),
        ([10, 18, 41, 43, 78, 84, 99, 103], [(0, 1, 2, 3), (4, 5, 6, 7)]),
    ],
)
def test_core_distances_are_those_of_the_original_library(degrees: list[int], clusters: list[tuple[int, ...]]) -> None:
    """Partitions by hdbscan 0.8.44 with its defaults; counting one neighbour fewer splits them further."""
    assert cluster(on_a_circle(degrees)) == clusters


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_episodes_are_no_error(n: int) -> None:
    assert all(len(rows) >= 2 for rows in cluster(np.eye(4)[:n]))


def test_clusters_of_alike_episodes_are_found() -> None:
    rows = np.array([[1, 0.01 * n, 0] for n in range(4)] + [[0, 0.01 * n, 1] for n in range(4)], dtype=np.float32)
    assert cluster(rows / np.linalg.norm(rows, axis=1, keepdims=True)) == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_a_large_cluster_keeps_the_richest_and_is_judged_on_them() -> None:
    many = [episode(f"e{n:02}", "A", n=9) for n in range(20)] + [episode("b", "B", n=2)]
    assert keep(many, {"A": "Auto", "B": "Auto"}, RULE) is None  # the only other stock falls to the cap
    mixed = [episode(f"e{n:02}", "AB"[n % 2], n=2 + (n >= 3)) for n in range(23)]
    kept = keep(mixed, {"A": "Auto"}, RULE)
    assert kept is not None
    assert [e.episode_id for e in kept] == [f"e{n:02}" for n in range(3, 23)]


def test_ties_of_propositions_keep_the_earlier() -> None:
    kept = keep([episode(f"e{n:02}", "AB"[n % 2]) for n in range(23)], {"A": "Auto"}, RULE)
    assert kept is not None
    assert [e.episode_id for e in kept] == [f"e{n:02}" for n in range(20)]


@pytest.mark.parametrize(
    ("stocks", "industries", "rule", "accepted"),
    [
        ("AB", {"A": "Auto"}, RULE, True),
        ("AA", {"A": "Auto"}, RULE, False),
        ("AB", {"A": None, "B": " "}, RULE, False),
        ("AB", {"A": "Unknown"}, RULE, False),
        ("AB", {}, ClusterRule(min_industries=0), True),
        ("A", {"A": "Auto"}, ClusterRule(min_stocks=1), False),
    ],
)
def test_a_cluster_must_span_stocks_and_industries(
    stocks: str, industries: Any, rule: ClusterRule, accepted: bool
) -> None:
    found = keep([episode(f"e{n}", s) for n, s in enumerate(stocks)], industries, rule)
    assert (found is not None) == accepted


def test_industries_are_required_where_there_are_any() -> None:
    assert auto_min_industries({"A": None, "B": "unknown", "C": ""}) == 0
    assert auto_min_industries({"A": None, "B": "Auto"}) == 1
    assert known_industries("BCA", {"A": "Steel", "B": "Auto", "C": "Steel"}) == ("Auto", "Steel")


NAMES = {"one": np.array([1.0, 0.0]), "twin": np.array([0.9, np.sqrt(0.19)]), "far": np.array([0.0, 1.0])}


def test_a_near_duplicate_is_merged_into_the_more_confident() -> None:
    (found,) = deduplicate([theme("twin", 0.7, "BC", "z", "2021-02-09"), theme("one", 0.9)], NAMES)
    assert (found.theme_id, found.confidence, found.stocks, found.episodes) == (
        "one",
        0.9,
        ("A", "B", "C"),
        ("x", "y", "z"),
    )
    assert (found.start.text, found.end.text) == ("2021-01-01", "2021-02-09")


def test_the_threshold_itself_is_no_duplicate() -> None:
    names = {"one": np.array([1.0, 0.0]), "edge": np.array([0.85, np.sqrt(1 - 0.85**2)])}
    assert len(deduplicate([theme("one"), theme("edge")], names)) == 2
    assert len(deduplicate([theme("one"), theme("edge")], names, above=0.849999)) == 1


def test_equal_confidence_keeps_the_one_given_first() -> None:
    for given_order in (["one", "twin"], ["twin", "one"]):
        (found,) = deduplicate([theme(n) for n in given_order], NAMES)
        assert found.name == given_order[0]


def test_the_cap_keeps_the_most_connected() -> None:
    found = most_connected([theme("one", stocks="AB"), theme("far", stocks="ABC"), theme("twin", stocks="DE")], 2)
    assert [t.name for t in found] == ["far", "one"]


def test_counts_are_taken_over_what_is_visible() -> None:
    themes = [theme("one"), theme("far", 0.7)]
    assert visible_themes(themes, 49, NAMES) == []
    assert [t.name for t in visible_themes(themes, 50, NAMES)] == ["one", "far"]
    assert visible_themes(themes[::-1], 50, NAMES) == visible_themes(themes, 50, NAMES)
    assert [t.name for t in visible_themes([*themes, theme("twin", 0.95)], 50, NAMES)] == ["twin", "far"]
