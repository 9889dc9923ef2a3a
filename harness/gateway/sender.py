"""Attempts at one request: a permit to leave, a deadline, retries by class, and the numbers a live line shows."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from harness.gateway.cache import CacheError
from harness.gateway.limits import GivenUp, Limiter, Need, Permit
from harness.gateway.pace import Clock
from harness.gateway.patience import Patience
from harness.gateway.result import Stats, Stopped, Usage
from harness.gateway.retry import AttemptFailed, Failure, Sending, given_up, named_limits, no_reply, retrying
from harness.gateway.settings import Endpoint
from harness.gateway.typical import Typical

T = TypeVar("T")
Send = Callable[[], Awaitable[tuple[T, dict[str, Any]]]]
"""One HTTP exchange: (what it is worth, the decoded body)."""

_COUNTED = 3
"""While a limit is being learned every third refusal counts against a request: most are the limiter's fault."""


class Sender:
    """Sends for one backbone, within the limits of its endpoint."""

    def __init__(self, endpoint: Endpoint, limiter: Limiter, clock: Clock, rng: random.Random) -> None:
        self.stopping = False
        self._full: CacheError | None = None
        self.in_air: set[asyncio.Task[Any]] = set()
        """Tasks that have a request on the wire, or its reply in hand and not yet stored."""
        self.stats = Stats()
        self.limiter = limiter
        self.typical = Typical(endpoint.request_timeout)
        self._patience = Patience(self.typical, endpoint.request_timeout)
        self._endpoint = endpoint
        self._clock = clock
        self._rng = rng

    def heard(self, headers: Mapping[str, str]) -> None:
        """The headers of a reply: they may name limits."""
        self.limiter.named(named_limits(headers))

    async def send(
        self,
        purpose: str,
        need: Need,
        send: Send[T],
        store: Callable[[T, dict[str, Any]], Awaitable[None]],
        queue: str = "",
        again: Callable[[], Awaitable[None]] | None = None,
    ) -> tuple[Sending, tuple[T, dict[str, Any]] | Failure]:
        """Attempt until there is a reply or nothing more may help; ``need`` is what an attempt uses at most.

        What it is expected to use is estimated when it leaves: most of those that wait came before any reply was seen.

        The permit is held until ``store`` has put the reply on disk: a kill then loses no more than what the limiter lets be in
        flight. ``again`` is awaited before every further attempt, with no permit held; what it raises ends the attempts.

        Raises:
            Stopped: the gateway stops and this request is not on the wire.
            CacheError: the reply could not be stored, or an earlier one could not: nothing leaves any more.
        """
        sending = Sending()

        def expected() -> Need:
            return Need(need.prompt, self.typical.output_tokens(purpose, need.output))

        async def back_off(seconds: float) -> None:
            await self._back_off(seconds)
            if again is not None:
                await again()

        backing_off = dataclasses.replace(self._clock, sleep=back_off)
        try:
            async for attempt in retrying(self._endpoint, backing_off, self._rng, sending):
                with attempt:
                    async with self.limiter.permit(expected, queue, again=sending.attempts > 0) as permit:
                        if self._full is not None:  # what is paid from here on could not be kept
                            raise self._full
                        outcome = await self._attempt(sending, purpose, permit, send)
                        try:
                            await store(*outcome)
                        except CacheError as error:
                            self._full = error
                            raise
                        return sending, outcome
        except AttemptFailed as error:
            return sending, error.failure
        except GivenUp as error:
            return sending, given_up(self._endpoint, error)
        raise AssertionError("tenacity ended without an outcome")

    async def _attempt(self, sending: Sending, purpose: str, permit: Permit, send: Send[T]) -> tuple[T, dict[str, Any]]:
        task = asyncio.current_task()
        assert task is not None
        sending.attempts += 1
        sending.sent_at = datetime.now(UTC)
        started = self._clock.now()
        self.in_air.add(task)
        try:
            value, reply = await self._patience.wait(purpose, sending.timeouts, send)
        except (AttemptFailed, TimeoutError) as error:
            self.in_air.discard(task)
            sending.timeouts += isinstance(error, TimeoutError)
            failed = error if isinstance(error, AttemptFailed) else AttemptFailed(no_reply(self._endpoint))
            self._learn(failed.failure, permit, sending)
            raise failed from error
        finally:
            sending.latency_s = self._clock.now() - started
        # What follows only stores what was paid for, so the task counts as in the air until it ends.
        task.add_done_callback(self.in_air.discard)
        usage = Usage.of(reply)
        self.typical.observe(purpose, sending.latency_s, usage.completion_tokens)
        self.limiter.accepted(permit)
        if usage.prompt_tokens is not None:
            self.limiter.correct(permit.need, Need(usage.prompt_tokens, usage.completion_tokens or 0))
        return value, reply

    def _learn(self, failure: Failure, permit: Permit, sending: Sending) -> None:
        """Tell the limiter why an attempt failed; whether that was the fault of the request."""
        limiter = self.limiter
        if failure.http_status == 429:
            self.stats.n429 += 1
            sending.refusals += 1
            limiter.named(failure.limits)
            limiter.refused(permit, failure.reason, min(failure.wait_s or 0.0, self._endpoint.max_retry_wait_s))
        elif not failure.form and (failure.http_status is None or failure.http_status >= 500):
            limiter.failed(permit, failure.reason, failure.http_status is not None or failure.late, id(sending))
        else:
            limiter.accepted(permit)
        trouble = limiter.health.trouble is not None
        learning = failure.http_status == 429 and limiter.learning and sending.refusals % _COUNTED != 0
        sending.excused += trouble or learning
        sending.at_once = trouble or failure.late

    async def _back_off(self, seconds: float) -> None:
        if self.stopping:
            raise Stopped("the run is stopping: this call was not sent again")
        self.stats.retries += 1
        self.stats.retrying += 1
        try:
            await self._clock.sleep(seconds)
        finally:
            self.stats.retrying -= 1
