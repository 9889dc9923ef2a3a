"""MemGPT (letta-ai/letta 0.2.11): an agent reads every record, one event each, and looks things up when a forecast asks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from pydantic import Field

from harness.clock import Stamp
from harness.evidence import Gate
from harness.expected import ZERO, Expected, Range, Survey, key_of, tokens_of
from harness.memory import Change, State
from harness.method import Context, FedRecord, MemoryView, Tools
from harness.records import EMBED, Catalyst, Forecast, Passage
from methods import forecasting
from methods.base import render
from methods.fed import Origin, fed_text
from methods.feed import retrieval_query, shown_already
from methods.memgpt.agent import Agent
from methods.memgpt.blocks import BLOCK_CHARS, Blocks
from methods.memgpt.mind import SUMMARY, SYSTEM, Bounds, Mind
from methods.memgpt.state import Held, changes_of, whole_of
from methods.memgpt.store import ARCHIVAL, CONVERSATION, Found, Message
from methods.memgpt.store import Passage as Note
from methods.memgpt.tools import TOOLS
from methods.record_memory import RecordMemory, each_record, incidents, vectors_of

PERSONA, TASK = "memgpt_persona.j2", "memgpt_task.j2"

_SAID = Range(10, 300)
"""Tokens of a step's reply, or of a summary."""


@dataclass(frozen=True, slots=True)
class Event:
    """A record as the agent is told of it."""

    text: str
    stamp: str
    origin: Origin
    incidents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForkQuestion:
    """A forecast of ``catalyst_id`` asks for the agent, without its stores."""

    catalyst_id: str


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """A fork's agent searches: see ``methods.memgpt.store.Store``."""

    catalyst_id: str
    kind: str
    arguments: dict[str, Any]
    page: int


@dataclass(frozen=True, slots=True)
class Fork:
    """The agent as of a decision: its blocks (None: never edited), its context, what it has stored, where that is from."""

    blocks: Blocks | None
    queue: tuple[Message, ...]
    n_messages: int
    n_passages: int
    alerted: bool
    total: int
    origin: Origin | None

    def agent(self, initial: Blocks) -> Agent:
        """A working copy, to be thrown away; ``initial`` are the blocks of an agent that has not edited them."""
        counts = (self.n_messages, self.n_passages)
        return Agent(self.blocks or initial, self.queue, *counts, alerted=self.alerted, total=self.total)


class MemGPT(RecordMemory):
    """An agent with a working context, a message queue of bounded size, and two stores outside it.

    Attributes:
        window: tokens of its context.
        warn_at: fraction of the window above which it is told, once, to save what is worth keeping.
        evict_fraction: part of the queue, by tokens, that leaves when the window is full.
        keep_last: messages that never leave.
        record_steps: steps that it may take on one record.
        forecast_steps: steps that it may take on the question of a forecast.
    """

    templates: ClassVar[tuple[str, ...]] = (*forecasting.TEMPLATES, SYSTEM, SUMMARY, PERSONA, TASK)
    reading: ClassVar[tuple[str, ...]] = ("forecast_steps", "native_tokens")
    window: int = Field(8_192, ge=2_048)
    warn_at: float = Field(0.75, gt=0, le=1)
    evict_fraction: float = Field(0.75, gt=0, le=1)
    keep_last: int = Field(3, ge=1)
    record_steps: int = Field(4, ge=1)
    forecast_steps: int = Field(8, ge=1)

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        passages = await self._looked_up(case, ctx, ctx.memory) if ctx.memory is not None else []
        shown = forecasting.within_budget(passages, ctx, self.native_tokens)
        return await forecasting.ask(case, ctx, context=shown)

    def expected_filling(self, survey: Survey) -> list[Expected]:
        """Up to so many steps a record, each on anything between an empty context and a full one; a summary at most every other
        record.
        """
        events = [fed_text(r, self.window // 4).text for r in survey.records]
        rest = Range(self._frame.low, self.window)
        summaries = Range(0, 0.5)
        return [
            *each_record(survey, "memgpt_step", Range(1, self.record_steps), events, rest, _SAID, alone=False),
            *each_record(
                survey, "memgpt_summary", summaries, [""] * len(events), Range(500, self.window), _SAID, alone=False
            ),
            *vectors_of(survey, Range(0, _SAID.high)),
        ]

    def expected_reading(self, case: Catalyst, ctx: Context, survey: Survey) -> list[Expected]:
        """Up to so many steps of the fork, a summary where these fill its context, and the vectors of what it searches for."""
        if not survey.remembers:
            return []
        calls, key = Range(1, self.forecast_steps), key_of(survey.cell, case.catalyst_id, "memgpt_step")
        query = tokens_of(retrieval_query(case, ctx.evidence))
        summary, summaries = key_of(survey.cell, case.catalyst_id, "memgpt_summary"), Range(0, self.forecast_steps / 4)
        return [
            Expected.each("memgpt_step", "forecast", key, calls, query + Range(self._frame.low, self.window), _SAID),
            Expected.each("memgpt_summary", "forecast", summary, summaries, Range(500, self.window), _SAID),
            Expected(EMBED, "build", key, ZERO, Range(0, query.high + self.forecast_steps * _SAID.high), ZERO),
        ]

    async def propose(self, record: FedRecord, tools: Tools) -> Event:
        """The event of ``record``: what can be said without the agent."""
        fed = fed_text(record, self.window // 4)
        return Event(_event(fed.text, fed.stamp), fed.stamp, Origin.of(record), fed.incidents)

    async def apply(self, state: State, event: Event, at: datetime, tools: Tools) -> list[Change]:
        """Tell the agent, and write down what has become of it."""
        before = whole_of(state, lambda _: True)
        agent, mind = before.agent(self._initial), Mind(tools.llm, self._bounds)
        own = event.origin if before.origin is None else event.origin.shaped_by(before.origin)
        store = Held(before.messages, before.passages, self.vectors, tools.embed, agent)
        await mind.attend(agent, event.text, store, event.stamp, (event.origin, own), self.record_steps)
        return [*incidents(*event.incidents, *mind.incidents), *changes_of(agent, before, own)]

    async def recall(
        self, state: State, question: ForkQuestion | SearchQuestion, decision: Stamp, gate: Gate, tools: Tools
    ) -> Fork | Found:
        """The agent as of ``decision``, or a page of what it has stored by then."""
        whole = whole_of(state, lambda origin: origin.admitted(gate, decision, question.catalyst_id))
        if isinstance(question, SearchQuestion):
            store = Held(whole.messages, whole.passages, self.vectors, tools.embed)
            return await store.search(question.kind, question.arguments, question.page)
        queue = tuple(whole.agent(self._initial).queue)
        counts = (whole.n_messages, whole.n_passages)
        return Fork(whole.blocks, queue, *counts, whole.alerted, whole.total, whole.origin)

    async def _looked_up(self, case: Catalyst, ctx: Context, memory: MemoryView) -> list[Passage]:
        """Ask a fork of the agent; its working context, then all that it found, newest first. The fork is thrown away."""
        fork: Fork = await memory.recall(ForkQuestion(case.catalyst_id))
        agent = fork.agent(self._initial)
        store, mind = Remote(memory, ctx, case.catalyst_id), Mind(ctx.llm, self._bounds)
        query = retrieval_query(case, ctx.evidence)
        now = Origin(("question",), case.time.instant, case.time.instant, None)
        event = _event(render(TASK, case=case, query=query), case.time.text)
        await mind.attend(agent, event, store, case.time.text, (now, now), self.forecast_steps)
        for what in mind.incidents:
            ctx.warn(f"while a question was looked up: {what}.")
        if not store.asked:
            await store.search(ARCHIVAL, {"query": query}, 0)
            await store.search(CONVERSATION, {"query": case.company}, 0)
        known = _block_passages(agent.blocks, self._initial, fork.origin)
        return known + _hit_passages(store.found.values(), shown_already(ctx), 1 + len(known))

    @property
    def _frame(self) -> Range:
        """Tokens of the instruction and of the tools."""
        return tokens_of(render(SYSTEM, agent=Agent(self._initial))) + tokens_of(json.dumps(TOOLS))

    @property
    def _initial(self) -> Blocks:
        return Blocks(render(PERSONA), "", BLOCK_CHARS, BLOCK_CHARS)

    @property
    def _bounds(self) -> Bounds:
        return Bounds(self.window, self.warn_at, self.evict_fraction, self.keep_last)


class Remote:
    """The stores as of a decision, searched where they are held. Keeps everything found."""

    def __init__(self, memory: MemoryView, ctx: Context, catalyst_id: str) -> None:
        self._memory, self._ctx, self._catalyst_id = memory, ctx, catalyst_id
        self.asked = 0
        self.found: dict[str, Message | Note] = {}

    async def search(self, kind: str, arguments: dict[str, Any], page: int) -> Found:
        """See ``methods.memgpt.store.Store``."""
        self.asked += 1
        if kind == ARCHIVAL:
            # Paid here, where calls are recorded; where the search is made it is found by its content.
            await self._ctx.embed([arguments["query"]])
        found: Found = await self._memory.recall(SearchQuestion(self._catalyst_id, kind, arguments, page))
        self.found |= {_item_id(hit): hit for hit in found.hits}
        return found


def _event(text: str, stamp: str) -> str:
    return json.dumps({"type": "user_message", "time": stamp, "message": text}, ensure_ascii=False)


def _block_passages(blocks: Blocks, initial: Blocks, origin: Origin | None) -> list[Passage]:
    """What stands in the working context, blocks that nobody has edited left out."""
    texts = {"persona": (blocks.persona, initial.persona), "human": (blocks.human, initial.human)}
    edited = {name: now.strip() for name, (now, first) in texts.items() if now != first and now.strip()}
    if origin is None:
        return []
    return [
        Passage(text, origin.source(f"core:{name}", None), rank) for rank, (name, text) in enumerate(edited.items(), 1)
    ]


def _hit_passages(hits: Iterable[Message | Note], shown: set[str], first_rank: int) -> list[Passage]:
    """What was found, newest first; records that every prompt shows anyway are left out."""
    new = [hit for hit in hits if not _repeats(hit, shown)]
    ordered = sorted(new, key=lambda hit: (hit.origin.known_at, _item_id(hit)), reverse=True)
    return [
        Passage(f"{hit.stamp}: {_said(hit)}", hit.origin.source(_item_id(hit), None), rank)
        for rank, hit in enumerate(ordered, first_rank)
    ]


def _repeats(hit: Message | Note, shown: set[str]) -> bool:
    """Whether ``hit`` is the record itself, of a document that is shown."""
    return isinstance(hit, Message) and hit.role == "user" and not shown.isdisjoint(hit.origin.sources)


def _said(hit: Message | Note) -> str:
    """The text of a hit; of an event, what it tells of."""
    if isinstance(hit, Message) and hit.role == "user":
        try:
            event = json.loads(hit.content)
            return str(event.get("message") or event.get("summary") or hit.content)
        except ValueError:  # an event that was cut
            return hit.content
    return hit.content


def _item_id(hit: Message | Note) -> str:
    return f"{'message' if isinstance(hit, Message) else 'passage'}:{hit.number:09}"
