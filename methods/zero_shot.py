"""LLM Zero-shot: the header, the focal and the concurrent documents; the probability and nothing else."""

from __future__ import annotations

from typing import ClassVar

from harness.expected import Expected, Survey
from harness.method import Context
from harness.records import Catalyst, Forecast
from methods import forecasting
from methods.base import BaseMethod


class ZeroShot(BaseMethod):
    """Stores nothing, retrieves nothing: one call."""

    templates: ClassVar[tuple[str, ...]] = forecasting.TEMPLATES

    def instruction_sha256(self) -> str:
        return forecasting.instruction_sha256()

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        return await forecasting.ask(case, ctx, reason_first=False)

    async def expected(self, survey: Survey) -> list[Expected]:
        """The prompts themselves."""
        return await forecasting.expected_calls(survey, self.forecast, forecasting.BARE_TOKENS)
