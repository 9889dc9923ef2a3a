"""Recall: what the backbone remembers of the return itself, given the security and the date alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import ClassVar

from harness.expected import Expected, Range, Survey
from harness.method import Context
from harness.records import Catalyst, Forecast
from methods import forecasting
from methods.probes import scene
from methods.probes.base import Probe
from methods.schemas import SHARE, json_object

ANSWER = json_object(
    recalled={"type": "boolean"},
    return_percent={"type": ["number", "null"]},
    prob_positive=SHARE,
)


class Recall(Probe):
    """Not a forecast: the instruction asks for memory and allows to have none.

    ``probe_answer``: ``recalled`` and ``return_percent`` as said. ``prob_positive`` is the probability it gives a rise from memory.
    """

    templates: ClassVar[tuple[str, ...]] = ("probe_recall_system.j2", "probe_recall.j2", "probe_scene.j2")

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        bare, _ = scene.scene_of(case, ctx.evidence, "nd")
        asked = scene.messages(bare, system="probe_recall_system.j2", user="probe_recall.j2")
        value, call = await forecasting.asked(ctx, asked, ANSWER, "probe", essential=("recalled", "prob_positive"))
        if value is None:
            return call
        percent = value.get("return_percent")
        number = isinstance(percent, int | float) and not isinstance(percent, bool)
        said = {"recalled": value["recalled"] is True, "return_percent": percent if number else None}
        return replace(call, prob_positive=float(value["prob_positive"]), probe_answer=json.dumps(said, sort_keys=True))

    async def expected(self, survey: Survey) -> list[Expected]:
        """The prompts themselves, answered with two more numbers."""
        return await forecasting.expected_calls(survey, self.forecast, Range(12, 60))
