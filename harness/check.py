"""``run.mode=check``: is everything there that a run needs? At most one tiny call a backbone; nothing else is asked or changed."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from harness.config import ClusterSettings, build
from harness.errors import HarnessError
from harness.gateway.cache import ReplyCache
from harness.gateway.formats import Formats
from harness.gateway.request import ChatRequest, user
from harness.gateway.result import EmbeddingFailed
from harness.gateway.settings import Endpoint
from harness.jobs import Job
from harness.records import Benchmark, Status
from harness.rehearsal import start_rehearsal
from harness.replies import store_of
from harness.store import RunDirectory, write_atomic

CELL = "(check)"
"""Cell of the calls of a check, in the ledger."""
LEAST_FREE_GB = 1.0
_TIMEOUT_S = 60.0
_TRIES = 5
_REMEDIES = {
    "max_completion_tokens": "set backbone.token_param=max_completion_tokens",
    "max_tokens": "set the other backbone.token_param",
    "temperature": "set backbone.supports_temperature=false",
    "nothing answers": "start the server, or set backbone.base_url",
    "Check the key": "put a valid key into that variable, or name another in backbone.api_key_env",
}
"""What a provider's message names, and what to do about it."""
_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One item: what was looked at, whether it is in order, what was found, and what to do about it (None if ok)."""

    item: str
    ok: bool
    found: str
    remedy: str | None = None

    def __str__(self) -> str:
        rest = f"\n         what to do: {self.remedy}" if self.remedy else ""
        return f"{'ok      ' if self.ok else 'not ok  '} {self.item}: {self.found}{rest}"


def check(jobs: Sequence[Job], directory: RunDirectory, tell: Callable[[Finding], None]) -> bool:
    """Look at everything, telling each finding as it comes; True if all is in order."""
    ok = True
    for finding in _findings(jobs, directory):
        ok = ok and finding.ok
        tell(finding)
    return ok


def _findings(jobs: Sequence[Job], directory: RunDirectory) -> Iterable[Finding]:
    for benchmark in {id(job.benchmark): job.benchmark for job in jobs}.values():
        yield from of_files(benchmark)
    yield of_disk(directory)
    backbones = {job.spec.config.backbone.name: job.spec.config.backbone for job in jobs if job.spec.method.uses_llm}
    for endpoint in backbones.values():
        yield from of_endpoint(endpoint, directory)
    for job in {job.spec.config.embedder.name: job for job in jobs if job.spec.method.uses_embedder}.values():
        embedder = build(job.spec.config.embedder, "embedder")
        if embedder.endpoint is None:
            yield Finding(f"embedder {embedder.name}", True, "runs on this machine")
        elif embedder.endpoint.name not in backbones:
            yield from of_endpoint(embedder.endpoint, directory, embeds=True)
    yield of_ray(jobs[0].spec.config.cluster)


def of_files(benchmark: Benchmark) -> Iterable[Finding]:
    """Each file that was read, against the checksum of the release."""
    for file in benchmark.files:
        item = f"data {benchmark.name} {file.path}"
        if file.pinned is False:
            remedy = "fetch the released file again, or go on knowing that results are not comparable"
            yield Finding(item, False, f"differs from the released file (SHA-256 {file.sha256[:12]}…)", remedy)
        else:
            known = "as released" if file.pinned else "no checksum to compare with"
            yield Finding(item, True, f"{file.rows:,} rows, {known} (SHA-256 {file.sha256[:12]}…)")


def of_disk(directory: RunDirectory) -> Finding:
    """Whether the run directory can be written to and has room."""
    item, probe = f"disk {directory.path}", directory.path / ".check"
    try:
        write_atomic(probe, os.urandom(4096))
        probe.unlink()
    except (HarnessError, OSError) as error:
        return Finding(item, False, str(error), "choose another run.dir")
    free = shutil.disk_usage(directory.path).free / 1e9
    if free < LEAST_FREE_GB:
        return Finding(
            item, False, f"writable, {free:.1f} GB free", f"free {LEAST_FREE_GB:g} GB, or choose another run.dir"
        )
    return Finding(item, True, f"writable, {free:.1f} GB free")


def of_endpoint(endpoint: Endpoint, directory: RunDirectory, embeds: bool = False) -> Iterable[Finding]:
    """The key, then one tiny call: whether it answers, and in which form it takes a JSON schema."""
    name = f"{'embeddings' if embeds else 'backbone'} {endpoint.name}"
    with ExitStack() as stack:
        if endpoint.rehearsal and endpoint.base_url is None:
            try:
                server = start_rehearsal(latency=endpoint.latency, fault=endpoint.fault)
            except HarnessError as error:
                yield Finding(f"{name} server", False, str(error), "correct backbone.fault")
                return
            stack.callback(server.stop)
            endpoint = endpoint.model_copy(update={"base_url": server.base_url})
        try:
            endpoint.api_key()
        except HarnessError as error:
            text, _, remedy = str(error).removeprefix(f"backbone {endpoint.name}: ").partition("; ")
            yield Finding(f"{name} key", False, text, remedy)
            return
        given = f"{endpoint.api_key_env} is set" if os.environ.get(endpoint.api_key_env or "") else "none needed"
        yield Finding(f"{name} key", True, given)
        yield from asyncio.run(_called(name, endpoint, directory, embeds))


async def _called(name: str, endpoint: Endpoint, directory: RunDirectory, embeds: bool) -> list[Finding]:
    from harness.gateway.core import Gateway  # the HTTP client takes a second to load

    hasty = endpoint.model_copy(
        update={
            "retries": _TRIES,
            "max_retry_wait_s": 1.0,
            "outage_s": 1.0,
            "request_timeout": min(_TIMEOUT_S, endpoint.request_timeout),
        }
    )
    cache = ReplyCache(store_of(directory.cache, endpoint.name))
    gateway = Gateway(hasty, cache)
    where = f"{name} at {endpoint.base_url}"
    started = time.monotonic()
    try:
        if embeds:
            vectors = (await gateway.embed(["check"])).vectors
            return [
                Finding(where, True, f"answers in {time.monotonic() - started:.2f} s, {vectors.shape[1]} dimensions")
            ]
        # The time is the sample index: a check asks the endpoint, not the store of an earlier check.
        request = ChatRequest(
            (user('Answer with the JSON object {"answer": "yes"}.'),), _SCHEMA, sample=(time.time_ns(), 0),
            purpose="check", cell=CELL,
        )  # fmt: skip
        done = await gateway.complete(request, fresh_tries=0)
        taken, form = time.monotonic() - started, Formats(endpoint, cache).known
    except EmbeddingFailed as error:
        return [Finding(where, False, str(error), "see docs/backbones.md")]
    finally:
        await gateway.close()
        cache.close()
    if not done.status.final:
        return [Finding(where, False, done.reason or str(done.status), _remedy(done.reason or ""))]
    counted = (
        "reported" if done.prompt_tokens is not None else "not reported: costs stay unknown, a budget counts the most"
    )
    usage = Finding(f"{name} token usage", True, counted)
    found = Finding(where, True, f"answers in {taken:.2f} s as {done.model_returned or 'an unnamed model'}")
    return [found, usage, _form(name, endpoint, form, done.status, done.reason)]


def _remedy(reason: str) -> str:
    """What to do about a call that failed for ``reason``."""
    for word, remedy in _REMEDIES.items():
        if word in reason:
            return remedy
    return "see docs/backbones.md"


def _form(name: str, endpoint: Endpoint, known: str | None, status: Status, reason: str | None) -> Finding:
    item = f"{name} JSON schema"
    if status is not Status.OK:
        remedy = "raise max_output_tokens" if status is Status.TRUNCATED else "try another model, or structured: none"
        return Finding(item, False, f"the reply is {status}: {reason}", remedy)
    words = {
        "json_schema": "supported",
        "object_schema": 'taken as {"type": "json_object", "schema": ...}',
        "json_object": "not taken; json_object is, with the schema in words",
        "none": "not taken; the schema goes into the prompt in words",
    }
    best = known or endpoint.structured
    asked = "" if best == endpoint.structured else f" (the YAML says {endpoint.structured}; remembered)"
    return Finding(item, True, words[best] + asked)


def of_ray(cluster: ClusterSettings) -> Finding:
    """Whether a session starts, and what it has."""
    import ray

    from harness.session import start_ray

    where = cluster.address or "a local session"
    fresh = not ray.is_initialized()
    try:
        if fresh:
            start_ray(cluster.address, cluster.object_store_mb)
        has: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    except (HarnessError, OSError) as error:
        return Finding(
            "Ray", False, f"{where} does not start: {error}", "check cluster.address and cluster.object_store_mb"
        )
    finally:
        if fresh and ray.is_initialized():
            ray.shutdown()
    parts = f"{has.get('CPU', 0):g} CPUs, {has.get('memory', 0) / 1e9:.1f} GB"
    if cluster.workers > has.get("CPU", 0) * 4:
        return Finding("Ray", False, f"{where}: {parts} for {cluster.workers} workers", "lower cluster.workers")
    return Finding("Ray", True, f"{where}: {parts}")
