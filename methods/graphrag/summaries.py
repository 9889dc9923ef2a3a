"""Merging the descriptions of one entity or relation into one, in batches that fit the model's input."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

Summarise = Callable[[Sequence[str]], Awaitable[str]]
"""Sorted descriptions -> one description."""


async def merge_descriptions(
    descriptions: Sequence[str], summarise: Summarise, room: int, count: Callable[[str], int]
) -> str:
    """One description of all. A single one is taken as it is.

    Args:
        descriptions: what the units say, in any order.
        summarise: asks the model.
        room: tokens of descriptions a question may hold: the input limit less the question's own words. The description that
            overflows it still belongs to the batch; the summary of a batch leads the next one.
        count: tokens of a text.
    """
    ordered = sorted(descriptions)
    if len(ordered) < 2:
        return ordered[0] if ordered else ""
    batch: list[str] = []
    result, left = "", room
    for number, description in enumerate(ordered, start=1):
        left -= count(description)
        batch.append(description)
        last = number == len(ordered)
        if last or (left < 0 and len(batch) > 1):
            result = await summarise(sorted(batch))
            batch, left = [result], room - count(result)
    return result
