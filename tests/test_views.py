"""The hand-checked gate fixture, reproduced through the loader and the public views."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

import benchmarks
from harness.clock import published_by
from harness.evidence import EvidenceIndex, ExperienceIndex, Gate, document_source, verdict
from harness.records import PENDING, Benchmark, Catalyst, Document

FIXTURE = Path(__file__).parent / "fixtures" / "timegate"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FIXTURE / "expected.json").read_text("utf-8"))["expected"]


def load(drop_copies: bool = True) -> Benchmark:
    return benchmarks.load(
        name="fixture", root=str(FIXTURE), market="CN", convention="entry_next_open", horizon=5, eval="catalysts.json",
        event="events.json", drop_copies=drop_copies,
    )  # fmt: skip


BENCH = load()
INDEX = EvidenceIndex(BENCH.evaluation.corpus, drop_copies=True)
WITH_COPIES = EvidenceIndex(BENCH.evaluation.corpus, drop_copies=False)
EXPERIENCE = ExperienceIndex((BENCH.evaluation, INDEX))
CASES = {c.catalyst_id: c for c in BENCH.evaluation.catalysts}


def ids(documents: list[Document]) -> list[str]:
    return [d.doc_id for d in documents]


def test_fixture_is_whole() -> None:
    assert set(CASES) == set(EXPECTED)


def _refused(index: EvidenceIndex, case: Catalyst) -> list[Document]:
    """The stock's documents that T forbids, copies included, in order of time."""
    every = [*index.of_stock(case.stock_id), *(d for d, stock in index.copies if stock == case.stock_id)]
    late = [(d.time.instant, d.doc_id, d) for d in every if d.time and not published_by(d.time, case.time)]
    return [d for *_, d in sorted(late, key=lambda item: item[:2])]


def _dropped_copies(index: EvidenceIndex, case: Catalyst) -> list[Document]:
    return [d for d, stock in index.copies if stock == case.stock_id and published_by(d.time, case.time)]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_views_reproduce_the_hand_checked_answers(name: str) -> None:
    case, want = CASES[name], EXPECTED[name]
    view = INDEX.as_of(case.stock_id, case.time, Gate.STRICT)
    focal = view.focal()
    assert focal is not None
    assert focal.doc_id == want["focal"]
    assert ids(view.concurrent()) == want["concurrent"]
    assert ids(view.prior()) == want["prior"]
    refused = _refused(INDEX, case)
    assert ids(refused) == want["refused_same_stock"]
    assert [d.doc_id for d in refused if d.time and d.time.day == case.time.day] == want["refused_same_calendar_day"]
    assert ids(_dropped_copies(INDEX, case)) == want["duplicates_dropped"]
    kept = WITH_COPIES.as_of(case.stock_id, case.time, Gate.STRICT).focal()
    assert kept is not None
    assert kept.doc_id == want["focal_if_duplicates_are_kept"]
    future = [d for d in WITH_COPIES.documents if d.time and d.time.instant > case.time.instant]
    assert len(future) == want["future_docs_in_corpus"]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_resolution_and_label(name: str) -> None:
    outcome, want = BENCH.evaluation.outcomes[name], EXPECTED[name]
    assert outcome.entry_session == date.fromisoformat(want["entry_session"])
    assert outcome.resolve_session == date.fromisoformat(want["resolve_session"])
    assert outcome.resolve_at == datetime.fromisoformat(want["resolve_at"])
    assert outcome.label == want["label"]
    assert outcome.stated_resolve == want["claimed_resolve_date"]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_ancestors_admitted(name: str) -> None:
    admitted = {r.case.catalyst_id for r in EXPERIENCE.as_of(CASES[name], Gate.STRICT)}
    assert admitted == set(EXPECTED[name]["memory_ancestors_admitted"])


def test_a_gate_on_the_claimed_dates_is_caught() -> None:
    """The planted violation: with the files' own resolve dates, ancestors whose outcome was unknown are admitted."""
    claimed = benchmarks.load(
        name="fixture", root=str(FIXTURE), market="CN", convention="entry_next_open", horizon=5, eval="catalysts.json",
        event="events.json", resolve="released",
    )  # fmt: skip
    lax = ExperienceIndex((claimed.evaluation, INDEX))
    wrong = {
        name: {r.case.catalyst_id for r in lax.as_of(CASES[name], Gate.STRICT)} - set(want["memory_ancestors_admitted"])
        for name, want in EXPECTED.items()
    }
    assert wrong["fx_c02"] == set(EXPECTED["fx_c02"]["memory_ancestors_a_claimed_date_gate_would_wrongly_admit"])
    assert sum(map(len, wrong.values())) > 0


def test_an_outcome_that_is_not_known_yet_is_no_experience() -> None:
    cases = BENCH.evaluation
    pending = {name: replace(outcome, label=PENDING, fwd_ret=None) for name, outcome in cases.outcomes.items()}
    assert EXPERIENCE.cases
    assert ExperienceIndex((replace(cases, outcomes=pending), INDEX)).cases == []


@pytest.mark.parametrize("name", [f"fx_c0{i}" for i in range(1, 7)])
def test_the_document_that_tells_an_outcome_is_refused_through_every_path(name: str) -> None:
    case = CASES[name]
    view = INDEX.as_of(case.stock_id, case.time, Gate.STRICT)
    assert "d08" not in ids(view.retrievable())
    leak = next(d for d in INDEX.documents if d.doc_id == "d08")
    assert verdict(document_source(leak, "chunk"), case.time) == "late"


def test_gate_off_lifts_everything_but_the_focal_document() -> None:
    case = CASES["fx_c01"]
    off, strict = (INDEX.as_of(case.stock_id, case.time, gate) for gate in (Gate.OFF, Gate.STRICT))
    assert off.focal() == strict.focal()
    assert len(off.retrievable()) == len(INDEX.documents)
    assert "d05" in ids(off.concurrent())
    assert {"d06", "d07", "d08"} <= set(ids(off.prior()))
    own = {r.case.catalyst_id for r in EXPERIENCE.as_of(case, Gate.OFF)}
    assert own == set(CASES) - {"fx_c01", "fx_c11"}  # never its own outcome, never one in the deadband


def test_deleting_everything_later_changes_no_view() -> None:
    """Truncation on every decision of the fixture: the view at T is a function of what is dated up to T."""
    for case in CASES.values():
        corpus = BENCH.evaluation.corpus
        past = tuple(d for d in corpus.documents if d.time and d.time.instant <= case.time.instant)
        cut = EvidenceIndex(type(corpus)(past, corpus.stocks), drop_copies=True)
        assert _shown(cut, case) == _shown(INDEX, case)


def _shown(index: EvidenceIndex, case: Catalyst) -> tuple[Any, ...]:
    view = index.as_of(case.stock_id, case.time, Gate.STRICT)
    return view.focal(), view.concurrent(), view.prior(), view.retrievable(), _dropped_copies(index, case)


def test_a_record_without_a_time_is_invisible_and_counted() -> None:
    corpus = BENCH.evaluation.corpus
    timeless = Document("d99", None, "", "no stamp", ("990001.SH",))
    index = EvidenceIndex(type(corpus)((*corpus.documents, timeless), corpus.stocks), drop_copies=True)
    assert index.unknown_time == 1
    assert timeless not in index.documents
    assert verdict(document_source(timeless, "chunk"), CASES["fx_c12"].time) == "unverifiable"
