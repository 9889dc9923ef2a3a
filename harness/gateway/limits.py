"""When a request may leave: paces for requests and tokens, a cap on requests in the air, pauses, an endpoint in trouble."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from harness.gateway.health import Health
from harness.gateway.learned import LearnedPace, Refusal
from harness.gateway.pace import Clock, Pacer
from harness.gateway.settings import Endpoint
from harness.gateway.turns import Turns

_PATIENCE_S = 300.0
_WINDOW_S, _LOOK_AGAIN_S = 60.0, 0.5
"""What limits are for, and the longest sleep: what is waited for may change meanwhile."""
_SPARE, _LEAST = 2.0, 0.002
"""A limiter that nobody waits for has use for so many times what it used lately, and for enough to begin with."""


class GivenUp(Exception):
    """The endpoint took nothing for too long: ``kind`` is that of its trouble; the text says what it answered last."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Need:
    """Tokens that a request is expected to use."""

    prompt: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """What an endpoint allows a minute: requests, tokens, prompt tokens and output tokens; None where that is not known."""

    rpm: float | None = None
    tpm: float | None = None
    input_tpm: float | None = None
    output_tpm: float | None = None


_COSTS: dict[str, Callable[[Need], int]] = {
    "rpm": lambda need: 1,
    "tpm": lambda need: need.prompt + need.output,
    "input_tpm": lambda need: need.prompt,
    "output_tpm": lambda need: need.output,
}


@dataclass(frozen=True, slots=True, eq=False)
class Permit:
    """The right to one request in the air: which departure it is, when it left, and what was booked for it."""

    number: int
    left_at: float
    need: Need


class Limiter:
    """One request after the other, queues in rotation: the one whose turn it is waits for whatever makes it wait longest."""

    def __init__(
        self,
        limits: Limits,
        max_in_flight: int,
        clock: Clock | None = None,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self.max_in_flight = max_in_flight
        self.in_flight = 0
        self.waiting_on: str | None = None
        self.health = Health(patience_s)
        self.held = 1.0
        self._lease_ends = math.inf
        self._set = limits
        self._whole: dict[str, float] = {}
        self._paces: dict[str, Pacer] = {}
        self._learned = LearnedPace()
        self._learned_pace: Pacer | None = None
        self._clock = clock or Clock()
        self._turns = Turns()
        self._changed = asyncio.Event()
        self._paused_until = float("-inf")
        self._trial: Permit | None = None
        self._first: float | None = None
        """When the first request left."""
        self._before: Counter[str] = Counter()
        """What left before its limit was known, by limit."""
        for name in _COSTS:
            self.limit(name, getattr(limits, name))

    @classmethod
    def of(cls, endpoints: Sequence[Endpoint], clock: Clock | None = None) -> Limiter:
        """For one endpoint that several backbones use: of limits that differ, the smaller."""

        def smallest(name: str) -> float | None:
            return min((value for e in endpoints if (value := getattr(e, name)) is not None), default=None)

        return cls(
            Limits(*(smallest(name) for name in _COSTS)),
            min(e.max_in_flight for e in endpoints),
            clock,
            min(e.outage_s for e in endpoints),
        )

    def now(self) -> float:
        return self._clock.now()

    def trouble(self) -> str | None:
        """A sentence for the user where the endpoint is down or refuses everything."""
        return None if (trouble := self.health.trouble) is None else trouble.sentence(self.now())

    def limits(self) -> dict[str, float]:
        """Limits a minute that are known."""
        return dict(self._whole)

    @property
    def counts_tokens(self) -> bool:
        """Whether the tokens of a request matter."""
        return len(self._whole) > ("rpm" in self._whole)

    @property
    def learning(self) -> bool:
        """Whether a limit that nobody names makes itself felt."""
        return self._learned_pace is not None

    def limit(self, name: str, per_minute: float | None) -> None:
        """Keep a limit from now on; None changes nothing."""
        if per_minute is None or self._whole.get(name) == per_minute:
            return
        self._whole[name] = per_minute
        self._tune(name)

    def named(self, limits: Mapping[str, float]) -> None:
        """Limits that the server names: kept where none is set."""
        for name, per_minute in limits.items():
            if getattr(self._set, name) is None:
                self.limit(name, per_minute)

    def share(self, held: float, until: float = math.inf) -> None:
        """Hold no more than this part (0 to 1) of every limit, nothing after ``until``; others have the rest."""
        before, self.held, self._lease_ends = self.held, held, until
        for name in self._whole if held != before else ():
            self._tune(name)
        self._changed.set()

    def appetite(self) -> float:
        """The part of the whole limits that this one could use now (0 to 1), by what it used lately."""
        now = self.now()
        used = [60 * pace.lately(now) / self._whole[name] for name, pace in self._paces.items()]
        if self.waiting_on in (*self._whole, "concurrency", "other runs"):
            return 1.0
        return min(1.0, max(_LEAST, _SPARE * max([self.occupied, *used])))

    @property
    def occupied(self) -> float:
        """The part that ours are of all that may be in the air; above ``held`` for a while after that shrank."""
        return self.in_flight / self.max_in_flight

    @asynccontextmanager
    async def permit(
        self, need: Need | Callable[[], Need], queue: str = "", again: bool = False
    ) -> AsyncIterator[Permit]:
        """Wait until one request may leave that ``need``s so many tokens (a call: as is known by then); in the air until the block ends.

        A request sent ``again`` goes before those of its queue that have not left yet: failures then do not pile up at the
        end of a run.

        Raises:
            GivenUp: the endpoint has been in trouble for too long.
        """
        async with self._turns.turn(queue, again):
            try:
                permit = await self._departure(need if callable(need) else lambda: need)
            finally:
                self.waiting_on = None
            self.in_flight += 1
        try:
            yield permit
        finally:
            self.in_flight -= 1
            if permit is self._trial:
                self._trial = None
                if self.health.trouble is not None:
                    self.health.trouble.trying = None
            self._changed.set()

    def pause(self, seconds: float) -> None:
        """No departure for ``seconds`` from now; afterwards they are paced as before, so that nobody stampedes."""
        self._paused_until = max(self._paused_until, self.now() + seconds)

    def accepted(self, permit: Permit) -> None:
        """The request of ``permit`` passed the endpoint's limits."""
        trouble = self.health.trouble
        self.health.answered()
        if permit is self._trial and trouble is not None and trouble.kind == "refusing":
            self._reopen(permit)

    def refused(self, permit: Permit, reason: str, wait_s: float) -> None:
        """The request of ``permit`` met a 429. What the server asks to wait holds everybody if it was no odd one."""
        now = self.now()
        self.health.answered()
        verdict = self._learned.refused(permit.number, permit.left_at, now, wait_s)
        if verdict is Refusal.CLOSED or permit is self._trial:
            self.health.refused(now, now - permit.left_at, permit is self._trial, reason, wait_s)
        elif verdict is Refusal.TOO_FAST and wait_s:
            self.pause(wait_s)

    def failed(self, permit: Permit, reason: str, reached: bool, request: int) -> None:
        """Number ``request``, which had ``permit``, got no answer; ``reached``: there was a server, if a broken one."""
        now = self.now()
        self.health.failed(now, now - permit.left_at, permit is self._trial, reached, reason, request)

    def correct(self, need: Need, used: Need) -> None:
        """What was booked for ``need`` took ``used``."""
        for name, pace in self._paces.items():
            pace.correct(_COSTS[name](used) - _COSTS[name](need))

    def _reopen(self, permit: Permit) -> None:
        self._learned.reopened(permit.number, permit.left_at, self.now())
        self.health.accepted()
        self._trial = None

    async def _departure(self, needs: Callable[[], Need]) -> Permit:
        while True:
            self._changed.clear()
            trouble = self.health.trouble
            if trouble is not None and trouble.given_up is not None:
                raise GivenUp(trouble.kind, trouble.given_up)
            now, need = self.now(), needs()
            reason, wait = self._wait(now, need)
            if wait <= 0:
                return self._leave(now, need)
            self.waiting_on = reason
            if math.isinf(wait):
                await self._changed.wait()
            else:
                await self._clock.sleep(min(wait, _LOOK_AGAIN_S))

    def _tune(self, name: str) -> None:
        """Set the pace of one limit to this one's share of it."""
        per_minute = self._whole[name] * self.held
        if per_minute <= 0:  # nothing leaves until there is a share
            return
        if name == "rpm" and self.held < 1:  # a window may hold one more of each than its pace says
            per_minute = max(math.floor(per_minute) - 1, min(1.0, per_minute))
        pace = Pacer.of_requests(per_minute) if name == "rpm" else Pacer.of_tokens(per_minute)
        known = self._paces.setdefault(name, pace)
        if known is pace and self._first is not None and self.now() - self._first < _WINDOW_S:
            pace.book(self._first, self._before[name])  # they are in the window that is open
        elif known is not pace:
            known.retune(pace, self.now())

    def _wait(self, now: float, need: Need) -> tuple[str, float]:
        """What a request waits for longest, and how many seconds; infinite if something has to end first."""
        if self.held == 0 or now >= self._lease_ends:
            return "other runs", math.inf
        if self.in_flight >= max(1, math.floor(self.max_in_flight * self.held)):
            return "concurrency", math.inf
        trouble = self.health.trouble
        if trouble is not None:
            wait = trouble.wait(now)
            if wait > 0:
                return trouble.kind, wait
            if trouble.trying is not None and self._trial is not None:
                self._reopen(self._trial)
        waits = {name: pace.delay(now, _COSTS[name](need)) for name, pace in self._paces.items()}
        waits["pause"] = self._paused_until - now
        rate = self._learned.rate(now)
        if rate is not None:
            pace = Pacer.of_pace(rate)
            if self._learned_pace is None:
                self._learned_pace = pace
            self._learned_pace.retune(pace, now)
            waits["learned rpm"] = self._learned_pace.delay(now, 1)
        reason = max(waits, key=waits.__getitem__)
        return reason, waits[reason]

    def _leave(self, now: float, need: Need) -> Permit:
        self._first = now if self._first is None else self._first
        for name, cost in _COSTS.items():
            if name in self._paces:
                self._paces[name].book(now, cost(need))
            else:
                self._before[name] += cost(need)
        if self._learned_pace is not None:
            self._learned_pace.book(now, 1)
        permit = Permit(self._learned.departed(now), now, need)
        if self.health.trouble is not None:
            self.health.trouble.trying = now
            self._trial = permit
        return permit
