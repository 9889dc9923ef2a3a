from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from harness.evidence import Gate, verdict
from harness.records import Catalyst
from methods.tiem.provenance import Scope, entities, normalised, relations
from methods.tiem.records import Entity, Episode, Proposition, Relation, Theme
from methods.tiem.retrieval import (
    episode_source,
    nearest_themes,
    prior_query,
    proposition_source,
    theme_source,
    tier_query,
    top_episodes,
    top_propositions,
)
from tests.tiem.corpora import embed, run, stamp

CASE = Catalyst("c", "A", "Acme", "earnings", stamp("2021-03-01 10:00"), "CN", 5)


def episode(name: str, end: str) -> Episode:
    return Episode(name, "A", "other", name, stamp("2021-01-01"), stamp(end), ("p",), 0.9)


def theme(name: str, stocks: str, end: str = "2021-02-01") -> Theme:
    close = datetime(2021, 3, 15, tzinfo=UTC)
    return Theme(name, name, "", "other", 0.9, tuple(stocks), (), ("e",), stamp("2021-01-01"), stamp(end), close)


def proposition(doc_id: str, ts: str, *names: str, relation: str | None = None) -> Proposition:
    links = (Relation(names[0], names[-1], relation),) if relation else ()
    return Proposition(doc_id, 0, 0, "A", stamp(ts), "s", tuple(Entity(n, "company") for n in names), links)


def test_ties_go_to_the_newer_then_to_the_id() -> None:
    own = [
        episode("b", "2021-01-05"),
        episode("a", "2021-01-05"),
        episode("c", "2021-01-06"),
        episode("d", "2021-01-01"),
    ]
    vectors = np.array([[1, 0], [1, 0], [1, 0], [0.6, 0.8]], dtype=np.float32)
    hits = top_episodes(own, np.array([1, 0], dtype=np.float32), vectors)
    assert [(h.record.episode_id, h.score) for h in hits] == [("c", 1.0), ("a", 1.0), ("b", 1.0)]


def test_no_more_than_there_are() -> None:
    assert top_propositions([], np.ones(2, dtype=np.float32), np.empty((0, 2), dtype=np.float32)) == []


def test_only_themes_of_the_stock_are_ranked() -> None:
    themes = [theme("chips", "BC"), theme("chips wave", "AB"), theme("tariff", "AC"), theme("lithium", "AB")]
    found = run(nearest_themes(themes, "A", "chips", embed))
    assert next(h.record.name for h in found) == "chips wave"
    assert len(found) == 2
    assert all("A" in h.record.stocks for h in found)


def test_queries() -> None:
    assert prior_query(CASE) == f"{CASE.topic} Acme"
    assert tier_query(CASE, "x" * 300) == f"{CASE.topic} Acme {'x' * 200}"
    assert tier_query(CASE, "") == f"{CASE.topic} Acme"


def test_sources_say_when_a_record_was_known() -> None:
    now = proposition("d", "2021-03-01 10:00", "A")
    assert verdict(proposition_source(now, "focal"), CASE.time) == "ok"
    assert verdict(proposition_source(now, "prior"), CASE.time) == "late"
    assert verdict(episode_source(episode("e", "2021-02-28")), CASE.time) == "ok"
    assert verdict(episode_source(episode("e", "2021-03-01")), CASE.time) == "late"
    early = theme("t", "AB")
    assert verdict(theme_source(early, Gate.STRICT), CASE.time) == "late", "its window closes after T"
    assert verdict(theme_source(early, Gate.PAPER), CASE.time) == "ok", "the paper's rule asks for its end alone"


def test_documents_are_joined_by_the_normalised_name() -> None:
    own = [
        proposition("d1", "2021-01-01", "Acme  Corp", "Beta", relation="supplier_of"),
        proposition("d2", "2021-01-02", "ＡＣＭＥ corp", "beta", relation="supplier_of"),
    ]
    apart, joined = entities(own, Scope.DOCUMENT), entities(own, Scope.GLOBAL)
    assert [(n.name, n.doc_id) for n in apart] == [
        ("Acme  Corp", "d1"),
        ("Beta", "d1"),
        ("beta", "d2"),
        ("ＡＣＭＥ corp", "d2"),
    ]
    assert [(n.name, n.doc_id, n.documents) for n in joined] == [
        ("acme corp", None, ("d1", "d2")),
        ("beta", None, ("d1", "d2")),
    ]
    assert joined[0].propositions == ("d1#0.0", "d2#0.0")
    assert len(relations(own, Scope.DOCUMENT)) == 2
    (link,) = relations(own, Scope.GLOBAL)
    assert (link.src, link.dst, link.type, link.documents) == ("acme corp", "beta", "supplier_of", ("d1", "d2"))
    assert normalised(normalised("Ａ B")) == normalised("Ａ B")
