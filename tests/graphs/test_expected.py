"""What a graph method asks lies within what it said it would ask, purpose by purpose."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from harness.estimate import Bill, Estimate, estimate
from harness.expected import Range
from harness.gateway.request import ChatRequest, prepare
from harness.gateway.result import Completion
from harness.gateway.settings import Endpoint
from harness.local import RehearsingGateway
from harness.plan import make_jobs
from harness.store import RunDirectory
from harness.tokens import count_messages
from tests.support import benchmark_of, config_of, forecasts_of

METHODS = ("hipporag", "hipporag2", "graphrag", "lightrag", "hypergraphrag")


class CountingGateway(RehearsingGateway):
    """Answers as the rehearsal endpoint does, and counts what is paid: every distinct request once, with its prompt's tokens."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self.paid: defaultdict[str, dict[str, int]] = defaultdict(dict)

    async def complete(self, request: ChatRequest) -> Completion:
        found = prepare(self._endpoint, request)
        self.paid[request.purpose][found.sha256] = count_messages(found.body["messages"])
        return await super().complete(request)


def estimated(directory: Path, *commands: tuple[str, ...]) -> Estimate:
    return estimate(
        make_jobs([config_of(*c, "run.mode=estimate") for c in commands], lambda text: None), RunDirectory(directory)
    )


def within(found: Range, value: float) -> bool:
    return found.low - 1e-6 <= value <= found.high + 1e-6


def checked(directory: Path, *overrides: str) -> None:
    """Run what was estimated; fails where calls or tokens are outside, or a purpose was not foreseen."""
    config = config_of(*overrides)
    (row,) = estimated(directory / "estimate", overrides).rows
    gateway = CountingGateway(config.backbone)
    forecasts_of(config, benchmark_of(config), directory / "run", gateway=gateway)
    assert gateway.paid.keys() <= row.purposes.keys()
    for purpose, bill in row.purposes.items():
        asked = gateway.paid.get(purpose, {})
        print(purpose, len(asked), bill.calls, sum(asked.values()), bill.tokens_in)
        assert within(bill.calls, len(asked)), purpose
        assert within(bill.tokens_in, sum(asked.values())), purpose


@pytest.mark.parametrize("method", METHODS)
def test_on_the_sample(tmp_path: Path, method: str) -> None:
    checked(tmp_path, f"method={method}", "feed=docs")


@pytest.mark.parametrize(("method", "gate"), [("hipporag", "paper"), ("graphrag", "paper"), ("lightrag", "off")])
def test_under_the_other_gates(tmp_path: Path, method: str, gate: str) -> None:
    checked(tmp_path, f"method={method}", f"gate={gate}", "run.limit=4")


@pytest.mark.parametrize(
    "knobs",
    [
        ("method=graphrag", "method.mode=global", "run.limit=6"),
        ("method=graphrag", "method.reports=off", "run.limit=6"),
        ("method=graphrag", "method.graph.gleanings=0", "context.budget=native", "run.limit=6"),
        ("method=hypergraphrag", "method.gleanings=3", "run.limit=6"),
        ("method=lightrag", "method.gleanings=0", "context.budget=native", "run.limit=6"),
        ("method=hipporag2", "context.budget=native", "run.epochs=2", "run.limit=6"),
    ],
    ids=" ".join,
)
def test_with_other_knobs(tmp_path: Path, knobs: tuple[str, ...]) -> None:
    checked(tmp_path, *knobs)


@pytest.mark.data
@pytest.mark.parametrize("method", METHODS)
def test_on_released_data(data_root: Path, tmp_path: Path, method: str) -> None:
    checked(tmp_path, f"method={method}", "benchmark=csmd", f"benchmark.root='{data_root}'", "feed=docs", "run.limit=8")


def purposes(found: Estimate, place: int) -> dict[str, Bill]:
    return found.rows[place].purposes


def test_the_two_hipporags_share_their_extraction(tmp_path: Path) -> None:
    both = estimated(tmp_path, ("method=hipporag",), ("method=hipporag2",))
    assert "extract" in purposes(both, 0)
    assert "extract" not in purposes(both, 1)
    assert purposes(both, 1)["forecast"].calls.low > 0, "their prompts are not the same"


def test_cells_that_read_the_same_graph_pay_for_it_once(tmp_path: Path) -> None:
    for method in METHODS:
        first, second = ((f"method={method}", f"run.seed={seed}") for seed in (0, 1))
        built = {"extract", "glean", "glean_check", "merge_descriptions", "report", "summarise"}
        assert not built & purposes(estimated(tmp_path, first, second), 1).keys(), method


def test_vectors_are_counted_where_they_are_paid(tmp_path: Path) -> None:
    for method in METHODS:
        (row,) = estimated(
            tmp_path, (f"method={method}", "embedder=openai", "embedder.endpoint.prices.embedding=1")
        ).rows
        assert row.purposes["embed"].embedded.high > 0, method
