"""The model behind the agent: what it is shown, what is evicted when that is too much, and the chain of its steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harness.method import LLM
from harness.records import Status
from harness.tokens import count_tokens, cut_to_tokens
from methods.asking import check_answered
from methods.base import render
from methods.fed import Origin
from methods.memgpt.agent import Agent, Next, Reply, Step
from methods.memgpt.queue import NothingToEvict, evicted
from methods.memgpt.store import Message, Store
from methods.memgpt.tools import NAMES, TOOLS, read
from methods.record_memory import asked
from methods.schemas import TEXT, json_object

SYSTEM, SUMMARY = "memgpt_system.j2", "memgpt_summary.j2"
MAX_TOKENS = 1_000
SUMMARY_TOKENS = 400
_PER_MESSAGE = 4
_LEAST_EVENT = 200
SUMMARY_SCHEMA = json_object(summary=TEXT)

NO_REPLY = "step whose reply cannot be used"
NO_SUMMARY = "summary whose reply cannot be used"
OVERFLOW = "context full of messages that cannot be summarised, emptied"
CUT_EVENT = "event longer than what is left of the window, cut"

ALERTS = {
    Next.WARNING: {
        "type": "system_alert",
        "message": "The oldest messages will soon leave your context. Save what is worth keeping, now.",
    },
    Next.FAILED: {"type": "heartbeat", "message": "The call failed. You may try again."},
    Next.REQUESTED: {"type": "heartbeat", "message": "You asked to go on."},
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Sizes of the context: ``window`` in tokens, the others as fractions of it, of the queue, and in messages."""

    window: int
    warn_at: float
    evict_fraction: float
    keep_last: int


class Mind:
    """Asks the model on behalf of one agent, and counts what went wrong in ``incidents``."""

    def __init__(self, llm: LLM, bounds: Bounds) -> None:
        self._llm = llm
        self._bounds = bounds
        self.incidents: list[str] = []

    async def attend(
        self, agent: Agent, event: str, store: Store, stamp: str, origins: tuple[Origin, Origin], limit: int
    ) -> list[Step]:
        """Tell the agent of ``event`` and let it act until it waits for the next one, in at most ``limit`` steps.

        Args:
            agent: acts and remembers.
            event: what happened, as JSON text.
            store: where it searches.
            stamp: time of the event.
            origins: of the event, and of what the agent makes of it.
            limit: steps.

        Raises:
            CallFailed: the model could not be asked.
        """
        own = (origins[1], origins[1])
        heard, steps = event, list[Step]()
        for number in range(limit):
            heard, reply = await self._think(agent, heard, stamp, origins[1])
            of = origins if number == 0 else own
            if reply is None:
                self.incidents.append(NO_REPLY)
                agent.add("user", stamp, heard, of[0])
                break
            step = await agent.take(heard, reply, store, self._bounds.warn_at * self._bounds.window, stamp, of)
            steps.append(step)
            if step.failure is not None:
                self.incidents.append(step.failure)
            if step.next_input is Next.WAIT:
                break
            heard = json.dumps(ALERTS[step.next_input], ensure_ascii=False)
        return steps

    async def _think(self, agent: Agent, heard: str, stamp: str, origin: Origin) -> tuple[str, Reply | None]:
        """(what the model was told, its reply or None if that cannot be used), the context made to fit first."""
        system = render(SYSTEM, agent=agent)
        heard = await self._fit(agent, system, heard, stamp, origin)
        messages = [{"role": "system", "content": system}, *_sent(agent.queue), {"role": "user", "content": heard}]
        reply = await self._llm.complete(
            messages, schema=None, purpose="memgpt_step", max_tokens=MAX_TOKENS, tools=TOOLS
        )
        check_answered(reply.status, reply.reason, "memgpt_step")
        if reply.status is not Status.OK:
            return heard, None
        call: dict[str, Any] = reply.value or {"tool": None, "arguments": None}
        used = (reply.prompt_tokens, reply.completion_tokens)
        counted = _prompt_tokens(agent, system, heard) + count_tokens(f"{reply.text or ''}{call['arguments'] or ''}")
        total = counted if used[0] is None or used[1] is None else used[0] + used[1]
        return heard, Reply(reply.text or "", call["tool"], call["arguments"], total)

    async def _fit(self, agent: Agent, system: str, heard: str, stamp: str, origin: Origin) -> str:
        """Evict until the prompt fits the window; ``heard``, cut where even an empty context leaves it no room."""
        window, bounds = self._bounds.window, self._bounds
        while _prompt_tokens(agent, system, heard) > window and agent.queue:
            sizes = [tokens_of(m) for m in agent.queue]
            try:
                count = evicted([m.role for m in agent.queue], sizes, bounds.evict_fraction, bounds.keep_last)
            except NothingToEvict:
                self.incidents.append(OVERFLOW)
                agent.queue.clear()
                break
            summary = await self._summary([_line(m) for m in agent.queue[:count]])
            agent.evict(count, summary, stamp, origin)
        spare = window - _prompt_tokens(agent, system, "")
        if count_tokens(heard) > spare:
            self.incidents.append(CUT_EVENT)
            return cut_to_tokens(heard, max(spare, _LEAST_EVENT))
        return heard

    async def _summary(self, lines: Sequence[str]) -> str:
        """A summary of ``lines``; where they are too many, their head is summarised first."""
        room = int(self._bounds.warn_at * self._bounds.window)
        size = count_tokens("\n".join(lines))
        if size > room:
            head = int(len(lines) * 0.8 * room / size)
            if head:
                lines = [await self._summary(lines[:head]), *lines[head:]]
        text = cut_to_tokens("\n".join(lines), room)
        reply = await asked(self._llm, SUMMARY, SUMMARY_SCHEMA, "memgpt_summary", MAX_TOKENS, text=text)
        if reply is None:
            self.incidents.append(NO_SUMMARY)
            return ""
        return cut_to_tokens(str(reply["summary"]).strip(), SUMMARY_TOKENS)


@lru_cache(maxsize=50_000)
def _tokens(text: str) -> int:
    return count_tokens(text) + _PER_MESSAGE


def tokens_of(message: Message) -> int:
    """Tokens that a message takes in the context."""
    return _tokens(f"{message.content}{message.tool or ''}{message.arguments or ''}")


_TOOL_TOKENS = count_tokens(json.dumps(TOOLS))


def _prompt_tokens(agent: Agent, system: str, heard: str) -> int:
    return _TOOL_TOKENS + _tokens(system) + sum(tokens_of(m) for m in agent.queue) + count_tokens(heard) + _PER_MESSAGE


def _line(message: Message) -> str:
    return f"{message.role}: {_worded(message)}"


def _worded(message: Message) -> str:
    called = f" [calls {message.tool}: {message.arguments}]" if message.role == "assistant" and message.tool else ""
    return f"{message.content}{called}"


def _sent(queue: Sequence[Message]) -> list[dict[str, str]]:
    """The context as a conversation. An answer whose call has left the context is told as an event.

    So is that to a call of no tool there is, which is told in words: servers refuse a name with a blank in it, or none.
    """
    sent: list[dict[str, str]] = []
    for message in queue:
        before = sent[-1] if sent else {}
        if message.role == "assistant" and message.tool in NAMES:
            call = {
                "tool": str(message.tool),
                "arguments": _readable(message.arguments),
                "call_id": f"call_{message.number}",
            }
            sent.append({"role": "assistant", "content": message.content, **call})
        elif message.role == "function" and "tool" in before:
            sent.append({"role": "tool", "content": message.content, "call_id": before["call_id"]})
        else:
            role = "user" if message.role == "function" else message.role
            sent.append({"role": role, "content": _worded(message)})
    return sent


def _readable(arguments: str | None) -> str:
    """Arguments that a server can read: some decode them again when a conversation is continued."""
    given = read(arguments or "")
    if given is None or arguments is None:
        return "{}"
    return arguments if given == json.loads(arguments) else json.dumps(given, ensure_ascii=False)
