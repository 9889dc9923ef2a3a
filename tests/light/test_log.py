"""The log: its order, where T stands in it, what is read once, and what the model's odd answers come to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.clock import parse_stamp
from harness.errors import CallFailed
from harness.evidence import EvidenceIndex, Gate
from harness.gateway.result import Completion
from harness.method import Context
from harness.records import Catalyst, Corpus, Document, Passage, ResolvedCase, Source, Status
from methods.entity_graph import MIN_COSINE, Searchable, nearest
from methods.graph_context import Table, fitted
from methods.graph_method import Shelf
from methods.graph_reading import KINDS, Reading
from methods.hypergraphrag import reading as hyper_reading
from methods.lightrag import reading
from methods.lightrag.graph import Extraction, GraphState, RelationGraph
from methods.prefix_log import Entry, Feed, Logs, feed_as_of
from methods.tally import Tally
from methods.versions import Links, Versions
from tests.tiem.world import Embedder, resolved, vector

ENTITY = {"name": "Acme", "type": "event", "description": "d"}
CASE = Catalyst("c", "S", "Acme", "earnings", parse_stamp("2021-03-10", "UTC"), "US", 5)


class Scripted:
    """Answers by purpose, a list one after the other; a status stands for a reply without a value. Keeps what was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, list[Mapping[str, str]]]] = []

    async def complete(self, messages: Sequence[Mapping[str, str]], *, purpose: str, **_: Any) -> Completion:
        self.asked.append((purpose, list(messages)))
        answer = self.answers[purpose]
        answer = answer.pop(0) if isinstance(answer, list) else answer
        if isinstance(answer, Status):
            return Completion(answer, None, "no", "why not", "r")
        return Completion(Status.OK, answer, "reply", None, "r")

    @property
    def purposes(self) -> list[str]:
        return [purpose for purpose, _ in self.asked]


def said(*entities: Mapping[str, Any], relations: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    return {"entities": list(entities), "relations": list(relations)}


def document(doc_id: str, ts: str, body: str = "", stock: str = "S") -> Document:
    return Document(doc_id, parse_stamp(ts, "UTC"), "", body or f"text of {doc_id}", (stock,))


def context(
    documents: Sequence[Document],
    llm: Any = None,
    *,
    cases: Sequence[ResolvedCase] = (),
    gate: Gate = Gate.STRICT,
    decision: str = "2021-03-10",
) -> Context:
    view = EvidenceIndex(Corpus(tuple(documents), {}), drop_copies=True).as_of("S", parse_stamp(decision, "UTC"), gate)
    return Context(
        benchmark="tests", gate=gate, evidence=view, experience=list(cases), memory=None, llm=llm, build_llm=llm,
        embed=Embedder(), shared=lambda key, make: make(None), feed_cases=True, context_chars=8000,  # type: ignore[arg-type]
        rng=lambda: np.random.default_rng(0), warn=lambda what, detail="", /: None,
    )  # fmt: skip


def fed(ctx: Context) -> tuple[list[str], int]:
    feed = feed_as_of(ctx, 1200, 100)
    return [entry.item_id for entry in feed.entries], feed.admitted


def grown(ctx: Context, shelf: Shelf[Extraction, RelationGraph]) -> GraphState:
    at = asyncio.run(shelf.grown(ctx, 1200, 100))
    return GraphState(at.log.graph, at.n, at.admitted)


def shelf(gleanings: int = 0, summary_tokens: int = 500) -> Shelf[Extraction, RelationGraph]:
    return Shelf(Reading(reading.form(("event",), gleanings, summary_tokens)), RelationGraph)


DOCUMENTS = [
    document("d1", "2021-03-08 09:00"),
    document("d2", "2021-03-09"),
    document("d3", "2021-03-10 10:00"),
    document("d4", "2021-03-10"),
    document("d5", "2021-03-11 09:00"),
]


def case_known(ts: str) -> ResolvedCase:
    given = resolved(1)
    return replace(given, outcome=replace(given.outcome, resolve_at=parse_stamp(ts, "UTC").instant))


def test_a_date_only_decision_ends_the_log_before_its_own_day() -> None:
    assert fed(context(DOCUMENTS)) == (["d1", "d2"], 2)
    assert fed(context(DOCUMENTS, decision="2021-03-10 10:00")) == (["d1", "d2"], 2)
    assert fed(context(DOCUMENTS, decision="2021-03-10 10:01")) == (["d1", "d2", "d3"], 3)


@pytest.mark.parametrize(
    ("known", "inside"), [("2021-03-10 09:59", True), ("2021-03-10 10:00", False), ("2021-03-10 15:00", False)]
)
def test_an_outcome_of_the_same_day_is_in_the_prefix_only_before_the_first_refused_document(
    known: str, inside: bool
) -> None:
    ids, admitted = fed(context(DOCUMENTS, cases=[case_known(known)]))
    assert ids == (["d1", "d2", "case:c1"] if inside else ["d1", "d2"])
    assert admitted == len(ids)


def test_the_paper_gate_builds_on_everything_and_admits_the_prefix() -> None:
    assert fed(context(DOCUMENTS, gate=Gate.PAPER)) == (["d1", "d2", "d3", "d4", "d5"], 2)
    assert fed(context(DOCUMENTS, gate=Gate.OFF)) == (["d1", "d2", "d3", "d4", "d5"], 5)


def entries(*ids: str) -> list[Entry]:
    return [Entry(name, parse_stamp("2021-01-01", "UTC").instant, False, ()) for name in ids]


def test_one_log_for_feeds_that_are_prefixes_of_each_other() -> None:
    logs: Logs[Any, Any] = Logs(RelationGraph)
    first = logs.of(entries("a", "b"))
    assert logs.of(entries("a")) is first
    assert logs.of(entries("a", "b", "c")) is first
    assert logs.of(entries("a", "b", "d")) is not first
    assert logs.of(entries("a", "x")) is not first
    for number in range(5):
        logs.of(entries(str(number)))
    assert logs.of(entries("a", "b")) is not first  # forgotten: as many logs as are held have been used since


def test_texts_are_read_once_and_forecasts_at_once_share_the_log() -> None:
    llm, one = Scripted(extract=said(ENTITY)), shelf()
    early, late = context(DOCUMENTS, llm), context(DOCUMENTS, llm, decision="2021-03-11 10:00")

    async def both() -> Any:
        return await asyncio.gather(*(one.grown(ctx, 1200, 100) for ctx in (late, early, late)))

    first, second, third = asyncio.run(both())
    assert first.log is second.log is third.log
    assert (first.n, second.n) == (5, 2)
    assert len(llm.asked) == 5
    assert first.log.source("entity", "ACME", [0, 1], 1).known_at == DOCUMENTS[1].time.instant  # type: ignore[union-attr]


def test_a_build_that_begins_again_asks_what_was_asked_before() -> None:
    """So that the store of replies answers all of it: a killed build pays for nothing twice."""
    first, again = (Scripted(extract=said(ENTITY), glean=said()) for _ in range(2))
    grown(context(DOCUMENTS[:1], first), shelf(gleanings=1))
    grown(context(DOCUMENTS, again, decision="2021-03-12"), shelf(gleanings=1))
    assert all(request in again.asked for request in first.asked)


def test_a_call_without_an_answer_fails_the_forecast_and_the_next_one_goes_on() -> None:
    llm, one = Scripted(extract=[said(ENTITY), Status.PROVIDER, said(ENTITY)]), shelf()
    ctx = context(DOCUMENTS, llm)
    with pytest.raises(CallFailed):
        grown(ctx, one)
    state = grown(ctx, one)
    assert list(state.node_chunks("ACME")) == [0, 1]
    assert len(llm.asked) == 3


def test_odd_answers_are_counted_and_told() -> None:
    odd = said(
        {**ENTITY, "name": "None"},
        {**ENTITY, "name": "A" * 10_000},
        relations=[{"source": "Acme", "target": "", "description": "", "keywords": "", "strength": None}],
    )
    warnings: dict[str, str] = {}
    llm, one = Scripted(extract=[odd, Status.INVALID]), shelf()
    ctx = context(DOCUMENTS, llm)
    state = grown(ctx, one)
    assert (state.nodes, state.edges) == ((), ())
    assert one.texts.tally.counts == dict.fromkeys(KINDS, 0) | {"nameless": 2, "long": 1, "empty": 1, "unread": 1}
    one.texts.tally.tell(warnings.__setitem__)
    assert warnings[KINDS["unread"]] == "1, first d2 (invalid: why not)"
    assert len(warnings) == 4


def test_counts_are_told_as_they_stand() -> None:
    tally, told = Tally({"k": "things", "other": "others"}), dict[str, str]()
    for number in range(1, 8):
        tally.count("k", f"i{number}")
        tally.tell(told.__setitem__)
    assert told == {"things": "7, first i1, i2, i3"}


def test_one_gleaning_is_one_more_call_in_the_same_conversation() -> None:
    other = {**ENTITY, "name": "Beta"}
    llm = Scripted(extract=said(ENTITY), glean=said(other))
    state = grown(context(DOCUMENTS[:1], llm), shelf(gleanings=1))
    assert llm.purposes == ["extract", "glean"]
    assert [m["role"] for m in llm.asked[1][1]] == ["system", "user", "assistant", "user"]
    assert [node.name for node in state.nodes] == ["ACME", "BETA"]


@pytest.mark.parametrize(
    ("more", "purposes"),
    [
        (True, ["extract", "glean", "glean_check", "glean"]),
        (False, ["extract", "glean", "glean_check"]),
        (Status.INVALID, ["extract", "glean", "glean_check"]),
    ],
)
def test_between_two_gleanings_the_model_is_asked_whether_anything_is_missing(more: Any, purposes: list[str]) -> None:
    answer = more if isinstance(more, Status) else {"more": more}
    llm = Scripted(extract=said(ENTITY), glean=said(), glean_check=answer)
    grown(context(DOCUMENTS[:1], llm), shelf(gleanings=2))
    assert llm.purposes == purposes


def test_a_reply_that_cannot_be_used_is_not_gleaned_from() -> None:
    llm = Scripted(extract=Status.REFUSED)
    grown(context(DOCUMENTS[:1], llm), shelf(gleanings=2))
    assert llm.purposes == ["extract"]


def test_long_descriptions_are_summarised_and_the_summary_is_what_the_next_merge_sees() -> None:
    answers = [said({**ENTITY, "description": text}) for text in ("one two three", "four five six", "a")]
    llm = Scripted(extract=answers, summarise={"summary": "all"})
    state = grown(context(DOCUMENTS, llm, decision="2021-03-10 11:00"), shelf(summary_tokens=6))
    assert llm.purposes.count("summarise") == 1
    assert state.nodes[0].description == "a<SEP>all"


def test_a_summary_that_cannot_be_used_leaves_a_cut_description() -> None:
    one = shelf(summary_tokens=4)
    llm = Scripted(extract=said({**ENTITY, "description": "one two three four five six"}), summarise=Status.INVALID)
    state = grown(context(DOCUMENTS[:1], llm), one)
    assert state.nodes[0].description == "one two three four"
    assert one.texts.tally.counts["unsummarised"] == 1


@pytest.mark.parametrize(
    ("answer", "high", "low"),
    [
        ({"high_level_keywords": ["h", " "], "low_level_keywords": ["l", "m"]}, "h", "l, m"),
        ({"high_level_keywords": [], "low_level_keywords": ["l"]}, "q", "l"),
        ({"high_level_keywords": ["h"], "low_level_keywords": [" "]}, "h", "q"),
        (Status.INVALID, "q", "q"),
    ],
)
def test_a_side_without_keywords_is_searched_by_the_question(answer: Any, high: str, low: str) -> None:
    tally = Tally(KINDS)
    assert asyncio.run(reading.keywords("q", Scripted(keywords=answer), tally)) == (high, low)
    assert tally.counts["question"] == isinstance(answer, Status)


def test_a_question_is_read_as_a_text_is() -> None:
    form = hyper_reading.form(("event",), 2, 500)
    entity = {"name": "Acme", "type": "event", "description": "", "key_score": 90}
    segments = [{"text": "Acme rises", "completeness": 7, "entities": [entity]}, {"text": "B", "completeness": None, "entities": []}]  # fmt: skip
    tally = Tally(KINDS)

    def ask(answer: Any) -> tuple[str, str]:
        return asyncio.run(hyper_reading.queries("q", form, Scripted(question=answer), tally))

    assert ask({"segments": segments}) == ("<hyperedge>Acme rises, <hyperedge>B", "ACME")
    assert ask({"segments": segments[1:]}) == ("<hyperedge>B", "q")
    assert ask({"segments": []}) == ask(Status.TRUNCATED) == ("q", "q")
    assert tally.counts["question"] == 1


def test_few_hits_are_normal_and_ties_go_to_the_newer() -> None:
    old, new = (parse_stamp(day, "UTC").instant for day in ("2021-01-01", "2021-01-02"))
    embed = Embedder()
    assert asyncio.run(nearest("q", Searchable.of([]), 60, embed)) == []
    assert embed.asked == []
    among = Searchable.of([("b", "same words", old), ("a", "same words", old), ("c", "same words", new)])
    assert [key for key, _ in asyncio.run(nearest("same words", among, 60, embed))] == ["c", "a", "b"]
    assert float(vector("same words") @ vector("nothing alike")) < MIN_COSINE
    assert asyncio.run(nearest("nothing alike", among, 60, embed)) == []
    weighted = asyncio.run(nearest("same words", among, 60, embed, 5.0, [4.0, 6.0, 8.0]))
    assert weighted == [("c", pytest.approx(8.0)), ("a", pytest.approx(6.0))]


def row(text: str) -> Passage:
    return Passage(text, Source("entity", text, None, None, None, None, None, ""))


def test_tables_share_the_budget_and_pass_on_what_they_leave() -> None:
    tables = [
        Table("A:", tuple(row("a" * 9) for _ in range(9)), 0.25, 3),
        Table("B:", (), 0.35, 3),
        Table("C:", tuple(row("c" * 9) for _ in range(9)), 0.40, 3),
    ]
    # 100 characters of rows, 10 a row: 2 of a share of 25, the rest is the last one's.
    first, last = fitted(tables, 109)
    assert (len(first.rows), len(last.rows)) == (2, 8)
    assert [p.rank for p in first.rows] == [1, 2]
    assert [len(table.rows) for table in fitted(tables, None)] == [1, 1]
    assert fitted(tables, 18) == []


def test_versions_and_links() -> None:
    versions: Versions[str, str] = Versions()
    versions.put("a", "a0", 0)
    versions.put("b", "b2", 2)
    versions.put("a", "a2", 2)
    versions.put("a", "a2 again", 2)
    assert [versions.at("a", n) for n in range(4)] == [None, "a0", "a0", "a2 again"]
    assert list(versions.items_at(2)) == [("a", "a0")]
    assert list(versions.items_at(3)) == [("a", "a2 again"), ("b", "b2")]
    assert versions.latest("c") is None
    links: Links[str, int] = Links()
    links.add("a", 7, 1)
    links.add("a", 8, 1)
    links.add("a", 9, 4)
    assert [list(links.at("a", n)) for n in (1, 2, 5)] == [[], [7, 8], [7, 8, 9]]
    assert [links.count("a", n) for n in (1, 2, 5)] == [0, 2, 3]
    assert list(links.at("b", 5)) == []


def test_the_feed_of_a_corpus_without_documents() -> None:
    assert feed_as_of(context([]), 1200, 100) == Feed((), 0)
