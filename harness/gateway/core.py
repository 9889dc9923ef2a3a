"""The gateway: store → identical requests in the air → budget → limits → call → record, in one event loop."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import random
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.errors import ConfigError
from harness.gateway.batches import Batches
from harness.gateway.budget import Account, Purse
from harness.gateway.cache import CachedReply, Payment, ReplyCache, stamp
from harness.gateway.formats import Descent, Formats
from harness.gateway.limits import Limiter, Need
from harness.gateway.pace import Clock
from harness.gateway.paying import About, Till, noting, over_budget, renew
from harness.gateway.reply import Reading, read_reply
from harness.gateway.request import ChatRequest, Prepared, assistant, canonical_json, prepare, user
from harness.gateway.result import Completion, EmbeddingFailed, Embeddings, Stats, Stopped, Usage
from harness.gateway.retry import Failure, Sending
from harness.gateway.sender import Sender
from harness.gateway.settings import Endpoint
from harness.gateway.tools import as_choice, chosen
from harness.gateway.wire import Wire
from harness.records import EMBED, Call, Status
from harness.text import clean
from harness.tokens import count_messages, embedding_batches

FRESH_TRIES = 2
"""How often an invalid reply is asked for again, with what is wrong with it."""

_SHOWN_BACK = 4000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one request led to: a reply (from the wire or the store) and what it says, or a failure; and its record."""

    call: Call
    reply: dict[str, Any] | None = None
    reading: Reading | None = None
    failure: Failure | None = None


class Gateway:
    """All calls to one endpoint. Use it inside one event loop; ``harness.gateway.actor`` shares it between processes."""

    def __init__(
        self,
        endpoint: Endpoint,
        cache: ReplyCache,
        *,
        budget: Purse | None = None,
        limiter: Limiter | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """Open no connection yet. ``limiter`` is that of all gateways to this endpoint; default one of its own.

        Raises:
            ConfigError: a key or URL is missing.
        """
        self.endpoint = endpoint
        self._till = Till(endpoint, budget)
        self._cache = cache
        clock = clock or Clock()
        limiter = limiter or Limiter.of([endpoint], clock)
        self._sender = Sender(endpoint, limiter, clock, rng or random.Random())
        self._wire = Wire(endpoint, self._sender.heard)
        self._formats = Formats(endpoint, cache)
        self._batches = (
            Batches(endpoint, self._wire.client, cache.path, lambda key: cache.get(key) is not None, clock)
            if endpoint.transport == "batch"
            else None
        )
        self._flights: dict[str, asyncio.Task[_Answer]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def complete(self, request: ChatRequest, fresh_tries: int = FRESH_TRIES) -> Completion:
        """Answer ``request``; an invalid reply is asked for again up to twice, with what is wrong with it.

        Raises:
            ConfigError: a budget is set and prices are not.
            Stopped: the gateway takes no new calls.
            CacheError: the reply could not be stored.
        """
        if request.tools and not self.endpoint.tool_calls:
            return chosen(await self.complete(as_choice(request)))
        asked, calls = request, list[Call]()
        while True:
            answer = await self._answer(asked, "retry" if calls else request.stage)
            calls.append(answer.call)
            if answer.reply is None or answer.reading is None:
                return _failed(answer, tuple(calls))
            reading = answer.reading
            if reading.status is not Status.INVALID or len(calls) > fresh_tries:
                break
            asked = _told(asked, reading)
        if reading.status is Status.OK and len(calls) > 1:
            await self._cache.put(self._row(prepare(self.endpoint, request), answered_by=answer.call.request_sha256))
        return _completion(answer.reply, reading, tuple(calls))

    async def embed(self, texts: Sequence[str], stage: str = "build") -> Embeddings:
        """Vectors of ``texts`` (n, d), sent in batches that keep the API's limits; longer texts are cut. Not stored.

        Raises:
            EmbeddingFailed: no vectors after all attempts.
            ConfigError: the endpoint has no embedding model.
            Stopped: the gateway takes no new calls.
        """
        if self.endpoint.embedding_model is None:
            raise ConfigError(
                f"backbone {self.endpoint.name} has no embedding_model; set it or choose another embedder="
            )
        if not texts:
            return Embeddings(np.empty((0, self.endpoint.embedding_dimensions or 0), np.float32), ())
        tasks = [self._start(self._embed_batch(batch, tokens, stage)) for batch, tokens in embedding_batches(texts)]
        parts = await asyncio.gather(*(self._outcome(task) for task in tasks))
        return Embeddings(np.concatenate([p.vectors for p in parts]), tuple(call for p in parts for call in p.calls))

    def stats(self) -> Stats:
        """A snapshot."""
        limiter = self._sender.limiter
        waiting = len(self._tasks) - len(self._sender.in_air)
        waiting_on = limiter.waiting_on or ("budget" if self._till.waiting else None)
        return dataclasses.replace(
            self._sender.stats,
            in_flight=limiter.in_flight,
            waiting=waiting,
            waiting_on=waiting_on,
            trouble=limiter.trouble(),
        )

    async def stop(self) -> None:
        """Refuse new calls, drop those that have not left, wait until the others are answered and stored."""
        self._sender.stopping = True
        for task in self._tasks - self._sender.in_air:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """Stop, then close the connections. The cache belongs to whoever opened it."""
        await self.stop()
        if self._batches is not None:
            await self._batches.close()
        await self._wire.close()

    async def _answer(self, request: ChatRequest, stage: str) -> _Answer:
        """From the store, from an identical request in the air, or from the endpoint."""
        prepared = prepare(self.endpoint, request)
        key = prepared.sha256
        stored = self._cache.get(key)
        if stored is not None and stored.answered_by is not None:
            stored = self._cache.get(stored.answered_by)
        if stored is not None and stored.reply is not None:
            return self._hit(stored.request_sha256, json.loads(stored.reply), request, stage)
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = self._start(self._fetch(prepared, request, stage))
            flight.add_done_callback(lambda _: self._flights.pop(key))
            return await self._outcome(flight)
        shared = await self._outcome(flight)
        if shared.reply is not None:
            return self._hit(key, shared.reply, request, stage)
        call = dataclasses.replace(shared.call, purpose=request.purpose, stage=stage, attempts=0)
        return dataclasses.replace(shared, call=call)

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run ``work`` as a task that outlives its caller: a reply that is paid for is stored even if nobody waits."""
        if self._sender.stopping:
            work.close()
            raise Stopped("the run is stopping: no new calls")
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _outcome(self, task: asyncio.Task[T]) -> T:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise Stopped("the run is stopping: this call was not sent") from None
            raise

    async def _fetch(self, prepared: Prepared, request: ChatRequest, stage: str) -> _Answer:
        """Ask the endpoint, within the budget."""
        body = prepared.body
        counted = self._sender.limiter.counts_tokens or self._till.limited
        prompt_tokens = count_messages(body["messages"]) if counted else 0
        account, paid = self._till.account(request.purpose, prompt_tokens, body[self.endpoint.token_param]), 0.0
        refusal = await account.open()
        if refusal is not None:
            call = self._record(prepared.sha256, request.purpose, stage, Status.BUDGET, Sending())
            return _Answer(call, failure=over_budget(refusal))
        try:
            answer = await self._ask(prepared, prompt_tokens, request, stage, account)
            paid = account.most_usd if answer.call.cost_usd is None else answer.call.cost_usd
            return answer
        finally:
            await account.close(paid)

    async def _ask(
        self, prepared: Prepared, prompt_tokens: int, request: ChatRequest, stage: str, account: Account
    ) -> _Answer:
        """Ask the endpoint; what was paid, and a usable reply, are committed before this returns."""
        key, body, purpose = prepared.sha256, prepared.body, request.purpose
        most = body[self.endpoint.token_param]
        by_batch = self._batches is not None and not request.sequential
        descent = Descent()
        reading: Reading | None = None
        about = About(key, purpose, stage, request.cell, by_batch)

        async def exchange() -> tuple[str, dict[str, Any]]:
            with noting(account):
                return await self._formats.send(self._wire, body, descent)

        def unanswered() -> list[Payment]:
            asked = account.unanswered and (prompt_tokens or count_messages(body["messages"]))
            return self._counted(self._till.unanswered(about, account.unanswered, asked, most))

        async def store(raw: str, reply: dict[str, Any]) -> None:
            nonlocal reading
            reading = read_reply(reply, request.schema, request.essential)
            row = self._row(prepared, reply=raw) if reading.status is Status.OK else None
            await self._cache.put(row, [*unanswered(), self._till.payment(about, reading.status, Usage.of(reply))])

        if self._batches is not None and by_batch:
            sending, outcome = await self._batches.send(key, self._formats.settled(body))
            if not isinstance(outcome, Failure):
                await store(*outcome)
        else:
            sending, outcome = await self._sender.send(
                purpose, Need(prompt_tokens, most), exchange, store, request.cell or "", lambda: renew(account)
            )
        if isinstance(outcome, Failure):
            await self._cache.put(None, unanswered())
            call = self._record(key, purpose, stage, outcome.status, sending, http_status=outcome.http_status)
            return _Answer(call, failure=outcome)
        if self._batches is not None:
            self._batches.collected(key)
        assert reading is not None
        reply = outcome[1]
        call = self._record(
            key, purpose, stage, reading.status, sending, Usage.of(reply), http_status=200, by_batch=by_batch
        )
        return _Answer(call, reply, reading)

    def _row(self, prepared: Prepared, reply: str | None = None, answered_by: str | None = None) -> CachedReply:
        return CachedReply(prepared.sha256, self.endpoint.name, stamp(), prepared.record, reply, answered_by)

    def _counted(self, payments: list[Payment]) -> list[Payment]:
        """``payments`` for unanswered attempts, entered in the statistics."""
        for payment in payments:
            self._sender.stats.unanswered += 1
            self._sender.stats.pay(payment.cost_usd)
        return payments

    async def _embed_batch(self, batch: list[str], tokens: int, stage: str) -> Embeddings:
        key = hashlib.sha256(canonical_json([self.endpoint.identity(), batch]).encode()).hexdigest()
        about, account, paid = About(key, EMBED, stage), self._till.account(EMBED, tokens), 0.0
        refusal = await account.open()
        if refusal is not None:
            raise EmbeddingFailed(refusal, Status.BUDGET, fatal=False)

        async def exchange() -> tuple[NDArray[np.float32], dict[str, Any]]:
            with noting(account):
                return await self._wire.embeddings(batch)

        def unanswered() -> list[Payment]:
            return self._counted(self._till.unanswered(about, account.unanswered, tokens, None))

        async def store(_: NDArray[np.float32], reply: dict[str, Any]) -> None:
            await self._cache.put(None, [*unanswered(), self._till.payment(about, Status.OK, Usage.of(reply))])

        try:
            sending, outcome = await self._sender.send(
                EMBED, Need(tokens), exchange, store, again=lambda: renew(account)
            )
            if isinstance(outcome, Failure):
                await self._cache.put(None, unanswered())
                raise EmbeddingFailed(outcome.reason, outcome.status, outcome.fatal)
            vectors, reply = outcome
            used = Usage.of(reply)
            call = self._record(key, EMBED, stage, Status.OK, sending, used, http_status=200)
            paid = account.most_usd if call.cost_usd is None else call.cost_usd
            return Embeddings(vectors, (dataclasses.replace(call, model=str(self.endpoint.embedding_model)),))
        finally:
            await account.close(paid)

    def _hit(self, key: str, reply: dict[str, Any], request: ChatRequest, stage: str) -> _Answer:
        reading = read_reply(reply, request.schema, request.essential)
        call = self._record(key, request.purpose, stage, reading.status, Sending(), Usage.of(reply), hit=True)
        return _Answer(call, reply, reading)

    def _record(
        self,
        key: str,
        purpose: str,
        stage: str,
        status: Status,
        sending: Sending,
        usage: Usage | None = None,
        *,
        http_status: int | None = None,
        hit: bool = False,
        by_batch: bool = False,
    ) -> Call:
        """The ledger's row of one request, counted in the statistics. Without a reply (no usage) nothing was paid."""
        used = usage or Usage()
        price = self._till.cost(purpose, used) if usage else 0.0
        paid = 0.0 if hit or usage is None else self._till.cost(purpose, used, by_batch)
        self._sender.stats.count(used, paid, hit)
        return Call(
            catalyst_id=None,
            purpose=purpose,
            stage=stage,
            request_sha256=key,
            model=self.endpoint.model,
            sent_at=sending.sent_at,
            latency_s=sending.latency_s,
            attempts=sending.attempts,
            cache_hit=hit,
            prompt_tokens=used.prompt_tokens,
            cached_tokens=used.cached_tokens,
            completion_tokens=used.completion_tokens,
            reasoning_tokens=used.reasoning_tokens,
            cost_usd=paid,
            status=status,
            http_status=http_status,
            list_cost_usd=price,
        )


def _told(request: ChatRequest, reading: Reading) -> ChatRequest:
    """The same question with the bad reply and what is wrong with it: a request of its own, with its own key."""
    said = (reading.text or "").strip()[:_SHOWN_BACK] or "(empty reply)"
    complaint = f"This reply cannot be used: {reading.reason}. Answer again, in the required form only."
    return dataclasses.replace(request, messages=(*request.messages, assistant(said), user(complaint)))


def _failed(answer: _Answer, calls: tuple[Call, ...]) -> Completion:
    failure = answer.failure
    assert failure is not None
    return Completion(
        failure.status, None, None, failure.reason, answer.call.request_sha256, fatal=failure.fatal, calls=calls
    )


def _completion(reply: dict[str, Any], reading: Reading, calls: tuple[Call, ...]) -> Completion:
    text = reading.text
    return Completion(
        status=reading.status,
        value=reading.value,
        text=text,
        reason=reading.reason,
        request_sha256=calls[-1].request_sha256,
        reply_sha256=None if text is None else hashlib.sha256(text.encode()).hexdigest(),
        model_returned=_name(reply.get("model")),
        system_fingerprint=_name(reply.get("system_fingerprint")),
        calls=calls,
    )


def _name(value: object) -> str | None:
    return str(clean(value))[:200] if isinstance(value, str) else None
