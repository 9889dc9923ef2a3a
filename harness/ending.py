"""Why a run starts nothing more, and what it amounts to in the end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.errors import CallFailed, HarnessError
from harness.gateway.result import EmbeddingFailed
from harness.records import Forecast, Row, Status

_AGAIN = "run the same command again: finished rows are kept, the rest is retried"


@dataclass(frozen=True)
class Verdict:
    """``status`` of cell.json, with why, what to do, and whether it was for want of money."""

    status: str
    reason: str | None = None
    remedy: str | None = None
    budget: bool = False


@dataclass
class Ending:
    """What ends a run early: somebody stops it, the endpoint or the disk refuses, or the budget is reached.

    Attributes:
        stopped: whether somebody stopped it.
        fatal: why going on is of no use.
        budget: what was said of the budget.
    """

    stopped: bool = False
    fatal: HarnessError | None = None
    budget: str | None = None
    _begun: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def begun(self) -> bool:
        """Whether nothing further is to be started."""
        return self._begun.is_set()

    async def wait(self) -> None:
        """Until nothing further is to be started."""
        await self._begun.wait()

    def stop(self) -> None:
        """Start nothing further; what is under way ends and is stored."""
        self.stopped = True
        self._begun.set()

    def fail(self, error: HarnessError) -> None:
        """Going on is of no use, or the budget does not allow it."""
        if isinstance(error, CallFailed | EmbeddingFailed) and error.status == Status.BUDGET:
            return self.out_of_money(str(error))
        self.fatal = self.fatal or error
        self._begun.set()

    def out_of_money(self, reason: str) -> None:
        """The budget does not allow another call."""
        self.budget = reason
        self._begun.set()

    def unasked(self) -> Forecast | None:
        """The row of a forecast that is not asked because all would be refused; None where the next run is to ask it."""
        if self.fatal is not None:
            return Forecast(Status.PROVIDER, reason=str(self.fatal))
        if self.budget is not None:
            return Forecast(Status.BUDGET, reason=self.budget)
        return None

    def verdict(self, counts: Counter[str], n: int, items: str, rows: Sequence[Row]) -> Verdict:
        """How a run of ``n`` ``items`` (forecasts, records) ended whose items have the statuses ``counts``."""
        left = n - sum(number for status, number in counts.items() if Status(status).final)
        budget = self.budget is not None or bool(counts[Status.BUDGET])
        if self.fatal is not None:
            return Verdict("failed", str(self.fatal), f"correct that, then {_AGAIN}", budget)
        if counts[Status.BUG]:
            reason = f"{counts[Status.BUG]} of {n} forecasts hit a bug (status bug, see reason)"
            return Verdict("failed", reason, "report the reason column of forecasts.parquet", budget)
        if budget:
            remedy = f"raise run.budget_usd (it counts what this run directory has spent), then {_AGAIN}"
            return Verdict("incomplete", f"budget reached: {left} of {n} {items} left", remedy, budget)
        if self.stopped and left > 0:
            return Verdict("incomplete", f"interrupted: {left} of {n} {items} left", _AGAIN)
        if left > 0:
            kinds = ", ".join(f"{number} {s}" for s, number in sorted(counts.items()) if not Status(s).final)
            why = Counter(str(r["reason"]) for r in rows if not Status(r["status"]).final).most_common(1)
            said = f": {why[0][0]}" if why else ""
            return Verdict("incomplete", f"{left} of {n} forecasts have no answer ({kinds}){said}", _AGAIN)
        return Verdict("complete")
