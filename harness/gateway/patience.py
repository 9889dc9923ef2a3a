"""How long an attempt is waited for: a hang costs seconds and not the whole timeout, a slow endpoint costs nothing twice.

An attempt that is given up may be billed all the same. What takes long while others are answered hangs; what takes long while
nobody is answered waits for an endpoint (or a machine) that has stalled, and to repeat it would pay for all of it again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from harness.gateway.typical import Typical

T = TypeVar("T")
_OVERTAKEN = 10
"""Later requests of its purpose that were answered before it: then an attempt that is late hangs."""
_SPARE = 3.0
_SPARE_A_REPLY = 0.02
"""Attempts that may be given up without being overtaken: so many, and so many more a reply, never more than the first at a time."""
_LOOK_S = 0.5
"""Time between two looks at an attempt that is late; the first of them also lets a reply in that came while the loop stood still."""


class Patience:
    """Waits for the replies of one endpoint."""

    def __init__(self, typical: Typical, request_timeout: float) -> None:
        self._typical = typical
        self._request_timeout = request_timeout
        self._departed = 0
        self._answered: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=200))
        self._spare = _SPARE

    async def wait(self, purpose: str, timeouts: int, send: Callable[[], Awaitable[T]]) -> T:
        """The outcome of ``send``, an attempt at a request of which ``timeouts`` attempts were given up before.

        The deadline tightens as soon as it is known what is usual, or early hangs would last the whole timeout.

        Raises:
            TimeoutError: it took ``request_timeout``, or longer than is usual and it hangs.
        """
        loop = asyncio.get_running_loop()
        started, late = loop.time(), False
        self._departed += 1
        number = self._departed
        async with asyncio.timeout(self._request_timeout) as timeout:
            next_look = loop.call_later(self._typical.deadline(purpose, timeouts), lambda: look())

            def look() -> None:
                nonlocal next_look, late
                next_look.cancel()
                if timeout.expired():
                    return
                left = started + self._typical.deadline(purpose, timeouts) - loop.time()
                if left <= 0 and self._hangs(purpose, number, late):
                    timeout.reschedule(loop.time())
                    return
                late = left <= 0
                next_look = loop.call_later(max(left, _LOOK_S), look)

            try:
                with self._typical.once_known(purpose, look):
                    outcome = await send()
            finally:
                next_look.cancel()
        self._answered[purpose].append(number)
        self._spare = min(_SPARE, self._spare + _SPARE_A_REPLY)
        return outcome

    def _hangs(self, purpose: str, number: int, late: bool) -> bool:
        if sum(n > number for n in self._answered[purpose]) >= _OVERTAKEN:
            return True
        if not late or self._spare < 1:
            return False
        self._spare -= 1
        return True
