"""LightRAG and HyperGraphRAG under the gate: delete the future, plant the outcome, compare prompts byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.evidence import EvidenceView, Gate, verdict
from harness.records import Benchmark
from tests.light.cutting import answered, configured, known_at, loaded, prompt, sampled, telltale, with_document
from tests.support import run_cells

METHODS = ("lightrag", "hypergraphrag")
RELEASED = ("edt", "cmin_us", "csmd")
PLACES = [
    pytest.param("sample", id="sample"),
    *(pytest.param(name, id=name, marks=[pytest.mark.data, pytest.mark.slow]) for name in RELEASED),
]
WIDE = (
    "context.budget=native", "method.top_k=100000", "method.entity_tokens=10000000", "method.relation_tokens=10000000",
    "method.source_tokens=10000000",
)  # fmt: skip
"""Shows whatever is found at all, so that hardly a change of the graph goes unseen."""
EXPERIENCE = 20
"""Cases of the experience that are kept."""


@pytest.fixture
def bench(place: str, request: pytest.FixtureRequest) -> Benchmark:
    return loaded(place, None if place == "sample" else request.getfixturevalue("data_root"), EXPERIENCE)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("method", METHODS)
def test_deleting_the_future_changes_no_prompt(method: str, place: str, bench: Benchmark, tmp_path: Path) -> None:
    cases = sampled(bench, (0.0, 0.35, 0.9))
    whole = answered(method, bench, tmp_path / "v", cases)
    for case in cases:
        assert prompt(method, known_at(bench, case), tmp_path / "v", case) == whole[case.catalyst_id].prompt_sha256
        assert {verdict(p.source, case.time) for p in whole[case.catalyst_id].shown} <= {"ok"}
    assert {p.source.kind for f in whole.values() for p in f.shown} >= {"entity", "chunk"}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("method", METHODS)
def test_a_document_that_tells_the_outcome(method: str, place: str, bench: Benchmark, tmp_path: Path) -> None:
    """After T it changes nothing; before T, or with the gate off (seen on the sample: it reads a whole corpus), it changes the prompt."""
    [case] = sampled(bench, (0.7,))
    late, early = (with_document(bench, telltale(bench, case, minutes)) for minutes in (+1, -1))

    def sent(benchmark: Benchmark, *overrides: str) -> str | None:
        return prompt(method, benchmark, tmp_path / "v", case, *WIDE, *overrides)

    plain = sent(bench)
    assert sent(late) == plain
    assert sent(early) != plain
    if place == "sample":
        assert sent(late, "gate=off") != sent(bench, "gate=off")


@pytest.mark.parametrize("method", METHODS)
def test_under_the_paper_gate_the_future_shapes_what_is_shown(method: str, tmp_path: Path) -> None:
    """Items that a later document shaped are not shown, but what is built of the whole corpus is another graph."""
    bench = loaded("sample", None, EXPERIENCE)
    cases = sampled(bench, (0.3, 0.5, 0.7))
    paper = answered(method, bench, tmp_path / "v", cases, "gate=paper")
    cut = [prompt(method, known_at(bench, case), tmp_path / "v", case, "gate=paper") for case in cases]
    assert cut != [paper[case.catalyst_id].prompt_sha256 for case in cases]
    for case in cases:
        assert {verdict(p.source, case.time) for p in paper[case.catalyst_id].shown} <= {"ok"}


@pytest.mark.parametrize("method", METHODS)
def test_a_log_that_reads_on_is_caught(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted violation: a log that ends at no T. The records of the prompt betray it, and so does deleting the future."""
    bench = loaded("sample", None, EXPERIENCE)
    cases = sampled(bench, (0.1, 0.3, 0.5, 0.6, 0.8))

    def whole(view: EvidenceView) -> Any:
        return list(view.index.documents)

    last = bench.evaluation.corpus.documents
    end = max(d.time.instant for d in last if d.time), "~"
    monkeypatch.setattr(EvidenceView, "retrievable", whole)
    monkeypatch.setattr(EvidenceView, "log_end", lambda view: end)
    found = answered(method, bench, tmp_path / "v", cases)
    assert any(verdict(p.source, c.time) == "late" for c in cases for p in found[c.catalyst_id].shown)
    cut = [prompt(method, known_at(bench, case), tmp_path / "v", case) for case in cases]
    assert cut != [found[case.catalyst_id].prompt_sha256 for case in cases]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gate", [Gate.STRICT, Gate.PAPER, Gate.OFF])
def test_resolved_cases_are_records_too(method: str, gate: Gate, tmp_path: Path) -> None:
    bench = loaded("sample", None, EXPERIENCE)
    [case] = sampled(bench, (0.9,))
    with_cases, without = (
        prompt(method, bench, tmp_path / "v", case, f"gate={gate}", f"feed={feed}") for feed in ("docs+cases", "docs")
    )
    assert with_cases != without


@pytest.mark.parametrize("method", METHODS)
def test_the_budgets(method: str, tmp_path: Path) -> None:
    bench = loaded("sample", None, EXPERIENCE)
    [case] = sampled(bench, (0.9,))
    matched, native = (
        answered(method, bench, tmp_path / "v", [case], f"context.budget={budget}")[case.catalyst_id]
        for budget in ("matched", "native")
    )
    base = {"focal", "concurrent"}
    sizes = [sum(len(p.text) + 1 for p in f.shown if p.source.kind not in base) for f in (matched, native)]
    assert 0 < sizes[0] <= 8000
    assert sizes[0] <= sizes[1]


@pytest.mark.parametrize(
    ("method", "switch"),
    [("lightrag", "method.mode=local"), ("lightrag", "method.mode=global"), ("hypergraphrag", "method.scoring=paper")],
)
def test_the_switches_under_the_gate(method: str, switch: str, tmp_path: Path) -> None:
    """From the first catalyst on, before which there is next to nothing to find."""
    bench = loaded("sample", None, EXPERIENCE)
    cases = sampled(bench, (0.0, 0.9))
    plain = answered(method, bench, tmp_path / "v", cases, *WIDE)
    switched = answered(method, bench, tmp_path / "v", cases, *WIDE, switch)
    last = cases[-1].catalyst_id
    assert switched[last].prompt_sha256 != plain[last].prompt_sha256
    for case in cases:
        cut = prompt(method, known_at(bench, case), tmp_path / "v", case, *WIDE, switch)
        assert cut == switched[case.catalyst_id].prompt_sha256


@pytest.mark.parametrize("method", METHODS)
def test_forecasts_at_once_get_the_prompts_of_forecasts_one_by_one(method: str, tmp_path: Path) -> None:
    bench = loaded("sample", None, 10_000)
    limited = configured(method, "sample", None, "run.limit=12", "feed=docs")
    rows = run_cells([limited], tmp_path / "cell")[method]
    [case] = [c for c in bench.evaluation.catalysts if c.catalyst_id == rows[5]["catalyst_id"]]
    assert prompt(method, bench, tmp_path / "v", case, "feed=docs") == rows[5]["prompt_sha256"]
