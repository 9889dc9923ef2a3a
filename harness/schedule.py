"""What may run now: dependencies by time, nothing else.

A forecast at T depends on what was committed from records known before T; a commit depends on its own forecast and on the
commits before it. So a forecast may run as soon as every record with ``valid_from < T`` is committed, whatever else is
still under way, and the result is that of doing the records one by one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, takewhile

from harness.memory import CommitKey


@dataclass(frozen=True, slots=True)
class Step:
    """A record that is committed at ``key``. ``decision`` is when its forecast is made; None for a review, which has none."""

    key: CommitKey
    decision: datetime | None


class Chronology:
    """The frontier of one run: commits in the order of their keys, forecasts as they become free.

    Args:
        steps: the records that are learned from, and the reviews.
        forecasts: (decision, id) of every forecast to make, learned from or not.
    """

    def __init__(self, steps: Iterable[Step], forecasts: Iterable[tuple[datetime, str]]) -> None:
        self._steps = sorted(steps, key=lambda s: s.key)
        order = {step.key.record_id: i for i, step in enumerate(self._steps)}
        late = len(self._steps)
        # Those whose commit others wait for come first when several are free.
        self._waiting = [(decision, order.get(name, late), name) for decision, name in forecasts]
        heapq.heapify(self._waiting)
        self._done = 0

    @property
    def frontier(self) -> datetime | None:
        """``valid_from`` of the next commit: everything before it is learned. None when all is committed."""
        step = self.next_step
        return step.key.valid_from if step else None

    @property
    def next_step(self) -> Step | None:
        return self._steps[self._done] if self._done < len(self._steps) else None

    @property
    def burst(self) -> list[Step]:
        """The next step and those that become known at the same instant; a review, which comes before them, alone."""
        first = self.next_step
        if first is None or first.decision is None:
            return [first] if first else []
        rest = islice(self._steps, self._done, None)
        return list(takewhile(lambda s: s.key.valid_from == first.key.valid_from, rest))

    def commit(self, n: int = 1) -> None:
        """The next ``n`` steps are committed."""
        if self._done + n > len(self._steps):
            raise ValueError("nothing is left to commit")
        self._done += n

    def free(self) -> list[tuple[int, str]]:
        """(priority, id) of the forecasts that have become free since the last call; smaller priorities first."""
        found = []
        frontier = self.frontier
        while self._waiting and (frontier is None or self._waiting[0][0] <= frontier):
            _, priority, name = heapq.heappop(self._waiting)
            found.append((priority, name))
        return sorted(found)
