"""The two graphs: a state of the log is what a build from nothing would be; merging, odd records, failures half-way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from methods.asking import NAME_CHARS
from methods.entity_graph import (
    SEPARATOR,
    EntityRecord,
    Limits,
    chunks_of_entities,
    clean,
    cut,
    is_name,
    joined,
    majority,
    name_of,
    weight_of,
)
from methods.hypergraphrag import retrieve as hyper
from methods.hypergraphrag.graph import HyperGraph, HyperState, Member, Segment
from methods.lightrag import retrieve
from methods.lightrag.graph import Extraction, GraphState, RelationGraph, RelationRecord

NAMES = st.sampled_from(["A", "B", "C", "D", "茅台"])
TEXTS = st.sampled_from(["x", "y", "z", "long " * 9])
ENTITIES = st.builds(EntityRecord, NAMES, st.sampled_from(["ORGANIZATION", "EVENT"]), TEXTS)
RELATIONS = st.builds(RelationRecord, NAMES, NAMES, TEXTS, TEXTS, st.sampled_from([0.0, 1.0, 2.5]))
LISTS = {"max_size": 3}
LIGHT = st.builds(Extraction, st.lists(ENTITIES, **LISTS).map(tuple), st.lists(RELATIONS, **LISTS).map(tuple))
MEMBERS = st.builds(Member, ENTITIES, st.sampled_from([10.0, 50.0, 90.0]))
HYPER = st.lists(st.builds(Segment, TEXTS, st.sampled_from([1.0, 9.0]), st.lists(MEMBERS, **LISTS).map(tuple)), **LISTS)


async def short(name: str, description: str) -> str:
    """A summary of what is long, which depends on all of it."""
    return description if len(description) < 40 else f"summary of {len(description)}"


def built(graph: Any, inserts: Sequence[Sequence[Any]]) -> Any:
    chunk = 0
    for number, extractions in enumerate(inserts):
        asyncio.run(graph.insert(number, list(enumerate(extractions, start=chunk)), short))
        chunk += len(extractions)
    return graph


def light_state(graph: RelationGraph, n: int) -> Any:
    state = GraphState(graph, n, n)
    names = [node.name for node in state.nodes]
    limits = Limits(edges=40, entities=40, chunks=40, size=len)
    return (
        state.nodes,
        state.edges,
        [
            (state.node(name), state.degree(name), state.pairs_of(name), list(state.node_chunks(name)))
            for name in "ABCD"
        ],
        [list(state.edge_chunks(edge.pair)) for edge in state.edges],
        retrieve.by_entities(state, names[::-1], limits, str),
        retrieve.by_relations(state, [edge.pair for edge in state.edges][::-1], limits, str),
    )


def hyper_state(graph: HyperGraph, n: int) -> Any:
    state = HyperState(graph, n, n)
    names = [node.name for node in state.nodes]
    limits = Limits(edges=40, entities=40, chunks=40, size=len)
    return (
        state.nodes,
        state.hyperedges,
        [(state.score(name), list(state.hyperedges_of(name)), list(state.node_chunks(name))) for name in names],
        [[(m, state.weight(h.name, m)) for m in state.members(h.name)] for h in state.hyperedges],
        [list(state.hyperedge_chunks(h.name)) for h in state.hyperedges],
        hyper.by_entities(state, names[::-1], limits, str),
        hyper.by_hyperedges(state, [(h.name, 0.5) for h in state.hyperedges], limits, str),
    )


@settings(max_examples=60)
@given(st.lists(st.lists(LIGHT, min_size=1, max_size=2), min_size=1, max_size=6))
def test_a_prefix_of_lightrags_log_is_a_build_from_nothing(inserts: Sequence[Sequence[Extraction]]) -> None:
    whole = built(RelationGraph(), inserts)
    for n in range(len(inserts) + 1):
        assert light_state(whole, n) == light_state(built(RelationGraph(), inserts[:n]), n)


@settings(max_examples=60)
@given(st.lists(st.lists(HYPER.map(tuple), min_size=1, max_size=2), min_size=1, max_size=6))
def test_a_prefix_of_hypergraphrags_log_is_a_build_from_nothing(inserts: Any) -> None:
    whole = built(HyperGraph(), inserts)
    for n in range(len(inserts) + 1):
        assert hyper_state(whole, n) == hyper_state(built(HyperGraph(), inserts[:n]), n)


def test_a_state_that_sees_one_insert_more_is_caught() -> None:
    """The planted violation of the two tests above."""
    inserts = [[Extraction((EntityRecord("A", "EVENT", text),))] for text in ("x", "y")]
    whole = built(RelationGraph(), inserts)
    assert light_state(whole, 2) != light_state(built(RelationGraph(), inserts[:1]), 1)


@given(st.lists(st.lists(LIGHT, min_size=1, max_size=2), min_size=1, max_size=6), st.integers(0, 6))
def test_nothing_is_shown_that_a_refused_insert_shaped(inserts: Sequence[Sequence[Extraction]], admitted: int) -> None:
    """The paper gate: built of everything, filtered by the newest source."""
    whole = built(RelationGraph(), inserts)
    state = GraphState(whole, len(inserts), admitted)
    first_refused = sum(len(extractions) for extractions in inserts[:admitted])
    for node in state.nodes:
        assert max(state.node_chunks(node.name)) < first_refused
    for edge in state.edges:
        assert max(state.edge_chunks(edge.pair)) < first_refused


@given(st.lists(st.lists(LIGHT, min_size=1, max_size=2), min_size=1, max_size=6))
def test_no_version_is_older_than_its_newest_source(inserts: Sequence[Sequence[Extraction]]) -> None:
    whole = built(RelationGraph(), inserts)
    insert_of = [number for number, extractions in enumerate(inserts) for _ in extractions]
    for n in range(1, len(inserts) + 1):
        state = GraphState(whole, n, n)
        for node in state.nodes:
            assert max(insert_of[chunk] for chunk in state.node_chunks(node.name)) == node.last < n
        for edge in state.edges:
            assert max(insert_of[chunk] for chunk in state.edge_chunks(edge.pair)) == edge.last < n


def test_chinese_names_stay_apart() -> None:
    names = ["贵州茅台", "五粮液", "证监会", "ＸＤ贵州茅", "中芯国际"]
    records = tuple(EntityRecord(name_of(name), "ORGANIZATION", "") for name in names)
    state = GraphState(built(RelationGraph(), [[Extraction(records)]]), 1, 1)
    assert [node.name for node in state.nodes] == names


def test_a_failed_summary_leaves_the_graph_as_it_was() -> None:
    graph = built(RelationGraph(), [[Extraction((EntityRecord("A", "EVENT", "x"),))]])

    async def fails(name: str, description: str) -> str:
        if name == "A, C":
            raise ConnectionError
        return description

    more = Extraction((EntityRecord("A", "EVENT", "y"),), (RelationRecord("A", "C", "r", "k", 1.0),))
    with pytest.raises(ConnectionError):
        asyncio.run(graph.insert(1, [(1, more)], fails))
    assert light_state(graph, 9) == light_state(graph, 1)


def test_a_relation_with_itself_counts_twice_in_the_degree() -> None:
    relation = RelationRecord("A", "A", "r", "k", 1.0)
    state = GraphState(built(RelationGraph(), [[Extraction((), (relation, relation))]]), 1, 1)
    assert state.degree("A") == 2
    assert state.pairs_of("A") == [("A", "A")]
    assert state.nodes == ()  # nobody described A: similarity cannot find it
    assert state.edges[0].weight == 2.0


def test_an_end_that_is_described_later_votes_against_unknown() -> None:
    inserts = [
        [Extraction((), (RelationRecord("A", "B", "r", "k", 1.0),))],
        [Extraction((EntityRecord("B", "EVENT", "b"),))],
    ]
    state = GraphState(built(RelationGraph(), inserts), 2, 2)
    [node] = state.nodes
    assert (node.name, node.type, node.description) == ("B", "EVENT", f"b{SEPARATOR}r")


def test_names() -> None:
    assert name_of(" Acme &amp; Söhne\x07 ") == "ACME & SÖHNE"
    assert name_of('"Acme"') == '"ACME"'
    assert name_of("ｘｄ贵州茅（酱香）") == "ＸＤ贵州茅（酱香）"  # as the original: no other letter for a wide one
    assert not is_name(name_of("None"))
    assert not is_name('"NONE"')
    assert not is_name(" ".strip())
    assert not is_name("A" * (NAME_CHARS + 1))
    assert is_name("NONESUCH")
    assert clean("&lt;b&gt;\n") == "<b>"


@pytest.mark.parametrize(
    ("value", "number"), [("7", 7.0), ("-.5", -0.5), ("7/10", 1.0), ("high", 1.0), (None, 1.0), (True, 1.0), (3, 3.0)]
)
def test_weights(value: Any, number: float) -> None:
    assert weight_of(value, 1.0) == number


def test_merging() -> None:
    assert majority(["b", "a", "a", "b"]) == "b"
    assert joined(["y", "x", "y", f"y{SEPARATOR}z"]) == f"x{SEPARATOR}y{SEPARATOR}y{SEPARATOR}z"


def test_a_cut_ends_at_the_first_item_that_overflows() -> None:
    assert cut(["aa", "bbbb", "c"], str, 3, len) == ["aa"]
    assert cut(["aa", "b"], str, 3, len) == ["aa", "b"]


def test_chunks_count_the_neighbours_of_all_their_entities() -> None:
    first = ([1, 2], [[2], [2, 3]])
    second = ([1, 3], [[1], [1], [1]])
    assert chunks_of_entities([first]) == [2, 1]
    assert chunks_of_entities([first, second]) == [1, 2, 3]
