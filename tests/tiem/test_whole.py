"""The method on the real hypergraph and its own memory, with replies that only fit their schemas."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from harness.evidence import Gate, verdict
from harness.gateway.reply import parse_object
from harness.gateway.result import Completion
from harness.memory import CommitKey, MemoryLog
from harness.method import Context, Lesson, Tools
from harness.records import Call, Document, Forecast, Status
from harness.rehearsal.answerer import answer
from methods.tiem.method import Tiem
from methods.tiem.recall import known_at
from methods.tiem.skill_json import decoded
from tests.tiem.test_prompts import VARIANTS, variant
from tests.tiem.world import CASE, Embedder, Memory, Model, context, document, replies, resolved


class Rehearsed:
    """Answers with what the rehearsal endpoint would send; counts calls by purpose."""

    def __init__(self) -> None:
        self.purposes: list[str] = []

    async def complete(
        self, messages: Sequence[Mapping[str, str]], *, schema: Any, purpose: str, **_: Any
    ) -> Completion:
        self.purposes.append(purpose)
        form = {"type": "json_schema", "json_schema": {"schema": schema}}
        text = answer({"messages": list(messages), "response_format": form}, "a")
        value, problem = parse_object(text, schema)
        assert problem is None, f"{purpose}: {problem} in {text}"
        call = Call(None, purpose, "s", "r", "m", None, None, 1, False, 100, 0, 10, 0, None, Status.OK, 200)
        return Completion(Status.OK, value, text, None, "r", "s", "m", calls=(call,))


DOCUMENTS = [
    *(document(f"n{n}", f"2021-0{1 + n // 4}-{3 + 3 * (n % 4):02d} 10:00", f"Harbour Pumps wins order {n}. Profit rises.") for n in range(8)),
    document("n8", "2021-03-10 08:00", "Harbour Pumps expects its profit to double. Orders for valves are strong."),
    document("n9", "2021-03-10 07:00", "A broker raises its target for Harbour Pumps."),
]  # fmt: skip
LATER = [document("late", "2021-03-10 09:16", "Harbour Pumps shares rose sharply.")]


def world(method: Tiem, model: Rehearsed, root: Path, documents: Sequence[Document], gate: Gate) -> Context:
    made: dict[str, Any] = {}

    def shared(key: str, make: Any) -> Any:
        if key not in made:
            made[key] = make(root)
        return made[key]

    whole = context(method, Model(replies), gate=gate, state=None, documents=documents)
    return dataclasses.replace(whole, llm=model, build_llm=model, shared=shared)


def state_before(log: MemoryLog, instant: datetime) -> dict[str, str]:
    return log.state_at(sum(op.key.valid_from < instant for op in log.ops))


async def trained(method: Tiem, tools: Tools) -> MemoryLog:
    """The memory after thirty cases and their reviews, in the order of commits."""
    log = MemoryLog()
    cases = [resolved(n, "negative" if n % 3 else "positive") for n in range(0, 120, 4)]
    reviews = method.review_times(cases[0].outcome.resolve_at, cases[-1].outcome.resolve_at)
    for case in cases:
        at = case.outcome.resolve_at
        while reviews and reviews[0] <= at:
            quarter = reviews.pop(0)
            known = [c for c in cases if c.outcome.resolve_at < quarter]
            changes = await method.review(state_before(log, quarter), quarter, known, tools)
            log.commit(CommitKey(quarter, quarter, f"review:{quarter.date()}"), changes)
        proposal = await method.propose(Lesson(case, Forecast(Status.OK, 0.7, "Because.")), tools)
        changes = await method.apply(log.final_state(), proposal, at, tools)
        log.commit(CommitKey(at, case.case.time.instant, case.case.catalyst_id), changes)
    return log


@lru_cache
def log_of_training() -> MemoryLog:
    return asyncio.run(trained(variant("tiem"), Tools(Rehearsed(), Embedder())))


@pytest.mark.parametrize("gate", list(Gate))
@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_forecasts_under_every_gate(name: str, gate: Gate, tmp_path: Path) -> None:
    def forecast(documents: Sequence[Document], root: Path) -> Forecast:
        method, model = variant(name), Rehearsed()
        ctx = world(method, model, root, documents, gate)
        learner = method.learner()
        if learner is not None:
            state, tools = log_of_training().final_state(), Tools(model, Embedder())
            ctx = dataclasses.replace(ctx, memory=Memory(learner, state, CASE.time, gate, tools))
        return asyncio.run(method.forecast(CASE, ctx))

    found = forecast([*DOCUMENTS, *LATER], tmp_path / "a")
    assert found.status is Status.OK
    if gate is not Gate.OFF:
        assert {verdict(p.source, CASE.time) for p in found.shown} == {"ok"}
    if gate is Gate.STRICT:
        assert found == forecast(DOCUMENTS, tmp_path / "b")


def test_training_twice_gives_the_same_log() -> None:
    again = asyncio.run(trained(Tiem(name="tiem"), Tools(Rehearsed(), Embedder())))
    assert again.sha256() == log_of_training().sha256()
    ops = {op.op for op in again.ops}
    assert {"evoke"} <= ops <= {"evoke", "merge", "stability", "retire", "nothing"}


def test_the_memory_before_a_time_is_that_of_the_cases_before_it() -> None:
    """Cut the training after a while: the states up to there are the same, labels included."""
    log = log_of_training()
    middle = log.ops[len(log.ops) // 2].key.valid_from
    early = MemoryLog(op for op in log.ops if op.key.valid_from < middle)
    assert early.final_state() == state_before(log, middle)
    for text in state_before(log, middle).values():
        known = known_at(decoded(text))
        assert known is not None
        assert known < middle
