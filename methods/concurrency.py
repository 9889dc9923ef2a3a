"""Concurrency of a build: the same work is done once, and never more of it at a time than the width says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


class Once(Generic[K, V]):
    """Results by key. Whoever asks for a key that is being worked on waits for that work.

    A failure reaches everyone who waits for it and is then forgotten: the next one to ask tries again. Work goes on when one
    of those who wait is cancelled. With ``most``, only so many results are kept, those asked for last.
    """

    def __init__(self, most: int | None = None) -> None:
        self._done: dict[K, V] = {}
        self._running: dict[K, asyncio.Task[V]] = {}
        self._most = most

    def put(self, key: K, value: V) -> None:
        """Take a result from elsewhere (an earlier run)."""
        self._done[key] = value
        if self._most is not None and len(self._done) > self._most:
            del self._done[next(iter(self._done))]

    async def get(self, key: K, make: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The result of ``key``, from ``make`` if there is none yet."""
        if key in self._done:
            if self._most is None:
                return self._done[key]
            self._done[key] = value = self._done.pop(key)  # a dict is in the order of insertion: now it is the newest
            return value
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(make())
            self._running[key] = task
            task.add_done_callback(lambda ended: self._land(key, ended))
        return await asyncio.shield(task)

    async def get_all(
        self, items: Sequence[A], key: Callable[[A], K], make: Callable[[A], Coroutine[Any, Any, V]], width: int
    ) -> list[V]:
        """Results of ``items``, in order; what there is costs no task. Not with ``most``."""
        missing = {key(item): item for item in items if key(item) not in self._done}

        async def one(item: A) -> V:
            return await self.get(key(item), lambda: make(item))

        await bounded_map(one, missing.values(), width)
        return [self._done[key(item)] for item in items]

    def _land(self, key: K, task: asyncio.Task[V]) -> None:
        del self._running[key]
        if not task.cancelled() and task.exception() is None:
            self.put(key, task.result())


async def bounded_map(work: Callable[[A], Awaitable[V]], items: Iterable[A], width: int) -> list[V]:
    """``work`` of every item, in the order of the items, at most ``width`` at a time.

    The first failure ends it: nothing new is begun, what is under way is cancelled.
    """
    listed = list(items)
    found: dict[int, V] = {}
    queue = iter(enumerate(listed))

    async def worker() -> None:
        for number, item in queue:
            found[number] = await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(width, len(listed))):
                group.create_task(worker())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [found[number] for number in range(len(listed))]
