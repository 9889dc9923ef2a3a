"""Mem0 (mem0ai v1.0.11): two calls a record, one for its facts and one for what becomes of the memories near them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal

from pydantic import Field

from harness.clock import Stamp
from harness.evidence import Gate
from harness.expected import ONCE, ZERO, Expected, Range, Survey
from harness.memory import Change, State
from harness.method import Context, FedRecord, Tools, Vectors
from harness.records import Catalyst, Document, Forecast, Passage, ResolvedCase
from methods import forecasting
from methods.base import render
from methods.fed import Origin, fed_text
from methods.feed import retrieval_query
from methods.mem0.operations import Memory, decide, facts_of, memories_of, neighbours, search
from methods.record_memory import RecordMemory, asked, each_record, incidents, vectors_of
from methods.schemas import TEXT, json_object

FACTS, UPDATE = "mem0_facts.j2", "mem0_update.j2"
CASES = "cases"
"""The scope of resolved cases where documents have one a stock."""

MAX_TOKENS = 2_000
_ANY = json_object()
"""Beside what is asked for: servers can make nothing but ``{}`` of it, the reader takes any object, so that one odd entry of a
list costs that entry and not the list."""
FACTS_SCHEMA = json_object(facts={"type": "array", "items": {"anyOf": [TEXT, json_object(fact=TEXT), _ANY]}})
_EVENT = {"type": "string", "enum": ["ADD", "UPDATE", "DELETE", "NONE"]}
UPDATE_SCHEMA = json_object(
    memory={"type": "array", "items": {"anyOf": [json_object(id=TEXT, text=TEXT, event=_EVENT), _ANY]}}
)
_FACT, _FACTS, _DECIDED = Range(20, 80), Range(10, 400), Range(20, 900)
"""Tokens of a fact, of all facts of a record, and of a decision."""
NO_FACTS = "extraction whose reply cannot be used"
NO_DECISION = "update whose reply cannot be used"


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a record says: its facts with their vectors (n, d), and what went wrong."""

    origin: Origin
    stamp: str
    stock: str | None
    scope: str | None
    facts: tuple[str, ...]
    incidents: tuple[str, ...]
    vectors: Vectors | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Question:
    """What a forecast asks: the case that asks, its query's vector (d,), and what is read (see ``Mem0``)."""

    catalyst_id: str
    vector: Vectors
    stock: str
    top_k: int
    scope: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory found: its id, the memory and its cosine."""

    memory_id: str
    memory: Memory
    score: float


class Mem0(RecordMemory):
    """Facts with dates, found by cosine.

    Attributes:
        neighbours: existing memories that an update decision is shown of every new fact.
        top_k: memories read.
        scope: ``global``: one memory for all. ``stock``: one a stock and one for the resolved cases; half of ``top_k`` is read
            from each, and what they do not fill from the others.
    """

    templates: ClassVar[tuple[str, ...]] = (*forecasting.TEMPLATES, FACTS, UPDATE)
    reading: ClassVar[tuple[str, ...]] = ("top_k", "native_tokens")
    neighbours: int = Field(5, ge=1)
    top_k: int = Field(30, ge=1)
    scope: Literal["global", "stock"] = "global"
    native_tokens: int = Field(4_000, ge=1)

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        passages: list[Passage] = []
        if ctx.memory is not None:
            vector = (await ctx.embed([retrieval_query(case, ctx.evidence)]))[0]
            question = Question(case.catalyst_id, vector, case.stock_id, self.top_k, self.scope)
            found: Sequence[Hit] = await ctx.memory.recall(question)
            passages = [_passage(hit, rank) for rank, hit in enumerate(found, start=1)]
        shown = forecasting.within_budget(passages, ctx, self.native_tokens)
        return await forecasting.ask(case, ctx, context=shown)

    def expected_filling(self, survey: Survey) -> list[Expected]:
        """An extraction a record, and a decision for most; the facts and their neighbours have the length of a sentence or two."""
        texts = [(fed_text(r).stamp, fed_text(r).text) for r in survey.records]
        extractions = [render(FACTS, date=stamp, text=text) for stamp, text in texts]
        updates = [render(UPDATE, date=stamp, memories=(), facts=()) for stamp, _ in texts]
        near = Range(0, _FACTS.high / _FACT.low * self.neighbours * _FACT.high / 4)
        return [
            *each_record(survey, "mem0_facts", ONCE, extractions, ZERO, _FACTS, alone=True),
            *each_record(survey, "mem0_update", Range(0.3, 1), updates, _FACTS + near, _DECIDED, alone=False),
            *vectors_of(survey, _FACTS),
        ]

    def scope_of(self, item: Document | ResolvedCase) -> str | None:
        if self.scope == "global":
            return None
        return CASES if isinstance(item, ResolvedCase) or not item.stocks else f"stock:{item.stocks[0]}"

    async def propose(self, record: FedRecord, tools: Tools) -> Extracted:
        """Ask for the facts of ``record``."""
        fed = fed_text(record)
        reply = await asked(tools.llm, FACTS, FACTS_SCHEMA, "mem0_facts", MAX_TOKENS, date=fed.stamp, text=fed.text)
        facts = tuple(dict.fromkeys(facts_of(reply)))
        vectors = await tools.embed(facts) if facts else None
        wrong = fed.incidents if reply is not None else (*fed.incidents, NO_FACTS)
        return Extracted(Origin.of(record), fed.stamp, fed.stock, record.key.scope, facts, wrong, vectors)

    async def apply(self, state: State, extracted: Extracted, at: datetime, tools: Tools) -> list[Change]:
        """Ask what becomes of the memories near the new facts, and do it."""
        changes = incidents(*extracted.incidents)
        if extracted.vectors is None:
            return changes
        self.vectors.add(extracted.facts, list(extracted.vectors))
        memories = memories_of(state)
        await self.vectors.fetch([m.text for m in memories.values()], tools.embed)
        shown = neighbours(memories, extracted.facts, self.vectors, self.neighbours)
        reply = await asked(
            tools.llm,
            UPDATE,
            UPDATE_SCHEMA,
            "mem0_update",
            MAX_TOKENS,
            date=extracted.stamp,
            memories=[memories[name].text for name in shown],
            facts=extracted.facts,
        )
        if reply is None:
            return [*changes, *incidents(NO_DECISION)]
        origin = extracted.origin.shaped_by(*(memories[name].origin for name in shown))
        record_id = extracted.origin.sources[0]

        def new(text: str) -> Memory:
            return Memory(text, extracted.stamp, extracted.stamp, extracted.scope, extracted.stock, origin)

        decided = decide(memories, shown, _listed(reply), new, lambda n: f"{record_id}#{n}")
        return [*changes, *decided.changes]

    async def recall(
        self, state: State, question: Question, decision: Stamp, gate: Gate, tools: Tools
    ) -> tuple[Hit, ...]:
        """The memories for ``question``, best first."""
        memories = {
            name: memory
            for name, memory in memories_of(state).items()
            if memory.origin.admitted(gate, decision, question.catalyst_id)
        }
        await self.vectors.fetch([m.text for m in memories.values()], tools.embed)
        limit = question.top_k if question.scope == "global" else len(memories)  # scopes are told apart after ranking
        best = search(memories, question.vector, self.vectors, limit)
        return tuple(Hit(name, memories[name], score) for name, score in chosen(best, memories, question))


def chosen(
    best: Sequence[tuple[str, float]], memories: Mapping[str, Memory], question: Question
) -> list[tuple[str, float]]:
    """The first ``top_k`` of ``best``; with one scope a stock, half of them from the stock's and half from the cases' scope."""
    if question.scope == "global":
        return list(best[: question.top_k])
    places = {f"stock:{question.stock}": question.top_k - question.top_k // 2, CASES: question.top_k // 2}
    own = {
        hit[0]
        for scope, limit in places.items()
        for hit in [hit for hit in best if memories[hit[0]].scope == scope][:limit]
    }
    spare = question.top_k - len(own)
    more = [hit[0] for hit in best if hit[0] not in own][:spare]
    return [hit for hit in best if hit[0] in {*own, *more}]


def _listed(reply: Mapping[str, Any]) -> Sequence[Any]:
    items = reply.get("memory")
    return items if isinstance(items, list) else []


def _passage(hit: Hit, rank: int) -> Passage:
    memory = hit.memory
    return Passage(
        f"{memory.updated_at}: {memory.text}", memory.origin.source(hit.memory_id, memory.stock), rank, hit.score
    )
