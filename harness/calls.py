"""Chat and embedding calls on behalf of a forecast, a build or a memory: sampling added, calls collected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from harness.errors import EndpointError, HarnessError
from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion
from harness.method import Message, Vectors
from harness.records import Call


class Chat(Protocol):
    """The chat side of a backbone."""

    async def complete(self, request: ChatRequest) -> Completion: ...


Embedding = Callable[[Sequence[str]], Awaitable[tuple[Vectors, list[Call]]]]
"""Texts -> unit vectors (n, d), and the calls that were made for them."""


class CallingLLM:
    """``harness.method.LLM`` over a backbone; every call made is appended to ``calls``."""

    def __init__(
        self,
        chat: Chat | None,
        sample: tuple[int, int],
        calls: list[Call],
        stage: str = "forecast",
        cell: str | None = None,
        sequential: bool = False,
    ) -> None:
        self._chat = chat
        self._sample = sample
        self._calls = calls
        self._stage = stage
        self._cell = cell
        self._sequential = sequential

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None,
        purpose: str,
        essential: tuple[str, ...] | None = None,
        max_tokens: int | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Completion:
        """See ``harness.method.LLM``.

        Raises:
            EndpointError: the endpoint refuses every request of this cell.
        """
        if self._chat is None:
            raise HarnessError("the method makes a call that it did not declare: set uses_llm = True in its class")
        request = ChatRequest(
            messages=tuple(dict(m) for m in messages),
            schema=dict(schema) if schema is not None else None,
            tools=tuple(dict(tool) for tool in tools),
            essential=essential,
            max_tokens=max_tokens,
            sample=self._sample,
            purpose=purpose,
            stage=self._stage,
            cell=self._cell,
            sequential=self._sequential,
        )
        completion = await self._chat.complete(request)
        self._calls.extend(completion.calls)
        if completion.fatal:
            raise EndpointError(completion.reason or "the endpoint refuses this cell's requests")
        return completion


async def no_embedder(texts: Sequence[str]) -> tuple[Vectors, list[Call]]:
    """In place of an embedder that the method says it does not use."""
    raise HarnessError("the method embeds texts but did not declare it: set uses_embedder = True in its class")
