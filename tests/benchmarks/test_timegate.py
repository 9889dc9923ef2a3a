"""Entry, resolve time and label of the hand-checked decisions, through ``benchmarks.load``."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path

import pytest

import benchmarks
from harness.records import Benchmark

FIXTURE = Path(__file__).parents[1] / "fixtures" / "timegate"
EXPECTED = json.loads((FIXTURE / "expected.json").read_text(encoding="utf-8"))["expected"]


@pytest.fixture(scope="module")
def timegate() -> Benchmark:
    return benchmarks.load(
        name="timegate", root=str(FIXTURE), market="CN", convention="entry_next_open", horizon=5,
        eval="catalysts.json", event="events.json",
    )  # fmt: skip


@pytest.mark.parametrize("catalyst_id", EXPECTED)
def test_outcome(catalyst_id: str, timegate: Benchmark) -> None:
    outcome, expected = timegate.evaluation.outcomes[catalyst_id], EXPECTED[catalyst_id]
    assert outcome.label == expected["label"]
    assert outcome.entry_session == date.fromisoformat(expected["entry_session"])
    assert outcome.resolve_session == date.fromisoformat(expected["resolve_session"])
    assert outcome.resolve_at == datetime.fromisoformat(expected["resolve_at"])
    assert outcome.stated_resolve == expected["claimed_resolve_date"]


def test_nothing_else(timegate: Benchmark) -> None:
    assert timegate.evaluation.outcomes.keys() == EXPECTED.keys()
    assert len(timegate.evaluation.corpus.documents) == 40
    assert timegate.warnings == ()
