"""Counterfactuals: the full input with one thing changed, other news, another security, or another date.

What stays the same although the news changed did not come from the news; what changes although only the name or the date did
came from these.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Literal

from harness.evidence import case_source
from harness.method import Context
from harness.records import POSITIVE, Catalyst, Forecast, Passage, ResolvedCase
from methods.probes import dates, names, scene
from methods.probes.base import Probe
from methods.probes.names import Security
from methods.probes.scene import Scene

_ALIKE = 1.5
"""Texts are of similar length if the longer has at most so many times the characters of the shorter."""


class OtherNews(Probe):
    """The focal text of another case whose outcome is known to have been ``outcome``, told of this security.

    Rewriting news into their opposite by rule is not to be trusted, so the news are real: those of a case of another stock in the same
    market that had resolved before the decision (of the experience, see ``memory=online``), of the same type if there is one, the nearest
    in length; names, codes and dates are made this case's own. A method is not told its own case's outcome, so both directions are
    asked, and the report takes the one that is opposite to the case's.

    ``probe_answer``: ``changed``, whether there was such a case (else the input is the unchanged one), and its id.
    """

    outcome: Literal["positive", "negative"]

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        full, shown = scene.scene_of(case, ctx.evidence, "full")
        donor = self._donor(case, full, ctx)
        if donor is None:
            return await scene.ask(full, ctx, shown, _told(changed=False))
        told = _retold(donor, full)
        kept = [p for p in shown if p.source.kind != "focal"]
        new = Passage(told, case_source(donor, "other_news"))
        return await scene.ask(
            replace(full, focal=told), ctx, [*kept, new], _told(changed=True, donor=donor.case.catalyst_id)
        )

    def _donor(self, case: Catalyst, full: Scene, ctx: Context) -> ResolvedCase | None:
        """The case whose news are shown instead; None where none is alike enough."""
        if full.focal is None:
            return None
        length = len(full.focal)

        def fits(other: ResolvedCase) -> bool:
            if other.focal is None or (other.outcome.label == POSITIVE) != (self.outcome == POSITIVE):
                return False
            if other.case.stock_id == case.stock_id or other.case.market != case.market:
                return False
            size = len(other.focal.text)
            return max(size, length) <= _ALIKE * max(1, min(size, length))

        def distance(other: ResolvedCase) -> tuple[bool, int, str]:
            assert other.focal is not None
            return (
                other.case.catalyst_type != case.catalyst_type,
                abs(len(other.focal.text) - length),
                other.case.catalyst_id,
            )

        return min(filter(fits, ctx.experience), key=distance, default=None)


class SwappedTicker(Probe):
    """The same news told of another security of the same market, drawn at random: names and codes everywhere, dates untouched.

    ``probe_answer``: ``changed``, and the other security's code.
    """

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        full, shown = scene.scene_of(case, ctx.evidence, "full")
        own = full.security
        alike = [
            s for _, stock in sorted(ctx.evidence.stocks.items()) if (s := Security.of(stock)).market == own.market
        ]
        drawn = (alike[i] for i in ctx.rng().permutation(len(alike)))
        other = next((s for s in drawn if s.code != own.code and not names.is_named(full.texts, s)), None)
        if other is None:
            return await scene.ask(full, ctx, shown, _told(changed=False))
        swapped = scene.renamed(full, [(own, other)])
        return await scene.ask(swapped, ctx, shown, _told(changed=True, security=other.code))


class ShiftedDate(Probe):
    """The same news at another time: every date moved by ``days``, in the header and in the texts.

    Attributes:
        days: 364 days back by default: whole weeks, so that weekdays stay true.
    """

    days: int = -364

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        full, shown = scene.scene_of(case, ctx.evidence, "full")
        return await scene.ask(scene.moved(full, self.days), ctx, shown, _told(changed=self.days != 0))


def _retold(donor: ResolvedCase, full: Scene) -> str:
    """The donor's news as if of the scene's security and day, behind the stamp of the scene's own news."""
    assert donor.focal is not None
    assert donor.focal.time is not None
    assert full.focal is not None
    own = Security(donor.case.company, donor.case.stock_id)
    stamp = full.focal.partition("] ")[0]
    days = (full.anchor - donor.case.time.day).days
    text = dates.shifted(donor.focal.text, donor.case.time.day, days)
    return f"{stamp}] {names.replaced(text, [(own, full.security)])}"


def _told(**facts: bool | str) -> str:
    return json.dumps(facts, ensure_ascii=False, sort_keys=True)
