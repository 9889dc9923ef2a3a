"""HippoRAG: phrases of every script, replies out of shape, synonyms whatever the order, snapshots as built from nothing."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.method import Message
from harness.rehearsal.material import material
from methods.asking import NAME_CHARS, Asker
from methods.hipporag import search
from methods.hipporag.graph import PhraseGraph, Version, build_graph, pagerank
from methods.hipporag.openie import KINDS, SYSTEM, OpenIE, Triple, normalised
from methods.hipporag.phrases import Normalise, has_synonyms, phrase
from methods.hipporag.synonyms import SynonymIndex, SynonymRule
from methods.tally import Tally
from tests.graphs.support import StubLLM, embed, record

CHINESE = [("贵州茅台", "上调", "出厂价"), ("贵州茅台", "回购", "股份"), ("宁德时代", "中标", "储能项目"), ("ＡＢＣ公司", "收购", "abc公司")]  # fmt: skip


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_both_ways_to_write_a_phrase_agree_on_ascii(text: str) -> None:
    assert phrase(text, Normalise.UNICODE) == phrase(text, Normalise.ASCII)
    assert has_synonyms(phrase(text)) == has_synonyms(phrase(text), Normalise.ASCII)


def test_chinese_text_keeps_as_many_nodes_as_distinct_phrases() -> None:
    """The official way leaves one node, the empty phrase; what is left of "ABC" here would be a second."""
    kept = normalised(CHINESE, Normalise.UNICODE)
    graph = build_graph([kept], {}, SynonymRule(), Version.V2)
    assert set(graph.phrases) == {"贵州茅台", "出厂价", "股份", "宁德时代", "储能项目", "abc公司"}  # full width folds
    assert all(has_synonyms(name) for name in graph.phrases)
    assert normalised(CHINESE[:3], Normalise.ASCII) == (("", "", ""),) * 3
    assert not has_synonyms("茅")


@pytest.mark.data
def test_a_chinese_corpus_keeps_as_many_nodes_as_distinct_phrases(data_root: Path) -> None:
    """The names of every csmd document as the rehearsal endpoint finds them; the official way keeps next to none."""
    texts = json.loads((data_root / "event" / "CSMD_ood.json").read_text("utf-8"))["text"]
    triples = [
        tuple((a, "与", b) for a, b in itertools.pairwise(names) if a != b)
        for names in (material(row["body"]).names for row in texts)
    ]
    said = {name for passage in triples for s, _, o in passage for name in (s, o)}
    distinct = {"".join(c for c in unicodedata.normalize("NFKC", n).casefold() if c.isalnum()) for n in said}

    def nodes(how: Normalise) -> set[str]:
        graph = build_graph([normalised(p, how) for p in triples], {}, SynonymRule(normalise=how), Version.V2)
        return {name.replace(" ", "") for name in graph.phrases}

    assert nodes(Normalise.UNICODE) == distinct
    assert len(distinct) > 1000
    assert len(nodes(Normalise.ASCII)) < 0.2 * len(distinct)


def test_replies_out_of_shape_are_left_out_and_counted() -> None:
    long = "x" * 10_000
    triples: list[Any] = [
        {"subject": "Alpha", "relation": "buys", "object": "Beta"},
        {"subject": "NONE", "relation": "is", "object": "Beta"},
        {"subject": long, "relation": "is", "object": "Beta"},
        {"subject": "Alpha", "object": "Beta"},
        {"subject": " ", "relation": "is", "object": "Beta"},
        ["Alpha", "buys"],
        "prose",
    ]

    def say(purpose: str, messages: Sequence[Message]) -> Mapping[str, Any] | None:
        text = str(messages[-1]["content"])
        if "unusable" in text:
            return None
        if "silent" in text:
            return {"named_entities": [], "triples": []}
        return {"named_entities": ["Alpha", "Alpha", long, 3, ""], "triples": triples}

    tally, llm = Tally(KINDS), StubLLM(say)
    records = [record("good"), record("unusable"), record("silent")]
    found = asyncio.run(OpenIE(tally).of(records, Asker(llm, SYSTEM)))
    assert found[0].entities == ("Alpha",)
    assert found[0].triples == (("Alpha", "buys", "Beta"), ("NONE", "is", "Beta"))
    assert found[1].triples == found[2].triples == ()
    assert tally.counts == {"entities": 1, "triples": 1, "name": 3, "triple": 5, "none": 1, "silent": 1}
    assert len(llm.asked) == 2 * len(records)  # two calls a passage, the unusable one included
    assert all(len(name) <= NAME_CHARS for e in found for t in e.triples for name in t)


def test_a_passage_is_extracted_once() -> None:
    llm = StubLLM(lambda purpose, messages: {"named_entities": [], "triples": []})
    openie = OpenIE(Tally(KINDS))

    async def twice() -> None:
        records = [record("a"), record("b")]
        await asyncio.gather(*(openie.of(records, Asker(llm, SYSTEM)) for _ in range(3)))
        await openie.of(records, Asker(llm, SYSTEM))

    asyncio.run(twice())
    assert len(llm.asked) == 4


NAMES = [f"{stem} {end}" for stem in ("alpha motors", "beta cells", "gamma mining") for end in ("", "inc", "ltd", "co")]


def test_synonyms_do_not_depend_on_the_order_in_which_phrases_are_met() -> None:
    async def met(order: Sequence[str], step: int) -> SynonymIndex:
        index = SynonymIndex(0.6)
        for start in range(0, len(order), step):
            await index.add(order[start : start + step], embed)
        return index

    whole = asyncio.run(met(NAMES, len(NAMES)))
    assert any(whole.neighbours.values())
    for seed in range(5):
        shuffled = random.Random(seed).sample(NAMES, len(NAMES))
        found = asyncio.run(met(shuffled, seed + 1))
        assert {n: list(c) for n, c in found.neighbours.items()} == {n: list(c) for n, c in whole.neighbours.items()}


def test_a_snapshot_out_of_a_larger_index_is_the_one_built_from_nothing() -> None:
    """Phrases and passages met later, and phrases that were looked up for another time, leave no trace."""
    rng = random.Random(0)
    passages: list[tuple[Triple, ...]] = [
        tuple((rng.choice(NAMES), "deals with", rng.choice(NAMES)) for _ in range(2)) for _ in range(30)
    ]

    async def index_of(some: Sequence[Sequence[Triple]]) -> SynonymIndex:
        index = SynonymIndex(0.6)
        for passage in some:
            await index.add([n for s, _, o in passage for n in (s, o)], embed)
        return index

    rule = SynonymRule(0.6)
    everything = asyncio.run(index_of(passages))
    for known in (1, 3, 10, 29):
        own = asyncio.run(index_of(list(reversed(passages[:known]))))
        shared, fresh = (
            build_graph(passages[:known], index.neighbours, rule, Version.V2) for index in (everything, own)
        )
        assert (shared.phrases, shared.edges) == (fresh.phrases, fresh.edges)
        reset = np.linspace(0, 1, len(shared.phrases) + shared.passages)
        assert pagerank(shared, reset, 0.5).tolist() == pagerank(fresh, reset, 0.5).tolist()
    later = build_graph(passages, everything.neighbours, rule, Version.V2)
    assert later.edges != build_graph(passages[:10], everything.neighbours, rule, Version.V2).edges


def test_limits_of_synonyms() -> None:
    near = {"abcd": [(f"abcd{i}", 0.9) for i in range(5)]}
    names = ["abcd", *(f"abcd{i}" for i in range(5))]
    assert len(list(SynonymRule(most=3).edges(names, near))) == 3
    assert len(list(SynonymRule(nearest=3).edges(names, near))) == 2  # the phrase itself is on its list
    assert [other for _, other, _ in SynonymRule().edges(["abcd", "abcd4"], near)] == ["abcd4"]


def _graph(*passages: Sequence[Triple]) -> PhraseGraph:
    return build_graph([tuple(p) for p in passages], {}, SynonymRule(), Version.V1)


@pytest.mark.parametrize("scores", [[], [0.3], [0.3, 0.3]])
def test_equal_scores_are_all_one(scores: list[float]) -> None:
    assert search.min_max(np.array(scores)).tolist() == [1.0] * len(scores)


def test_a_loop_is_no_edge_and_a_stuck_walk_restarts() -> None:
    graph = _graph([("a", "is", "a")], [("b", "is", "c")])
    assert set(graph.edges) == {(1, 2), (2, 1)}
    ranks = pagerank(graph, np.array([1.0, 1.0, 0.0]), 0.5)
    assert ranks.sum() == pytest.approx(1)
    assert ranks[0] == pytest.approx(1 / 3)  # x = 0.5 · (0.5 x) + 0.5 · 0.5: what is stuck restarts by the reset vector


def test_nothing_returned_and_nothing_known() -> None:
    assert search.snapped([], [("a", "b", "c")], 5) == []
    assert search.snapped([["a", "b", "c"]], [], 5) == []
    assert search.phrase_weights([(("a", "b", "c"), 0.0)], {"a": 1, "c": 1}, 5) == {}
    assert build_graph([], {}, SynonymRule(), Version.V2).edges == {}
    assert build_graph([()], {}, SynonymRule(), Version.V1).phrases == ()
