"""What an estimate counts, and what it must not count twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.estimate import Estimate, estimate, estimate_text
from harness.expected import Range, tokens_of
from harness.gateway.cache import Payment, ReplyCache
from harness.plan import make_jobs
from harness.store import RunDirectory
from harness.tokens import count_tokens
from tests.support import config_of

PRICED = ("backbone.prices.input=1", "backbone.prices.output=10")


def estimated(directory: Path, *commands: tuple[str, ...]) -> Estimate:
    jobs = make_jobs([config_of(*command, "run.mode=estimate") for command in commands], lambda text: None)
    return estimate(jobs, RunDirectory(directory))


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("公司利润增长 profit rose 3.5%\n"))))
def test_both_counts_lie_within_the_range(text: str) -> None:
    found = tokens_of(text)
    assert found.low <= count_tokens(text) <= found.high
    assert found.low <= len(text.encode(errors="replace")) / 4 <= found.high


def test_one_call_methods_are_exact(tmp_path: Path) -> None:
    found = estimated(tmp_path, ("method=cot", "run.limit=5", "run.epochs=2", *PRICED))
    assert found.total.calls.low == 10
    assert found.total.cost_usd is not None
    assert 0 < found.total.cost_usd.low < found.total.cost_usd.high


def test_the_same_prompts_are_paid_once(tmp_path: Path) -> None:
    """Zero-shot prompts do not depend on the gate's rules for what is built: two cells, one set of requests."""
    one = estimated(tmp_path, ("method=zero_shot", "gate=strict"))
    both = estimated(tmp_path, ("method=zero_shot", "gate=strict"), ("method=zero_shot", "gate=paper"))
    assert both.total == one.total
    seeds = estimated(tmp_path, ("method=zero_shot", "run.seed=0"), ("method=zero_shot", "run.seed=1"))
    assert seeds.total.calls.low == 2 * one.total.calls.low, "another seed asks again"


def test_variants_share_what_they_build_and_learn(tmp_path: Path) -> None:
    whole = estimated(tmp_path, ("method=tiem",))
    more = estimated(tmp_path, ("method=tiem",), ("method=tiem_wo_hefr",))
    (added,) = (row for row in more.rows if "wo_hefr" in row.cell)
    assert set(added.purposes) == {"forecast"}
    assert len([row for row in more.rows if row.kind == "memories"]) == 1
    assert more.total.calls.low == whole.total.calls.low + 32


def purposes(found: Estimate) -> dict[str, set[str]]:
    return {row.kind: set(row.purposes) for row in found.rows}


def test_what_is_learned_follows_the_memory(tmp_path: Path) -> None:
    frozen = purposes(estimated(tmp_path, ("method=tiem",)))
    assert {"distill", "stability"} <= frozen["memories"]
    assert "distill" not in frozen["cells"]
    online = purposes(estimated(tmp_path, ("method=tiem", "memory=online")))
    assert {"distill", "stability", "forecast"} <= online["cells"]
    assert "memories" not in online
    assert purposes(estimated(tmp_path, ("method=tiem", "memory=none")))["cells"] & {"distill", "stability"} == set()


def test_a_question_to_an_agent_may_take_a_summary(tmp_path: Path) -> None:
    """What a fork finds may fill its context: the calls of a forecast are as many kinds as those of a filling."""
    kinds = {row.kind: row.purposes for row in estimated(tmp_path, ("method=memgpt", "run.limit=2", *PRICED)).rows}
    assert {"memgpt_step", "memgpt_summary"} <= kinds["memories"].keys() & kinds["cells"].keys()


def test_methods_without_calls_cost_nothing_and_unknown_prices_are_unknown(tmp_path: Path) -> None:
    found = estimated(tmp_path, ("method=majority",))
    assert (found.total.calls, found.total.cost_usd) == (Range(), Range())
    unpriced = estimated(tmp_path, ("method=cot",))
    assert unpriced.total.cost_usd is None
    assert estimate_text(unpriced).splitlines()[-1].endswith("-")


def test_embeddings_are_counted_where_they_are_paid(tmp_path: Path) -> None:
    assert "embed" not in estimated(tmp_path, ("method=vanilla_rag",)).rows[0].purposes
    paid = estimated(
        tmp_path, ("method=vanilla_rag", "embedder=openai", "embedder.endpoint.prices.embedding=0.02", *PRICED)
    )
    bill = paid.rows[0].purposes["embed"]
    assert bill.cost_usd is not None
    assert bill.embedded.low * 0.02e-6 == pytest.approx(bill.cost_usd.low, abs=1e-7)
    assert bill.calls.low >= 1
    assert estimated(tmp_path, ("method=vanilla_rag", "embedder=openai", *PRICED)).total.cost_usd is None
    tiem = estimated(tmp_path, ("method=tiem", "embedder=openai", *PRICED)).total
    assert 0 < tiem.embedded.low < tiem.embedded.high


def test_what_is_on_file_is_not_paid_again(tmp_path: Path) -> None:
    command = ("method=cot", "run.limit=10", *PRICED)
    (row,) = estimated(tmp_path, command).rows

    def paid(number: int, **fields: Any) -> Payment:
        about: dict[str, Any] = {"cell": row.cell, "status": "ok", **fields}
        return Payment(
            f"sha{number}", "2026-03-01T00:00:00+00:00", about["cell"], "forecast", "forecast", "m", about["status"],
            400, 0, 50, 0, 0.001,
        )  # fmt: skip

    async def fill() -> None:
        cache = ReplyCache(tmp_path / "cache" / "replies-rehearsal.sqlite")
        others = [paid(8, cell="another"), paid(9, status="invalid")]
        await cache.put(None, [*(paid(n) for n in range(4)), *others])
        cache.close()

    asyncio.run(fill())
    (after,) = estimated(tmp_path, command).rows
    assert after.total == row.total
    assert after.total is not None
    assert after.remaining is not None
    assert after.remaining.calls.low == pytest.approx(6)
    assert after.remaining.tokens_in.low == pytest.approx(after.total.tokens_in.low * 0.6)
    assert "still to pay" in estimate_text(Estimate([after]))
