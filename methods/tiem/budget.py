"""The character budget of the fused prompt (HEFR): who gets how much, and how a text is cut to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SHARES: Mapping[str, float] = {"focal": 0.20, "exp": 0.30, "episode": 0.18, "theme": 0.12, "prior": 0.20}
"""ω; the order of the keys is the order of priority."""

CUT_MARK = " … [cut]"


def allocate(
    lengths: Mapping[str, int], shares: Mapping[str, float], order: Sequence[str], total: int
) -> dict[str, int]:
    """Characters that each stream keeps.

    In ``order`` each stream takes what it needs of its share (rounded down) and of the surplus so far, and hands on the
    rest. A second pass in the same order gives what is still left to the streams that were cut. What the rounding of the
    shares lost is not handed out.

    Args:
        lengths: characters of each stream, 0 for a missing one.
        shares: fraction of ``total`` of each stream; their sum is at most 1.
        order: every stream once, by priority.
        total: characters to give.

    Returns:
        Stream -> characters, never more than its length; the sum is at most ``total``.

    Raises:
        ValueError: streams differ between the arguments, a negative number, or shares beyond 1.
    """
    if not set(lengths) == set(shares) == set(order) or len(set(order)) != len(order):
        raise ValueError(
            f"lengths {sorted(lengths)}, shares {sorted(shares)}, order {list(order)}: not the same streams"
        )
    if total < 0 or min(lengths.values(), default=0) < 0 or min(shares.values(), default=0) < 0:
        raise ValueError("lengths, shares and total must not be negative")
    if sum(shares.values()) > 1 + 1e-9:
        raise ValueError(f"shares {dict(shares)} sum to more than 1")
    kept: dict[str, int] = {}
    surplus = 0
    for stream in order:
        room = int(total * shares[stream]) + surplus
        kept[stream] = min(lengths[stream], room)
        surplus = room - kept[stream]
    for stream in order:
        extra = min(lengths[stream] - kept[stream], surplus)
        kept[stream] += extra
        surplus -= extra
    return kept


def cut(text: str, limit: int, mark: str = CUT_MARK) -> str:
    """``text`` if it fits ``limit`` characters, else a prefix of it that fits together with ``mark``."""
    kept = prefix_length(len(text), limit, mark)
    return text[:kept] + (mark if kept + len(mark) <= limit < len(text) else "")


def prefix_length(length: int, limit: int, mark: str = CUT_MARK) -> int:
    """Characters of a text of ``length`` that ``cut`` keeps.

    A limit shorter than the mark has no room for it: the bare prefix is kept.
    """
    if length <= limit:
        return length
    return limit if limit < len(mark) else limit - len(mark)
