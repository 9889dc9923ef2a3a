"""Vectors by content: encoded once, stored on disk, and only then used; one service a session.

Texts are encoded one at a time where a batch could change the last bits, scaled to length 1 and stored as float32: whoever
asks for a text gets the stored bytes, whatever was asked together with it.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from harness.calls import Embedding
from harness.config import Component, build
from harness.embed import Embedder, unit
from harness.errors import HarnessError
from harness.gateway.budget import Purse
from harness.gateway.result import Embeddings
from harness.gateway.settings import Endpoint
from harness.method import Vectors
from harness.records import Call
from harness.remote import unwrapped
from harness.replies import store_of

K = TypeVar("K")
AT_HAND_BYTES = 256 << 20
"""Of vectors that a process keeps, with their texts: more are fetched again from the service, which has them on disk."""
_OBJECT_BYTES = 300
"""Of an array and its place in a dictionary, beside its numbers."""
BATCH = 256
"""Texts encoded between two writes to disk: what a kill can lose."""


class EmbeddingGateway(Protocol):
    """The embeddings side of an endpoint."""

    async def embed(self, texts: Sequence[str]) -> Embeddings: ...


class VectorStore:
    """Vectors on disk (SQLite in WAL mode, one writer), keyed by embedder and text."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._turn = Lock()
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The stored vectors among ``keys``."""
        found: dict[bytes, Vectors] = {}
        for start in range(0, len(keys), 500):
            some = keys[start : start + 500]
            query = f"SELECT key, value FROM vectors WHERE key IN ({','.join('?' * len(some))})"
            with self._turn:
                rows = self._db.execute(query, some).fetchall()
            found |= {key: np.frombuffer(value, dtype="<f4") for key, value in rows}
        return found

    def put(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Store all or none."""
        rows = [(key, row.astype("<f4").tobytes()) for key, row in vectors.items()]
        with self._turn:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
            self._db.execute("COMMIT")


class OnTheWay(Generic[K]):
    """Fetches, each for several keys: whoever needs a key that is on its way waits for it instead of fetching it again."""

    def __init__(self, fetch: Callable[[list[K]], Coroutine[Any, Any, list[Call]]]) -> None:
        self._fetch = fetch
        self._fetches: dict[K, asyncio.Task[list[Call]]] = {}

    async def arrived(self, keys: Iterable[K]) -> list[Call]:
        """Wait until every key is fetched; the calls of what was started for this request. It goes on if who waits is cancelled."""
        wanted = list(dict.fromkeys(keys))
        awaited = {self._fetches[key] for key in wanted if key in self._fetches}
        calls: list[Call] = []
        if fresh := [key for key in wanted if key not in self._fetches]:
            fetch = asyncio.create_task(self._fetch(fresh))
            self._fetches |= dict.fromkeys(fresh, fetch)
            fetch.add_done_callback(lambda _: [self._fetches.pop(key) for key in fresh])
            calls = await asyncio.shield(fetch)
        for other in awaited:
            await asyncio.shield(other)
        return calls


class VectorService:
    """Vectors by content: from disk, or encoded once and stored; the same text asked twice at once is encoded once."""

    def __init__(self, embedder: Embedder, store: VectorStore, gateway: EmbeddingGateway | None) -> None:
        if (embedder.endpoint is None) != (gateway is None):
            raise ValueError("a gateway goes with an embedder that has an endpoint, and only with one")
        self._embedder = embedder
        self._store = store
        self._gateway = gateway
        self._prefix = repr(sorted(embedder.identity().items())).encode()
        self._encoding = asyncio.Lock()
        self._on_the_way = OnTheWay(self._store_vectors)

    def key(self, text: str) -> bytes:
        """Content key of ``text`` under this embedder."""
        return hashlib.sha256(self._prefix + b"\0" + text.encode("utf-8", "surrogatepass")).digest()

    async def vectors(self, texts: Sequence[str]) -> tuple[Vectors, list[Call]]:
        """Unit vectors, float32, shape (len(texts), dimensions), and the embedding calls that were made for them.

        Raises:
            HarnessError: the endpoint gave no usable vectors.
        """
        keys = [self.key(text) for text in texts]
        found = await asyncio.to_thread(self._store.get, keys)
        calls: list[Call] = []
        if missing := {key: text for key, text in zip(keys, texts, strict=True) if key not in found}:
            calls = await self._on_the_way.arrived(missing.values())
            found |= await asyncio.to_thread(self._store.get, list(missing))
        return np.stack([found[key] for key in keys]), calls

    async def _store_vectors(self, texts: list[str]) -> list[Call]:
        """Encode and store ``texts``, those left out that came in since they were last looked for."""
        by_key = {self.key(text): text for text in texts}
        stored = await asyncio.to_thread(self._store.get, list(by_key))
        missing = [key for key in by_key if key not in stored]
        calls: list[Call] = []
        for start in range(0, len(missing), BATCH):
            some = missing[start : start + BATCH]
            encoded, made = await self._encode([by_key[key] for key in some])
            calls += made
            if encoded.shape[0] != len(some) or not np.isfinite(encoded).all():
                raise HarnessError(f"embedder {self._embedder.name}: expected {len(some)} finite vectors")
            await asyncio.to_thread(self._store.put, dict(zip(some, unit(encoded), strict=True)))
        return calls

    async def _encode(self, texts: list[str]) -> tuple[Vectors, list[Call]]:
        if self._gateway is not None:
            embedded = await self._gateway.embed(texts)
            return embedded.vectors, list(embedded.calls)
        async with self._encoding:  # one model on this machine, one text after the other
            return await asyncio.to_thread(self._embedder.encode, texts), []


class VectorsAtHand:
    """Vectors a process has lately used, in front of the service: no more than ``most_bytes`` of them stay."""

    def __init__(
        self,
        fetch: Embedding,
        most_bytes: int = AT_HAND_BYTES,
    ) -> None:
        self._fetch = fetch
        self._most_bytes = most_bytes
        self._rows: dict[str, Vectors] = {}
        """The one that was used last stands last."""
        self._bytes = 0
        self._on_the_way = OnTheWay(self._keep)

    async def __call__(self, texts: Sequence[str]) -> tuple[Vectors, list[Call]]:
        """As ``VectorService.vectors``; calls are those made on behalf of this request."""
        calls: list[Call] = []
        mine: dict[str, Vectors] = {}
        while wanted := [text for text in dict.fromkeys(texts) if text not in mine]:
            mine |= {text: self._rows[text] for text in wanted if text in self._rows}
            if absent := [text for text in wanted if text not in mine]:
                calls += await self._on_the_way.arrived(absent)
        self._use(mine)
        return np.stack([mine[text] for text in texts]), calls

    def _use(self, rows: Mapping[str, Vectors]) -> None:
        for text, row in rows.items():
            self._put(text, row)
        while self._bytes > self._most_bytes:
            self._drop(next(iter(self._rows)))

    def _put(self, text: str, row: Vectors) -> None:
        self._drop(text)
        self._rows[text] = row
        self._bytes += bytes_held(text, row)

    def _drop(self, text: str) -> None:
        row = self._rows.pop(text, None)
        if row is not None:
            self._bytes -= bytes_held(text, row)

    async def _keep(self, texts: list[str]) -> list[Call]:
        vectors, calls = await self._fetch(texts)
        for text, row in zip(texts, vectors, strict=True):
            self._put(text, row.copy())  # a view would hold them all
        return calls


def bytes_held(text: str, row: Vectors) -> int:
    """What a vector at hand takes: a long text takes more than the numbers of a short vector."""
    return sys.getsizeof(text) + row.nbytes + _OBJECT_BYTES


class EmbedderActor:
    """An embedder's vector service in a process of its own."""

    def __init__(self, component: Component, path: str, purse: Purse | None = None) -> None:
        self._embedder: Embedder = build(component, "embedder")
        self._path = Path(path)
        self._purse = purse
        self._service: VectorService | None = None

    async def vectors(self, texts: Sequence[str]) -> tuple[Vectors, list[Call]]:
        if self._service is None:  # built in the event loop it lives in
            endpoint = self._embedder.endpoint
            gateway = _gateway(endpoint, self._path.parent, self._purse) if endpoint else None
            self._service = VectorService(self._embedder, VectorStore(self._path), gateway)
        return await self._service.vectors(texts)


def _gateway(endpoint: Endpoint, cache: Path, purse: Purse | None) -> EmbeddingGateway:
    from harness.gateway.cache import ReplyCache
    from harness.gateway.core import Gateway  # loads an HTTP client: only where there is an endpoint to call

    return Gateway(endpoint, ReplyCache(store_of(cache, endpoint.name)), budget=purse)


@dataclass(frozen=True, slots=True)
class EmbedClient:
    """A picklable handle of an embedder's service."""

    actor: Any

    async def __call__(self, texts: Sequence[str]) -> tuple[Vectors, list[Call]]:
        result: tuple[Vectors, list[Call]] = await unwrapped(self.actor.vectors.remote(list(texts)))
        return result
