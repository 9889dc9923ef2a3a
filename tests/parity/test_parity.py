"""Numeric cases worked by hand or by official implementations, run through small public functions.

A case is a JSON file with ``case_id, inputs, expected, tolerance``; the prefix of its name says which function it is for.
``pytest tests/parity --cases DIR`` runs every case of another directory. A name without a known prefix is skipped by name.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parity import agents, memories, runners, runners_graphs, runners_light

RUNNERS: dict[str, Callable[[Any, Any], None]] = {
    "vanilla_rag_gate_": runners.vanilla_rag_gate,
    "forecast_parse_": runners.forecast_parse,
    "metrics_": runners.metrics,
    "tiem_gates_": runners.tiem_gates,
    "tiem_budget_": runners.tiem_budget,
    "tiem_windows_": runners.tiem_windows,
    "tiem_theme_cluster_": runners.tiem_theme_cluster,
    "tiem_theme_dedup_": runners.tiem_theme_dedup,
    "tiem_skills_": runners.tiem_skills,
    "tiem_stability_": runners.tiem_stability,
    "tiem_scmr_vote_": runners.tiem_scmr_vote,
    "lightrag_legacy_": runners_light.lightrag_legacy,
    "gate_lightrag_legacy_": runners_light.gate_lightrag_legacy,
    "hypergraphrag_": runners_light.hypergraphrag,
    "hipporag_v1_": runners_graphs.hipporag_v1,
    "hipporag_v2_": runners_graphs.hipporag_v2,
    "gate_hipporag_v2_": runners_graphs.gate_hipporag_v2,
    "graphrag_extract_": runners_graphs.graphrag_extract,
    "graphrag_summarize_": runners_graphs.graphrag_summarize,
    "graphrag_leiden_": runners_graphs.graphrag_leiden,
    "graphrag_local_": runners_graphs.graphrag_local,
    "graphrag_global_": runners_graphs.graphrag_global,
    "mem0_v1_update_": memories.mem0_v1_update,
    "amem_paper_": memories.amem_paper,
    "memgpt_core_": agents.memgpt_core,
    "memgpt_evict_": agents.memgpt_evict,
    "memgpt_paging_": agents.memgpt_paging,
    "memgpt_step_": agents.memgpt_step,
}
NOT_COMPARED = frozenset({"modularity_level0", "best_modularity_found_louvain_50_seeds"})
"""What a case tells beside its expectation: for other builds of Leiden than the one installed."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case_file" in metafunc.fixturenames:
        files = sorted(Path(metafunc.config.getoption("--cases")).glob("*.json"))
        metafunc.parametrize("case_file", files, ids=[f.stem for f in files])


def test_case(case_file: Path) -> None:
    runner = next((run for prefix, run in RUNNERS.items() if case_file.name.startswith(prefix)), None)
    if runner is None:
        pytest.skip(f"{case_file.name}: no runner for a case of this kind")
    case = json.loads(case_file.read_text("utf-8"))
    accepted = [case["expected"], *case.get("expected_acceptable_variants", ())]
    for number, expected in enumerate(accepted, start=1):
        try:
            return compare(runner, case["inputs"], expected)
        except AssertionError:
            if number == len(accepted):
                raise


class Noted(dict[str, Any]):
    """An expectation that knows which of its keys were looked at."""

    def __init__(self, expected: dict[str, Any]) -> None:
        super().__init__(expected)
        self.unread = set(expected)

    def __getitem__(self, key: str) -> Any:
        self.unread.discard(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.unread.discard(key)
        return super().get(key, default)


def compare(runner: Callable[[Any, Any], None], inputs: Any, expected: Any) -> None:
    """Run a case; a key of the expectation that its runner does not know is warned of, or it would pass unseen."""
    noted = Noted(expected) if isinstance(expected, dict) else expected
    runner(inputs, noted)
    if isinstance(noted, Noted):
        unknown = sorted(noted.unread - NOT_COMPARED)
        if unknown:
            warnings.warn(f"{runner.__name__} compares with nothing: {', '.join(unknown)}", stacklevel=2)


def test_an_expectation_of_an_unknown_key_does_not_pass_unseen() -> None:
    case = json.loads((Path(__file__).parent / "cases" / "memgpt_core_a.json").read_text("utf-8"))
    with pytest.warns(UserWarning, match="compares with nothing: surprise"):
        compare(agents.memgpt_core, case["inputs"], {**case["expected"], "surprise": 1})


def test_cases_were_found(request: pytest.FixtureRequest) -> None:
    assert list(Path(request.config.getoption("--cases")).glob("*.json"))


@pytest.mark.parametrize("prefix", sorted(RUNNERS))
def test_a_wrong_answer_is_caught(prefix: str) -> None:
    """A runner that could not fail would prove nothing: its first case with the expectation spoiled must fail."""
    file = sorted((Path(__file__).parent / "cases").glob(f"{prefix}*.json"))[0]
    case = json.loads(file.read_text("utf-8"))
    with pytest.raises(AssertionError):
        RUNNERS[prefix](case["inputs"], _spoiled(case["expected"]))


def _spoiled(expected: Any) -> Any:
    """``expected`` with every number shifted, every truth turned, every text changed, every null filled."""
    if isinstance(expected, bool):
        return not expected
    if isinstance(expected, int | float):
        return expected + 1
    if isinstance(expected, str):
        return f"{expected}?"
    if expected is None:
        return 0
    if isinstance(expected, dict):
        return {key: _spoiled(value) for key, value in expected.items()}
    return [_spoiled(value) for value in expected]
