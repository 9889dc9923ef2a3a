"""Methods without a language model: the floor that any forecast has to beat.

They go through the same gate and report as every other method: a majority at T is the majority of what was known at T.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from harness.method import Context
from harness.records import POSITIVE, Catalyst, Forecast, ResolvedCase, Status
from methods.base import BaseMethod


class AlwaysPositive(BaseMethod):
    """Says positive, always."""

    uses_llm: ClassVar[bool] = False

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        return Forecast(Status.OK, prob_positive=1.0, rationale="always positive")


class Majority(BaseMethod):
    """The share of positive outcomes among the experience cases resolved before T (0.5 while there are none)."""

    uses_llm: ClassVar[bool] = False

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        return share(ctx.experience, "experience cases")


class TypeMajority(BaseMethod):
    """As Majority, over cases of the same catalyst type; over all types while there is none of this one."""

    uses_llm: ClassVar[bool] = False

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        same = [r for r in ctx.experience if r.case.catalyst_type == case.catalyst_type]
        return (
            share(same, f"experience cases of type {case.catalyst_type}")
            if same
            else share(ctx.experience, "experience cases of any type")
        )


def share(cases: Sequence[ResolvedCase], what: str) -> Forecast:
    """The share of ``cases`` that were positive as P(positive); 0.5 where there are none."""
    if not cases:
        return Forecast(Status.OK, prob_positive=0.5, rationale=f"no resolved {what} before the decision")
    positive = sum(r.outcome.label == POSITIVE for r in cases)
    return Forecast(Status.OK, positive / len(cases), rationale=f"{positive} of {len(cases)} {what} were positive")
