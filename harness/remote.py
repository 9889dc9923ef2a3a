"""Calls to actors with the exceptions of the code behind them; many small ones in few messages."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import ray

from harness.errors import HarnessError


async def unwrapped(reference: Any) -> Any:
    """The result of a remote call.

    Raises:
        HarnessError: the actor's process is gone.
        Exception: what the call itself raised, without Ray's wrapper.
    """
    try:
        return await reference
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayActorError as error:
        raise HarnessError(f"a process of the session died ({error}); what was finished is kept") from None


Letter = tuple[int, str, tuple[Any, ...]]
"""A call on its way: number, method, arguments."""


class Mailbox:
    """Base of an actor that is asked many small questions at a time: calls come and results go in batches.

    A remote call of its own costs Ray about a millisecond of CPU time, as much as the HTTP call that it is for.
    """

    def __init__(self) -> None:
        self._results: dict[str, list[tuple[int, Any, Exception | None]]] = {}
        self._arrivals: dict[str, asyncio.Event] = {}
        self._answering: set[asyncio.Task[None]] = set()

    async def submit(self, sender: str, letters: Sequence[Letter]) -> None:
        """Start the calls in ``letters``; their results are for ``collect``."""
        for letter in letters:
            task = asyncio.create_task(self._answer(sender, *letter))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def collect(self, sender: str) -> list[tuple[int, Any, Exception | None]]:
        """Wait for a result and take all that are there: (number, value, None) or (number, None, what was raised)."""
        arrival = self._arrivals.setdefault(sender, asyncio.Event())
        await arrival.wait()
        arrival.clear()
        return self._results.pop(sender, [])

    async def _answer(self, sender: str, number: int, method: str, arguments: tuple[Any, ...]) -> None:
        value, failure = None, None
        try:
            value = await getattr(self, method)(*arguments)
        except Exception as error:  # noqa: BLE001 - handed to the caller, who raises it
            failure = error
        self._results.setdefault(sender, []).append((number, value, failure))
        self._arrivals.setdefault(sender, asyncio.Event()).set()


class Post:
    """The way from one event loop to one ``Mailbox``."""

    _of_loop: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, Post]]] = WeakKeyDictionary()

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._name = uuid.uuid4().hex
        self._sent = 0
        self._outbox: list[Letter] = []
        self._awaited: dict[int, asyncio.Future[Any]] = {}
        self._collecting: asyncio.Task[None] | None = None

    @classmethod
    def to(cls, actor: Any) -> Post:
        """The one of the running loop to ``actor``."""
        posts = cls._of_loop.setdefault(asyncio.get_running_loop(), {})
        if actor not in posts:
            posts[actor] = cls(actor)
        return posts[actor]

    async def call(self, method: str, *arguments: Any) -> Any:
        """As a remote call of ``method``; what is called in the same turn of the loop goes in one message.

        Raises:
            HarnessError: the actor's process is gone.
            Exception: what the call itself raised.
        """
        loop = asyncio.get_running_loop()
        self._sent += 1
        answer: asyncio.Future[Any] = loop.create_future()
        self._awaited[self._sent] = answer
        if not self._outbox:
            loop.call_soon(self._send)
        self._outbox.append((self._sent, method, arguments))
        return await answer

    def _send(self) -> None:
        letters, self._outbox = self._outbox, []
        try:
            self._actor.submit.remote(self._name, letters)
        except Exception as error:  # noqa: BLE001 - an argument that cannot be sent: those who wait must hear of it
            for number, _, _ in letters:
                self._deliver(number, None, error)
            return
        if self._collecting is None:
            self._collecting = asyncio.create_task(self._collect())

    async def _collect(self) -> None:
        try:
            while self._awaited:
                for number, value, failure in await unwrapped(self._actor.collect.remote(self._name)):
                    self._deliver(number, value, failure)
        except HarnessError as error:
            for number in list(self._awaited):
                self._deliver(number, None, error)
        finally:
            self._collecting = None  # a task knows its loop, which would keep itself, this and the actor alive

    def _deliver(self, number: int, value: Any, failure: Exception | None) -> None:
        answer = self._awaited.pop(number)
        if answer.done():  # whoever asked was cancelled
            return
        if failure is None:
            answer.set_result(value)
        else:
            answer.set_exception(failure)
