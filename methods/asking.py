"""Questions that build a structure over documents: how they are put, and what their answers may do to a build."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import CallFailed
from harness.method import LLM, Message
from harness.records import Status
from methods.base import render

NAME_CHARS = 200
"""A longer "name" in a reply is a reply gone wrong: it is left out and counted."""


def check_answered(status: Status, reason: str | None, purpose: str) -> None:
    """Nothing, where the model has answered at all.

    Raises:
        CallFailed: it could not be asked; what rests on the answer would be another thing without it.
    """
    if not status.final:
        raise CallFailed(str(status), reason or f"{purpose}: the call had no answer")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said: ``value`` is None if that is unusable, and ``status`` and ``reason`` say why."""

    value: Mapping[str, Any] | None
    status: str
    reason: str


class Asker:
    """Asks the model on behalf of a build; ``system`` is the template of the system message."""

    def __init__(self, llm: LLM, system: str) -> None:
        self._llm = llm
        self._system = system

    def message(self, template: str, **values: Any) -> Message:
        """What ``ask`` says for ``template``, as a part of a later history."""
        return {"role": "user", "content": render(template, **values)}

    async def ask(
        self,
        template: str,
        schema: Mapping[str, Any],
        purpose: str,
        max_tokens: int | None = None,
        history: Sequence[Message] = (),
        **values: Any,
    ) -> Answer:
        """Ask what ``template`` says of ``values``; ``history`` is what was said since the system message.

        Raises:
            CallFailed: see ``check_answered``.
        """
        messages = (
            {"role": "system", "content": render(self._system)},
            *history,
            self.message(template, **values),
        )
        reply = await self._llm.complete(messages, schema=schema, purpose=purpose, max_tokens=max_tokens)
        check_answered(reply.status, reply.reason, purpose)
        value = reply.value if reply.status is Status.OK else None
        return Answer(value, str(reply.status), reply.reason or "")


def content_key(*parts: Any) -> str:
    """SHA-256 of JSON values: equal for equal contents, whatever the process."""
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
