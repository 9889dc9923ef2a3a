"""What building the hypergraph will ask: documents are counted exactly, windows and clusters within bounds.

Extraction: one call a distinct chunk of every document that some decision reaches. Which documents these are depends on times alone.
Episodes: windows follow from the times of the documents as long as each states something; up to one test a distinct window and
one description a test. Themes: a cluster has two episodes or more, so half the windows of a close bound the clusters; none at the least.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from harness.evidence import EvidenceView, Gate
from harness.expected import ONCE, Expected, Range, Survey, key_of, tokens_of
from harness.records import Document
from harness.tokens import split_to_tokens
from methods.base import render
from methods.tiem import episodes, extraction, theme_tier
from methods.tiem.asking import SYSTEM
from methods.tiem.build import stocks_of
from methods.tiem.episodes import within_reach
from methods.tiem.settings import EehSettings
from methods.tiem.theme_tier import close_stamp, newest_close
from methods.tiem.themes import theme_windows
from methods.tiem.windows import MIN_DOCUMENTS, MIN_PROPOSITIONS

STATEMENT = Range(6, 110)
"""Tokens of a line with one proposition."""
SUMMARY = Range(15, 120)
"""Tokens of a line with one episode or theme."""
_FRAMES = Range(8, 24)
_STATEMENTS = 8
"""Propositions of a document of a window, at most."""
_SILENT = 0.3
"""At least this share of the windows is tested: others fall apart if documents state nothing."""
_YES_NO, _DESCRIPTION, _THEME, _KIND = Range(10, 40), Range(20, 160), Range(20, 160), Range(5, 30)

Window = tuple[str, tuple[str, ...]]


@dataclass
class Reach:
    """What some decision of a survey reaches."""

    documents: dict[str, Document] = field(default_factory=dict)
    windows: dict[Window, int] = field(default_factory=dict)
    clusters: dict[datetime, int] = field(default_factory=dict)


def reached(survey: Survey, settings: EehSettings) -> Reach:
    """Walk through the decisions as the build would, without asking."""
    reach, closes, whole = Reach(), set[datetime](), False
    seen: set[tuple[str, datetime]] = set()
    for case, _ in survey.cases:
        if (case.stock_id, case.time.instant) in seen:
            continue
        seen.add((case.stock_id, case.time.instant))
        ctx = survey.context(case)
        knobs, view = settings.of_benchmark(ctx.benchmark), ctx.evidence
        focal, base = view.focal(), view.build_on()
        _note(reach, [*([focal] if focal else []), *view.concurrent(), *view.prior()])
        _note_windows(reach, base, [case.stock_id], knobs)
        if ctx.gate is not Gate.STRICT:
            if not whole:
                _note_themes(reach, base, None, knobs)
            whole = True
            continue
        close = newest_close(ctx.evidence.decision, knobs.theme_days, knobs.theme_step)
        if close not in closes:
            closes.add(close)
            _note_themes(reach, base.as_of_earlier(close_stamp(close)), close, knobs)
    return reach


def expected_calls(reach: Reach, settings: EehSettings) -> list[Expected]:
    """The calls that ``reach`` stands for."""
    system = tokens_of(render(SYSTEM)) + _FRAMES
    types = {"entity_types": extraction.ENTITY_TYPES, "relation_types": extraction.RELATION_TYPES}
    frame = system + tokens_of(render(extraction.TEMPLATE, passage="", **types))
    found: dict[str, Expected] = {}
    most = settings.extract_max_tokens or 6000
    for document in reach.documents.values():
        for text in split_to_tokens(document.text, settings.chunk_tokens, settings.chunk_overlap):
            size = tokens_of(text)
            out = Range(min(20.0, most), min(120 + 4 * size.high, most))
            key = key_of("extract", settings.extract_max_tokens, text)
            found[key] = Expected("extract", "build", key, ONCE, frame + size, out)
    test = system + tokens_of(render(episodes.TEST, company="A company of some length", lines=()))
    tell = system + tokens_of(
        render(episodes.DESCRIBE, company="A company", lines=(), summary_chars=episodes.SUMMARY_CHARS)
    )
    for (stock, documents), size_of in reach.windows.items():
        lines = STATEMENT * Range(MIN_PROPOSITIONS, min(settings.max_propositions, _STATEMENTS * size_of))
        key = key_of("episode", stock, *documents)
        asked = Range(_SILENT, 1)
        found[key] = Expected.each("episode", "build", key, asked, test + lines, _YES_NO)
        found[key + "d"] = Expected.each("episode", "build", key + "d", Range(0, 1), tell + lines, _DESCRIPTION)
    judge = system + tokens_of(render(theme_tier.TEST, lines=(), name_words=theme_tier.NAME_WORDS))
    name = system + tokens_of(render(theme_tier.CLASSIFY, name="", description="", lines=()))
    for close, clusters in reach.clusters.items():
        lines = SUMMARY * 2  # clusters share the episodes: two a cluster where there are as many as there can be
        key = key_of("theme", close, clusters)
        asked = Range(0, clusters)
        found[key] = Expected.each("theme", "build", key, asked, judge + lines, _THEME)
        found[key + "k"] = Expected.each("theme", "build", key + "k", asked, name + lines + SUMMARY, _KIND)
    return list(found.values())


def _note(reach: Reach, documents: Iterable[Document]) -> None:
    for document in documents:
        reach.documents[document.doc_id] = document


def _note_windows(reach: Reach, view: EvidenceView, stocks: Sequence[str], knobs: EehSettings) -> list[Window]:
    """Enter the documents and windows of ``stocks`` as ``view`` has them; the windows."""
    noted = []
    for stock in stocks:
        for run in within_reach(view.of(stock).of_stock(), knobs.episode_days):
            _note(reach, run)
            for window in _greedy(run, timedelta(days=knobs.episode_days)):
                if len({d.doc_id for d in window}) >= MIN_DOCUMENTS:
                    key = (stock, tuple(d.doc_id for d in window))
                    reach.windows[key] = len(window)
                    noted.append(key)
    return noted


def _note_themes(reach: Reach, view: EvidenceView, close: datetime | None, knobs: EehSettings) -> None:
    """Enter what themes at the newest ``close`` need; ``close`` None is the whole corpus."""
    stocks = stocks_of(view)
    runs = [run for stock in stocks for run in within_reach(view.of(stock).of_stock(), knobs.episode_days)]
    if sum(len(run) // MIN_DOCUMENTS for run in runs) < knobs.min_episodes:
        return
    if len(_note_windows(reach, view, stocks, knobs)) < knobs.min_episodes:
        return
    ends = [d.time.instant for run in runs for d in run if d.time is not None]
    for window in theme_windows(ends, knobs.theme_days, knobs.theme_step):
        if close is not None and (window.close > close or window.close in reach.clusters):
            continue
        then = view.as_of_earlier(close_stamp(window.close)) if close is not None else view
        candidates = _note_windows(reach, then, stocks_of(then), knobs)
        inside = [w for w in candidates if window.start <= _end(reach, w) < window.close]
        reach.clusters[window.close] = len(inside) // 2


def _greedy(run: Sequence[Document], span: timedelta) -> list[list[Document]]:
    windows: list[list[Document]] = []
    for document in run:
        if windows and _instant(document) - _instant(windows[-1][0]) <= span:
            windows[-1].append(document)
        else:
            windows.append([document])
    return windows


def _end(reach: Reach, window: Window) -> datetime:
    return _instant(reach.documents[window[1][-1]])


def _instant(document: Document) -> datetime:
    assert document.time is not None  # a view returns no document without a time
    return document.time.instant
