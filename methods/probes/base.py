"""Base of the probes: a seeded sample, one call a case."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field, PositiveInt

from harness.expected import Expected, Survey
from harness.records import PROBE_PREFIX, Catalyst
from methods import forecasting
from methods.base import BaseMethod
from methods.probes import scene


class Probe(BaseMethod):
    """Asks one question about each case of a sample.

    Attributes:
        sample: cases asked; None for all. A smaller sample is a part of a larger one of the same seed, and all probes draw the same.
    """

    name: str = Field(pattern=f"^{PROBE_PREFIX}")
    templates: ClassVar[tuple[str, ...]] = scene.TEMPLATES
    sample: PositiveInt | None = 200

    def chosen(self, cases: Sequence[Catalyst], seed: int) -> Sequence[Catalyst]:
        """``sample`` of ``cases``, those whose hash with ``seed`` is smallest."""
        if self.sample is None:
            return cases
        drawn = sorted(cases, key=lambda case: hashlib.sha256(f"{seed}/{case.catalyst_id}".encode()).digest())
        kept = {case.catalyst_id for case in drawn[: self.sample]}
        return [case for case in cases if case.catalyst_id in kept]

    async def expected(self, survey: Survey) -> list[Expected]:
        """The prompts themselves, answered without reasoning."""
        return await forecasting.expected_calls(survey, self.forecast, forecasting.BARE_TOKENS)
