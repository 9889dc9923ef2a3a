"""What is taken down: every request, on whose behalf, and canaries in every place where something can be kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from harness.hunt.canaries import plant
from harness.hunt.stage import Change, World, run_world
from harness.hunt.trace import traced
from harness.memory import Change as MemoryChange
from harness.memory import State
from harness.method import Context, Tools
from harness.records import Catalyst
from tests.hunt import leaky
from tests.hunt.world import BENCHMARK, subject

BASE = World(Change.NOTHING)


def places(method: Any, tmp_path: Path, *overrides: str) -> set[str]:
    """Where canaries were seen too early."""
    benchmark, canaries = plant(BENCHMARK)
    trace = traced(subject(method, *overrides).on(benchmark), tmp_path, canaries=canaries)
    assert trace.failure is None
    return {sighting.place for sighting in trace.sightings}


def test_requests_belong_to_the_forecast_that_made_them() -> None:
    trace = run_world(subject(leaky.Retrieving(name="clean")), BENCHMARK, BASE)
    assert list(trace.asked) == ["e10", "e14", "e20", "e25"]
    for case in BENCHMARK.evaluation.catalysts:
        asked = trace.asked[case.catalyst_id]
        (request,) = asked.requests
        assert f"{case.company} at {case.time.text}" in request.text
        assert '"prob_positive"' in request.text, "the schema is a part of what is sent"
        assert asked.evaluated
        assert "status ok" in asked.answer
    assert trace.sent == {"embedding": sum(day + 2 for day in (10, 14, 20, 25)), "forecast": 4}


def test_forecasts_of_past_cases_and_the_log_of_the_memory_are_kept() -> None:
    trace = run_world(subject(leaky.Remembering(name="clean")), BENCHMARK, BASE)
    assert BENCHMARK.experience is not None
    names = {c.catalyst_id for c in BENCHMARK.experience.catalysts}
    assert {a.name for a in trace.asked.values() if not a.evaluated} == names
    assert {op.record for op in trace.operations} == names
    assert [op.valid_from for op in trace.operations] == sorted(op.valid_from for op in trace.operations)


def test_a_canary_in_an_embedding_request_and_a_prompt(tmp_path: Path) -> None:
    assert places(leaky.EmbeddingAhead(name="leaky"), tmp_path / "a") == {"embedding request"}
    seen = places(leaky.ShowingUndated(name="leaky"), tmp_path / "b")
    assert seen == {"forecast request (forecast)", "answer"}, "the rehearsed answer quotes the prompt"
    assert places(leaky.Retrieving(name="clean"), tmp_path / "c") == set()


@pytest.mark.parametrize("parquet", [False, True])
def test_a_canary_in_an_artefact(tmp_path: Path, parquet: bool) -> None:
    class Building(leaky.Asking):
        async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
            def make(directory: Path) -> str:
                directory.mkdir(parents=True)
                texts = [d.text for d in leaky.whole(ctx).evaluation.corpus.documents]
                if parquet:
                    import pyarrow as pa
                    import pyarrow.parquet as pq

                    pq.write_table(pa.table({"text": texts}), directory / "index.parquet", compression="zstd")
                else:
                    (directory / "index.json").write_text(json.dumps(texts))
                return "built"

            ctx.shared("index", make)
            return ()

    assert places(Building(name="leaky"), tmp_path) == {f"artefact index.{'parquet' if parquet else 'json'}"}


def test_a_canary_in_a_memory(tmp_path: Path) -> None:
    """An operation that holds before the text was known, though no prompt ever shows it."""
    words = [c.word for c in plant(BENCHMARK)[1].values() if c.known_at is None]

    class Hoarding(leaky.Remembering):
        async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
            return ()

        async def apply(self, state: State, proposal: Any, at: datetime, tools: Tools) -> list[MemoryChange]:
            return [MemoryChange("note", "hoard", json.dumps(words))]

    assert places(Hoarding(name="leaky"), tmp_path) == {"memory"}


def test_a_run_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    one = subject(leaky.Retrieving(name="clean"), "embedder=openai")
    trace = traced(one.on(BENCHMARK), tmp_path)
    assert trace.failure is not None
    assert "embedder=hashing" in trace.failure
