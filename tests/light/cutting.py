"""Benchmarks as they were known at a decision, and what a method sends for a catalyst of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from harness.clock import Granularity, Stamp
from harness.config import CellConfig
from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion
from harness.gateway.settings import Endpoint
from harness.local import RehearsingGateway
from harness.records import Benchmark, CaseSet, Catalyst, Document, Forecast
from tests.support import benchmark_of, config_of, forecasts_of


def configured(method: str, benchmark: str, root: Path | None, *overrides: str) -> CellConfig:
    where = () if root is None else (f"benchmark.root='{root}'",)
    return config_of(f"method={method}", f"benchmark={benchmark}", *where, *overrides)


@lru_cache
def loaded(benchmark: str, root: Path | None, experience: int) -> Benchmark:
    """The benchmark with the last ``experience`` cases of its experience."""
    whole = benchmark_of(configured("zero_shot", benchmark, root))
    if whole.experience is None:
        return whole
    kept = tuple(sorted(whole.experience.catalysts, key=lambda c: c.time.instant)[-experience:])
    return replace(whole, experience=replace(whole.experience, catalysts=kept))


class Remembering:
    """The rehearsal endpoint's answers, each made once: what a store of replies does between runs."""

    replies: ClassVar[dict[str, Completion]] = {}

    def __init__(self, endpoint: Endpoint) -> None:
        self._gateway = RehearsingGateway(endpoint)

    @property
    def made(self) -> dict[str, set[str]]:
        """Distinct requests by purpose that were answered anew."""
        return self._gateway.asked

    async def complete(self, request: ChatRequest) -> Completion:
        key = f"{request.messages}{request.purpose}"
        if key not in self.replies:
            self.replies[key] = await self._gateway.complete(request)
        return self.replies[key]


@lru_cache
def configured_for_sample(method: str, *overrides: str) -> CellConfig:
    return configured(method, "sample", None, *overrides)


def answered(
    method: str, benchmark: Benchmark, scratch: Path, cases: Sequence[Catalyst], *overrides: str
) -> dict[str, Forecast]:
    """Forecasts of ``cases`` with the rehearsal endpoint's answers."""
    config = configured_for_sample(method, *overrides)
    return forecasts_of(config, benchmark, scratch, [c.catalyst_id for c in cases], Remembering(config.backbone))


def prompt(method: str, benchmark: Benchmark, scratch: Path, case: Catalyst, *overrides: str) -> str | None:
    """Hash of the final prompt for ``case``."""
    return answered(method, benchmark, scratch, [case], *overrides)[case.catalyst_id].prompt_sha256


def known_at(benchmark: Benchmark, case: Catalyst) -> Benchmark:
    """``benchmark`` without any document after T, and without any outcome that was not known before T but the case's own row."""
    now = case.time.instant

    def cut(cases: CaseSet) -> CaseSet:
        names = [
            c
            for c in cases.catalysts
            if cases.outcomes[c.catalyst_id].resolve_at < now or c.catalyst_id == case.catalyst_id
        ]
        kept = tuple(d for d in cases.corpus.documents if d.time is None or d.time.instant <= now)
        return replace(cases, catalysts=tuple(names), corpus=replace(cases.corpus, documents=kept))

    return replace(
        benchmark,
        evaluation=cut(benchmark.evaluation),
        experience=cut(benchmark.experience) if benchmark.experience else None,
    )


def with_document(benchmark: Benchmark, document: Document) -> Benchmark:
    """``benchmark`` with one document more."""
    corpus = benchmark.evaluation.corpus
    more = replace(corpus, documents=(*corpus.documents, document))
    return replace(benchmark, evaluation=replace(benchmark.evaluation, corpus=more))


def telltale(benchmark: Benchmark, case: Catalyst, minutes: int) -> Document:
    """A document about another stock, ``minutes`` from T, that states how ``case`` ends.

    A date-only decision is its whole day: before it is the day before.
    """
    documents = {d.doc_id: d for d in benchmark.evaluation.corpus.documents}
    focal = documents.get(case.catalyst_id)
    other = next(c.stock_id for c in benchmark.evaluation.catalysts if c.stock_id != case.stock_id)
    label = benchmark.evaluation.outcomes[case.catalyst_id].label
    text = f"{case.topic} {case.company} {case.stock_id} {focal.text[:300] if focal else ''} The return was {label}."
    day_before = timedelta(days=1) if case.time.date_only and minutes < 0 else timedelta()
    instant = case.time.instant + timedelta(minutes=minutes) - day_before
    stamp = Stamp(str(instant), instant, case.time.day - day_before, Granularity.MINUTE)
    return Document("telltale", stamp, "", text, (other,))


def sampled(benchmark: Benchmark, ranks: Sequence[float]) -> list[Catalyst]:
    """Catalysts at the given places between the first (0) and the last (1)."""
    cases = benchmark.evaluation.catalysts
    return [cases[int(rank * (len(cases) - 1))] for rank in ranks]
