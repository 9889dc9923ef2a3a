"""`make bench`: the logs of LightRAG and HyperGraphRAG on CSMD, and a forecast from them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.light.cutting import Remembering, configured, loaded
from tests.support import forecasts_of

pytestmark = [pytest.mark.perf, pytest.mark.data]
EXPECTED_CALLS = {"lightrag": 2, "hypergraphrag": 4}
"""Calls to read a document; a fifth on top is allowed for summaries and long documents."""


@pytest.mark.parametrize("method", sorted(EXPECTED_CALLS))
def test_the_log_of_csmd_and_a_forecast_from_it(method: str, data_root: Path, tmp_path: Path) -> None:
    """Documents alone, answers made in this process. Calls are held against two (four) a document."""
    bench = loaded("csmd", data_root, 0)
    config = configured(method, "csmd", data_root, "feed=docs")
    gateway = Remembering(config.backbone)
    cases = [c.catalyst_id for c in bench.evaluation.catalysts]

    def seconds(names: list[str]) -> float:
        started = time.process_time()
        forecasts_of(config, bench, tmp_path, names, gateway)
        return time.process_time() - started

    first = seconds(cases[-1:])
    again = seconds(cases[-1:])  # answers and vectors are at hand now
    everything = seconds(cases)
    calls = {purpose: len(asked) for purpose, asked in gateway.made.items()}
    building = sum(n for purpose, n in calls.items() if purpose not in ("forecast", "keywords", "question"))
    documents = calls["extract"]
    print(
        f"\n  {method}: log of {documents} documents {first:.1f} s of CPU, {again:.1f} s with answers and vectors at hand; "
        f"a forecast from it {(everything - again) / (len(cases) - 1) * 1e3:.0f} ms; "
        f"{building} calls to build ({building / documents:.2f} a document)",
        flush=True,
    )
    assert building <= 1.2 * EXPECTED_CALLS[method] * documents
