"""MemGPT's eviction: which of the oldest messages leave the context when it is full, and what stands in their place."""

from __future__ import annotations

from collections.abc import Sequence

TRUNCATE_FRACTION = 0.75
KEEP_LAST = 3


class NothingToEvict(ValueError):
    """Fewer than two messages could leave the context."""


def evicted(
    roles: Sequence[str], tokens: Sequence[int], fraction: float = TRUNCATE_FRACTION, keep_last: int = KEEP_LAST
) -> int:
    """How many of the oldest messages leave the context.

    The last ``keep_last`` stay in any case. Of the others, from the oldest on, those before the one whose tokens bring the sum above
    ``fraction`` of all; all but the last of them, where none does. One more, if the first that stays would be a user's.

    Args:
        roles: of the messages in the context without the system's, oldest first.
        tokens: of the same messages.
        fraction: of the sum of ``tokens``.
        keep_last: messages that stay in any case.

    Raises:
        NothingToEvict: fewer than two would leave.
    """
    candidates = len(roles) - keep_last
    if candidates < 1:
        raise NothingToEvict(f"{len(roles)} messages, of which the last {keep_last} stay")
    count, total = 0, 0
    for count in range(candidates):
        total += tokens[count]
        if total > fraction * sum(tokens):
            break
    if roles[count] == "user":
        count += 1
    if count < 2:
        raise NothingToEvict("fewer than two messages could be summarised")
    return count
