"""Runners of the methods that retrieve through a graph: HippoRAG and GraphRAG."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.clock import parse_stamp, try_parse_stamp
from harness.evidence import EvidenceIndex, Gate
from harness.gateway.objects import find_objects
from harness.records import Corpus, Document
from methods.graphrag import extraction, globally, local
from methods.graphrag.communities import communities_of
from methods.graphrag.summaries import merge_descriptions
from methods.graphrag.tables import RelationGroup, merge_entities, merge_relations, without_orphans
from methods.hipporag import openie, search
from methods.hipporag.graph import PhraseGraph, Version, build_graph, pagerank, walk_matrix
from methods.hipporag.openie import Triple, normalised, triples_of
from methods.hipporag.phrases import Normalise, phrase
from methods.hipporag.search import Scores, min_max
from methods.hipporag.synonyms import Neighbours, SynonymRule, close_pairs
from methods.ranking import cosine_scores
from methods.tally import Tally

TZ = "UTC"


def hipporag_v1(inputs: Any, expected: Any) -> None:
    how, triples = _passages(inputs["docs"], inputs["phrase_vectors"])
    graph = _graph(
        triples, inputs["phrase_vectors"], SynonymRule(inputs["synonym_threshold"], normalise=how), Version.V1
    )
    assert list(graph.phrases) == expected["phrases"]
    assert dict(zip(graph.phrases, graph.counts.tolist(), strict=True)) == expected["n_docs_per_phrase"]
    edges = {f"{graph.phrases[a]} -> {graph.phrases[b]}": weight for (a, b), weight in graph.edges.items()}
    assert edges == pytest.approx(expected["directed_edge_weights"], abs=1e-6)
    for phrase_, synonym, weight in expected.get("synonym_edges", ()):
        assert edges[f"{phrase_} -> {synonym}"] == pytest.approx(weight, abs=1e-6)
    for query, want in zip(inputs["queries"], expected["queries"], strict=True):
        links = {
            name: int(np.argmax(cosine_scores(_matrix(graph.phrases, inputs["phrase_vectors"]), _vector(vector))))
            for name, vector in ((phrase(n, how), query["ner_vectors"][phrase(n, how)]) for n in query["ner"])
        }
        assert {name: graph.phrases[node] for name, node in links.items()} == want["linked"]
        reset = search.specificity_reset(graph, links.values(), inputs["node_specificity"])
        assert {graph.phrases[i]: reset[i] for i in np.flatnonzero(reset)} == pytest.approx(want["reset"], abs=1e-6)
        ranks = pagerank(graph, reset, inputs["damping"])
        assert dict(zip(graph.phrases, ranks, strict=True)) == pytest.approx(want["ppr"], abs=1e-7)
        scores = search.scores_by_phrases(graph, ranks)
        _same_ranking(scores, want["ranked_doc_idx"], want["scores"], inputs["top_k"], 1e-6)


def hipporag_v2(inputs: Any, expected: Any) -> None:
    _hipporag_v2(inputs, expected, [[inputs["docs"][i] for i in batch] for batch in inputs["index_batches"]])


def gate_hipporag_v2(inputs: Any, expected: Any) -> None:
    """The documents pass the gate first; what is built and found then is as of the cut-off."""
    rows = {str(i): row for i, row in enumerate(inputs["all_docs_with_ts"])}
    documents = tuple(Document(i, try_parse_stamp(row["ts"], TZ), "", row["text"], ()) for i, row in rows.items())
    index = EvidenceIndex(Corpus(documents, {}), drop_copies=False)
    visible = index.as_of("", parse_stamp(inputs["cutoff_T"], TZ), Gate.STRICT).retrievable()
    assert sorted(int(d.doc_id) for d in visible) == sorted(inputs["visible_indices"])
    _hipporag_v2(inputs, expected, [[rows[str(i)] for i in inputs["visible_indices"]]])


def _hipporag_v2(inputs: Any, expected: Any, batches: Sequence[Sequence[Any]]) -> None:
    config, vectors = inputs["config"], inputs["vectors"]
    docs = [d for batch in batches for d in batch]
    how, triples = _passages(docs, vectors, distinct=True)
    rule = SynonymRule(config["synonymy_edge_sim_threshold"], config["synonymy_edge_topk"], normalise=how)
    graph = _graph(triples, vectors, rule, Version.V2)
    parallel = len(graph.edges)
    if len(batches) > 1:
        graph, parallel = _indexed_in_turn(graph, triples, [len(batch) for batch in batches], vectors, rule)
    counts = dict(zip(graph.phrases, graph.counts.tolist(), strict=True))
    assert counts == expected["entities_n_chunks"]
    assert parallel == expected["n_parallel_edges"]
    names = [*graph.phrases, *(d["text"] for d in docs)]
    effective: dict[frozenset[str], float] = {}
    for (a, b), weight in graph.edges.items():
        pair = frozenset((names[a], names[b]))
        effective[pair] = effective.get(pair, 0.0) + weight
    wanted = {frozenset(key.split(" <-> ")): w for key, w in expected["effective_undirected_edge_weights"].items()}
    assert effective == pytest.approx(wanted, abs=1e-5)
    facts = list(dict.fromkeys(triple for passage in triples for triple in passage))
    for query, want in zip(inputs["queries"], expected["queries"], strict=True):
        asked = _vector(vectors[query["text"]])
        scores = min_max(cosine_scores(_matrix([str(fact) for fact in facts], vectors), asked))
        dense = min_max(cosine_scores(_matrix([d["text"] for d in docs], vectors), asked))
        wanted_facts = {str(list(fact)): score for fact, score in zip(facts, scores, strict=True)}
        assert wanted_facts == pytest.approx(want["fact_scores_minmax"], abs=1e-5)
        best = search.best_facts(scores, facts, config["linking_top_k"])
        candidates = [facts[i] for i in best]
        assert [list(fact) for fact in candidates] == want["facts_before_filter"]
        kept = search.snapped(query["filter_llm_output_facts"], candidates, config["linking_top_k"])
        assert [list(candidates[i]) for i in kept] == want["facts_after_filter"]
        found = dense
        if kept:
            heaviest = [(candidates[i], float(scores[best[i]])) for i in kept]
            weights = search.phrase_weights(heaviest, counts, config["linking_top_k"])
            reset = search.fact_reset(graph, weights, dense, config["passage_node_weight"])
            found = search.passage_ranks(graph, reset, config["damping"])
        _same_ranking(found, want["ranked_docs"], want["scores"], len(docs), 1e-5)


def graphrag_extract(inputs: Any, expected: Any) -> None:
    tally = Tally(extraction.KINDS)
    extracts = {u["id"]: extraction.read(_items(u["llm_output"]), tally, u["id"]) for u in inputs["text_units"]}
    entities, relations = merge_entities(extracts), merge_relations(extracts)
    assert [
        {
            "title": e.title,
            "type": e.type,
            "description": list(e.descriptions),
            "text_unit_ids": list(e.units),
            "frequency": len(e.units),
        }
        for e in entities
    ] == expected["entities"]
    assert [_relation_row(r) for r in relations] == expected["relationships_before_orphan_filter"]
    assert [_relation_row(r) for r in without_orphans(relations, entities)] == expected["relationships"]


def graphrag_summarize(inputs: Any, expected: Any) -> None:
    name = inputs["name"]
    name = json.dumps(sorted(name) if isinstance(name, list) else name, ensure_ascii=False)
    prompts: list[str] = []

    async def summarise(descriptions: Sequence[str]) -> str:
        prompts.append(f"E={name} D={json.dumps(list(descriptions), ensure_ascii=False)} L=500")
        reply: str = inputs["llm_outputs"][len(prompts) - 1]
        return reply

    room = inputs["max_input_tokens"] - inputs["prompt_template_token_len"]
    found = asyncio.run(merge_descriptions(inputs["descriptions"], summarise, room, len))
    assert (found, prompts, len(prompts)) == (
        expected["result"],
        expected["rendered_prompts"],
        expected["n_llm_calls"],
    )


def graphrag_leiden(inputs: Any, expected: Any) -> None:
    found = communities_of(
        [(s, t, w) for s, t, w in inputs["edges"]], inputs["max_cluster_size"], inputs["use_lcc"], inputs["seed"]
    )
    rows = [
        {"level": c.level, "community": c.number, "parent": c.parent, "nodes": list(c.nodes)}
        for c in found.by_number.values()
    ]
    rows.sort(key=lambda row: (row["level"], row["community"]))
    assert rows == sorted(expected["communities"], key=lambda row: (row["level"], row["community"]))
    assert len({row["level"] for row in rows}) == expected["n_levels"]
    assert sorted(row["nodes"] for row in rows if row["level"] == 0) == sorted(expected["level0_partition"])


def graphrag_local(inputs: Any, expected: Any) -> None:
    params = inputs["params"]
    entities = {e["id"]: _entity(e) for e in inputs["entities"]}
    nearest = inputs["entity_ids_by_vector_similarity"][: local.OVERSAMPLING * params["top_k_mapped_entities"]]
    selected = [entities[i] for i in nearest]
    relations = [_relation(r) for r in inputs["relationships"]]
    units = {u["id"]: local.TextUnit(u["id"], u["short_id"], u["text"]) for u in inputs["text_units"]}
    reports = {r["community_id"]: _report(r) for r in inputs["community_reports"]}
    budget = local.Budget(
        params["max_context_tokens"], params["text_unit_prop"], params["community_prop"], params["top_k_relationships"]
    )
    found = local.mixed_context(selected, relations, units, reports, budget, len)
    # The official code packs twice, once for the text and once for the records, and keeps the link counts in between.
    again = local.mixed_context(selected, relations, units, reports, budget, len, found.links)
    assert _official_layout(found, selected, units, reports) == expected["context_text"]
    names = {"community": "reports", "entity": "entities", "relation": "relationships", "chunk": "sources"}
    tabled = {
        names[kind]: [dict(zip(table.columns, row.cells, strict=True)) for row in table.rows]
        for kind, table in again.tables
    }
    wanted = expected["context_records"]
    assert {name: rows for name, rows in tabled.items() if rows} == {
        name: [{k: v for k, v in row.items() if k != "in_context"} for row in rows]
        for name, rows in wanted.items()
        if rows
    }


def graphrag_global(inputs: Any, expected: Any) -> None:
    reports = [_report(r) for r in inputs["community_reports"]]
    entities = [_entity({"short_id": "", "title": "", "description": "", "rank": 0, **e}) for e in inputs["entities"]]
    weights = globally.occurrence_weights(reports, entities)
    batches = globally.report_batches(reports, weights, inputs["max_context_tokens"], len, inputs["shuffle_seed"])
    assert [text for _, text in batches] == expected["map_batches"]
    points = [
        globally.points_of(found[-1].value if (found := find_objects(reply)) else None)
        for reply in inputs["map_llm_outputs"]
    ]
    assert [[{"answer": p.answer, "score": p.score} for p in some] for some in points] == expected["parsed_points"]
    data = globally.best_points(points, inputs["reduce_max_data_tokens"], len)
    assert data == expected["reduce_report_data"]


def _items(output: str) -> dict[str, list[dict[str, str]]]:
    """The official record format as the JSON that is asked for here; a part that a record lacks stays missing."""
    items: dict[str, list[dict[str, str]]] = {"entities": [], "relationships": []}
    for raw in output.split("##"):
        kind, *parts = re.sub(r"^\(|\)$", "", raw.strip()).split("<|>")
        if kind == '"entity"':
            items["entities"].append(dict(zip(("name", "type", "description"), parts, strict=False)))
        elif kind == '"relationship"':
            item = dict(zip(("source", "target", "description"), parts, strict=False))
            items["relationships"].append(item | ({"strength": parts[-1]} if len(parts) > 3 else {}))
    return items


def _relation_row(relation: RelationGroup) -> dict[str, Any]:
    return {
        "source": relation.source,
        "target": relation.target,
        "description": list(relation.descriptions),
        "text_unit_ids": list(relation.units),
        "weight": relation.weight,
    }


def _entity(row: Any) -> local.Entity:
    return local.Entity(
        row["id"],
        row["short_id"],
        row["title"],
        row["description"],
        tuple(row["community_ids"] or ()),
        tuple(row["text_unit_ids"] or ()),
        row["rank"],
    )


def _relation(row: Any) -> local.Relation:
    return local.Relation(
        row["id"],
        row["short_id"],
        row["source"],
        row["target"],
        row["description"],
        row["weight"],
        row["rank"],
        tuple(row["text_unit_ids"] or ()),
    )


def _report(row: Any) -> local.Report:
    return local.Report(row["id"], row["short_id"], row["title"], row["community_id"], row["full_content"], row["rank"])


def _official_layout(found: local.MixedContext, selected: Any, units: Any, reports: Any) -> str:
    """The text of the official code, which writes ``[]`` where there are reports but none is chosen or fits."""
    parts = []
    if selected and reports:
        parts.append(found.reports.text if found.reports else "[]")
    tables = [found.entities.text if found.entities else "", found.relations.text if found.relations else ""]
    if "".join(tables):
        parts.append("\n\n".join(tables))
    if found.units and units:
        parts.append(found.units.text)
    return "\n\n".join(parts)


def _indexed_in_turn(
    whole: PhraseGraph, triples: Sequence[Sequence[Triple]], sizes: Sequence[int], vectors: Any, rule: SynonymRule
) -> tuple[PhraseGraph, int]:
    """What the official code has after indexing batch by batch, and its parallel edges: each call adds the facts of its own
    documents, and once more the synonyms of all. No method here builds so: a snapshot is always built at once.
    """
    edges: dict[tuple[int, int], float] = {}
    parallel = start = 0
    for size in sizes:
        end = start + size
        own = [passage if start <= d < end else () for d, passage in enumerate(triples)]
        added = _named_edges(_graph(own, vectors, replace(rule, most=0), Version.V2))
        so_far = _graph(triples[:end], vectors, rule, Version.V2)
        known = _neighbours(so_far.phrases, vectors, rule)
        added |= {(a, b): score for a, b, score in rule.edges(so_far.phrases, known)}
        node: dict[Any, int] = {**whole.node, **{d: len(whole.phrases) + d for d in range(len(triples))}}
        for (a, b), weight in added.items():
            pair = node[a], node[b]
            edges[pair] = edges.get(pair, 0.0) + weight
        parallel += len(added)
        start = end
    size = len(whole.phrases) + len(triples)
    return replace(whole, edges=edges, walk=walk_matrix(size, edges)), parallel


def _named_edges(graph: PhraseGraph) -> dict[tuple[Any, Any], float]:
    """Edges between names of phrases and numbers of passages."""
    names = [*graph.phrases, *range(graph.passages)]
    return {(names[a], names[b]): weight for (a, b), weight in graph.edges.items()}


def _passages(
    docs: Sequence[Any], vectors: Mapping[str, Any], distinct: bool = False
) -> tuple[Normalise, list[tuple[Triple, ...]]]:
    """Normalised triples, in the one of the two ways in which every phrase has a vector: on ASCII text they agree."""
    tally = Tally(openie.KINDS)
    stated = [triples_of(d["triples"], tally, "") for d in docs]
    stated = [tuple(dict.fromkeys(passage)) for passage in stated] if distinct else stated
    ways = {how: [normalised(passage, how) for passage in stated] for how in Normalise}
    for how, passages in ways.items():
        if all(name in vectors for passage in passages for s, _, o in passage for name in (s, o)):
            return how, passages
    raise AssertionError("the case has phrases without a vector")


def _graph(
    triples: Sequence[Sequence[Triple]], vectors: Mapping[str, Any], rule: SynonymRule, version: Version
) -> PhraseGraph:
    phrases = sorted({name for passage in triples for s, _, o in passage for name in (s, o)})
    return build_graph(triples, _neighbours(phrases, vectors, rule), rule, version)


def _neighbours(phrases: Sequence[str], vectors: Mapping[str, Any], rule: SynonymRule) -> Neighbours:
    matrix = _matrix(phrases, vectors)
    neighbours: dict[str, list[tuple[str, float]]] = {}
    for i, j, score in close_pairs(matrix, matrix, rule.threshold):
        if i != j:
            neighbours.setdefault(phrases[i], []).append((phrases[j], score))
    return {name: sorted(close, key=lambda pair: (-pair[1], pair[0])) for name, close in neighbours.items()}


def _same_ranking(scores: Scores, ranked: Sequence[int], wanted: Sequence[float], k: int, tolerance: float) -> None:
    """The same scores at every rank, and the same documents wherever no other has that score."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:k]
    assert [scores[i] for i in order] == pytest.approx(wanted, abs=tolerance)
    assert [scores[i] for i in ranked] == pytest.approx(wanted, abs=tolerance)
    assert len(ranked) == len(order) == len(set(ranked))
    for place, mine, theirs in zip(range(len(order)), order, ranked, strict=True):
        assert mine == theirs or abs(scores[mine] - scores[theirs]) < 1e-9, place


def _vector(values: Sequence[float]) -> Any:
    return np.asarray(values, dtype=np.float64)


def _matrix(names: Sequence[str], vectors: Mapping[str, Any]) -> Any:
    return np.asarray([vectors[name] for name in names], dtype=np.float64)
