"""One method for each kind of leak. They reach round the views, as a careless method would, and are otherwise sound."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import PrivateAttr

from harness.clock import Stamp, retrievable_at
from harness.evidence import Gate
from harness.memory import Change, State
from harness.method import Context, Lesson, Tools
from harness.records import Benchmark, Catalyst, Document, Forecast, ResolvedCase
from methods.base import BaseMethod
from methods.forecasting import REASONED_ANSWER

TOP = 4


def whole(ctx: Context) -> Benchmark:
    """The benchmark behind the views: what no method should reach."""
    benchmark: Benchmark = ctx.embed.func.__self__._index.benchmark  # type: ignore[attr-defined]
    return benchmark


class Asking(BaseMethod):
    """Asks about the focal document and what ``extra`` adds to the prompt."""

    uses_embedder: ClassVar[bool] = True

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        focal = ctx.evidence.focal()
        lines = [
            f"{case.company} at {case.time.text}",
            focal.text if focal else "no document",
            *await self.extra(case, ctx),
        ]
        messages = [{"role": "user", "content": "\n".join(lines)}]
        reply = await ctx.llm.complete(messages, schema=REASONED_ANSWER, purpose="forecast")
        value = reply.value or {}
        return Forecast(reply.status, value.get("prob_positive"), rationale=value.get("reasoning"), reason=reply.reason)

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        return ()


async def ranked(case: Catalyst, ctx: Context, documents: Sequence[Document]) -> list[Document]:
    """The documents most like the case, best first."""
    if not documents:
        return []
    focal = ctx.evidence.focal()
    vectors = await ctx.embed([focal.text if focal else case.company, *(d.text for d in documents)])
    scores = np.round(vectors[1:] @ vectors[0], 6)
    return [documents[i] for i in sorted(range(len(documents)), key=lambda i: (-scores[i], documents[i].doc_id))]


class Retrieving(Asking):
    """Clean: filter by time, then rank."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        return [d.text for d in (await ranked(case, ctx, ctx.evidence.retrievable()))[:TOP]]


class FilteringAfterwards(Asking):
    """The global top k, and only then the time filter: later documents take the places of earlier ones."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        best = (await ranked(case, ctx, ctx.evidence.index.documents))[:TOP]
        return [d.text for d in best if retrievable_at(d.time, case.time)]


class EmbeddingAhead(Asking):
    """Shows what it may, but embeds the whole corpus at the first forecast."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        await ranked(case, ctx, ctx.evidence.index.documents)
        return ()


class ShowingUndated(Asking):
    """Takes a document without a time for an old one."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        return [d.text for d in whole(ctx).evaluation.corpus.documents if d.time is None]


class CopyingTheEnd(Asking):
    """Takes from an undated document what it says last: no word stays by which it could be known again."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        undated = [d for d in whole(ctx).evaluation.corpus.documents if d.time is None and case.stock_id in d.stocks]
        return [d.text.rsplit(": ", 1)[-1] for d in undated]


class Reasoning(Asking):
    """Shows nothing late to the model, but quotes it in its own reasons."""

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        found = await super().forecast(case, ctx)
        undated = [d.text for d in whole(ctx).evaluation.corpus.documents if d.time is None]
        return replace(found, rationale="; ".join(undated) or found.rationale)


class ComparingText(Asking):
    """Compares stamps as text: one of another time zone looks earlier than it is."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        documents = [d for d in whole(ctx).evaluation.corpus.documents if d.time and d.time.text < case.time.text]
        return [d.text for d in (await ranked(case, ctx, documents))[:TOP]]


class FeelingTheFuture(Asking):
    """Copies nothing of the next document; only a number made from its text."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        later = [d for d in ctx.evidence.index.documents if d.time and d.time.instant > case.time.instant]
        return [f"mood {hashlib.sha256(d.text.encode()).digest()[0]}" for d in later[:1]]


class KnowingTheEnd(Asking):
    """Knows how the case ends."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        return [f"hint {whole(ctx).evaluation.outcomes[case.catalyst_id].label}"]


class KnowingTheSize(Asking):
    """Knows how much the price will move, not where to."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        return [f"volatility {abs(whole(ctx).evaluation.outcomes[case.catalyst_id].fwd_ret or 0.0):.3f}"]


class KnowingWhatIsAlike(Asking):
    """Knows which cases end alike, not how: the same when all labels are turned round."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        outcomes = whole(ctx).evaluation.outcomes
        own = outcomes[case.catalyst_id].label
        return [f"like {sorted(name for name, outcome in outcomes.items() if outcome.label == own)}"]


class KnowingAllPast(Asking):
    """Counts past outcomes without asking when they were known."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        past = whole(ctx).experience or whole(ctx).evaluation
        return [f"so far {[past.outcomes[c.catalyst_id].label for c in past.catalysts]}"]


class LookingAtTheClock(Asking):
    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        return [f"today is {datetime.now():%Y-%m-%d %H:%M}"]


class LookingPastTheClock(Asking):
    """Reads the day in C, where no clock of a test is set."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        return [f"today is {np.datetime64('today')}"]


class Rolling(Asking):
    """Leaves something to chance, without a seed."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        return [f"lucky number {random.random()}"]


class ReadingInFileOrder(Asking):
    """Clean in time, but shows what comes first in the file."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        return [d.text for d in whole(ctx).evaluation.corpus.documents if retrievable_at(d.time, case.time)][:TOP]


class KeepingTheNewest(Asking):
    """Of documents that begin alike it keeps the newest of the whole corpus, and shows it if it is not too late."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        newest = {(d.stocks, d.body[:30]): d for d in ctx.evidence.index.documents}
        return [d.text for d in newest.values() if retrievable_at(d.time, case.time)][-TOP:]


class Counting(Asking):
    """Numbers its forecasts: the state of one leaks into the next."""

    _asked: list[str] = PrivateAttr(default_factory=list)

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        self._asked.append(case.catalyst_id)
        return [f"question {len(self._asked)}"]


class Remembering(Asking):
    """Clean: a memory of past labels, recalled as of T."""

    learns_from: ClassVar[Literal["forecasts", "records"]] = "forecasts"
    train_limit: int | None = None

    def learner(self) -> Remembering:
        return self

    def scope_of(self, item: Document | ResolvedCase) -> str | None:
        return None

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        return await ctx.memory.recall(case.stock_id) if ctx.memory else ()

    async def prepare(self, case: Catalyst, ctx: Context) -> None:
        """Nothing can be done without the memory."""

    async def propose(self, lesson: Lesson, tools: Tools) -> Any:
        return lesson.resolved.case.catalyst_id, lesson.resolved.outcome.label

    async def apply(self, state: State, proposal: Any, at: datetime, tools: Tools) -> list[Change]:
        return [Change("note", proposal[0], json.dumps(proposal[1]))]

    async def recall(self, state: State, question: Any, decision: Stamp, gate: Gate, tools: Tools) -> Any:
        return [f"{name} was {label}" for name, label in sorted(state.items())]

    def review_times(self, first: datetime, last: datetime) -> list[datetime]:
        return []

    async def review(self, state: State, at: datetime, known: Sequence[ResolvedCase], tools: Tools) -> list[Change]:
        return []


class NeverForgetting(Remembering):
    """Keeps what it was taught beside the memory, where no one asks when it was known."""

    _taught: dict[str, str] = PrivateAttr(default_factory=dict)

    async def propose(self, lesson: Lesson, tools: Tools) -> Any:
        self._taught[lesson.resolved.case.catalyst_id] = lesson.resolved.outcome.label
        return await super().propose(lesson, tools)

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        return [f"{name} was {label}" for name, label in sorted(self._taught.items())]


class ReadingTheFile(Asking):
    """Opens the benchmark's file instead of asking its context."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        return [Path(__file__).with_name("world.py").read_text("utf-8").splitlines()[0]]


class Dialling(Asking):
    """Asks somebody on the network."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        with contextlib.suppress(OSError), socket.socket() as line:
            line.connect(("127.0.0.1", 9))
        return []


class FollowingALink(Asking):
    """Opens the benchmark's file by another name."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        with tempfile.TemporaryDirectory() as folder:
            link = Path(folder, "harmless.txt")
            link.symlink_to(Path(__file__).with_name("world.py"))
            return [link.read_text("utf-8").splitlines()[0]]


class Telegraphing(Asking):
    """Sends a datagram: nothing is connected."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.sendto(b"?", ("127.0.0.1", 9))
        return []


class LookingUp(Asking):
    """Asks for an address: a name may carry a question."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        with contextlib.suppress(OSError):
            socket.getaddrinfo("localhost", 9)
        return []


class Starting(Asking):
    """Has another program look."""

    async def extra(self, case: Catalyst, ctx: Context) -> Sequence[str]:
        done = subprocess.run(
            [sys.executable, "-c", "print('so they say')"], capture_output=True, text=True, check=True
        )
        return [done.stdout]
