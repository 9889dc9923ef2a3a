"""The model's part in building a graph: chunks read in conversation, merged descriptions summarised, failures counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from harness.method import LLM, Message
from harness.records import Status
from harness.tokens import count_tokens, cut_to_tokens
from methods.asking import NAME_CHARS, check_answered
from methods.base import render
from methods.concurrency import Once
from methods.entity_graph import SEPARATOR, is_name
from methods.feed import Record
from methods.schemas import TEXT, json_object
from methods.tally import Tally

ROUNDS = "graph_rounds.j2"
SUMMARISE = "graph_summarise.j2"
TEMPLATES = (ROUNDS, SUMMARISE)
GLEAN, DONE = "more", "done?"
"""What the user says for another round, and before it."""

_MORE = json_object(more={"type": "boolean"})
_SUMMARY = json_object(summary=TEXT)
KINDS = {
    "unread": "chunks without extraction, because the model's answer could not be used",
    "empty": "chunks in which the model named no entity: no search can reach them",
    "nameless": "records left out because NONE or the like stands for a name",
    "long": f"records left out because a name is longer than {NAME_CHARS} characters",
    "unsummarised": "long descriptions cut instead of summarised, because the model's answer could not be used",
    "question": "questions searched by their own text, because the model's answer about them could not be used",
}
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said: ``value`` is None if that is unusable, and ``why`` says so."""

    value: Mapping[str, Any] | None
    text: str
    why: str


async def asked(llm: LLM, messages: Sequence[Message], schema: Mapping[str, Any], purpose: str) -> Reply:
    """The reply to ``messages``.

    Raises:
        CallFailed: see ``check_answered``.
    """
    reply = await llm.complete(messages, schema=schema, purpose=purpose)
    check_answered(reply.status, reply.reason, purpose)
    value = reply.value if reply.status is Status.OK else None
    return Reply(value, reply.text or "", f"{reply.status}: {reply.reason}")


@dataclass(frozen=True, slots=True)
class Form(Generic[E]):
    """How a method reads a text.

    Attributes:
        instructions: system prompt of the extraction.
        schema: of a reply.
        parse: values of all replies about a chunk, its id, where to count -> what the chunk says.
        gleanings: rounds in which the model is asked for what it missed; between two of them, whether anything is missing.
        summary_tokens: tokens from which on a merged description is summarised.
    """

    instructions: str
    schema: Mapping[str, Any]
    parse: Callable[[Sequence[Mapping[str, Any]], str, Tally], E]
    gleanings: int
    summary_tokens: int


class Reading(Generic[E]):
    """Texts read in this process: each once, whoever asks."""

    def __init__(self, form: Form[E]) -> None:
        self.form = form
        self.tally = Tally(KINDS)
        self.extracted: Once[str, E] = Once()

    def by(self, llm: LLM) -> BoundReader[E]:
        """A reader that asks ``llm``."""
        return BoundReader(self, llm)


@dataclass(frozen=True, slots=True)
class BoundReader(Generic[E]):
    """``methods.prefix_log.Reader``."""

    reading: Reading[E]
    llm: LLM

    async def extract(self, record: Record) -> E:
        """See ``Reader``; a reply that cannot be used says nothing."""
        return await self.reading.extracted.get(record.text, lambda: self._extract(record))

    async def summarise(self, name: str, description: str) -> str:
        """See ``Reader``."""
        limit = self.reading.form.summary_tokens
        if len(description.encode()) < limit or count_tokens(description) < limit:  # a token is at least one byte
            return description
        notes = "\n".join(f"- {fragment}" for fragment in description.split(SEPARATOR))
        messages = [
            {"role": "system", "content": render(SUMMARISE, tokens=limit)},
            {"role": "user", "content": f"{name}\n{notes}"},
        ]
        reply = await asked(self.llm, messages, _SUMMARY, "summarise")
        summary = reply.value["summary"].strip() if reply.value else ""
        if not summary:
            self.reading.tally.count("unsummarised", name)
        return summary or cut_to_tokens(description, limit)

    async def _extract(self, record: Record) -> E:
        form, tally = self.reading.form, self.reading.tally
        rounds = f"\n\n{render(ROUNDS)}" if form.gleanings else ""
        messages: list[Message] = [
            {"role": "system", "content": form.instructions + rounds},
            {"role": "user", "content": record.text},
        ]
        reply = await asked(self.llm, messages, form.schema, "extract")
        values = [reply.value] if reply.value else []
        if not values:
            tally.count("unread", f"{record.item_id} ({reply.why})")
        for number in range(form.gleanings if values else 0):
            if number and not await self._more(messages, reply):
                break
            messages = [*messages, _said(reply), {"role": "user", "content": GLEAN}]
            reply = await asked(self.llm, messages, form.schema, "glean")
            if not reply.value:
                break
            values.append(reply.value)
        return form.parse(values, record.item_id, tally)

    async def _more(self, messages: Sequence[Message], reply: Reply) -> bool:
        question = [*messages, _said(reply), {"role": "user", "content": DONE}]
        answer = await asked(self.llm, question, _MORE, "glean_check")
        return bool(answer.value and answer.value["more"])


def named(name: str, item: str, tally: Tally) -> bool:
    """Whether ``name`` can be kept; counted if not."""
    if is_name(name):
        return True
    tally.count("long" if len(name) > NAME_CHARS else "nameless", item)
    return False


def _said(reply: Reply) -> Message:
    return {"role": "assistant", "content": reply.text}
