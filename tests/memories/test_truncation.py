"""The memory baselines know nothing of the future: canary, deletion, monotone log, days; and each violation is caught."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from harness.memory import CommitKey, MemoryLog, State
from harness.records import Catalyst
from methods.fed import Origin
from tests.memories.world import both, cut, job_of, log_of, planted, planted_at, prompt, ran, small

METHODS = ("mem0", "a_mem", "memgpt")
ALL = ("context.budget=native", "method.native_tokens=1000000")
READS = {"mem0": ("method.top_k=1000", *ALL), "a_mem": ("method.retrieve_k=1000", *ALL), "memgpt": ALL}
"""Overrides with which a method shows whatever it may see: nothing hides behind a rank or a budget."""
RELEASED = ("edt", "cmin_us", "csmd")
BENCHMARKS = ["sample", *(pytest.param(name, marks=pytest.mark.data) for name in RELEASED)]


@pytest.fixture
def where(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Overrides that choose the benchmark."""
    name = request.param
    if name == "sample":
        return ("benchmark=sample",)
    root = request.getfixturevalue("data_root")
    return (f"benchmark={name}", f"benchmark.root='{root}'")


def case_of(where: tuple[str, ...], date_only: bool | None = None) -> Catalyst:
    """A case from the middle of a benchmark; with ``date_only`` one whose decision is a day, or is not."""
    cases = job_of("method=mem0", *where).benchmark.evaluation.catalysts
    fitting = [c for c in cases if date_only is None or c.time.date_only == date_only]
    return fitting[len(fitting) // 2]


def telling(case: Catalyst) -> str:
    return f"{case.topic} {case.company} {case.stock_id}: over the next days the stock rose sharply, profit grew."


@pytest.mark.parametrize("where", BENCHMARKS, indirect=True)
@pytest.mark.parametrize("method", METHODS)
def test_deleting_the_future_changes_no_prompt(method: str, where: tuple[str, ...], tmp_path: Path) -> None:
    case = case_of(where)
    command = (f"method={method}", *READS[method], "memory=online", *where)
    whole = prompt(tmp_path / "whole", small(case), case, *command)
    assert prompt(tmp_path / "cut", both(small(case), cut(case)), case, *command) == whole
    assert log_of(tmp_path / "whole").sha256() != log_of(tmp_path / "cut").sha256(), "nothing was cut"


@pytest.mark.parametrize("where", BENCHMARKS, indirect=True)
@pytest.mark.parametrize("method", METHODS)
def test_a_document_that_tells_the_outcome(method: str, where: tuple[str, ...], tmp_path: Path) -> None:
    """One minute after T it changes nothing; one minute before T, or with the gate off (seen on the sample), it does."""
    case = case_of(where)
    command = (f"method={method}", *READS[method], *where)
    late = both(small(case), planted(case, +1, telling(case)))
    early = both(small(case), planted(case, -1, telling(case)))
    plain = prompt(tmp_path / "plain", small(case), case, *command)
    assert prompt(tmp_path / "late", late, case, *command) == plain
    assert prompt(tmp_path / "early", early, case, *command) != plain
    if where != ("benchmark=sample",):
        return
    off = (*command, "gate=off")
    assert prompt(tmp_path / "late-off", late, case, *off) != prompt(tmp_path / "off", small(case), case, *off)


@pytest.mark.parametrize("method", METHODS)
def test_the_day_of_a_date_only_decision_is_not_remembered_yet(method: str, tmp_path: Path) -> None:
    """A morning's document is known before the end of the day, but a decision that is the whole day may come before it."""
    where = ("benchmark=sample",)
    case = case_of(where, date_only=True)
    command = (f"method={method}", *READS[method], *where)
    plain = prompt(tmp_path / "plain", small(case), case, *command)
    same_day = both(small(case), planted_at(case, f"{case.time.text} 06:00", telling(case)))
    day_before = (case.time.day - timedelta(days=1)).isoformat()
    earlier = both(small(case), planted_at(case, f"{day_before} 06:00", telling(case)))
    assert prompt(tmp_path / "same", same_day, case, *command) == plain
    assert prompt(tmp_path / "earlier", earlier, case, *command) != plain


@pytest.mark.parametrize("method", METHODS)
def test_a_memory_that_knows_the_day_itself_is_caught(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted violation: a log that compares instants alone, for which the end of the day comes after its morning."""
    case = case_of(("benchmark=sample",), date_only=True)
    command = (f"method={method}", *READS[method], "benchmark=sample")
    monkeypatch.setattr(CommitKey, "known_to", lambda self, decision: self.valid_from < decision.instant)
    same_day = both(small(case), planted_at(case, f"{case.time.text} 06:00", telling(case)))
    plain = prompt(tmp_path / "plain", small(case), case, *command)
    assert prompt(tmp_path / "same", same_day, case, *command) != plain


@pytest.mark.parametrize("where", BENCHMARKS, indirect=True)
@pytest.mark.parametrize("method", METHODS)
def test_no_version_is_older_than_what_it_is_made_of(method: str, where: tuple[str, ...], tmp_path: Path) -> None:
    case = case_of(where)
    rows = ran(tmp_path, small(case), [case.catalyst_id], f"method={method}", *where)
    log = log_of(tmp_path)
    assert too_early(log) == []
    assert rows[0]["max_evidence_time"] <= case.time.instant
    key = log.ops[len(log.ops) // 2].key
    late = Origin(("r",), key.valid_from, key.valid_from + timedelta(seconds=1), None)
    last = next(op for op in reversed(log.ops) if op.value is not None)
    value = json.dumps({**json.loads(str(last.value)), "origin": late.plain()})
    log.ops.append(replace(last, key=key, value=value))
    assert too_early(log) == [key.record_id], "the planted violation was not seen"


def too_early(log: MemoryLog) -> list[str]:
    """Records with a version that holds before its newest source was known."""
    return [
        op.key.record_id
        for op in log.ops
        if op.value is not None and Origin.from_plain(json.loads(op.value)["origin"]).known_at > op.key.valid_from
    ]


@pytest.mark.parametrize("method", METHODS)
def test_a_memory_that_shows_its_final_state_is_caught_at_the_prompt(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted violation: a log that takes every decision for the last."""
    case = case_of(("benchmark=sample",))
    monkeypatch.setattr(MemoryLog, "length_at", lambda self, decision: len(self.ops))
    with pytest.raises(AssertionError, match="bug"):
        prompt(tmp_path, small(case), case, f"method={method}", *READS[method], "benchmark=sample")


@pytest.mark.parametrize("method", ["mem0", "a_mem"])
def test_under_the_paper_gate_what_later_records_shaped_is_left_out(method: str, tmp_path: Path) -> None:
    case = case_of(("benchmark=sample",))
    command = (f"method={method}", *READS[method], "benchmark=sample", "gate=paper")
    whole = prompt(tmp_path / "whole", small(case), case, *command)
    assert prompt(tmp_path / "cut", both(small(case), cut(case)), case, *command) != whole


def test_under_the_paper_gate_the_agent_has_no_working_context_that_later_records_shaped(tmp_path: Path) -> None:
    """Its messages and passages of before T are seen under either gate; its blocks as they are in the end are not."""
    case = case_of(("benchmark=sample",))
    seen = {}
    for gate in ("strict", "paper"):
        command = ("method=memgpt", *READS["memgpt"], "benchmark=sample", f"gate={gate}")
        prompt(tmp_path / gate, small(case), case, *command)
        seen[gate] = {name.split(":")[0] for name in shown(tmp_path / gate)}
    assert "core" in seen["strict"]
    assert "core" not in seen["paper"]
    assert seen["paper"] <= {"message", "passage"}
    assert seen["paper"]


@pytest.mark.parametrize("method", METHODS)
def test_the_memory_of_a_case_never_holds_its_own_outcome_even_without_a_gate(method: str, tmp_path: Path) -> None:
    """``gate=off`` shows the final memory, but nothing that the outcome of the asking case shaped."""
    case = case_of(("benchmark=sample",))
    command = (f"method={method}", *READS[method], "benchmark=sample", "gate=off", "memory=online")
    rows = ran(tmp_path, small(case), [case.catalyst_id], *command)
    assert {r["status"] for r in rows} == {"ok"}
    log = log_of(tmp_path)
    assert f"case:{case.catalyst_id}" in log
    tainted = {
        op.object_id
        for op in log.ops
        if op.value and case.catalyst_id in Origin.from_plain(json.loads(op.value)["origin"]).evaluated
    }
    assert tainted, "the outcome shaped nothing: this test would prove nothing"
    final: State = log.final_state()
    held = {
        name
        for name, value in final.items()
        if case.catalyst_id in Origin.from_plain(json.loads(value)["origin"]).evaluated
    }
    assert not held & shown(tmp_path)


def shown(scratch: Path) -> set[str]:
    """Ids of the notes in the prompts."""
    import pyarrow.parquet as pq

    (file,) = scratch.glob("cells/*/evidence.parquet")
    return {row["item_id"] for row in pq.read_table(file).to_pylist() if row["kind"] == "memory_note"}
