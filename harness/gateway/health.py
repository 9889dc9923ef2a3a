"""Whether an endpoint takes requests at all: one that is down, or that refuses everything, is asked by one request at a time.

What fails meanwhile says nothing about the request that failed, so it costs no call one of its retries. After a bounded time
without success the endpoint is given up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

_STRIKES = 5
"""So many failures in a row make an endpoint down."""
_FIRST_S = {"down": 1.0, "refusing": 0.1}
_LONGEST_S = {"down": 10.0, "refusing": 2.5}
_UNREACHED_S = 30.0
_PRESUMED = 3.0
_SOON_S = 0.5


@dataclass(slots=True)
class Trouble:
    """Why requests are held back, and when the next one tries.

    Attributes:
        kind: ``down`` (no connection, no reply, 5xx) or ``refusing`` (429).
        since: when it began, seconds of the gateway's clock; ``at`` is that for the user.
        reason: what the last failure said.
        wait_s: seconds between two tries, doubled with every failure.
        next_try: when the next one may leave.
        trying: when the one in the air left, or None.
        reply_s: how long the last failure took to come.
        given_up: why there is no point in going on, once that is so.
    """

    kind: str
    since: float
    at: datetime
    reason: str
    wait_s: float
    next_try: float
    trying: float | None = None
    reply_s: float = 0.0
    given_up: str | None = None

    def wait(self, now: float) -> float:
        """Seconds until the next try; infinite if the present one has to end first.

        A try that is not refused as soon as the others were is presumed to be accepted: answers may take minutes.
        """
        if self.trying is None:
            return self.next_try - now
        return self.trying + max(_SOON_S, _PRESUMED * self.reply_s) - now if self.kind == "refusing" else math.inf

    def sentence(self, now: float) -> str:
        """For the user."""
        what = "down" if self.kind == "down" else "refusing every request"
        trying = "trying now" if self.trying is not None else f"trying again in {max(0.0, self.next_try - now):.0f} s"
        return f"{what} since {self.at:%H:%M:%S} UTC, {trying} ({self.reason})"


class Health:
    """Counts failures in a row; knows the present trouble, if any, and when there is no point in going on."""

    def __init__(self, patience_s: float) -> None:
        self.trouble: Trouble | None = None
        self._patience_s = patience_s
        self._struck: set[int] = set()
        """Attempts in a row that failed: by request where there was a server, below 0 where there was none."""
        self._struck_at = 0.0
        self._answered = False

    def answered(self) -> None:
        """The endpoint answered, whatever it said."""
        self._answered = True
        self._struck.clear()
        if self.trouble is not None and self.trouble.kind == "down":
            self.trouble = None

    def accepted(self) -> None:
        """A try got through, or is presumed to have."""
        self.trouble = None

    def failed(self, now: float, took_s: float, trial: bool, reached: bool, reason: str, request: int) -> None:
        """An attempt at ``request`` got no answer, or a broken server's (``reached``); ``trial``: it was the one to try.

        A server that breaks on one request is not down: it takes as many different ones.
        """
        if not self._struck:
            self._struck_at = now
        self._struck.add(request if reached else -len(self._struck) - 1)
        if len(self._struck) >= _STRIKES:
            patience = self._patience_s if self._answered or reached else min(self._patience_s, _UNREACHED_S)
            self._worse("down", now, took_s, trial, reason, 0.0, patience)

    def refused(self, now: float, took_s: float, trial: bool, reason: str, wait_s: float) -> None:
        """A refusal while nothing passes; ``wait_s`` is what the server asks for, or 0."""
        if self.trouble is None:
            self._struck_at = now
        self._worse("refusing", now, took_s, trial, reason, wait_s, self._patience_s)

    def _worse(
        self, kind: str, now: float, took_s: float, trial: bool, reason: str, asked_s: float, patience_s: float
    ) -> None:
        first, longest = _FIRST_S[kind], _LONGEST_S[kind]
        trouble = self.trouble
        if trouble is None or trouble.kind != kind:
            since, wait = datetime.now(UTC), max(first, asked_s)
            self.trouble = Trouble(kind, self._struck_at, since, reason, first, now + wait, None, took_s)
        elif trial:
            trouble.reason, trouble.reply_s, trouble.trying = reason, took_s, None
            trouble.wait_s = min(longest, 2 * trouble.wait_s)
            trouble.next_try = now + max(trouble.wait_s, asked_s)
            if now - trouble.since >= patience_s:
                trouble.given_up = f"{reason}; nothing else for {now - trouble.since:.0f} s, so its calls are given up"
