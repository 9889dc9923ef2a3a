"""Many small calls in few messages: each caller gets its own answer, and a dead actor is told to all who wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
import ray

from harness.errors import HarnessError
from harness.remote import Letter, Mailbox, Post


class Doubling(Mailbox):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[int] = []

    async def submit(self, sender: str, letters: Sequence[Letter]) -> None:
        self.messages.append(len(letters))
        await super().submit(sender, letters)

    async def double(self, number: int) -> int:
        for _ in range(number % 5):
            await asyncio.sleep(0)
        if number == 13:
            raise ValueError("unlucky")
        return 2 * number


class Handle:
    """What Ray makes of an actor: methods with ``remote``."""

    def __init__(self, actor: Any) -> None:
        self.submit = Remote(actor.submit)
        self.collect = Remote(actor.collect)


class Remote:
    def __init__(self, method: Callable[..., Coroutine[Any, Any, Any]]) -> None:
        self._method = method

    def remote(self, *arguments: Any) -> asyncio.Task[Any]:
        return asyncio.create_task(self._method(*arguments))


def test_everyone_gets_their_own_answer_in_few_messages() -> None:
    async def ask() -> None:
        actor = Doubling()
        post = Post(Handle(actor))
        for _ in range(3):
            answers = await asyncio.gather(*(post.call("double", n) for n in range(100)), return_exceptions=True)
            assert answers[:13] == [2 * n for n in range(13)]
            assert answers[14:] == [2 * n for n in range(14, 100)]
            assert isinstance(answers[13], ValueError)
        assert actor.messages == [100, 100, 100]

    asyncio.run(ask())


def test_who_stops_waiting_takes_nothing_from_the_others() -> None:
    async def ask() -> None:
        post = Post(Handle(Doubling()))
        tasks = [asyncio.create_task(post.call("double", n)) for n in range(10)]
        await asyncio.sleep(0)
        tasks[4].cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [a for i, a in enumerate(answers) if i != 4] == [2 * n for n in range(10) if n != 4]
        assert await post.call("double", 21) == 42

    asyncio.run(ask())


def test_a_dead_actor_is_told_to_all_who_wait() -> None:
    class Dying(Doubling):
        async def collect(self, sender: str) -> Any:
            raise ray.exceptions.RayActorError

    async def ask() -> None:
        post = Post(Handle(Dying()))
        for _ in range(2):
            answers = await asyncio.gather(*(post.call("double", n) for n in range(3)), return_exceptions=True)
            assert [type(a) for a in answers] == [HarnessError] * 3

    asyncio.run(ask())


def test_what_cannot_be_sent_is_an_error_of_the_caller() -> None:
    class Refusing(Handle):
        def __init__(self) -> None:
            super().__init__(Doubling())
            self.submit.remote = self.refuse  # type: ignore[method-assign]

        def refuse(self, *arguments: Any) -> asyncio.Task[Any]:
            raise TypeError("cannot pickle that")

    async def ask() -> None:
        with pytest.raises(TypeError, match="cannot pickle"):
            await Post(Refusing()).call("double", 1)

    asyncio.run(ask())


def test_two_loops_of_a_process_have_a_post_each() -> None:
    actor = Handle(Doubling())

    async def post() -> tuple[Post, Post]:
        return Post.to(actor), Post.to(actor)

    first, again = asyncio.run(post())
    other, _ = asyncio.run(post())
    assert first is again
    assert first is not other


def test_what_cannot_be_called_is_an_error_of_the_caller() -> None:
    async def ask() -> None:
        with pytest.raises(AttributeError):
            await Post(Handle(Doubling())).call("halve", 1)

    asyncio.run(ask())
