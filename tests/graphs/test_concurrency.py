"""Work done once: bounded results, many at once, and what a failure leaves."""

from __future__ import annotations

import asyncio

import pytest

from methods.concurrency import Once


def test_only_the_results_asked_for_last_are_kept() -> None:
    made: list[int] = []

    async def run() -> None:
        once: Once[int, int] = Once(most=2)

        async def ask(key: int) -> int:
            async def make() -> int:
                made.append(key)
                return key * 10

            return await once.get(key, make)

        assert [await ask(key) for key in (1, 2, 1, 3, 1, 2)] == [10, 20, 10, 30, 10, 20]

    asyncio.run(run())
    assert made == [1, 2, 3, 2]  # 2 had to go for 3, because 1 had been asked for since


def test_many_at_once_are_made_once_each_and_a_failure_is_tried_again() -> None:
    made: list[str] = []

    async def run() -> None:
        once: Once[str, str] = Once()
        broken = {"b"}

        async def make(item: str) -> str:
            await asyncio.sleep(0)
            made.append(item)
            if item in broken:
                raise ValueError(item)
            return item.upper()

        async def ask(items: str) -> list[str]:
            return await once.get_all(items, str.lower, lambda item: make(item.lower()), 2)

        with pytest.raises(ValueError, match="b"):
            await ask("ab")
        broken.clear()
        both = await asyncio.gather(ask("abA"), ask("bc"))
        assert both == [["A", "B", "A"], ["B", "C"]]

    asyncio.run(run())
    assert sorted(made) in (["a", "b", "b", "c"], ["a", "a", "b", "b", "c"])  # "a" may have been cancelled with "b"
