"""Watching a method at work: each piece of work carries an errand, the forecast or the record of a memory it is done for.

So a request that is sent from deep inside a build is still known to belong to a decision at T.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from harness.clock import Stamp
from harness.gateway.request import ChatRequest, canonical_json
from harness.gateway.result import Completion
from harness.gateway.settings import Endpoint
from harness.hunt.canaries import Canary, found_in
from harness.learning import commit_key
from harness.local import RehearsingGateway
from harness.method import Context, Learner, Lesson, Method, Tools
from harness.records import Catalyst, Forecast, ResolvedCase

WAITS = 7
"""Turns of the event loop that a reply is late by, at most, where many are under way at once."""


@dataclass(frozen=True, slots=True)
class Errand:
    """On whose behalf something is done: ``kind`` is forecast, preparation, memory or artefact; it may know what is known at ``at``."""

    kind: str
    name: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt that was sent for a forecast: ``purpose`` is what the method calls it."""

    purpose: str
    text: str


@dataclass(frozen=True, slots=True)
class Sighting:
    """A canary where it may not be: in what was sent or stored (``place``) on behalf of ``name``."""

    canary: Canary
    place: str
    name: str
    line: str


_errand: ContextVar[Errand | None] = ContextVar("errand", default=None)


@contextmanager
def _on(errand: Errand) -> Iterator[None]:
    token = _errand.set(errand)
    try:
        yield
    finally:
        _errand.reset(token)


class Journal:
    """Takes down what is sent, as it is sent."""

    def __init__(self, canaries: Mapping[str, Canary]) -> None:
        self.sent: Counter[str] = Counter()
        self.requests: dict[str, list[Request]] = {}
        self.answers: dict[str, Forecast] = {}
        self.cases: dict[str, Catalyst] = {}
        self.sightings: dict[tuple[str, str, str], Sighting] = {}
        self.controls: set[str] = set()
        self._canaries = canaries

    def chat(self, request: ChatRequest) -> str:
        """Take down ``request``; its text."""
        said = [f"<{m['role']}>\n{m.get('content', '')}{m.get('arguments', '')}" for m in request.messages]
        asked_for = [canonical_json(part) for part in (request.schema, request.tools) if part]
        text = "\n\n".join([*said, *asked_for])
        errand = _errand.get()
        self.sent[request.stage] += 1
        if errand is not None and errand.kind == "forecast" and request.stage == "forecast":
            self.requests.setdefault(errand.name, []).append(Request(request.purpose, text))
        self.look(text, f"{request.stage} request ({request.purpose})", errand)
        return text

    def embedding(self, texts: Sequence[str]) -> None:
        """Take down texts that are to be embedded."""
        self.sent["embedding"] += len(texts)
        for text in texts:
            self.look(text, "embedding request", _errand.get())

    def look(self, text: str, place: str, errand: Errand | None) -> None:
        """Look for canaries in what is sent or stored for ``errand``; without an errand it may hold none at all."""
        for canary in found_in(text, self._canaries):
            if errand is None or canary.late(errand.at):
                name = errand.name if errand else "nobody"
                line = next(line for line in text.splitlines() if canary.word.lower() in line.lower())
                self.sightings.setdefault((canary.word, place, name), Sighting(canary, place, name, line))
            elif errand.name == canary.catalyst_id and canary.known_at == errand.at:
                self.controls.add(canary.catalyst_id)


class _Watched:
    """A method each of whose steps runs under the errand it belongs to; everything else is the method's own."""

    def __init__(self, method: Method, journal: Journal) -> None:
        self._method: Any = method
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._method, name)

    def learner(self) -> Learner | None:
        learner = self._method.learner()
        return watched(learner, self._journal) if learner is not None else None

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        self._journal.cases[case.catalyst_id] = case
        with _on(Errand("forecast", case.catalyst_id, case.time.instant)):
            forecast: Forecast = await self._method.forecast(case, ctx)
            for text in (forecast.rationale, forecast.reason):
                self._journal.look(text or "", "answer", _errand.get())
        self._journal.answers[case.catalyst_id] = forecast
        return forecast

    async def prepare(self, case: Catalyst, ctx: Context) -> None:
        with _on(Errand("preparation", case.catalyst_id, case.time.instant)):
            await self._method.prepare(case, ctx)

    async def propose(self, lesson: Any, tools: Tools) -> Any:
        key = commit_key(lesson.resolved) if isinstance(lesson, Lesson) else lesson.key
        with _on(Errand("memory", key.record_id, key.valid_from)):
            return await self._method.propose(lesson, tools)

    async def apply(self, state: Any, proposal: Any, at: datetime, tools: Tools) -> Any:
        with _on(Errand("memory", f"commit at {at}", at)):
            return await self._method.apply(state, proposal, at, tools)

    async def recall(self, state: Any, question: Any, decision: Stamp, gate: Any, tools: Tools) -> Any:
        return await self._method.recall(state, question, decision, gate, tools)

    async def review(self, state: Any, at: datetime, known: Sequence[ResolvedCase], tools: Tools) -> Any:
        with _on(Errand("memory", f"review at {at}", at)):
            return await self._method.review(state, at, known, tools)


def watched(method: Method, journal: Journal) -> Any:
    """``method`` under watch: it has all that the method has, which no type can say."""
    return _Watched(method, journal)


class WatchingGateway(RehearsingGateway):
    """Takes down every request. With ``unpunctual`` replies come in another order than they were asked for."""

    def __init__(self, endpoint: Endpoint, journal: Journal, unpunctual: bool) -> None:
        super().__init__(endpoint)
        self._journal = journal
        self._unpunctual = unpunctual

    async def complete(self, request: ChatRequest) -> Completion:
        text = self._journal.chat(request)
        if self._unpunctual:
            for _ in range(hashlib.sha256(text.encode("utf-8", "replace")).digest()[0] % WAITS):
                await asyncio.sleep(0)
        return await super().complete(request)
