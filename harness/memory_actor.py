"""The Ray side of a memory: one actor holds its log; killed, it is rebuilt from the journal with nothing lost.

A commit is one line of an append-only journal, written before the log in memory changes. A record that is on file is not
committed again, so a call that Ray repeats after a restart does no harm.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ray

from harness.calls import CallingLLM, Chat, Embedding
from harness.clock import Stamp
from harness.errors import HarnessError
from harness.evidence import Gate
from harness.memory import Change, CommitKey, MemoryLog, State, dumps
from harness.memory_file import read_journal, read_memory, write_memory
from harness.method import Learner, Tools, Vectors
from harness.records import Call, ResolvedCase
from harness.remote import unwrapped
from harness.vectors import VectorsAtHand

STATES_KEPT = 16
"""States as of different decisions that are held at once: a forecast may ask several times."""


@dataclass
class Applied:
    """What came of committing records.

    Attributes:
        calls: made for each record that was not on file before, by its id; those of a record that failed included.
        committed: how many of the records are on file, by whomever.
        failure: why the last of them is not committed.
    """

    calls: dict[str, list[Call]] = field(default_factory=dict)
    committed: int = 0
    failure: HarnessError | None = None


class MemoryActor:
    """Holds one log: a trained memory, if any, and what this run has learned since."""

    def __init__(
        self,
        learner: Learner,
        trained: str | None,
        journal: str | None,
        chat: Chat | None,
        embed: Embedding,
        cell: str | None = None,
    ) -> None:
        self._learner = learner
        self._journal = Path(journal) if journal else None
        self._log = read_memory(Path(trained)) if trained else MemoryLog()
        for op in read_journal(self._journal) if self._journal else []:
            self._log.replay(op)
        self._chat = chat
        self._cell = cell
        self._embedding = VectorsAtHand(embed)
        self._order = asyncio.Lock()
        self._snapshots: OrderedDict[int, State] = OrderedDict()

    async def recall(self, question: Any, decision: Stamp, gate: Gate) -> Any:
        """The learner's answer from the state as of ``decision`` (``strict``) or from the final one (``paper``, ``off``)."""
        state = self._state_at(decision) if gate is Gate.STRICT else self._log.final_state()
        return await self._learner.recall(state, question, decision, gate, self._tools([]))

    def _state_at(self, decision: Stamp) -> State:
        """The state that ``decision`` may know; decisions between the same two commits share one."""
        length = self._log.length_at(decision)
        if length not in self._snapshots:
            self._snapshots[length] = self._log.state_at(length)
            if len(self._snapshots) > STATES_KEPT:
                self._snapshots.popitem(last=False)
        return self._snapshots[length]

    async def commit(self, records: Sequence[tuple[CommitKey, Any]]) -> Applied:
        """Apply each proposal (None: nothing was learned) and put it on file in the given order, until one fails.

        Records of different scopes cannot touch the same objects: they are applied side by side. Others are applied one after
        the other, each to what the one before it left.
        """
        applied = Applied()
        async with self._order:
            fresh = [(key, proposal) for key, proposal in records if key.record_id not in self._log]
            scopes = [key.scope for key, _ in fresh]
            apart = None not in scopes and len(set(scopes)) == len(scopes)
            for some in [fresh] if apart else [[one] for one in fresh]:
                work = [self._attempt(key, self._changes_of(key, proposal), applied) for key, proposal in some]
                for (key, _), changes in zip(some, await asyncio.gather(*work), strict=True):
                    self._take(key, changes, applied)
                if applied.failure is not None:
                    break
            applied.committed = sum(key.record_id in self._log for key, _ in records)
        return applied

    async def review(self, key: CommitKey, known: Sequence[ResolvedCase]) -> Applied:
        """The learner's review at ``key.valid_from``, from the cases ``known`` by then."""
        applied = Applied()

        async def changes(tools: Tools) -> list[Change]:
            return await self._learner.review(self._log.final_state(), key.valid_from, known, tools)

        async with self._order:
            if key.record_id not in self._log:
                self._take(key, await self._attempt(key, changes, applied), applied)
        return applied

    def _changes_of(self, key: CommitKey, proposal: Any) -> Callable[[Tools], Awaitable[list[Change]]]:
        async def changes(tools: Tools) -> list[Change]:
            if proposal is None:
                return []
            return await self._learner.apply(self._log.final_state(key.scope), proposal, key.valid_from, tools)

        return changes

    async def _attempt(
        self, key: CommitKey, changes: Callable[[Tools], Awaitable[list[Change]]], applied: Applied
    ) -> list[Change] | HarnessError:
        """The changes of one record, or why there are none; its calls are kept either way."""
        calls = applied.calls.setdefault(key.record_id, [])
        try:
            return await changes(self._tools(calls))
        except HarnessError as error:
            return error

    def _take(self, key: CommitKey, changes: list[Change] | HarnessError, applied: Applied) -> None:
        """Put ``changes`` on file, unless they or those of an earlier record failed."""
        if applied.failure is not None:
            return
        try:
            if isinstance(changes, HarnessError):
                raise changes
            self._write(key, changes)
        except HarnessError as error:
            applied.failure = error

    async def committed(self) -> set[str]:
        """Ids of the records on file."""
        return {op.key.record_id for op in self._log.ops}

    async def sha256(self) -> str:
        return self._log.sha256()

    async def incidents(self) -> dict[str, int]:
        """See ``MemoryLog.incidents``."""
        return self._log.incidents()

    async def export(self, path: str, filled_until: datetime | None) -> None:
        """Write memory.parquet; ``filled_until``: see ``MemoryLog``, None: as it was read from the trained memory."""
        self._log.filled_until = filled_until or self._log.filled_until
        self._log.made_by = self._log.made_by or {"run": self._cell, "learner": dict(self._learner.fingerprint())}
        write_memory(Path(path), self._log)

    def _write(self, key: CommitKey, changes: Sequence[Change]) -> None:
        try:
            ops = self._log.prepare(key, changes)
        except ValueError as error:
            raise HarnessError(f"the memory cannot learn this now: {error}") from None
        if self._journal is None:
            raise ValueError("this memory is frozen: it has no journal")
        self._journal.parent.mkdir(parents=True, exist_ok=True)
        with self._journal.open("a", encoding="utf-8", errors="surrogatepass") as file:
            file.write(dumps(ops) + "\n")
        for op in ops:
            self._log.replay(op)

    def _tools(self, calls: list[Call]) -> Tools:
        async def embed(texts: Sequence[str]) -> Vectors:
            vectors, made = await self._embedding(texts)
            calls.extend(made)
            return vectors

        return Tools(CallingLLM(self._chat, (0, 0), calls, "memory", self._cell, sequential=True), embed)


@dataclass(frozen=True, slots=True)
class MemoryClient:
    """A picklable handle of a memory."""

    actor: Any

    async def recall(self, question: Any, decision: Stamp, gate: Gate) -> Any:
        return await unwrapped(self.actor.recall.remote(question, decision, gate))

    async def commit(self, records: Sequence[tuple[CommitKey, Any]]) -> Applied:
        applied: Applied = await unwrapped(self.actor.commit.remote(records))
        return applied

    async def review(self, key: CommitKey, known: Sequence[ResolvedCase]) -> Applied:
        applied: Applied = await unwrapped(self.actor.review.remote(key, known))
        return applied

    async def committed(self) -> set[str]:
        records: set[str] = await unwrapped(self.actor.committed.remote())
        return records

    async def sha256(self) -> str:
        value: str = await unwrapped(self.actor.sha256.remote())
        return value

    async def incidents(self) -> dict[str, int]:
        counts: dict[str, int] = await unwrapped(self.actor.incidents.remote())
        return counts

    async def export(self, path: Path, filled_until: datetime | None) -> None:
        await unwrapped(self.actor.export.remote(str(path), filled_until))

    def end(self) -> None:
        """End its process now. A handle that waits for the garbage collector would keep it for the rest of the session."""
        ray.kill(self.actor)


def start_memory(
    learner: Learner, trained: Path | None, journal: Path | None, chat: Chat | None, embed: Any, cell: str
) -> MemoryClient:
    """A new memory actor. It restarts by itself, as often as it must, and ends with the last handle to it.

    Its calls are those of ``cell``; only a memory that learns makes any, and that belongs to one cell.
    """
    actor = ray.remote(MemoryActor).options(num_cpus=0, max_concurrency=1000, max_restarts=-1, max_task_retries=-1)
    paths = [str(p) if p else None for p in (trained, journal)]
    return MemoryClient(actor.remote(learner, *paths, chat, embed, cell))


def review_key(at: datetime) -> CommitKey:
    """Where a review stands among the commits: before whatever becomes known at that instant."""
    return CommitKey(at, datetime.min.replace(tzinfo=UTC), f"review:{at.isoformat()}")
