"""The batch API: requests that nobody waits for go up as a file, at half the price, and come back within a day.

Requests are collected until it is quiet, sent up as JSON lines, and their batch is polled. What is on its way is written down
in the reply store's database before it leaves, so a later run waits for a batch that an earlier one submitted instead of paying again:

- a row is written before the batch is created, with a tag that the batch carries as metadata: a kill in between leaves a
  batch that is found again by its tag;
- a batch that fails, expires or is cancelled still has a file of what was answered: that is taken, the rest is asked again;
- a batch is forgotten once all that it brought is in the reply store (or of no use).
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import openai

from harness.errors import HarnessError
from harness.gateway.batch_log import Batch, BatchLog
from harness.gateway.pace import Clock
from harness.gateway.retry import AttemptFailed, Failure, Sending, from_client_error, from_http
from harness.gateway.settings import Endpoint
from harness.records import Status

log = logging.getLogger(__name__)
TAG = "harness_batch"
_MOST_BYTES = 100 * 2**20
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
T = TypeVar("T")
Outcome = tuple[str, dict[str, Any]] | Failure
"""A reply as text and decoded, or why there is none."""


class Batches:
    """Requests of one endpoint by way of its batch API. Lives in one event loop."""

    def __init__(
        self,
        endpoint: Endpoint,
        client: openai.AsyncOpenAI,
        path: Path,
        stored: Callable[[str], bool],
        clock: Clock | None = None,
    ) -> None:
        """Nothing is sent yet.

        Args:
            endpoint: its settings.
            client: without retries of its own.
            path: database for what is on its way; the reply store's will do.
            stored: whether the reply store has the answer to a key.
            clock: tests put their own in.
        """
        self._stored = stored
        self._endpoint = endpoint
        self._client = client
        self._log = BatchLog(path, endpoint.name)
        self._clock = clock or Clock()
        self._waiting: dict[str, asyncio.Future[Outcome]] = {}
        self._outbox: dict[str, Mapping[str, Any]] = {}
        self._held: dict[str, Outcome] = {}
        """Replies of an earlier run's batch that nobody has asked for yet."""
        self._batches: dict[str, Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._started = False

    @property
    def waiting(self) -> int:
        """Requests that wait for a batch."""
        return len(self._waiting)

    async def send(self, key: str, body: Mapping[str, Any]) -> tuple[Sending, Outcome]:
        """The reply to ``body``, asked in as many batches as the endpoint's ``retries`` allow.

        Args:
            key: names the request, the same in every run.
            body: of a chat completion.

        The caller says ``collected`` once it has dealt with the reply.
        """
        self._start()
        sending = Sending(sent_at=datetime.now(UTC))
        started = self._clock.now()
        while True:
            sending.attempts += 1
            outcome = await self._once(key, body)
            sending.latency_s = self._clock.now() - started
            if not isinstance(outcome, Failure) or not outcome.retry or sending.attempts >= self._endpoint.retries:
                return sending, outcome

    def collected(self, key: str) -> None:
        """The reply to ``key`` is stored, or is of no use."""
        for batch in [b for b in self._batches.values() if key in b.left]:
            batch.left.discard(key)
            self._forget(batch)

    async def close(self) -> None:
        """Stop waiting; what was submitted stays on file for the next run."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _once(self, key: str, body: Mapping[str, Any]) -> Outcome:
        if key in self._held:
            return self._held.pop(key)
        if key not in self._waiting:
            self._waiting[key] = asyncio.get_running_loop().create_future()
            if not any(key in batch.left for batch in self._batches.values()):
                self._outbox[key] = body
                self._changed.set()
        return await asyncio.shield(self._waiting[key])

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        for batch in self._log.rows():
            self._follow(batch)
        self._spawn(self._submit_when_quiet())

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        log.error("%s: batches", self._endpoint.name, exc_info=error)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(HarnessError(f"a bug in batches: {type(error).__name__}: {error}"))
        self._waiting.clear()

    def _follow(self, batch: Batch) -> None:
        self._batches[batch.tag] = batch
        self._spawn(self._until_it_ends(batch))

    async def _submit_when_quiet(self) -> None:
        """A batch leaves when no request has come for a while, or when it is full."""
        while True:
            await self._changed.wait()
            while self._changed.is_set() and len(self._outbox) < self._endpoint.batch_size:
                self._changed.clear()
                await self._clock.sleep(self._endpoint.batch_wait_s)
            while self._outbox:
                await self._submit(self._take())
            self._changed.clear()

    def _take(self) -> dict[str, bytes]:
        """The first requests of the outbox as lines, as many as one file may hold."""
        lines: dict[str, bytes] = {}
        size = 0
        for key, body in list(self._outbox.items()):
            line = {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body}
            encoded = json.dumps(line, ensure_ascii=False).encode() + b"\n"
            if lines and (len(lines) >= self._endpoint.batch_size or size + len(encoded) > _MOST_BYTES):
                break
            lines[key] = encoded
            size += len(encoded)
            del self._outbox[key]
        return lines

    async def _submit(self, lines: Mapping[str, bytes]) -> None:
        batch = Batch(uuid.uuid4().hex, frozenset(lines))
        self._log.write(batch)
        self._batches[batch.tag] = batch
        try:
            batch.batch_id = await self._persistently(lambda: self._create(batch, b"".join(lines.values())))
        except AttemptFailed as error:
            self._drop(batch)
            self._answer_all(batch, _final(error.failure))
            return
        self._log.write(batch)
        log.info("%s: batch %s of %d requests submitted", self._endpoint.name, batch.batch_id, len(lines))
        self._follow(batch)

    async def _create(self, batch: Batch, data: bytes) -> str:
        file = await self._client.files.create(file=(f"{batch.tag}.jsonl", data), purpose="batch")
        made = await self._client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={TAG: batch.tag},
        )
        return made.id

    async def _until_it_ends(self, batch: Batch) -> None:
        try:
            if batch.batch_id is None:
                batch.batch_id = await self._persistently(lambda: self._find(batch.tag))
                if batch.batch_id is None:  # killed before it was created
                    self._drop(batch)
                    self._answer_all(batch, _again("it was never submitted"))
                    return
                self._log.write(batch)
            batch_id = batch.batch_id
            ended = await self._persistently(lambda: self._client.batches.retrieve(batch_id))
            while ended.status not in _ENDED:
                await self._clock.sleep(self._endpoint.batch_poll_s)
                ended = await self._persistently(lambda: self._client.batches.retrieve(batch_id))
            outcomes: dict[str, Outcome] = {}
            for name in filter(None, (ended.error_file_id, ended.output_file_id)):
                outcomes |= self._read(await self._persistently(partial(self._download, name)))
        except AttemptFailed as error:
            self._answer_all(batch, _final(error.failure))  # still on file: the next run looks for it again
            return
        said = "; ".join(str(e.message) for e in (ended.errors.data or [])) if ended.errors else ""
        for key in batch.keys:
            outcome = outcomes.get(key) or _again(f"the batch {ended.status} without it. {said}".strip())
            if isinstance(outcome, Failure) or self._stored(key):
                batch.left.discard(key)
            self._answer(key, outcome)
        self._forget(batch)

    def _read(self, content: str) -> dict[str, Outcome]:
        """Outcomes by key of a file of results; lines that cannot be read are left out, and so asked again."""
        found: dict[str, Outcome] = {}
        for line in content.splitlines():
            try:
                row = json.loads(line)
                key, response, error = str(row["custom_id"]), row.get("response"), row.get("error")
            except (ValueError, KeyError, TypeError, AttributeError):
                log.warning("%s: a line of a batch's results cannot be read: %.80s", self._endpoint.name, line)
                continue
            found[key] = self._outcome(response, error)
        return found

    def _outcome(self, response: Any, error: Any) -> Outcome:
        if not isinstance(response, dict) or not isinstance(response.get("body"), dict):
            said = error.get("message") if isinstance(error, dict) else None
            return _again(str(said or "no answer in its line"))
        body = response["body"]
        code = response.get("status_code")
        if code == 200 and isinstance(body.get("choices"), list) and body["choices"]:
            return json.dumps(body, ensure_ascii=False), body
        problem = body.get("error")
        return from_http(
            code if isinstance(code, int) and code >= 400 else 500,
            problem if isinstance(problem, dict) else {},
            {},
            self._endpoint,
        )

    async def _find(self, tag: str) -> str | None:
        """The batch that carries ``tag``, among all that the account has."""
        async for batch in self._client.batches.list(limit=100):
            if (batch.metadata or {}).get(TAG) == tag:
                return batch.id
        return None

    async def _download(self, file_id: str) -> str:
        content = await self._client.files.content(file_id)
        return content.content.decode(errors="replace")

    async def _persistently(self, action: Callable[[], Awaitable[T]]) -> T:
        """``action``, tried again as long as trying again may help: a batch lasts hours, and so may an outage.

        Raises:
            AttemptFailed: it cannot help.
        """
        failed = 0
        while True:
            try:
                return await action()
            except (openai.APIError, aiohttp.ClientError, TimeoutError, OSError) as error:
                failure = from_client_error(error, self._endpoint)
                failed += 1
                if not failure.retry or failed > self._endpoint.retries * 10:
                    raise AttemptFailed(failure) from error
                log.info("%s: %s; asking again", self._endpoint.name, failure.reason)
            await self._clock.sleep(min(self._endpoint.batch_poll_s, self._endpoint.max_retry_wait_s))

    def _answer(self, key: str, outcome: Outcome) -> None:
        waiting = self._waiting.pop(key, None)
        if waiting is None:
            if not isinstance(outcome, Failure) and not self._stored(key):
                self._held[key] = outcome
        elif not waiting.done():
            waiting.set_result(outcome)

    def _answer_all(self, batch: Batch, outcome: Failure) -> None:
        for key in batch.keys:
            self._answer(key, outcome)

    def _forget(self, batch: Batch) -> None:
        if not batch.left:
            self._drop(batch)

    def _drop(self, batch: Batch) -> None:
        self._batches.pop(batch.tag, None)
        self._log.remove(batch)


def _again(reason: str) -> Failure:
    return Failure(Status.PROVIDER, f"batch: {reason}", retry=True)


def _final(failure: Failure) -> Failure:
    """The batch API itself fails: another batch would not help."""
    remedy = " Does this server have one? Else set backbone.transport=online." if failure.http_status == 404 else ""
    return replace(failure, reason=f"batch API: {failure.reason}{remedy}", retry=False)
