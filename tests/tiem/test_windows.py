from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from harness.clock import parse_stamp
from methods.tiem.records import Entity, Proposition
from methods.tiem.windows import EpisodeWindow, episode_windows

DAYS = 14
SPAN = timedelta(days=DAYS)


def proposition(
    doc: str, text: str | None, *, index: int = 0, stock: str = "A", entities: int = 0, tz: str = "Asia/Shanghai"
) -> Proposition:
    named = tuple(Entity(f"e{n}", "company") for n in range(entities))
    return Proposition(doc, 0, index, stock, parse_stamp(text, tz) if text else None, "", named)


@st.composite
def corpora(draw: st.DrawFn) -> list[Proposition]:
    """Documents with one to three propositions, all at the document's time, some without one."""
    found = []
    for doc in range(draw(st.integers(0, 12))):
        day = draw(st.integers(1, 28))
        month = draw(st.integers(1, 3))
        clock = draw(st.sampled_from(["", " 09:30", " 15:00:01"]))
        stamp = draw(st.sampled_from([f"2021-{month:02}-{day:02}{clock}"] * 5 + [None]))
        stock = draw(st.sampled_from(["A", "B"]))
        for index in range(draw(st.integers(1, 3))):
            entities = draw(st.integers(0, 3))
            found.append(proposition(f"d{doc}", stamp, index=index, stock=stock, entities=entities))
    return found


def ids(window: EpisodeWindow) -> list[str]:
    return [p.prop_id for p in window.propositions]


@given(corpora())
def test_windows_are_short_disjoint_and_have_two_documents(corpus: list[Proposition]) -> None:
    found = episode_windows(corpus, DAYS, max_propositions=10**6)
    taken = [p for w in found for p in ids(w)]
    assert len(taken) == len(set(taken))
    for window in found:
        assert window.end.instant - window.start.instant <= SPAN
        assert len({p.doc_id for p in window.propositions}) >= 2
        assert {p.stock for p in window.propositions} == {window.stock}
    for a, b in pairwise(found):
        assert a.stock < b.stock or (a.stock == b.stock and a.start.instant + SPAN < b.start.instant)


@given(corpora(), st.integers(2, 4))
def test_the_cap_keeps_the_richest_in_order_of_time_and_the_extent(corpus: list[Proposition], limit: int) -> None:
    whole, capped = (episode_windows(corpus, DAYS, n) for n in (10**6, limit))
    for full, cut in zip(whole, capped, strict=True):
        assert (cut.start, cut.end) == (full.start, full.end)
        kept = set(cut.propositions)
        assert cut.propositions == tuple(p for p in full.propositions if p in kept)
        assert len(kept) == min(limit, len(full.propositions))
        left_out = [len(p.entities) for p in full.propositions if p not in kept]
        assert max(left_out, default=0) <= min(len(p.entities) for p in kept)


@given(corpora(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(corpus: list[Proposition], random: object) -> None:
    shuffled = list(corpus)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert episode_windows(shuffled, DAYS) == episode_windows(corpus, DAYS)


@given(corpora(), st.integers(1, 90))
def test_what_comes_later_does_not_change_a_closed_window(corpus: list[Proposition], days: int) -> None:
    until = parse_stamp("2021-01-01", "Asia/Shanghai").instant + timedelta(days=days)
    early = [p for p in corpus if p.time and p.time.instant < until]
    closed = [w for w in episode_windows(early, DAYS) if w.start.instant + SPAN < until]
    whole = episode_windows(corpus, DAYS)
    assert all(w in whole for w in closed)


def test_ties_of_entities_keep_the_earlier() -> None:
    corpus = [proposition(f"d{n}", f"2021-01-0{n}", entities=1) for n in range(1, 5)]
    assert [ids(w) for w in episode_windows(corpus, DAYS, 2)] == [["d1#0.0", "d2#0.0"]]


def test_two_propositions_of_one_document_are_no_episode() -> None:
    assert not episode_windows([proposition("d", "2021-01-01", index=n) for n in range(3)], DAYS)


def test_a_date_only_document_counts_from_the_end_of_its_day() -> None:
    first = proposition("d1", "2021-01-01 09:30")
    assert episode_windows([first, proposition("d2", "2021-01-15 09:30")], DAYS)
    assert not episode_windows([first, proposition("d2", "2021-01-15")], DAYS)
