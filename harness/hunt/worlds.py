"""Benchmarks changed in memory: each world differs from the hunted benchmark in something that forecasts must not depend on.

All functions are pure. What is random is drawn from a fixed seed, so a hunt can be repeated.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from harness.evidence import EvidenceIndex, Gate
from harness.records import NEGATIVE, POSITIVE, Benchmark, CaseSet, Catalyst, Document, Outcome

T = TypeVar("T")
SEED = 20_240_229
_STRETCH = 1.25
"""A turned return has another size too: that a price will move much is known from nowhere before it did."""
TWINS = 3
"""Newest documents of each asked stock that get copies after every decision."""

Texts = Callable[[list[Document]], list[Document]]


def hunted(
    benchmark: Benchmark, limit: int | None, catalysts: int, experience: int, documents: int | None
) -> Benchmark:
    """The part of a benchmark that is hunted through: small enough to run a method in it dozens of times.

    Args:
        benchmark: as loaded.
        limit: only the first catalysts by decision time (``run.limit``); None for all.
        catalysts: how many of them are asked, spread evenly from the first decision to the last.
        experience: past cases kept: those whose outcomes became known last.
        documents: of the evaluated corpus at most: those of asked stocks first, the others spread evenly; None for all.
    """
    cases = benchmark.evaluation
    known = [c for c in cases.catalysts if cases.outcomes[c.catalyst_id].teaches]
    asked = spread(known[:limit], catalysts)
    stocks = {c.stock_id for c in asked}
    own = [d for d in cases.corpus.documents if stocks & set(d.stocks)]
    others = [d for d in cases.corpus.documents if not stocks & set(d.stocks)]
    if documents is not None:
        own = spread(own, documents)
        others = spread(others, documents - len(own))
    kept = {d.doc_id for d in (*own, *others)}
    corpus = replace(cases.corpus, documents=tuple(d for d in cases.corpus.documents if d.doc_id in kept))
    return replace(
        benchmark,
        evaluation=replace(cases, catalysts=tuple(asked), corpus=corpus),
        experience=_latest(benchmark.experience, experience) if benchmark.experience else None,
    )


def spread(items: list[T], n: int) -> list[T]:
    """``n`` of ``items`` (all if there are fewer), the first and the last among them, the rest evenly between."""
    if n >= len(items):
        return items
    if n < 2:
        return items[len(items) // 2 :][:n]
    return [items[round(i * (len(items) - 1) / (n - 1))] for i in range(n)]


def _latest(cases: CaseSet, n: int) -> CaseSet:
    known = [c for c in cases.catalysts if cases.outcomes[c.catalyst_id].teaches]
    newest = sorted(known, key=lambda c: (cases.outcomes[c.catalyst_id].resolve_at, c.catalyst_id))[-n:]
    names = {c.catalyst_id for c in newest}
    return replace(cases, catalysts=tuple(c for c in cases.catalysts if c.catalyst_id in names))


def cut(benchmark: Benchmark, case: Catalyst) -> Benchmark:
    """What was known at the decision of ``case``: no later or undated document, no other case without a known outcome."""

    def known(cases: CaseSet) -> CaseSet:
        kept = tuple(
            c
            for c in cases.catalysts
            if c.catalyst_id == case.catalyst_id or cases.outcomes[c.catalyst_id].resolve_at < case.time.instant
        )
        return replace(cases, catalysts=kept)

    return _each(_texts(benchmark, case.time.instant, lambda later: []), known)


def shuffled_future(benchmark: Benchmark, case: Catalyst) -> Benchmark:
    """Titles and bodies of the documents after T change places; stamps and stocks stay."""

    def shuffle(later: list[Document]) -> list[Document]:
        sources = later[:]
        random.Random(SEED).shuffle(sources)
        return [replace(d, title=s.title, body=s.body) for d, s in zip(later, sources, strict=True)]

    return _texts(benchmark, case.time.instant, shuffle)


def corrupted_future(benchmark: Benchmark, case: Catalyst) -> Benchmark:
    """Every document after T says something else: two thirds of its characters, in another order."""

    def corrupt(later: list[Document]) -> list[Document]:
        rng = random.Random(SEED)
        return [replace(d, title="", body="".join(rng.sample(d.text, -(-2 * len(d.text) // 3)))) for d in later]

    return _texts(benchmark, case.time.instant, corrupt)


def later_documents(benchmark: Benchmark, instant: datetime) -> int:
    """Documents that become known after ``instant``."""
    return sum(d.time is not None and d.time.instant > instant for d in benchmark.evaluation.corpus.documents)


def unknown_outcomes(benchmark: Benchmark, instant: datetime) -> int:
    """Outcomes of past cases that are not known yet at ``instant``."""
    cases = benchmark.experience
    return sum(cases.outcomes[c.catalyst_id].resolve_at >= instant for c in cases.catalysts) if cases else 0


def evaluation_turned(benchmark: Benchmark, since: datetime | None, step: int = 1) -> Benchmark:
    """Evaluated cases whose outcome becomes known at ``since`` or later (None: all) end the other way, by another return.

    ``step`` 2 turns every other one of them: what is made of outcomes held against each other stays as it is when all are turned.
    """
    return replace(benchmark, evaluation=_turned(benchmark.evaluation, since, step))


def experience_turned(benchmark: Benchmark, since: datetime) -> Benchmark:
    """Past cases whose outcome becomes known at ``since`` or later end the other way."""
    past = benchmark.experience
    return replace(benchmark, experience=_turned(past, since)) if past else benchmark


def _turned(cases: CaseSet, since: datetime | None, step: int = 1) -> CaseSet:
    def turn(outcome: Outcome) -> Outcome:
        label = NEGATIVE if outcome.label == POSITIVE else POSITIVE
        ret = None if outcome.fwd_ret is None else max(-0.99, -_STRETCH * outcome.fwd_ret)
        return replace(outcome, label=label, fwd_ret=ret)

    asked = [c.catalyst_id for c in cases.catalysts]
    unknown = [
        name
        for name in (*asked, *sorted(cases.outcomes.keys() - set(asked)))
        if (outcome := cases.outcomes[name]).teaches and (since is None or outcome.resolve_at >= since)
    ]
    turned = set(unknown[::step])
    return replace(cases, outcomes={name: turn(o) if name in turned else o for name, o in cases.outcomes.items()})


def with_twins(benchmark: Benchmark) -> Benchmark:
    """Copies and near-copies, after every decision, of what the asked stocks' forecasts may see.

    Whoever keeps the newest of several like documents, or counts how often something was said, sees something else now.
    """
    cases = benchmark.evaluation
    index = EvidenceIndex(cases.corpus, benchmark.drop_copies)
    last = max(c.time.instant for c in cases.catalysts)
    twins: dict[str, Document] = {}
    for case in cases.catalysts:
        view = index.as_of(case.stock_id, case.time, Gate.STRICT)
        for document in [*view.of_stock()[-TWINS:], *([focal] if (focal := view.focal()) else [])]:
            for n, body in enumerate((document.body, f"{document.body} (updated)")):
                name = f"twin{n}-{document.doc_id}"
                stamp = replace(case.time, instant=last + timedelta(days=1, seconds=n))
                stamp = replace(stamp, day=stamp.instant.date(), text=stamp.instant.strftime("%Y-%m-%d %H:%M:%S"))
                twins[name] = replace(document, doc_id=name, time=stamp, body=body)
    return with_documents(benchmark, twins.values())


def rows_shuffled(benchmark: Benchmark) -> Benchmark:
    """The rows of the files in another order: documents, securities, outcomes. Catalysts stay in order, as loaders promise."""
    rng = random.Random(SEED)

    def shuffle(cases: CaseSet) -> CaseSet:
        documents, stocks, outcomes = (
            list(cases.corpus.documents),
            list(cases.corpus.stocks.items()),
            list(cases.outcomes.items()),
        )
        for rows in (documents, stocks, outcomes):
            rng.shuffle(rows)
        corpus = replace(cases.corpus, documents=tuple(documents), stocks=dict(stocks))
        return replace(cases, corpus=corpus, outcomes=dict(outcomes))

    return _each(benchmark, shuffle)


def last_first(benchmark: Benchmark) -> Benchmark:
    """The catalysts are asked in the opposite order."""
    cases = benchmark.evaluation
    return replace(benchmark, evaluation=replace(cases, catalysts=cases.catalysts[::-1]))


def _each(benchmark: Benchmark, change: Callable[[CaseSet], CaseSet]) -> Benchmark:
    """``change`` on the evaluation set and on the experience."""
    past = benchmark.experience
    return replace(benchmark, evaluation=change(benchmark.evaluation), experience=change(past) if past else None)


def _texts(benchmark: Benchmark, instant: datetime, change: Texts) -> Benchmark:
    """``change`` on the documents that are not known at ``instant``, in both corpora."""

    def changed(cases: CaseSet) -> CaseSet:
        documents = cases.corpus.documents
        later = {d.doc_id for d in documents if d.time is None or d.time.instant > instant}
        new = change([d for d in documents if d.doc_id in later])
        kept = [d for d in documents if d.doc_id not in later]
        return replace(cases, corpus=replace(cases.corpus, documents=(*kept, *new)))

    return _each(benchmark, changed)


def with_documents(benchmark: Benchmark, more: Iterable[Document]) -> Benchmark:
    """``more`` documents in the evaluated corpus."""
    cases = benchmark.evaluation
    corpus = replace(cases.corpus, documents=(*cases.corpus.documents, *more))
    return replace(benchmark, evaluation=replace(cases, corpus=corpus))
