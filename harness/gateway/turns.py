"""Whose turn it is to leave: one at a time, queues in rotation, so that a long queue holds up no other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Place = asyncio.Future[None]


@dataclass(slots=True)
class _Queue:
    """Who waits in one queue: those that were sent before and come again stand in front."""

    again: deque[Place] = field(default_factory=deque)
    fresh: deque[Place] = field(default_factory=deque)

    def next(self) -> Place | None:
        """The first that still waits; None if nobody does."""
        while self.again or self.fresh:
            place = (self.again or self.fresh).popleft()
            if not place.done():
                return place
        return None


class Turns:
    """A lock that is handed on: from queue to queue in rotation, within a queue in order of arrival."""

    def __init__(self) -> None:
        self._held = False
        self._queues: dict[str, _Queue] = {}
        """Queues with somebody in them, the next one first."""

    @asynccontextmanager
    async def turn(self, queue: str, again: bool) -> AsyncIterator[None]:
        """Wait for the turn and hold it until the block ends."""
        if self._held:
            place: Place = asyncio.get_running_loop().create_future()
            waiting = self._queues.get(queue)
            if waiting is None:
                waiting = self._queues[queue] = _Queue()
            (waiting.again if again else waiting.fresh).append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():  # the turn came with the cancellation: hand it on
                    self._hand_on()
                raise
        self._held = True
        try:
            yield
        finally:
            self._hand_on()

    def _hand_on(self) -> None:
        while self._queues:
            name = next(iter(self._queues))
            queue = self._queues.pop(name)
            place = queue.next()
            if place is None:
                continue
            if queue.again or queue.fresh:
                self._queues[name] = queue
            place.set_result(None)
            return
        self._held = False
