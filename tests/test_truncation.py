"""Nothing from after the decision reaches a prompt: delete the future, plant the outcome, compare prompts byte for byte."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.records import Benchmark, Catalyst
from tests.support import benchmark_of, config_of, forecasts_of

pytestmark = [pytest.mark.data]

EVENTS = {"edt": "event/EDT_ood.json", "cmin_us": "event/CMIN-US_ood.json", "csmd": "event/CSMD_ood.json"}
METHODS = ("zero_shot", "cot", "vanilla_rag")
SAMPLED = (0, 40, 90, 127)
"""Catalysts by rank of decision time."""

Rows = list[dict[str, Any]]


def root_with(data_root: Path, benchmark: str, to: Path, change: Callable[[Rows], Rows]) -> Path:
    """A copy of the data in which ``change`` was applied to the benchmark's documents."""
    for folder in ("eval", "event", "expr", "prices"):
        (to / folder).mkdir(parents=True)
        for file in (data_root / folder).iterdir():
            (to / folder / file.name).symlink_to(file)
    path = to / EVENTS[benchmark]
    content = json.loads(path.read_text("utf-8"))
    content["text"] = change(content["text"])
    path.unlink()
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    return to


def prompts(
    benchmark: str, root: Path, names: Sequence[str], scratch: Path, *overrides: str
) -> dict[tuple[str, str], str | None]:
    """Prompt hashes by (method, catalyst); the benchmark is loaded once."""
    loaded = None
    found = {}
    for method in METHODS:
        config = config_of(f"method={method}", f"benchmark={benchmark}", f"benchmark.root='{root}'", *overrides)
        loaded = loaded or benchmark_of(config)
        answers = forecasts_of(config, loaded, scratch, names)
        found |= {(method, name): forecast.prompt_sha256 for name, forecast in answers.items()}
    return found


def loaded(data_root: Path, benchmark: str) -> Benchmark:
    return benchmark_of(config_of(f"benchmark={benchmark}", f"benchmark.root='{data_root}'"))


def shifted(case: Catalyst, minutes: int) -> str:
    """A stamp ``minutes`` from T. A date-only decision is its whole day: after it is the next day, before it the day before."""
    if not case.time.date_only:
        return (datetime.fromisoformat(case.time.text) + timedelta(minutes=minutes)).strftime("%Y-%m-%d %H:%M:%S")
    midnight = datetime.fromisoformat(case.time.text) + timedelta(days=1 if minutes > 0 else 0)
    return (midnight + timedelta(minutes=minutes)).strftime("%Y-%m-%d %H:%M")


@pytest.mark.parametrize("benchmark", sorted(EVENTS))
def test_deleting_every_later_document_changes_no_prompt(data_root: Path, tmp_path: Path, benchmark: str) -> None:
    bench = loaded(data_root, benchmark)
    known = {d.doc_id: d.time.instant for d in bench.evaluation.corpus.documents if d.time}
    sampled = [bench.evaluation.catalysts[i] for i in SAMPLED]
    whole = prompts(benchmark, data_root, [c.catalyst_id for c in sampled], tmp_path / "v")
    for number, case in enumerate(sampled):

        def past(rows: Rows, case: Catalyst = case) -> Rows:
            return [r for r in rows if known[r["doc_id"]] <= case.time.instant]

        root = root_with(data_root, benchmark, tmp_path / str(number), past)
        for key, cut in prompts(benchmark, root, [case.catalyst_id], tmp_path / "v").items():
            assert cut == whole[key], key


@pytest.mark.parametrize("benchmark", sorted(EVENTS))
def test_a_document_that_tells_the_outcome(data_root: Path, tmp_path: Path, benchmark: str) -> None:
    """One minute after T it changes nothing; one minute before T, or with the gate off, it changes what retrieval finds."""
    bench = loaded(data_root, benchmark)
    case = bench.evaluation.catalysts[90]
    focal = next(d for d in bench.evaluation.corpus.documents if d.doc_id == case.catalyst_id)
    # Of another stock, so that it is neither the focal nor a concurrent document: only retrieval could show it.
    other = next(c.stock_id for c in bench.evaluation.catalysts if c.stock_id != case.stock_id)
    row = {"doc_id": "planted", "title": "", "mentioned_stocks": [other]}
    truth = f"{case.topic} {case.company} {case.stock_id} {focal.text[:300]} Over the next days the stock rose sharply."
    late, early = (
        root_with(
            data_root,
            benchmark,
            tmp_path / name,
            lambda rows, m=m: [*rows, {**row, "ts": shifted(case, m), "body": truth}],
        )  # type: ignore[misc]
        for name, m in (("late", +1), ("early", -1))
    )

    def hashes(root: Path, *overrides: str) -> dict[tuple[str, str], str | None]:
        return prompts(benchmark, root, [case.catalyst_id], tmp_path / "v", *overrides)

    rag = ("vanilla_rag", case.catalyst_id)
    plain = hashes(data_root)
    assert hashes(late) == plain
    assert hashes(late, "gate=paper") == plain
    assert hashes(early)[rag] != plain[rag]
    assert hashes(late, "gate=off")[rag] != hashes(data_root, "gate=off")[rag]


def test_cutting_outcomes_that_resolve_later_changes_no_prompt(data_root: Path, tmp_path: Path) -> None:
    """Astock's first decisions fall before the last experience case has resolved: later outcomes must not matter."""
    config = config_of("method=vanilla_rag", "benchmark=astock", f"benchmark.root='{data_root}'")
    bench = benchmark_of(config)
    assert bench.experience is not None
    case = bench.evaluation.catalysts[0]
    late = {n for n, o in bench.experience.outcomes.items() if o.resolve_at >= case.time.instant}
    assert late, "no experience case resolves after the first decision: this test would prove nothing"
    whole = forecasts_of(config, bench, tmp_path / "v", [case.catalyst_id])
    (tmp_path / "cut").mkdir()
    for folder in ("eval", "event", "prices", "expr"):
        shutil.copytree(data_root / folder, tmp_path / "cut" / folder)
    path = tmp_path / "cut" / "expr" / "Astock.json"
    path.chmod(0o644)
    content = json.loads(path.read_text("utf-8"))
    content["catalysts"] = [r for r in content["catalysts"] if r["catalyst_id"] not in late]
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    cut = config_of("method=vanilla_rag", "benchmark=astock", f"benchmark.root='{tmp_path / 'cut'}'")
    again = forecasts_of(cut, benchmark_of(cut), tmp_path / "v", [case.catalyst_id])
    assert again[case.catalyst_id].prompt_sha256 == whole[case.catalyst_id].prompt_sha256
