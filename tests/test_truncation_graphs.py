"""HippoRAG and GraphRAG: delete the future, plant the outcome, run again, compare prompts byte for byte.

Each world is run from nothing, in a directory of its own: so the state that one run reaches step by step, by its caches, is also held
against a build from nothing on what was known.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks import sample
from harness.evidence import EvidenceView, Gate
from harness.jobs import BenchmarkIndex
from harness.records import Benchmark, Catalyst
from methods.graphrag.index import grid_point
from tests.support import benchmark_of, config_of, run_cells
from tests.test_truncation import shifted

pytestmark = pytest.mark.slow
METHODS = ("hipporag", "hipporag2", "graphrag")
EXPERIENCE = 30
"""Cases of the experience that are kept of the released benchmarks."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class World:
    """A benchmark and where its files are."""

    benchmark: str
    root: Path

    @property
    def files(self) -> dict[str, Path]:
        """Files of the evaluation set, the experience and the documents of both."""
        if self.benchmark == "sample":
            return {name: self.root / name / "Sample.json" for name in ("eval", "expr", "event")}
        name = {"edt": "EDT_ood", "cmin_us": "CMIN-US_ood", "csmd": "CSMD_ood"}[self.benchmark]
        return {
            "eval": self.root / "eval" / f"{name}.json",
            "expr": self.root / "expr" / "Astock.json",
            "event": self.root / "event" / f"{name}.json",
            "past": self.root / "event" / "Astock.partial.json",
        }

    def load(self) -> Benchmark:
        return benchmark_of(config_of(f"benchmark={self.benchmark}", f"benchmark.root='{self.root}'"))

    def changed(self, to: Path, **changes: Callable[[Rows], Rows]) -> World:
        """A copy whose rows of a file went through the change of its name."""
        shutil.copytree(self.root, to, copy_function=shutil.copy, ignore=shutil.ignore_patterns("*.py", "*.toml"))
        world = World(self.benchmark, to)
        for name, change in changes.items():
            path = world.files[name]
            path.chmod(0o644)
            content = json.loads(path.read_text("utf-8"))
            key = "text" if name in ("event", "past") else "catalysts"
            content[key] = change(content[key])
            path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
        return world

    def cut(self, case: Catalyst, to: Path) -> World:
        """The world as it was known at the decision of ``case``: no later document, no later outcome but the case's own row."""
        whole = self.load()
        assert whole.experience is not None
        now = case.time.instant
        sets = (whole.experience, whole.evaluation)
        stamps = {d.doc_id: d.time.instant for s in sets for d in s.corpus.documents if d.time}
        known = {name for s in sets for name, o in s.outcomes.items() if o.resolve_at < now} | {case.catalyst_id}

        def documents(rows: Rows) -> Rows:
            return [row for row in rows if row["doc_id"] in stamps and stamps[row["doc_id"]] <= now]

        def cases(rows: Rows) -> Rows:
            return [row for row in rows if row["catalyst_id"] in known]

        texts = {name: documents for name in self.files if name in ("event", "past")}
        return self.changed(to, eval=cases, expr=cases, **texts)

    def with_document(self, to: Path, **row: Any) -> World:
        return self.changed(to, event=lambda rows: [*rows, {"title": "", **row}])

    def prompts(
        self, scratch: Path, names: Sequence[str], *overrides: str, methods: Sequence[str] = METHODS
    ) -> dict[tuple[str, str], str | None]:
        """Prompt hashes by (method, catalyst)."""
        shared = (f"benchmark={self.benchmark}", f"benchmark.root='{self.root}'", *overrides)
        rows = run_cells([config_of(f"method={method}", *shared) for method in methods], scratch, names)
        return {(m, r["catalyst_id"]): r["prompt_sha256"] for m, some in rows.items() for r in some}


@pytest.fixture
def bundled() -> World:
    return World("sample", Path(sample.__file__).parent)


@pytest.fixture(scope="module")
def small_root(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The released data with the last cases of the experience only."""
    whole = World("csmd", data_root)

    def last(rows: Rows) -> Rows:
        listed = {row["doc_id"] for row in json.loads(whole.files["past"].read_text("utf-8"))["text"]}
        return sorted((r for r in rows if r["catalyst_id"] in listed), key=lambda r: r["decision_time"])[-EXPERIENCE:]

    return whole.changed(tmp_path_factory.mktemp("small") / "root", expr=last).root


def test_the_sample_cut_at_a_decision_gives_the_same_prompts(bundled: World, tmp_path: Path) -> None:
    """The whole run comes to the decision by its caches, after all earlier ones; the cut one starts there."""
    case = bundled.load().evaluation.catalysts[20]
    cut = bundled.cut(case, tmp_path / "root").prompts(tmp_path / "cut", [case.catalyst_id])
    everyone = [c.catalyst_id for c in bundled.load().evaluation.catalysts]
    whole = bundled.prompts(tmp_path / "whole", everyone)
    assert cut == {key: whole[key] for key in cut}
    assert len(cut) == len(METHODS)
    decisions = {c.catalyst_id: c.time.instant for c in bundled.load().evaluation.catalysts}
    (file,) = (tmp_path / "whole" / "cells").glob("graphrag__*/evidence.parquet")
    shown = pd.read_parquet(file)
    reports = shown[shown["kind"] == "community"]
    assert len(reports)
    closes = [grid_point(decisions[name], "week") for name in reports["catalyst_id"]]
    assert (reports["known_at"] < pd.Series(closes, index=reports.index)).all()
    assert {"chunk", "entity", "relation"} <= set(shown["kind"])


def test_a_planted_look_ahead_is_caught(bundled: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built on the whole corpus, HippoRAG ranks otherwise than on the corpus cut at T, though all it shows was known; GraphRAG
    shows what was not, and the check at the prompt stops it.
    """
    case = bundled.load().evaluation.catalysts[20]
    names, many = [case.catalyst_id], ("method.passages=20", "feed=docs")
    cut = bundled.cut(case, tmp_path / "root").prompts(tmp_path / "cut", names, *many, methods=METHODS[:2])
    monkeypatch.setattr(
        EvidenceView, "build_on", lambda view: EvidenceView(view.index, view.stock_id, view.decision, Gate.OFF)
    )
    whole = bundled.prompts(tmp_path / "whole", names, *many, methods=METHODS[:2])
    assert all(whole[key] != cut[key] for key in cut)
    with pytest.raises(AssertionError, match="hit a bug"):
        bundled.prompts(tmp_path / "late", names, "feed=docs", methods=METHODS[2:])


@pytest.mark.parametrize("gate", ["strict", "paper"])
def test_a_document_that_tells_the_outcome(bundled: World, tmp_path: Path, gate: str) -> None:
    """One minute after T nobody is shown it (that would fail the cell) and, under strict, nothing changes; one minute before T
    every prompt does.
    """
    loaded = bundled.load()
    case = loaded.evaluation.catalysts[20]
    focal = BenchmarkIndex.of(loaded).focal(case)
    assert focal is not None
    others = (c for c in loaded.evaluation.catalysts if c.market == case.market)  # a stamp is in its market's time
    other = next(c.stock_id for c in others if c.stock_id != case.stock_id)
    body = f"{case.topic} {case.company} {case.stock_id} {focal.text} Over the next days the stock rose sharply."
    row = {"doc_id": "planted", "mentioned_stocks": [other], "body": body}
    late = bundled.with_document(tmp_path / "late", ts=shifted(case, +1), **row)
    early = bundled.with_document(tmp_path / "early", ts=shifted(case, -1), **row)
    worlds = {"plain": bundled, "late": late, "early": early}
    found: dict[str, dict[Any, Any]] = {name: {} for name in worlds}
    for method in METHODS:  # so much is shown that whatever is found shows
        wide = "method.search.tokens=60000" if method == "graphrag" else "method.passages=60"
        for name, world in worlds.items():
            scratch = tmp_path / f"{name}-{method}"
            args = ([case.catalyst_id], f"gate={gate}", "context.budget=native", "feed=docs", wide)
            found[name] |= world.prompts(scratch, *args, methods=[method])
    assert gate == "paper" or found["late"] == found["plain"]
    assert {key for key in found["plain"] if found["early"][key] == found["plain"][key]} == set()


def test_under_the_paper_gate_the_future_shapes_what_is_found(bundled: World, tmp_path: Path) -> None:
    """What strict prevents is no fancy: built on the whole corpus and filtered afterwards, the same prompts differ."""
    case = bundled.load().evaluation.catalysts[20]
    cut = bundled.cut(case, tmp_path / "root")
    args = ([case.catalyst_id], "gate=paper", "feed=docs")
    assert bundled.prompts(tmp_path / "whole", *args) != cut.prompts(tmp_path / "cut", *args)


def test_variants_of_graphrag(bundled: World, tmp_path: Path) -> None:
    """Global search, no reports, an exact grid, the native budget: each gated as the default is."""
    case = bundled.load().evaluation.catalysts[20]
    cut = bundled.cut(case, tmp_path / "root")
    variants = ["method.mode=global", "method.reports=off", "method.report_grid=exact", "context.budget=native"]
    seen = set()
    for number, variant in enumerate(variants):
        args = ([case.catalyst_id], variant, "feed=docs")
        found = bundled.prompts(tmp_path / f"whole{number}", *args, methods=["graphrag"])
        assert cut.prompts(tmp_path / f"cut{number}", *args, methods=["graphrag"]) == found
        seen |= set(found.values())
    assert len(seen) == len(variants)


def test_the_first_decisions_have_small_graphs(bundled: World, tmp_path: Path) -> None:
    """No document before T, one, a few: no crash, and a prompt for each."""
    loaded = bundled.load()
    first = loaded.evaluation.catalysts[0]
    stamps = {d.doc_id: d.time.instant for d in loaded.evaluation.corpus.documents if d.time}
    later = {name for name, known in stamps.items() if known >= first.time.instant}
    earlier = sorted(stamps.keys() - later, key=lambda name: stamps[name])
    for count in (0, 1, 3):
        kept = later | set(earlier[:count])
        world = bundled.changed(
            tmp_path / f"root{count}",
            event=lambda rows, kept=kept: [r for r in rows if r["doc_id"] in kept],  # type: ignore[misc]
        )
        assert len(world.prompts(tmp_path / f"run{count}", [first.catalyst_id], "feed=docs")) == len(METHODS)


@pytest.mark.data
@pytest.mark.parametrize("benchmark", ["edt", "cmin_us", "csmd"])
def test_released_benchmarks_as_known_at_a_decision(small_root: Path, tmp_path: Path, benchmark: str) -> None:
    """Without the future, with the outcome told a minute after T: the same prompts. Told a minute before T: other ones."""
    world = World(benchmark, small_root)
    loaded = world.load()
    case, names = loaded.evaluation.catalysts[70], [loaded.evaluation.catalysts[70].catalyst_id]
    focal = BenchmarkIndex.of(loaded).focal(case)
    other = next(c.stock_id for c in loaded.evaluation.catalysts if c.stock_id != case.stock_id)
    body = (
        f"{case.topic} {case.company} {case.stock_id} {focal.text if focal else ''} The stock rose sharply afterwards."
    )
    row = {"doc_id": "planted", "mentioned_stocks": [other], "body": body}
    whole = world.prompts(tmp_path / "whole", names)
    assert world.cut(case, tmp_path / "cut").prompts(tmp_path / "1", names) == whole
    assert world.with_document(tmp_path / "late", ts=shifted(case, +1), **row).prompts(tmp_path / "2", names) == whole
    early = world.with_document(tmp_path / "early", ts=shifted(case, -1), **row).prompts(tmp_path / "3", names)
    assert early.keys() == whole.keys() == {(method, names[0]) for method in METHODS}
    assert early != whole
