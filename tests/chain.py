"""What no number of workers can beat: the floor that schedules are measured against."""

from __future__ import annotations

from collections.abc import Iterable

from harness.schedule import Step


def longest_chain(steps: Iterable[Step]) -> int:
    """Forecasts in the longest chain of dependencies: no number of workers makes a run shorter than this many of them."""
    events = sorted(
        event
        for step in steps
        if step.decision is not None
        for event in ((step.key.valid_from, 1, step.key.record_id), (step.decision, 0, step.key.record_id))
    )
    # At equal instants a decision comes first: it does not see what becomes known at that very instant.
    depth: dict[str, int] = {}
    longest_known = 0
    for _, known, name in events:
        if known:
            longest_known = max(longest_known, depth[name])
        else:
            depth[name] = longest_known + 1
    return max(depth.values(), default=0)
