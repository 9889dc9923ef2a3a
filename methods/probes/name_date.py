"""Name-Date Probe: how far a backbone gets from the security's name and the date alone, and what the text adds."""

from __future__ import annotations

from harness.method import Context
from harness.records import Catalyst, Forecast
from methods.probes import scene
from methods.probes.base import Probe
from methods.probes.scene import Input


class NameDate(Probe):
    """A forecast from one of three nested inputs: MemBase = Acc(nd), content effect = Acc(full) - Acc(nc).

    Attributes:
        shows: ``nd`` security and date; ``nc`` those and prior headlines; ``full`` those and the focal text. Recent price
            statistics would be part of ``nc``, but no benchmark has prices before its decisions; the prompt says so.
    """

    shows: Input

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        shown = scene.scene_of(case, ctx.evidence, self.shows)
        if self.shows != "nd":
            ctx.warn(
                "no prices before the decisions: the probe's inputs nc and full have headlines and no price statistics."
            )
        return await scene.ask(shown[0], ctx, shown[1])
