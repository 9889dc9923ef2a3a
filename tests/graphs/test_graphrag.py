"""GraphRAG: replies out of shape, merging, communities and their reports, the grid, and each question asked once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ConfigError
from harness.method import Message
from methods.asking import Asker
from methods.graphrag import globally, local
from methods.graphrag.communities import communities_of
from methods.graphrag.extraction import KINDS, SYSTEM, Extract, Extraction, clean, read, title
from methods.graphrag.index import Index, grid_point
from methods.graphrag.reports import input_tables, relations_inside, written
from methods.graphrag.settings import IndexSettings
from methods.graphrag.summaries import merge_descriptions
from methods.graphrag.tables import Tables
from methods.tally import Tally
from tests.graphs.support import StubLLM, record
from tests.support import config_of

ALPHA = {"name": "Alpha Motors", "type": "organization", "description": "Carmaker"}


def extract(entities: Sequence[str], links: Sequence[tuple[str, str]], said: str = "told") -> Extract:
    value = {
        "entities": [{"name": name, "type": "organization", "description": f"{name} {said}"} for name in entities],
        "relationships": [{"source": a, "target": b, "description": said, "strength": 1} for a, b in links],
    }
    return read(value, Tally(KINDS), "unit")


def test_items_out_of_shape_are_left_out_and_counted() -> None:
    link = {"source": "Alpha", "target": "Beta", "description": "buys", "strength": 5}
    tally = Tally(KINDS)
    found = read(
        {
            "entities": [ALPHA, {**ALPHA, "name": "none"}, {**ALPHA, "name": "x" * 10_000}, {**ALPHA, "name": ""}, "prose", {"name": "Beta"}],
            "relationships": [link, {**link, "strength": "high"}, {**link, "strength": float("inf")}, {**link, "target": "y" * 10_000}, {"source": "Alpha"}],
        },
        tally,
        "unit",
    )  # fmt: skip
    assert [e.title for e in found.entities] == ["ALPHA MOTORS", "NONE"]
    assert [r.weight for r in found.relations] == [5.0, 1.0, 1.0]
    assert tally.counts == {"unread": 0, "entity": 4, "relation": 2, "none": 1, "silent": 0}
    assert read(None, tally, "unit") == read({"entities": "none"}, tally, "unit") == Extract()


@given(st.text(max_size=30) | st.sampled_from(["AT&amp;amp;T", "a \x00", "Straße", " &nbsp;x"]))
def test_a_title_stays_what_it_is_however_often_it_is_cleaned(name: str) -> None:
    """Clustering cleans names once more: they must still be the titles of the tables."""
    assert clean(title(name).upper()) == title(name)
    assert title("AT&amp;T") == title("at&t") == "AT&T"


def test_two_calls_a_unit_and_the_second_knows_the_first() -> None:
    def say(purpose: str, messages: Sequence[Message]) -> Mapping[str, Any] | None:
        if "broken" in str(messages[1]["content"]):
            return None
        return {"entities": [] if "empty" in str(messages[1]["content"]) else [ALPHA], "relationships": []}

    llm, tally = StubLLM(say), Tally(KINDS)
    extraction = Extraction(("organization",), 1, tally)
    records = [record("good"), record("empty"), record("broken")]
    found = asyncio.run(extraction.of(records, Asker(llm, SYSTEM)))
    assert [len(e.entities) for e in found] == [2, 0, 0]
    assert [len(messages) for _, messages in llm.asked].count(4) == 2  # system, text, reply, follow-up
    assert tally.counts["unread"] == 1
    assert tally.counts["silent"] == 2


def test_degrees_count_neighbours_and_the_first_type_of_a_title_stays() -> None:
    tables = Tables.of(
        {
            "u1": extract(["A", "B", "C"], [("A", "B"), ("B", "A"), ("A", "A"), ("A", "C"), ("A", "NOWHERE")]),
            "u2": extract(["A", "D"], [("A", "B")], "told again"),
        }
    )
    assert tables.degree == {"A": 2, "B": 1, "C": 1}
    assert [e.title for e in tables.entities] == ["A", "B", "C", "D"]
    assert len(tables.relations) == 4
    assert tables.shaped_by(["C"]) == {"u1"}
    assert tables.shaped_by(["B"]) == {"u1", "u2"}  # by its relation to A


@given(st.lists(st.text(max_size=20), min_size=2, max_size=12, unique=True), st.integers(0, 60))
def test_every_description_is_summarised_once_and_the_last_answer_counts(texts: list[str], room: int) -> None:
    batches: list[list[str]] = []

    async def summarise(batch: Sequence[str]) -> str:
        batches.append(list(batch))
        return f"summary {len(batches)}"

    found = asyncio.run(merge_descriptions(texts, summarise, room, len))
    assert found == f"summary {len(batches)}"
    summaries = {f"summary {n}" for n in range(1, len(batches))}
    assert sorted(text for batch in batches for text in batch if text not in summaries) == sorted(
        text for text in texts if text not in summaries
    )
    assert all(len(batch) > 1 for batch in batches)


def test_a_giant_community_is_cut_and_counted() -> None:
    names = [f"N{i:04}" for i in range(1500)]
    hub = Tables.of({"u": extract(["HUB", *names], [("HUB", name) for name in names])})
    found = communities_of([(r.source, r.target, r.weight) for r in hub.relations])
    community = max(found.by_number.values(), key=lambda c: len(c.nodes))
    assert len(community.nodes) > 1000, "a star cannot be split"
    inside = relations_inside(community, hub, 8_000)
    assert len(inside) <= 1000
    texts = {entity.title: entity.descriptions[0] for entity in hub.entities}
    shown, fitting = input_tables(inside, hub, texts, dict.fromkeys(inside, "told"), 8_000, len)
    assert 0 < fitting < len(inside)
    assert len(shown) <= 8_000 + len("\n\n")

    llm = StubLLM(lambda purpose, messages: REPORT)
    index = Index(IndexSettings(report_tokens=500))
    asyncio.run(index._report(community, hub, llm))
    asyncio.run(index._report(community, hub, llm))
    assert index.tally.counts["large"] == len(llm.asked) == 1


REPORT = {
    "title": "Hub",
    "summary": "All deal with the hub.",
    "rating": 7,
    "rating_explanation": "It is large.",
    "findings": [{"summary": "One", "explanation": "Because."}],
}


def test_a_report_is_one_text() -> None:
    assert written(REPORT).content == "# Hub\n\nAll deal with the hub.\n\n## One\n\nBecause."


def test_unusable_answers_of_a_build_have_a_place() -> None:
    llm, index = StubLLM(lambda purpose, messages: None), Index(IndexSettings())
    group = Tables.of({"u1": extract(["A"], [], "x"), "u2": extract(["A"], [], "y")}).entities
    assert asyncio.run(index.entity_texts(group, llm)) == ["A x"]
    asyncio.run(index.entity_texts(group, llm))
    assert len(llm.asked) == 1
    assert index.tally.counts["unmerged"] == 1


def test_communities_of_nothing_and_of_pieces() -> None:
    assert communities_of([]).by_number == {}
    assert communities_of([("A", "A", 1.0)]).of_node.keys() <= {"A"}
    pieces = communities_of([("A", "B", 1.0), ("B", "A", 2.0), ("C", "D", 1.0), ("D", "E", 1.0)])
    assert set(pieces.of_node) == {"C", "D", "E"}  # the largest component alone
    assert set(communities_of([("A", "B", 1.0), ("C", "D", 1.0), ("D", "E", 1.0)], use_lcc=False).of_node) == set(
        "ABCDE"
    )
    assert pieces.at_most(2, "A") == []


@pytest.mark.parametrize(
    ("grid", "point"),
    [("week", "2021-03-01"), ("day", "2021-03-04"), ("exact", "2021-03-04 09:30")],
)
def test_grid_points_are_never_later(grid: str, point: str) -> None:
    thursday = datetime(2021, 3, 4, 9, 30, tzinfo=UTC)
    assert grid_point(thursday, grid) == datetime.fromisoformat(point).replace(tzinfo=UTC)
    monday = datetime(2021, 3, 1, tzinfo=UTC)
    assert grid_point(monday, grid) == monday


def test_links_of_one_question_do_not_leak_into_the_next() -> None:
    def entity(name: str) -> local.Entity:
        return local.Entity(name, name, name, "", (), (), 1)

    relations = [
        local.Relation(f"{a}{b}", "0", a, b, "told", 1.0, 2, ())
        for a, b in (("A", "X"), ("B", "X"), ("A", "Y"), ("A", "B"))
    ]
    budget = local.Budget(10_000)
    first = local.mixed_context([entity("A"), entity("B")], relations, {}, {}, budget, len)
    again = local.mixed_context([entity("A"), entity("B")], relations, {}, {}, budget, len)
    assert first == again
    assert first.links == {"AX": 2, "AY": 1, "BX": 2, "AB": 1}


def test_points_out_of_shape() -> None:
    assert globally.points_of(None) == globally.points_of({"points": []}) == [globally.Point("", 0)]
    assert globally.points_of({"points": [{"description": "x", "score": "high"}]}) == []
    assert globally.points_of({"points": [{"description": "x", "score": "70"}, {"score": 1}]}) == [
        globally.Point("x", 70)
    ]
    assert globally.occurrence_weights([], []) == {}
    assert globally.report_batches([], {}, 100, len) == []


def test_knobs_that_contradict_each_other_are_refused() -> None:
    from harness.config import build

    for override, part in (
        (["method.mode=global", "method.reports=off"], "reports=on"),
        (["method.search.unit_share=0.9"], "at most 1"),
    ):
        with pytest.raises(ConfigError, match=part):
            build(config_of("method=graphrag", *override).method, "method")
