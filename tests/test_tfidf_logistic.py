"""TF-IDF and logistic regression: learns words, from what was known at T only."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.jobs import BenchmarkIndex
from harness.records import POSITIVE, Benchmark
from tests.support import benchmark_of, config_of, forecasts_of

CONFIG = ("method=tfidf_logistic", "benchmark=sample")


@pytest.fixture(scope="module")
def sample() -> Benchmark:
    return benchmark_of(config_of(*CONFIG))


def probabilities(benchmark: Benchmark, scratch: Path, **knobs: Any) -> dict[str, float | None]:
    config = config_of(*CONFIG, *(f"method.{name}={value}" for name, value in knobs.items()))
    return {name: f.prob_positive for name, f in forecasts_of(config, benchmark, scratch).items()}


def with_words(benchmark: Benchmark) -> Benchmark:
    """Every document of the experience says how its cases end."""
    past = benchmark.experience
    assert past is not None
    index = BenchmarkIndex.of(benchmark).past
    assert index is not None
    focal = {index.focal(c): past.outcomes[c.catalyst_id].label for c in past.catalysts}
    said = {d.doc_id: ("profits soar" if label == POSITIVE else "losses widen") for d, label in focal.items() if d}
    documents = tuple(replace(d, body=said.get(d.doc_id, d.body), title="") for d in past.corpus.documents)
    return replace(benchmark, experience=replace(past, corpus=replace(past.corpus, documents=documents)))


def test_it_learns_what_words_go_with(sample: Benchmark, tmp_path: Path) -> None:
    taught = with_words(sample)
    cases = sample.evaluation

    def saying(text: str) -> Benchmark:
        documents = tuple(replace(d, title="", body=f"{text} {d.doc_id[-2:]}") for d in cases.corpus.documents)
        return replace(taught, evaluation=replace(cases, corpus=replace(cases.corpus, documents=documents)))

    up = probabilities(saying("profits soar"), tmp_path / "up")
    down = probabilities(saying("losses widen"), tmp_path / "down")
    last = cases.catalysts[-1].catalyst_id
    assert up[last] is not None
    assert down[last] is not None
    assert up[last] > 0.5 > down[last]


def test_what_resolves_later_changes_nothing(sample: Benchmark, tmp_path: Path) -> None:
    """Outcomes known at or after T are turned round: the forecast at T is the same; those known before are not idle."""
    past = sample.experience
    assert past is not None
    case = sample.evaluation.catalysts[0]
    resolved = sorted(o.resolve_at for o in past.outcomes.values())
    early = replace(case, time=replace(case.time, instant=resolved[len(resolved) // 2] + timedelta(seconds=1)))
    asked = replace(sample, evaluation=replace(sample.evaluation, catalysts=(early,)))

    def turned(later: bool) -> Benchmark:
        other = {POSITIVE: "negative", "negative": POSITIVE}
        outcomes = {
            name: replace(o, label=other.get(o.label, o.label)) if (o.resolve_at >= early.time.instant) == later else o
            for name, o in past.outcomes.items()
        }
        return replace(asked, experience=replace(past, outcomes=outcomes))

    as_it_is = probabilities(asked, tmp_path / "a", fewest=2)
    assert probabilities(turned(later=True), tmp_path / "b", fewest=2) == as_it_is
    assert probabilities(turned(later=False), tmp_path / "c", fewest=2) != as_it_is


def test_too_few_cases_give_their_share(sample: Benchmark, tmp_path: Path) -> None:
    config = config_of("method=majority", "benchmark=sample")
    shares = {name: f.prob_positive for name, f in forecasts_of(config, sample, tmp_path / "m").items()}
    assert probabilities(sample, tmp_path / "t", fewest=10_000) == shares
