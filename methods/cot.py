"""CoT: zero-shot chain of thought (Wei et al. 2022, without exemplars): as zero-shot, but reasoning comes first."""

from __future__ import annotations

from typing import ClassVar

from harness.expected import Expected, Survey
from harness.method import Context
from harness.records import Catalyst, Forecast
from methods import forecasting
from methods.base import BaseMethod


class ChainOfThought(BaseMethod):
    """Differs from the methods with a context only by having none: one call."""

    templates: ClassVar[tuple[str, ...]] = forecasting.TEMPLATES

    def instruction_sha256(self) -> str:
        return forecasting.instruction_sha256()

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        return await forecasting.ask(case, ctx)

    async def expected(self, survey: Survey) -> list[Expected]:
        """The prompts themselves."""
        return await forecasting.expected_calls(survey, self.forecast, forecasting.REASONED_TOKENS)
