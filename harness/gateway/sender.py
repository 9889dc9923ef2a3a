"""Attempts at one request: a permit to leave, a deadline, retries by class, and the numbers a live line shows."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from harness.gateway.limits import Clock, Limiter, Permit
from harness.gateway.result import Stats, Stopped, Usage
from harness.gateway.retry import AttemptFailed, Failure, no_reply, retrying
from harness.gateway.settings import Endpoint
from harness.gateway.typical import Typical

T = TypeVar("T")
Send = Callable[[], Awaitable[tuple[T, dict[str, Any]]]]
"""One HTTP exchange: (what it is worth, the decoded body)."""


@dataclass(slots=True)
class Sending:
    """Facts of the attempts at one request, as they come. ``latency_s`` is the last attempt's, waits excluded."""

    attempts: int = 0
    sent_at: datetime | None = None
    latency_s: float | None = None


class Sender:
    """Sends for one endpoint, within its limits."""

    def __init__(self, endpoint: Endpoint, clock: Clock, rng: random.Random) -> None:
        self.stopping = False
        self.in_air: set[asyncio.Task[Any]] = set()
        """Tasks that have a request on the wire, or its reply in hand and not yet stored."""
        self.stats = Stats()
        self.limiter = Limiter(endpoint.rpm, endpoint.tpm, endpoint.max_in_flight, clock)
        self.typical = Typical(endpoint.request_timeout)
        self._endpoint = endpoint
        self._clock = clock
        self._rng = rng

    async def send(
        self, purpose: str, tokens: int, send: Send[T], again: Callable[[], Awaitable[None]] | None = None
    ) -> tuple[Sending, tuple[T, dict[str, Any]] | Failure]:
        """Attempt until there is a reply or nothing more may help; ``tokens`` is what an attempt is expected to use.

        ``again`` is awaited before every further attempt, with no permit held; what it raises ends the attempts.

        Raises:
            Stopped: the gateway stops and this request is not on the wire.
        """
        sending = Sending()

        async def back_off(seconds: float) -> None:
            await self._back_off(seconds)
            if again is not None:
                await again()

        backing_off = dataclasses.replace(self._clock, sleep=back_off)
        try:
            async for attempt in retrying(self._endpoint, backing_off, self._rng):
                with attempt:
                    async with self.limiter.permit(tokens, again=sending.attempts > 0) as permit:
                        return sending, await self._attempt(sending, purpose, permit, send)
        except AttemptFailed as error:
            return sending, error.failure
        raise AssertionError("tenacity ended without an outcome")

    async def _attempt(self, sending: Sending, purpose: str, permit: Permit, send: Send[T]) -> tuple[T, dict[str, Any]]:
        task = asyncio.current_task()
        assert task is not None
        sending.attempts += 1
        sending.sent_at = datetime.now(UTC)
        started = self._clock.now()
        self.in_air.add(task)
        try:
            value, reply = await self._before_deadline(purpose, sending.attempts, send)
        except AttemptFailed as error:
            self.in_air.discard(task)
            self._learn(error.failure, permit)
            raise
        finally:
            sending.latency_s = self._clock.now() - started
        # What follows only stores what was paid for, so the task counts as in the air until it ends.
        task.add_done_callback(self.in_air.discard)
        usage = Usage.of(reply)
        self.typical.observe(purpose, sending.latency_s, usage.completion_tokens)
        permit.answered(None if usage.prompt_tokens is None else usage.prompt_tokens + (usage.completion_tokens or 0))
        return value, reply

    async def _before_deadline(self, purpose: str, attempt: int, send: Send[T]) -> tuple[T, dict[str, Any]]:
        """Send; the deadline tightens as soon as it is known what is usual, or early hangs would last the whole timeout."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(self.typical.deadline(purpose, attempt)) as timeout:

                def tighten() -> None:
                    if not timeout.expired():
                        timeout.reschedule(max(loop.time(), started + self.typical.deadline(purpose, attempt)))

                with self.typical.once_known(purpose, tighten):
                    return await send()
        except TimeoutError as error:
            raise AttemptFailed(no_reply(self._endpoint)) from error

    def _learn(self, failure: Failure, permit: Permit) -> None:
        if failure.http_status == 429:
            self.stats.n429 += 1
            permit.refused(failure.rpm, failure.tpm)
            if failure.wait_s is not None:
                self.limiter.pause(min(failure.wait_s, self._endpoint.max_retry_wait_s))

    async def _back_off(self, seconds: float) -> None:
        if self.stopping:
            raise Stopped("the run is stopping: this call was not sent again")
        self.stats.retries += 1
        self.stats.retrying += 1
        try:
            await self._clock.sleep(seconds)
        finally:
            self.stats.retrying -= 1
