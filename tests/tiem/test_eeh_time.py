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
from methods.tiem.theme_tier import close_stamp, newest_close
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
def stamps(draw: st.DrawFn, first: int, last: int) -> Stamp:
    moment = DAY_ONE + timedelta(days=draw(st.integers(first, last)), minutes=draw(st.integers(0, 1439)))
    return stamp(moment.strftime(draw(st.sampled_from(["%Y-%m-%d", "%Y-%m-%d %H:%M"]))))


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    """News of three stocks over 70 days, dense enough for themes; some are filed under two stocks, some stamped by the minute."""
    chance = draw(st.randoms(use_true_random=False))
    documents = []
    for number in range(draw(st.integers(40, 80))):
        moment = DAY_ONE + timedelta(days=chance.randrange(70), minutes=chance.randrange(1440))
        body = f"{chance.choice(TOPICS)} step {number}. {chance.choice(['up', 'down', 'flat'])} {number}"
        ts = moment.strftime(chance.choice(["%Y-%m-%d", "%Y-%m-%d %H:%M"]))
        documents.append(document(f"d{number:02}", ts, body, *chance.sample("ABC", chance.choice([1, 1, 2]))))
    return corpus(documents)


DECISIONS = stamps(40, 140)


@given(corpora(), DECISIONS, st.sampled_from("ABC"))
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_at_t_it_is_the_hypergraph_of_the_corpus_cut_at_t(whole: Corpus, decision: Stamp, stock: str) -> None:
    assert seen(whole, stock, decision) == seen(cut(whole, decision), stock, decision)


@given(corpora(), st.lists(DECISIONS, min_size=2, max_size=5), st.randoms(use_true_random=False))
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
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


def crowded(last_day: int = 100, step: int = 2) -> Corpus:
    """Every stock has news on the same topic every ``step`` days."""
    return corpus(
        document(
            f"{stock}{day:03}",
            f"{DAY_ONE + timedelta(days=day):%Y-%m-%d}",
            f"{TOPICS[day // 35]} step {day} of {stock}. more {day}",
            stock,
        )
        for stock in "ABC"
        for day in range(0, last_day, step)
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


@pytest.mark.parametrize("day", ["2021-03-01", "2021-03-20", "2021-04-12"])
def test_themes_are_made_of_the_episodes_as_they_stood_at_the_close(tmp_path: Path, day: str) -> None:
    """What a decision right after the close finds is what later ones find, though windows open at the close have grown since."""
    index, llm, eeh = EvidenceIndex(crowded(step=1), True), PromptLLM(), fresh(tmp_path)
    early, late = stamp(day), stamp("2021-06-30")

    async def late_then_early() -> tuple[list[Theme], list[Theme]]:
        first = await eeh.themes(context(index, "A", late, llm, Shelf(tmp_path)))
        return first, await eeh.themes(context(index, "A", early, llm, Shelf(tmp_path)))

    close = newest_close(early, LOOSE.theme_days, LOOSE.theme_step)
    alone = seen(crowded(step=1), "A", close_stamp(close + timedelta(seconds=1)))
    assert alone.themes
    assert run(late_then_early())[1] == alone.themes
    named = {question for question in alone.asked if question[0] == "theme"}
    assert named <= set(llm.asked)


def test_the_episodes_that_count_for_themes_are_those_at_the_newest_close(tmp_path: Path) -> None:
    index, decision = EvidenceIndex(crowded(), True), stamp("2021-04-10")
    close = newest_close(decision, LOOSE.theme_days, LOOSE.theme_step)

    def asked_at(moment: Stamp, least: int, scratch: Path) -> tuple[int, list[Theme]]:
        eeh = fresh(scratch, LOOSE.model_copy(update={"min_episodes": least}))

        async def ask() -> tuple[int, list[Theme]]:
            contexts = [context(index, stock, moment, PromptLLM(), Shelf(scratch)) for stock in "ABC"]
            found = [await eeh.episodes(ctx.evidence.stock_id, ctx) for ctx in contexts]
            return sum(map(len, found)), await eeh.themes(contexts[0])

        return run(ask())

    at_close, _ = asked_at(close_stamp(close), 1, tmp_path / "close")
    at_decision, themes = asked_at(decision, at_close, tmp_path / "enough")
    assert themes
    assert at_decision > at_close
    assert asked_at(decision, at_close + 1, tmp_path / "few")[1] == []
