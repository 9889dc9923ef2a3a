"""One function a kind of case: run the public function it is about and compare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from harness.clock import parse_stamp, try_parse_stamp
from harness.evidence import EvidenceIndex, Gate
from harness.records import Corpus, Document
from methods.ranking import cosine_scores, rank
from methods.tiem import budget, recall, scmr, skills, stability, themes, windows
from methods.tiem.records import Entity, Episode, Proposition, Theme
from methods.tiem.stability import Stability, Verdict
from methods.vectors import VectorTable
from reports.metrics import classification
from tests.forecast_reply import parse_forecast

TZ = "UTC"


def vanilla_rag_gate(inputs: Any, expected: Any) -> None:
    documents = [_document(d["id"], d["ts"], d.get("stock"), "") for d in inputs["docs"]]
    vectors = {d["id"]: d["vector"] for d in inputs["docs"]}
    decision = parse_stamp(inputs["cutoff_T"], TZ)
    visible = (
        EvidenceIndex(Corpus(tuple(documents), {}), drop_copies=False).as_of("", decision, Gate.STRICT).retrievable()
    )
    if inputs.get("stock_filter"):
        visible = [d for d in visible if inputs["stock_filter"] in d.stocks]
    scores = cosine_scores(np.asarray([vectors[d.doc_id] for d in visible]), np.asarray(inputs["query_vector"]))
    top = rank(scores, [d.time.instant for d in visible if d.time], [d.doc_id for d in visible], inputs["k"])
    assert len(visible) == expected["n_visible"]
    assert [visible[i].doc_id for i in top] == [name for name, _ in expected["top"]]
    assert [scores[i] for i in top] == pytest.approx([score for _, score in expected["top"]], abs=1e-6)


def forecast_parse(inputs: Any, expected: Any) -> None:
    for reply, want in zip(inputs["replies"], expected, strict=True):
        probability, _, problem = parse_forecast(reply)
        assert (problem is None) == want["valid"], reply
        if want["valid"]:
            assert probability == want["prob_positive"]
            assert ("positive" if probability >= 0.5 else "negative") == want["direction"]  # type: ignore[operator]
        else:
            assert problem


def metrics(inputs: Any, expected: Any) -> None:
    labels = ["positive" if row["true_dir"] > 0 else "negative" for row in inputs["rows"]]
    found = classification(labels, [row["prob_positive"] for row in inputs["rows"]])
    for name in ("acc", "mcc", "f1_macro"):
        assert getattr(found, name) == pytest.approx(expected[name], abs=1e-4)


def tiem_gates(inputs: Any, expected: Any) -> None:
    documents = tuple(_document(d["id"], d["ts"], d["stock"], d["text"]) for d in inputs["docs"])
    index = EvidenceIndex(Corpus(documents, {}), drop_copies=True)
    for query, want in zip(inputs["queries"], expected, strict=True):
        view = index.as_of(query["stock"], parse_stamp(query["T"], TZ), Gate.STRICT)
        focal = view.focal()
        assert ([focal.doc_id] if focal else []) == want["focal_doc_ids"]
        assert [f"F:{d.body}" for d in view.prior()] == want["prior"]
        assert [f"F:{d.body}" for d in view.concurrent()] == want["concurrent"]


def tiem_budget(inputs: Any, expected: Any) -> None:
    for case, want in zip(inputs["cases"], expected["results"], strict=True):
        lengths = case["stream_chars"]
        kept = budget.allocate(lengths, inputs["shares"], inputs["order"], case["total"])
        assert {s: {"kept_chars": kept[s], "truncated": kept[s] < lengths[s]} for s in kept} == want
        for stream, limit in kept.items():
            assert len(budget.cut("x" * lengths[stream], limit)) == limit


def tiem_windows(inputs: Any, expected: Any) -> None:
    # Each edge is its own document; its place in the file is what breaks ties of time.
    documents = {f"{i:06}": edge for i, edge in enumerate(inputs["edges"])}
    propositions = [
        Proposition(
            doc_id,
            0,
            0,
            e["stock"],
            try_parse_stamp(e["ts"], TZ),
            "",
            tuple(Entity(str(n), "other") for n in range(e["n_entities"])),
        )
        for doc_id, e in documents.items()
    ]
    found = [
        {
            "stock": window.stock,
            "edge_ids": [documents[p.doc_id]["id"] for p in window.propositions],
            "start": window.start.text,
            "end": window.end.text,
        }
        for window in windows.episode_windows(propositions, inputs["window_days"], inputs["max_per_window"])
    ]
    assert _by_stock(found) == _by_stock(expected["windows"])


def tiem_theme_cluster(inputs: Any, expected: Any) -> None:
    episodes = [_episode(e) for e in inputs["episodes"]]
    vectors = np.stack([_unit(inputs["vectors"][e.summary]) for e in episodes])
    rule = themes.ClusterRule(
        inputs["min_cluster_size"], inputs["max_cluster_size"], inputs["min_stocks"], inputs["min_industries"]
    )
    clusters = themes.cluster(vectors, rule.min_size)
    labels: dict[int, set[int]] = defaultdict(set)
    for row, name in enumerate(expected["hdbscan_labels"]):
        labels[name].add(row)
    assert _partition(clusters) == _partition(rows for name, rows in labels.items() if name >= 0)
    kept = [themes.keep([episodes[i] for i in rows], inputs["industries"], rule) for rows in clusters]
    valid = [[episodes.index(e) for e in cluster] for cluster in kept if cluster]
    assert _partition(valid) == _partition(expected["valid_clusters"])


def tiem_theme_dedup(inputs: Any, expected: Any) -> None:
    given = [_theme(str(number), t) for number, t in enumerate(inputs["themes"])]
    vectors = {name: _unit(v) for name, v in inputs["name_vectors"].items()}
    found = themes.deduplicate(given, vectors, inputs["threshold"])
    assert [
        {
            "name": t.name,
            "confidence": t.confidence,
            "stocks": list(t.stocks),
            "industries": list(t.industries),
            "subepisode_ids": list(t.episodes),
            "tau_start": t.start.text,
            "tau_end": t.end.text,
            "n_subepisodes": len(t.episodes),
        }
        for t in found
    ] == expected["themes"]


def tiem_skills(inputs: Any, expected: Any) -> None:
    vectors = VectorTable.of({text: _unit(v) for text, v in inputs["vectors"].items()})
    state: dict[str, skills.Skill] = {}
    touched = []
    for step in inputs["steps"]:
        changes = skills.evoke(state, f"S{len(state)}", _skill(step), vectors, merge_at=inputs["merge_threshold"])
        state = skills.fold(state, changes)
        touched.append(changes[0].skill_id)
    assert touched == expected["step_to_skill"]
    assert state.keys() == expected["skills"].keys()
    for key, want in expected["skills"].items():
        skill = state[key]
        assert skill.name == want["name"]
        assert skill.advantage == pytest.approx(want["advantage"], abs=1e-4)
        assert skill.time == _instant(want["resolve_date"])
        assert list(skill.provenance[-20:]) == want["sources"]
        assert skill.merge_count == want["merge_count"]
        assert len(skill.ancestors) == want["n_ancestors"]
        assert [a.resolve_time for a in skill.ancestors] == [_instant(t) for t in want["ancestor_resolve"]]
    for query, ids in zip(inputs["queries"], expected["retrieved"], strict=True):
        weights = query.get("stability_weights")
        found = recall.recall(
            recall.admit(state, parse_stamp(query["T"], TZ)).skills,
            vectors[query["text"]],
            query["type"],
            vectors,
            k=query["k"],
            min_sim=query["min_sim"],
            gamma=query["gamma"],
            stability_weights=_weights(weights) if weights else None,
        )
        assert [r.skill_id for r in found] == ids


def tiem_stability(inputs: Any, expected: Any) -> None:
    rule = stability.StabilityRule(
        inputs["K"], inputs["K_min"], inputs["stable_at"], inputs["miss_at"], inputs["skip_ratio_limit"], inputs["seed"]
    )
    for case, want in zip(inputs["cases"], expected["results"], strict=True):
        sampled = stability.sample(case["skill_id"], [f"c{i}" for i in range(case["n_train"])], rule)
        given = [Verdict(name) for name, count in case["verdicts"].items() for _ in range(count)]
        verdicts = None if case.get("llm_fail") else dict(zip(sampled, given, strict=False))
        found = stability.label(sampled, verdicts, rule)
        assert (list(sampled) if len(sampled) >= rule.k_min else None) == want["sampled_ids"]
        assert (found.label, found.reason) == (want["label"], want.get("reason"))
        assert (found.apply_rate or 0.0) == pytest.approx(want["apply_rate"], abs=1e-6)
        for count in ("n_apply", "n_misapply", "n_skip"):
            assert getattr(found, count) == want.get(count)


def tiem_scmr_vote(inputs: Any, expected: Any) -> None:
    for case, want in zip(inputs["cases"], expected["results"], strict=True):
        paths = [
            (Stability(skill["stability"]), _judgement(path))
            for skill, path in zip(case["skills"], case["paths"], strict=True)
        ]
        probability = scmr.vote(paths, _weights(inputs["stability_weights"]))
        assert (probability is None) == want["fallback_to_hefr"]
        assert probability == (want["prob_positive"] and pytest.approx(want["prob_positive"], abs=1e-6))


def _judgement(path: Any) -> scmr.Judgement | None:
    if not isinstance(path, dict) or path.get("hyp") is False:
        return None
    return scmr.judgement({"direction": path.get("y_i"), "support": path.get("support_i")})


def _weights(given: Mapping[str, float]) -> dict[Stability, float]:
    return {Stability(name): weight for name, weight in given.items()}


def _skill(step: Any) -> skills.Skill:
    resolve = _instant(step["resolve"])
    ancestor = skills.Ancestor(step["source"], _instant(step["decision_time"]), resolve, "outcome", step["name"])
    return skills.Skill(
        name=step["name"],
        description=step["description"],
        domain=step["domain"],
        advantage=step["advantage"],
        tags=(),
        time=resolve,
        provenance=(step["source"],),
        ancestors=() if step.get("no_ancestor") else (ancestor,),
        stability=Stability(step.get("stability", "unevaluable")),
    )


def _episode(given: Any) -> Episode:
    start, end = (parse_stamp(given[name], TZ) for name in ("tau_start", "tau_end"))
    propositions = tuple(str(n) for n in range(given["n_subedges"]))
    return Episode(given["episode_id"], given["stock"], given["type"], given["summary"], start, end, propositions, 1.0)


def _theme(theme_id: str, given: Any) -> Theme:
    start, end = (parse_stamp(given[name], TZ) for name in ("tau_start", "tau_end"))
    united = [tuple(sorted(given[name])) for name in ("stocks", "industries", "subepisode_ids")]
    return Theme(
        theme_id, given["name"], "", "other", given["confidence"], *united, start, end, datetime.min.replace(tzinfo=UTC)
    )


def _by_stock(found: Iterable[Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = defaultdict(list)
    for window in found:
        groups[window["stock"]].append(window)
    return groups


def _partition(groups: Iterable[Iterable[int]]) -> set[frozenset[int]]:
    return {frozenset(group) for group in groups}


def _instant(text: str) -> datetime | None:
    stamp = try_parse_stamp(text, TZ)
    return stamp.instant if stamp else None


def _unit(values: list[float]) -> Any:
    vector = np.asarray(values)
    return vector / np.linalg.norm(vector)


def _document(doc_id: str, ts: str, stock: str | None, text: str) -> Document:
    return Document(doc_id, try_parse_stamp(ts, TZ), "", text, (stock,) if stock else ())
