"""MemGPT's agent: a context of bounded size, one step a reply, and what a step leads to (letta-ai/letta 0.2.11).

An agent is a working copy. Filling the memory writes what it has become back into the log; a forecast throws it away.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.tokens import split_to_tokens
from methods.fed import Origin
from methods.memgpt.blocks import Blocks
from methods.memgpt.store import Found, Message, Passage, Store, page_number
from methods.memgpt.tools import APPEND, HEARTBEAT, INSERT, REPLACE, SEARCHES, SEND, checked

UNKNOWN_TOOL = "call of a tool that does not exist"
FAILED_TOOL = "call of a tool that failed"
RESULT_CHARS = 3_000
"""Characters of a tool's answer, those of searches excepted."""
PASSAGE_TOKENS = 300


class Next(StrEnum):
    """What the agent hears next, by priority."""

    WARNING = "token_limit_warning"
    FAILED = "heartbeat_function_failed"
    REQUESTED = "heartbeat_requested"
    WAIT = "wait_for_user"


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said: ``tool`` is None for plain words; ``total_tokens`` of the whole exchange."""

    content: str
    tool: str | None
    arguments: str | None
    total_tokens: int


@dataclass(frozen=True, slots=True)
class Step:
    """What a reply led to.

    Attributes:
        heartbeat_request: what the call says of it; None where it says nothing, failed, or there was no call.
        function_failed: None where there was no call.
        memory_warning: the context has become so full that the agent is told, once until the next eviction.
        found: the page that the call searched for, if it did.
        failure: what kind of failure it was.
    """

    heartbeat_request: bool | None
    function_failed: bool | None
    memory_warning: bool
    found: Found | None = None
    failure: str | None = None

    @property
    def next_input(self) -> Next:
        if self.memory_warning:
            return Next.WARNING
        if self.function_failed:
            return Next.FAILED
        return Next.REQUESTED if self.heartbeat_request else Next.WAIT


class Agent:
    """The agent at one moment.

    Attributes:
        blocks: its working context.
        queue: messages in its context, the system's excepted, oldest first.
        n_messages, n_passages: all that were ever written, those outside the context included.
        new_messages, new_passages: those written by this copy.
        alerted: whether it was told that its context is filling up.
        total: messages that went through the context: what the summary counts by.
    """

    def __init__(
        self,
        blocks: Blocks,
        queue: Sequence[Message] = (),
        n_messages: int = 1,
        n_passages: int = 0,
        *,
        alerted: bool = False,
        total: int = 0,
    ) -> None:
        self.blocks = blocks
        self.queue = list(queue)
        self.n_messages, self.n_passages = n_messages, n_passages
        self.new_messages: list[Message] = []
        self.new_passages: list[Passage] = []
        self.alerted, self.total = alerted, total

    async def take(
        self, heard: str, reply: Reply, store: Store, warn_above: float, stamp: str, origins: tuple[Origin, Origin]
    ) -> Step:
        """Act on ``reply`` to ``heard``; both, and a tool's answer, enter the context.

        Args:
            heard: the event, alert or heartbeat that the model was asked about.
            reply: what it said.
            store: where its searches look.
            warn_above: tokens of an exchange above which it is told that its context is filling up.
            stamp: time of the record that it is reading.
            origins: of what it heard, and of what it makes of that.
        """
        event, own = origins
        step, answer = Step(None, None, False), None
        if reply.tool is not None:
            step, answer = await self._call(reply.tool, reply.arguments or "", store, stamp, own)
        self.add("user", stamp, heard, event)
        self.add("assistant", stamp, reply.content, own, reply.tool, reply.arguments)
        if answer is not None:
            self.add("function", stamp, answer, own, reply.tool)
        if reply.total_tokens > warn_above and not self.alerted:
            self.alerted = True
            return Step(step.heartbeat_request, step.function_failed, True, step.found, step.failure)
        return step

    def add(
        self,
        role: str,
        stamp: str,
        content: str,
        origin: Origin,
        tool: str | None = None,
        arguments: str | None = None,
    ) -> Message:
        """A message at the end of the context."""
        message = self._written(role, stamp, content, origin, tool, arguments)
        self.queue.append(message)
        self.total += 1
        return message

    def evict(self, count: int, summary: str, stamp: str, origin: Origin) -> None:
        """Put an alert with ``summary`` in the place of the ``count`` oldest messages, which stay in what was ever seen."""
        hidden, total = self.total - (len(self.queue) - count), self.total
        alert = {
            "type": "system_alert",
            "hidden": hidden,
            "total": total,
            "n_summarized": count,
            "summary": summary,
        }
        kept = self.queue[count:]
        self.queue = []
        self.add("user", stamp, json.dumps(alert, ensure_ascii=False), origin)
        self.queue += kept
        self.alerted = False

    def _written(
        self, role: str, stamp: str, content: str, origin: Origin, tool: str | None = None, arguments: str | None = None
    ) -> Message:
        message = Message(self.n_messages, role, stamp, content, tool, arguments, origin)
        self.n_messages += 1
        self.new_messages.append(message)
        return message

    async def _call(self, tool: str, arguments: str, store: Store, stamp: str, origin: Origin) -> tuple[Step, str]:
        """The step of a tool's call, and the tool's answer; every failure is answered, and heard of at once."""
        found: Found | None = None
        try:
            given = checked(tool, arguments)
            if tool in SEARCHES:
                found = await store.search(tool, given, page_number(given.get("page")))
                answer = _shown(found)
            else:
                self._act(tool, given, stamp, origin)
                answer = "done"
        except (LookupError, ValueError) as error:
            why = f"no block is called {error}" if isinstance(error, KeyError) else str(error)
            unknown = isinstance(error, LookupError) and not isinstance(error, KeyError)
            return Step(None, True, False, failure=UNKNOWN_TOOL if unknown else FAILED_TOOL), _answer("failed", why)
        heartbeat = given.get(HEARTBEAT)
        heartbeat = heartbeat if isinstance(heartbeat, bool) else None
        return Step(heartbeat, False, False, found), _answer("ok", answer, None if found else RESULT_CHARS)

    def _act(self, tool: str, given: dict[str, str], stamp: str, origin: Origin) -> None:
        if tool == APPEND:
            self._edit(self.blocks.append(given["name"], given["content"]), stamp, origin)
        elif tool == REPLACE:
            edited = self.blocks.replace(given["name"], given["old_content"], given["new_content"])
            self._edit(edited, stamp, origin)
        elif tool == INSERT:
            for piece in split_to_tokens(given["content"], PASSAGE_TOKENS, 0):
                self.new_passages.append(Passage(self.n_passages, stamp, piece, origin))
                self.n_passages += 1
        else:
            assert tool == SEND  # it is in nobody's ear

    def _edit(self, blocks: Blocks, stamp: str, origin: Origin) -> None:
        """New blocks make a new system message; it is seen, like every other, but it is not in the queue."""
        self.blocks = blocks
        self._written("system", stamp, f"{blocks.persona}\n\n{blocks.human}", origin)


def _shown(found: Found) -> str:
    if not found.hits:
        return "No results found."
    rows = json.dumps(found.rows(), ensure_ascii=False)
    return f"Showing {len(found.hits)} of {found.total} results (page {found.page}/{found.last_page}): {rows}"


def _answer(status: str, text: str, limit: int | None = RESULT_CHARS) -> str:
    if limit is not None and len(text) > limit:
        text = f"{text[:limit]} [cut: {len(text)} characters are more than {limit}]"
    return json.dumps({"status": status, "message": text}, ensure_ascii=False)
