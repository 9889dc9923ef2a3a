"""Cases of LightRAG and HyperGraphRAG: the official record format is read here, everything else is the project's own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.clock import parse_stamp, try_parse_stamp
from harness.evidence import EvidenceIndex, Gate
from harness.method import Vectors
from harness.records import Corpus, Document
from methods.entity_graph import EntityRecord, Limits, Searchable, clean, name_of, nearest, weight_of
from methods.hypergraphrag import reading
from methods.hypergraphrag import retrieve as hyper
from methods.hypergraphrag.graph import TAG, HyperGraph, HyperState, Member, Segment
from methods.lightrag import retrieve
from methods.lightrag.graph import Extraction, GraphState, RelationGraph, RelationRecord

TZ = "UTC"
_INSTANT = parse_stamp("2021-01-01", TZ).instant


def words(text: str) -> int:
    return len(text.split())


def records(output: str) -> Iterator[list[str]]:
    """The fields of every record in a reply of the official format."""
    for part in re.split(r"##|<\|COMPLETE\|>", output):
        if found := re.search(r"\((.*)\)", part.strip()):
            yield [field.strip() for field in found[1].split("<|>") if field.strip()]


def lightrag_legacy(inputs: Any, expected: Any) -> None:
    _lightrag(inputs, inputs["chunks"], expected)


def gate_lightrag_legacy(inputs: Any, expected: Any) -> None:
    rows = {row["id"]: row for row in inputs["all_chunks_with_ts"]}
    documents = tuple(
        Document(name, try_parse_stamp(row["ts"], TZ), "", row["content"], ()) for name, row in rows.items()
    )
    index = EvidenceIndex(Corpus(documents, {}), drop_copies=False)
    visible = [d.doc_id for d in index.as_of("", parse_stamp(inputs["cutoff_T"], TZ), Gate.STRICT).retrievable()]
    assert sorted(visible) == sorted(row["id"] for row in inputs["visible_chunks"])
    # One log of all records in order of time; the state at the cut-off is its prefix.
    everything = [rows[d.doc_id] for d in index.documents]
    assert [row["id"] for row in everything[: len(visible)]] == visible
    _lightrag({**inputs, "insert_batches": [[row["id"]] for row in everything]}, everything, expected, len(visible))


def _lightrag(inputs: Any, chunks: Sequence[Any], expected: Any, n: int | None = None) -> None:
    graph, summaries = RelationGraph(), Summaries(inputs)
    numbers = _build(graph, inputs, chunks, lambda output: _extraction(records(output)), summaries)
    names = {number: name for name, number in numbers.items()}
    n = len(inputs["insert_batches"]) if n is None else n
    state = GraphState(graph, n, n)
    nodes = {
        name: {
            "entity_type": node.type,
            "description": node.description,
            "source_id": sorted(names[c] for c in state.node_chunks(name)),
            "degree": state.degree(name),
        }
        for name, node in graph.nodes.items_at(n)
    }
    if "nodes" in expected:
        assert nodes == _sorted_sources(expected["nodes"])
    if "edges" in expected:
        edges = {
            edge.pair: {
                "weight": pytest.approx(edge.weight, abs=1e-6),
                "description": edge.description,
                "keywords": edge.keywords,
                "source_id": sorted(names[c] for c in state.edge_chunks(edge.pair)),
            }
            for edge in state.edges
        }
        want = {(a, b): edge for a, b, edge in expected["edges"]}
        assert edges == _sorted_sources({tuple(sorted(pair)): edge for pair, edge in want.items()})
    if "n_summary_llm_calls" in expected:
        assert summaries.by_insert[n] == expected["n_summary_llm_calls"]
    if "contexts" not in expected:
        return
    limits, content = _limits(inputs), {numbers[c["id"]]: c["content"] for c in chunks}
    low, high = (
        _search(inputs, inputs[f"{level}_level_keywords_joined"], keys, texts)
        for level, keys, texts in (
            ("low", [v.name for v in state.nodes], [v.text for v in state.nodes]),
            ("high", [e.pair for e in state.edges], [e.text for e in state.edges]),
        )
    )
    local = retrieve.by_entities(state, [key for key, _ in low], limits, content.get)
    by_relations = retrieve.by_relations(state, [key for key, _ in high], limits, content.get)
    found = {"local": local, "global": by_relations, "hybrid": retrieve.both(by_relations, local)}
    for mode, rows in found.items():
        want = expected["contexts"][mode]
        unique = expected["contexts"].get("hybrid_relations_deduplicated") if mode == "hybrid" else want["relations"]
        assert [v.name.strip('"') for v in rows.entities] == want["entities"], mode
        assert ["|".join(end.strip('"') for end in e.pair) for e in rows.relations] == unique, mode
        assert [content[c] for c in rows.chunks] == want["sources"], mode


def _extraction(found: Iterator[list[str]]) -> Extraction:
    entities, relations = [], []
    for fields in found:
        if fields[0] == '"entity"' and len(fields) >= 4 and name_of(fields[1]):
            entities.append(EntityRecord(name_of(fields[1]), name_of(fields[2]), clean(fields[3])))
        elif fields[0] == '"relationship"' and len(fields) >= 5:
            ends = name_of(fields[1]), name_of(fields[2])
            weight = weight_of(fields[-1], 1.0)
            relations.append(RelationRecord(*ends, clean(fields[3]), clean(fields[4]), weight))
    return Extraction(tuple(entities), tuple(relations))


class Summaries:
    """In place of the model: counts what it would be asked."""

    def __init__(self, inputs: Any) -> None:
        self._limit = inputs["entity_summary_to_max_tokens"]
        self._text = inputs.get("summary_llm_output")
        self.asked = 0
        self.by_insert = [0]

    async def __call__(self, name: str, description: str) -> str:
        if words(description) < self._limit:
            return description
        self.asked += 1
        return self._text or description


def _build(
    graph: Any, inputs: Any, chunks: Sequence[Any], read: Callable[[str], Any], summarise: Summaries
) -> dict[str, int]:
    """Insert the batches; numbers of the chunks in order of insertion."""
    by_id = {chunk["id"]: chunk for chunk in chunks}
    numbers: dict[str, int] = {}
    for insert, batch in enumerate(inputs["insert_batches"]):
        first = len(numbers)
        numbers |= {name: first + i for i, name in enumerate(batch)}
        extracted = [(numbers[name], read(by_id[name]["llm_output"])) for name in batch]
        asyncio.run(graph.insert(insert, extracted, summarise))
        summarise.by_insert.append(summarise.asked)
    return numbers


def _search(inputs: Any, query: str, keys: Sequence[Any], texts: Sequence[str]) -> list[tuple[Any, float]]:
    async def embed(wanted: Sequence[str]) -> Vectors:
        vectors = np.asarray([inputs["vectors"][text] for text in wanted])
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    among = Searchable(tuple(keys), tuple(texts), tuple(_INSTANT for _ in keys))
    return asyncio.run(nearest(query, among, inputs["params"]["top_k"], embed))


def _limits(inputs: Any) -> Limits:
    given = inputs["params"]
    return Limits(
        edges=given.get("max_token_for_global_context", 4000),
        entities=given.get("max_token_for_local_context", 4000),
        chunks=given.get("max_token_for_text_unit", 4000),
        size=words,
    )


def _sorted_sources(items: Mapping[Any, Any]) -> dict[Any, Any]:
    """Sources are a set: their order in the official output is arbitrary."""
    return {key: {**item, "source_id": sorted(item["source_id"])} for key, item in items.items()}


def hypergraphrag(inputs: Any, expected: Any) -> None:
    graph, summaries = HyperGraph(), Summaries(inputs)
    chunks = inputs["chunks"]
    numbers = _build(graph, inputs, chunks, lambda output: _segments(records(output)), summaries)
    names = {number: name for name, number in numbers.items()}
    n = len(inputs["insert_batches"])
    state = HyperState(graph, n, n)
    nodes: dict[str, Any] = {
        h.name: {
            "role": "hyperedge",
            "weight": pytest.approx(h.weight, abs=1e-6),
            "source_id": sorted(names[c] for c in state.hyperedge_chunks(h.name)),
            "degree": len(state.members(h.name)),
        }
        for h in state.hyperedges
    }
    nodes |= {
        node.name: {
            "role": "entity",
            "entity_type": node.type,
            "description": node.description,
            "source_id": sorted(names[c] for c in state.node_chunks(node.name)),
            "degree": len(state.hyperedges_of(node.name)),
        }
        for node in state.nodes
    }
    assert nodes == _sorted_sources(expected["nodes"])
    weights = {(h.name, m): state.weight(h.name, m) for h in state.hyperedges for m in state.members(h.name)}
    assert weights == pytest.approx({(a, b): edge["weight"] for a, b, edge in expected["edges"]}, abs=1e-6)
    assert summaries.asked == expected["n_summary_llm_calls"]
    by_text, by_name = reading.searched_by(*_question(records(inputs["query_llm_output"])), inputs["query"])
    assert (by_text, by_name) == (expected["query_hyperedge_string"], expected["query_entity_string"])
    entities = _search(inputs, by_name, [v.name for v in state.nodes], [v.text for v in state.nodes])
    hyperedges = _search(inputs, by_text, [h.name for h in state.hyperedges], [h.name for h in state.hyperedges])
    for found, want in ((entities, expected["entity_hits"]), (hyperedges, expected["hyperedge_hits"])):
        assert [name for name, _ in found] == [name for name, _ in want]
        assert [score for _, score in found] == pytest.approx([score for _, score in want], abs=1e-5)
    limits, content = _limits(inputs), {numbers[c["id"]]: c["content"] for c in chunks}
    low = hyper.by_entities(state, [name for name, _ in entities], limits, content.get)
    high = hyper.by_hyperedges(state, hyperedges, limits, content.get)
    for rows, want in ((low, expected["entity_branch"]), (high, expected["hyperedge_branch"])):
        assert [v.name for v in rows.entities] == want["entities"]
        shown = [{"hyperedge": h.name, "related_entities": list(state.members(h.name))} for h in rows.hyperedges]
        assert shown == want["hyperedges"]
        assert [content[c] for c in rows.chunks] == want["sources"]
    fused = hyper.both(high, low)
    assert {
        "Entities": [f"{v.name},{v.type},{v.description}" for v in fused.entities],
        "Relationships": [f"{h.name},{'|'.join(state.members(h.name))}" for h in fused.hyperedges],
        "Sources": [content[c] for c in fused.chunks],
    } == expected["fused_context"]


def _segments(found: Iterator[list[str]]) -> tuple[Segment, ...]:
    """Entities belong to the hyper-relation before them; those before the first belong to none."""
    segments: list[Segment] = []
    for fields in found:
        if fields[0] == '"hyper-relation"' and len(fields) >= 3:
            segments.append(Segment(clean(fields[1]), weight_of(fields[-1], reading.DEFAULT_COMPLETENESS), ()))
        elif fields[0] == '"entity"' and len(fields) >= 5 and segments and name_of(fields[1]):
            record = EntityRecord(name_of(fields[1]), name_of(fields[2]), clean(fields[3]))
            member = Member(record, weight_of(fields[-1], reading.DEFAULT_SCORE))
            segments[-1] = replace(segments[-1], members=(*segments[-1].members, member))
    return tuple(segments)


def _question(found: Iterator[list[str]]) -> tuple[list[str], list[str]]:
    """Hyperedges and entities of a question: of exactly so many fields, and entities wherever they stand."""
    fields = list(found)
    return (
        [TAG + clean(f[1]) for f in fields if f[0] == '"hyper-relation"' and len(f) == 3],
        [name_of(f[1]) for f in fields if f[0] == '"entity"' and len(f) == 5],
    )
