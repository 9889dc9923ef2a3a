"""Anonymisation probe: the full input with names, codes and dates masked, and whether the backbone can still tell who and when."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from harness.expected import Expected, Range, Survey
from harness.method import Context
from harness.records import Catalyst, Forecast
from methods import forecasting
from methods.probes import names, scene
from methods.probes.base import Probe
from methods.probes.names import Security
from methods.schemas import SHARE, json_object

_TEXT = {"type": ["string", "null"]}
ANSWER = json_object(company=_TEXT, code=_TEXT, date=_TEXT, prob_positive=SHARE)
_DAY = re.compile(r"\s*(\d{4})(?:[-/.年]\s*(\d{1,2})(?:[-/.月]\s*(\d{1,2}))?)?")

_CODE = re.compile(r"(?:(?<![0-9a-z])(?:sh|sz))?(\d{6}(?!\d)|[0-9a-z]+)")
"""A code with or without the exchange before it."""


class Masked(Probe):
    """The forecast of the ``full`` input without names, codes and dates."""

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        full, shown = scene.scene_of(case, ctx.evidence, "full")
        return await scene.ask(scene.anonymous(full, ctx.evidence), ctx, shown)


class Identify(Probe):
    """Who and when is it? Asked about the same masked input; what it says is held against the truth, exactly.

    ``probe_answer``: what was said, and ``named``, ``coded``, ``dated`` (the day), ``month``, ``year``: whether it is right.
    ``prob_positive`` is its forecast once it has tried to recall the case.
    """

    templates: ClassVar[tuple[str, ...]] = ("probe_recall_system.j2", "probe_identify.j2", "probe_scene.j2")

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        full, shown = scene.scene_of(case, ctx.evidence, "full")
        asked = scene.messages(
            scene.anonymous(full, ctx.evidence), system="probe_recall_system.j2", user="probe_identify.j2"
        )
        value, call = await forecasting.asked(ctx, asked, ANSWER, "probe", essential=("prob_positive",))
        if value is None:
            return replace(call, shown=tuple(shown))
        answer = json.dumps(identified(case, value), ensure_ascii=False, sort_keys=True)
        probability = float(value["prob_positive"])
        return replace(call, prob_positive=probability, shown=tuple(shown), probe_answer=answer)

    async def expected(self, survey: Survey) -> list[Expected]:
        """The prompts themselves, answered with three more words."""
        return await forecasting.expected_calls(survey, self.forecast, Range(20, 120))


def identified(case: Catalyst, value: Mapping[str, Any]) -> dict[str, Any]:
    """What ``value`` says of who and when, and whether that is so: names without legal form, codes without market, exact days."""
    said = {key: str(value[key]) if value.get(key) else None for key in ("company", "code", "date")}
    own = Security(case.company, case.stock_id)
    day = _DAY.match(said["date"]) if said["date"] else None
    parts = [int(part) if part else None for part in day.groups()] if day else [None] * 3
    truth = [case.time.day.year, case.time.day.month, case.time.day.day]
    return {
        **said,
        "named": own.has_name and said["company"] is not None and names.same_name(said["company"], own.name),
        "coded": said["code"] is not None and own.bare.lower() in _CODE.findall(said["code"].lower()),
        "dated": parts == truth,
        "month": parts[:2] == truth[:2],
        "year": parts[:1] == truth[:1],
    }
