"""The hypergraph at T is that of a corpus cut at T, prompts included; a build that looks further is caught."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.clock import Stamp
from harness.evidence import EvidenceIndex, EvidenceView, Gate
from harness.records import Corpus
from methods.tiem.records import Episode, Theme
from methods.tiem.theme_tier import newest_close
from methods.tiem.themes import GRID_ORIGIN
from tests.tiem.corpora import LOOSE, TOPICS, PromptLLM, Shelf, context, corpus, cut, document, fresh, run, stamp

DAY_ONE = datetime(2021, 1, 4)


@dataclass(frozen=True)
class Seen:
    """All that a decision sees, and what was asked for it."""

    episodes: list[Episode]
    themes: list[Theme]
    asked: list[tuple[str, str]]


def seen(whole: Corpus, stock: str, decision: Stamp, gate: Gate = Gate.STRICT) -> Seen:
    llm = PromptLLM()
    with tempfile.TemporaryDirectory() as scratch:
        ctx = context(EvidenceIndex(whole, True), stock, decision, llm, Shelf(Path(scratch)), gate)
        eeh = fresh(Path(scratch))

        async def both() -> tuple[list[Episode], list[Theme]]:
            return await eeh.episodes(stock, ctx), await eeh.themes(ctx)

        episodes, themes = run(both())
    return Seen(episodes, themes, sorted(llm.asked))


@st.composite
def stamps(draw: st.DrawFn, last: int) -> Stamp:
    moment = DAY_ONE + timedelta(days=draw(st.integers(0, last)), minutes=draw(st.integers(0, 1439)))
    return stamp(moment.strftime(draw(st.sampled_from(["%Y-%m-%d", "%Y-%m-%d %H:%M"]))))


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    documents = []
    for number in range(draw(st.integers(4, 24))):
        body = (
            f"{draw(st.sampled_from(TOPICS))} step {number}. {draw(st.sampled_from(['up', 'down', 'flat']))} {number}"
        )
        own = draw(st.lists(st.sampled_from("ABC"), min_size=1, max_size=2, unique=True))
        documents.append(document(f"d{number:02}", draw(stamps(140)).text, body, *own))
    return corpus(documents)


@given(corpora(), stamps(200), st.sampled_from("ABC"))
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_at_t_it_is_the_hypergraph_of_the_corpus_cut_at_t(whole: Corpus, decision: Stamp, stock: str) -> None:
    assert seen(whole, stock, decision) == seen(cut(whole, decision), stock, decision)


@given(corpora(), st.lists(stamps(200), min_size=2, max_size=5), st.randoms(use_true_random=False))
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
def test_what_other_decisions_asked_before_changes_nothing(whole: Corpus, decisions: list[Stamp], chance: Any) -> None:
    index, llm = EvidenceIndex(whole, True), PromptLLM()
    chance.shuffle(decisions)

    async def one_after_the_other(scratch: Path) -> list[tuple[list[Episode], list[Theme]]]:
        eeh, shelf = fresh(scratch), Shelf(scratch)
        found = []
        for decision in decisions:
            ctx = context(index, "A", decision, llm, shelf)
            found.append((await eeh.episodes("A", ctx), await eeh.themes(ctx)))
        return found

    with tempfile.TemporaryDirectory() as scratch:
        warm = run(one_after_the_other(Path(scratch)))
    for decision, (episodes, themes) in zip(decisions, warm, strict=True):
        alone = seen(whole, "A", decision)
        assert (episodes, themes) == (alone.episodes, alone.themes)
    assert llm.distinct() == len(llm.asked), "the same question was asked twice"


def test_the_properties_are_about_something() -> None:
    found = seen(crowded(), "A", stamp("2021-06-30"))
    assert found.episodes
    assert any("A" in theme.stocks for theme in found.themes)
    assert {purpose for purpose, _ in found.asked} == {"extract", "episode", "theme"}


def crowded(last_day: int = 100) -> Corpus:
    """Every stock has news on the same topic every other day."""
    return corpus(
        document(
            f"{stock}{day:03}",
            f"{DAY_ONE + timedelta(days=day):%Y-%m-%d}",
            f"{TOPICS[day // 35]} step {day} of {stock}. more {day}",
            stock,
        )
        for stock in "ABC"
        for day in range(0, last_day, 2)
    )


def test_a_build_that_looks_at_the_whole_corpus_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    decision = stamp("2021-03-20 10:00")
    honest = seen(crowded(), "A", decision)
    assert honest == seen(cut(crowded(), decision), "A", decision)

    def everything(view: EvidenceView) -> EvidenceView:
        return EvidenceView(view.index, view.stock_id, view.decision, Gate.OFF)

    monkeypatch.setattr(EvidenceView, "build_on", everything)
    planted = seen(crowded(), "A", decision)
    assert planted != honest
    assert planted != seen(cut(crowded(), decision), "A", decision)


def test_paper_filters_by_the_end_and_off_by_nothing() -> None:
    decision = stamp("2021-03-20")
    paper, off = (seen(crowded(), "A", decision, gate) for gate in (Gate.PAPER, Gate.OFF))
    assert paper.asked == off.asked
    assert paper.episodes == [e for e in off.episodes if e.end.instant < decision.instant] != off.episodes
    assert paper.themes == [t for t in off.themes if t.end.instant < decision.instant] != off.themes


def test_themes_are_known_from_the_close_of_their_window_on() -> None:
    last = stamp("2021-06-30")
    themes = seen(crowded(), "A", last).themes
    assert themes
    for theme in themes:
        assert theme.end.instant < theme.known_at < last.instant
        assert (theme.known_at - timedelta(days=LOOSE.theme_days) - GRID_ORIGIN) % timedelta(days=30) == timedelta(0)
    first = min(theme.known_at for theme in themes)
    before = Stamp("", first, first.date(), last.granularity.SECOND)
    assert all(theme.known_at < first for theme in seen(crowded(), "A", before).themes)


@given(st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1)), st.booleans())
def test_the_newest_close_is_before_t_and_the_next_one_is_not(moment: datetime, date_only: bool) -> None:
    decision = stamp(moment.strftime("%Y-%m-%d" if date_only else "%Y-%m-%d %H:%M"))
    close = newest_close(decision, 90, 30)
    assert (close - GRID_ORIGIN) % timedelta(days=30) == timedelta(0)
    limit = decision.instant - timedelta(hours=25) if date_only else decision.instant
    assert close < limit <= close + timedelta(days=30)
    if date_only:
        assert (close + timedelta(hours=8)).date() < decision.day


def test_the_rule_of_fifty_counts_what_was_there_at_the_close() -> None:
    few = LOOSE.model_copy(update={"min_episodes": 50})
    llm = PromptLLM()
    with tempfile.TemporaryDirectory() as scratch:
        ctx = context(EvidenceIndex(crowded(), True), "A", stamp("2021-06-30"), llm, Shelf(Path(scratch)))
        assert run(fresh(Path(scratch), few).themes(ctx)) == []
    assert llm.purposes().keys() <= {"extract"}, "too few windows: nothing else is asked"
