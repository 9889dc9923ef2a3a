"""MemGPT's memory as objects of the log: the blocks, the context by numbers of messages, every message, every passage."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harness.memory import Change, State
from harness.method import Embed
from methods.fed import Origin, dumps
from methods.memgpt.agent import Agent
from methods.memgpt.blocks import Blocks
from methods.memgpt.store import ARCHIVAL, CONVERSATION, Found, Message, Passage, between, nearest, paged, saying
from methods.vectors import VectorTable

CORE, CONTEXT = "core", "context"
_MESSAGE, _PASSAGE = "message:", "passage:"

Admits = Callable[[Origin], bool]


@dataclass(frozen=True, slots=True)
class Whole:
    """A state of the log, as far as it may be seen.

    Attributes:
        blocks: None until the agent has edited them.
        queue: numbers of the messages in the context.
        origin: of the blocks and the context; None for an agent that has read nothing.
    """

    messages: tuple[Message, ...]
    passages: tuple[Passage, ...]
    blocks: Blocks | None
    queue: tuple[int, ...]
    n_messages: int
    n_passages: int
    alerted: bool
    total: int
    origin: Origin | None

    def agent(self, initial: Blocks) -> Agent:
        """A working copy; ``initial`` are the blocks of an agent that has not edited them."""
        by_number = {m.number: m for m in self.messages}
        queue = [by_number[n] for n in self.queue if n in by_number]
        counts = (self.n_messages, self.n_passages)
        return Agent(self.blocks or initial, queue, *counts, alerted=self.alerted, total=self.total)


def whole_of(state: State, admits: Admits) -> Whole:
    """The parts of ``state`` whose origin ``admits``; without its context an agent is one that has just been made."""
    messages, passages = [], []
    for name, text in state.items():
        if name.startswith(_MESSAGE):
            message = _message(text)
            if admits(message.origin):
                messages.append(message)
        elif name.startswith(_PASSAGE):
            passage = _passage(text)
            if admits(passage.origin):
                passages.append(passage)
    core, context = (_admitted(state.get(name), admits) for name in (CORE, CONTEXT))
    return Whole(
        tuple(sorted(messages, key=lambda m: m.number)),
        tuple(sorted(passages, key=lambda p: p.number)),
        Blocks(core["persona"], core["human"]) if core else None,
        tuple(context["queue"]) if context else (),
        context["n_messages"] if context else 1 + len(messages),
        context["n_passages"] if context else len(passages),
        bool(context and context["alerted"]),
        context["total"] if context else len(messages),
        context["origin"] if context else None,
    )


def changes_of(agent: Agent, before: Whole, origin: Origin) -> list[Change]:
    """What a working copy has become, as changes to the state that it was made from."""
    changes = [Change("message", f"{_MESSAGE}{m.number:09}", _encoded(m)) for m in agent.new_messages]
    changes += [Change("archive", f"{_PASSAGE}{p.number:09}", _encoded(p)) for p in agent.new_passages]
    blocks = {"persona": agent.blocks.persona, "human": agent.blocks.human}
    if any(m.role == "system" for m in agent.new_messages):
        changes.append(Change("core", CORE, dumps({**blocks, "origin": origin.plain()})))
    context = {
        "queue": [m.number for m in agent.queue],
        "n_messages": agent.n_messages,
        "n_passages": agent.n_passages,
        "alerted": agent.alerted,
        "total": agent.total,
        "origin": (origin if before.origin is None else origin.shaped_by(before.origin)).plain(),
    }
    return [*changes, Change("context", CONTEXT, dumps(context))]


class Held:
    """Searches over messages and passages that are at hand; what a working copy writes counts as soon as it is written."""

    def __init__(
        self,
        messages: Sequence[Message],
        passages: Sequence[Passage],
        vectors: VectorTable,
        embed: Embed,
        agent: Agent | None = None,
    ) -> None:
        self._messages, self._passages = messages, passages
        self._vectors, self._embed = vectors, embed
        self._agent = agent

    async def search(self, kind: str, arguments: dict[str, Any], page: int) -> Found:
        """See ``methods.memgpt.store.Store``."""
        messages = [*self._messages, *(self._agent.new_messages if self._agent else ())]
        passages = [*self._passages, *(self._agent.new_passages if self._agent else ())]
        if kind == CONVERSATION:
            return paged(saying(messages, arguments["query"]), page)
        if kind != ARCHIVAL:
            return paged(between(messages, arguments["start_date"], arguments["end_date"]), page)
        if not passages:
            return paged([], page)
        query = arguments["query"]
        await self._vectors.fetch([query, *(p.content for p in passages)], self._embed)
        return paged(nearest(passages, self._vectors[query], self._vectors), page)


@lru_cache(maxsize=200_000)
def _message(text: str) -> Message:
    value = json.loads(text)
    return Message(**{**value, "origin": Origin.from_plain(value["origin"])})


@lru_cache(maxsize=200_000)
def _passage(text: str) -> Passage:
    value = json.loads(text)
    return Passage(**{**value, "origin": Origin.from_plain(value["origin"])})


def _encoded(item: Message | Passage) -> str:
    fields = {name: getattr(item, name) for name in item.__slots__}
    return dumps({**fields, "origin": item.origin.plain()})


def _admitted(text: str | None, admits: Admits) -> dict[str, Any] | None:
    if text is None:
        return None
    value: dict[str, Any] = json.loads(text)
    value["origin"] = Origin.from_plain(value["origin"])
    return value if admits(value["origin"]) else None
