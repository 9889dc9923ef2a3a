"""Before, during and after a run: what it will cost, what it may cost, what it has cost."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.ledger import read_payments, spent_usd
from harness.rehearsal import RehearsalServer
from tests.e2e.conftest import Ran, stats

pytestmark = pytest.mark.slow
PRICED = ("backbone.prices.input=1", "backbone.prices.output=10")
GRID = (
    "-m", "method=zero_shot,cot,vanilla_rag,majority,tiem,tiem_scmr,tiem_wo_csm,tiem_wo_eeh,tiem_wo_hefr", "run.limit=12",
)  # fmt: skip


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    import harness.run

    def refuse(*_: Any) -> None:
        raise AssertionError("a session was started")

    monkeypatch.setattr(harness.run, "Session", refuse)


def test_an_estimate_asks_nothing(
    run_here: Callable[..., Ran], endpoint: Callable[..., RehearsalServer], no_session: None
) -> None:
    server = endpoint()
    run = run_here("method=vanilla_rag", "run.mode=estimate", f"backbone.base_url={server.base_url}", *PRICED)
    assert run.code == 0, run.text
    assert stats(server)["chat"]["requests"] == 0
    found = json.loads((run.directory / "estimate.json").read_text())
    assert found["total"]["calls"]["low"] == 32
    assert found["total"] == found["remaining"]
    assert "total" in run.text


def test_what_a_grid_asks_lies_within_its_estimate(run_here: Callable[..., Ran]) -> None:
    """Calls and input tokens, in all, by cell and by purpose; afterwards nothing is left to pay."""
    before = run_here(*GRID, *PRICED, "run.mode=estimate")
    found = json.loads((before.directory / "estimate.json").read_text())
    assert run_here(*GRID, *PRICED).code == 0
    asked: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for paid in read_payments(before.directory / "cache"):
        one = paid.payment
        for key in ((str(one.cell), ""), ("", one.purpose), ("", "")):
            asked[key][0] += 1
            asked[key][1] += one.prompt_tokens or 0
    expected: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * 4)
    for cell in found["cells"]:
        for purpose, bill in cell["purposes"].items():
            ends = [bill[what][end] for what in ("calls", "tokens_in") for end in ("low", "high")]
            for key in ((cell["cell"], ""), ("", purpose), ("", "")):
                expected[key] = [a + b for a, b in zip(expected[key], ends, strict=True)]
    assert expected
    # Which of two cells asks first for what both need is a matter of chance: builds count in the sums only.
    builders = {cell["cell"] for cell in found["cells"] if cell["purposes"].keys() & {"extract", "episode", "theme"}}
    for key in [*expected, *asked]:
        if key[0] in builders or ("tiem" in key[0] and "wo_eeh" not in key[0]):
            continue
        low, high, fewest, most = expected[key]
        calls, tokens = asked[key]
        assert low - 1e-6 <= calls <= high + 1e-6, key
        assert fewest <= tokens <= most, key
    again = run_here(*GRID, *PRICED, "run.mode=estimate")
    assert json.loads((again.directory / "estimate.json").read_text())["remaining"]["calls"] == {"low": 0, "high": 0}
    assert run_here("method=cot", *PRICED, "run.limit=3").code == 0, "an estimate leaves nothing that a run minds"


def test_a_method_that_says_nothing_is_not_known(
    run_here: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, no_session: None
) -> None:
    from methods.base import BaseMethod
    from methods.cot import ChainOfThought

    monkeypatch.setattr(ChainOfThought, "expected", BaseMethod.expected)
    run = run_here("-m", "method=cot,zero_shot", "run.mode=estimate")
    assert "not known" in run.text
    assert len(json.loads((run.directory / "estimate.json").read_text())["unknown"]) == 1


def test_a_budget_of_half_the_cost_then_the_rest(run_here: Callable[..., Ran], tmp_path: Path) -> None:
    whole = run_here("method=cot", *PRICED, directory=tmp_path / "whole")
    cost = spent_usd(whole.directory / "cache")
    assert cost > 0
    short = ("method=cot", *PRICED, "backbone.max_output_tokens=200")
    first = run_here(*short, f"run.budget_usd={cost / 2}", directory=tmp_path / "half")
    assert first.code == 3, first.text
    assert cost / 4 < spent_usd(first.directory / "cache") <= cost / 2 * 1.01
    assert "still to pay" in first.text
    second = run_here(*short, f"run.budget_usd={cost * 2}", directory=tmp_path / "half")
    assert second.code == 0, second.text
    assert spent_usd(second.directory / "cache") <= cost * 1.01
    ledger = json.loads((second.directory / "ledger.json").read_text())
    assert ledger["total"]["calls"] == 32
    assert ledger["total"]["cost_usd"] == pytest.approx(spent_usd(second.directory / "cache"))


@pytest.mark.parametrize("method", ["tiem", "tiem_wo_csm"])
def test_a_budget_that_ends_in_a_training_or_a_build_is_a_budget(run_here: Callable[..., Ran], method: str) -> None:
    run = run_here(f"method={method}", *PRICED, "run.budget_usd=0.2", "backbone.max_output_tokens=300")
    assert run.code == 3, run.text
    assert "budget reached" in run.text
    assert spent_usd(run.directory / "cache") <= 0.2


def test_check(
    run_here: Callable[..., Ran], endpoint: Callable[..., RehearsalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = endpoint(accepts="json_object", refusal=400)
    at = f"backbone.base_url={server.base_url}"
    run = run_here("method=cot", "run.mode=check", at)
    assert run.code == 0, run.text
    assert "json_object is, with the schema in words" in run.text
    assert stats(server)["chat"]["ok"] == 1, "at most one call is answered"
    for said in ("eval/Sample.json", "disk", "key", "Ray"):
        assert said in run.text
    requests = stats(server)["chat"]["requests"]
    assert run_here("method=cot", at, "run.limit=4").code == 0
    assert stats(server)["chat"]["requests"] == requests + 4, "what the check found out is remembered"
    missing = run_here("method=cot", "run.mode=check", "backbone=gpt_5_4_mini")
    assert missing.code == 1
    assert "export OPENAI_API_KEY" in missing.text
    nowhere = run_here("method=cot", "run.mode=check", "backbone.base_url=http://127.0.0.1:9/v1")
    assert nowhere.code == 1
    assert "nothing answers" in nowhere.text
    assert run_here("method=cot", "run.mode=check", "backbone.rpm=x").code == 2


def test_check_names_a_file_that_is_not_the_released_one(
    run_here: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks import files

    monkeypatch.setattr(files, "pinned", lambda: {"eval/Sample.json": "0" * 64})
    run = run_here("method=majority", "run.mode=check")
    assert run.code == 1
    assert "differs from the released file" in run.text


def test_a_server_without_schemas_serves_a_whole_run_and_its_resume(
    run_here: Callable[..., Ran], endpoint: Callable[..., RehearsalServer]
) -> None:
    server = endpoint(accepts="none")
    command = ("method=cot", f"backbone.base_url={server.base_url}", "backbone.max_in_flight=4")
    assert run_here(*command, "run.limit=6").code == 0
    answered = stats(server)["chat"]["ok"]
    run = run_here(*command, "run.limit=9")
    assert run.code == 0
    assert stats(server)["chat"]["ok"] == answered + 3
    assert stats(server)["chat"]["repeated"] == 0
    status = json.loads((run.directory / "status.json").read_text())
    assert status["ended_at"]
    assert status["total"]["done"] == 9
