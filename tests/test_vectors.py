"""Vectors on their way: each text is fetched once, nobody waits for another's texts, a failure is not remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.embed import HashingEmbedder
from harness.gateway.result import EmbeddingFailed
from harness.method import Vectors
from harness.records import Call, Status
from harness.vectors import VectorsAtHand, VectorService, VectorStore, bytes_held


class Source:
    """Vectors that arrive when the test says so."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.go = asyncio.Event()
        self.fails = False

    async def __call__(self, texts: Sequence[str]) -> tuple[Vectors, list[Call]]:
        self.asked.append(list(texts))
        await self.go.wait()
        if self.fails:
            raise EmbeddingFailed("down", Status.PROVIDER, fatal=False)
        return np.array([[float(len(text))] for text in texts], np.float32), []


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=5), min_size=1, max_size=6))
def test_a_text_asked_for_many_times_at_once_is_fetched_once(requests: list[list[str]]) -> None:
    async def ask() -> None:
        source = Source()
        hand = VectorsAtHand(source)
        tasks = [asyncio.create_task(hand([t * 3 for t in texts])) for texts in requests]
        await asyncio.sleep(0)
        source.go.set()
        for (rows, _), texts in zip(await asyncio.gather(*tasks), requests, strict=True):
            assert rows.tolist() == [[3.0]] * len(texts)
        sent = [text for texts in source.asked for text in texts]
        assert len(sent) == len(set(sent))

    asyncio.run(ask())


@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8), min_size=1, max_size=12), st.integers(0, 5)
)
def test_no_more_are_kept_than_there_is_room_for_and_all_are_right(requests: list[list[str]], room: int) -> None:
    """Those used last stay; a request larger than the room is answered all the same."""

    async def ask() -> None:
        source = Source()
        source.go.set()
        most = room * bytes_held("aaaa", np.zeros(1, np.float32))
        hand = VectorsAtHand(source, most_bytes=most)
        for texts in requests:
            words = [text * (1 + ord(text) - ord("a")) for text in texts]
            rows, _ = await hand(words)
            assert rows.tolist() == [[float(len(word))] for word in words]
            assert sum(bytes_held(text, row) for text, row in hand._rows.items()) <= most
        asked, row = len(source.asked), np.zeros(1, np.float32)
        await hand(words)
        needed = sum(bytes_held(word, row) for word in set(words))
        assert len(source.asked) == asked or needed > most, "what was used last is at hand"

    asyncio.run(ask())


def test_texts_count_among_what_is_kept() -> None:
    async def ask() -> None:
        source = Source()
        source.go.set()
        hand = VectorsAtHand(source, most_bytes=10_000)
        await hand(["short"])
        await hand(["long" * 5_000])
        assert hand._rows == {}, "a text of 20,000 characters does not fit, whatever the size of its vector"

    asyncio.run(ask())


def test_nobody_waits_for_texts_of_others() -> None:
    async def ask() -> None:
        slow, source = Source(), Source()
        source.go.set()
        hand = VectorsAtHand(lambda texts: slow(texts) if "slow" in texts else source(texts))
        waiting = asyncio.create_task(hand(["slow"]))
        await asyncio.sleep(0)
        await asyncio.wait_for(hand(["quick"]), 5)
        assert not waiting.done()
        slow.go.set()
        await waiting

    asyncio.run(ask())


def test_a_failure_reaches_all_who_wait_and_the_next_request_tries_again() -> None:
    async def ask() -> None:
        source = Source()
        source.fails = True
        hand = VectorsAtHand(source)
        tasks = [asyncio.create_task(hand(["a"])) for _ in range(3)]
        await asyncio.sleep(0)
        source.go.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(o) for o in outcomes] == [EmbeddingFailed] * 3
        source.fails = False
        rows, _ = await hand(["a"])
        assert rows.shape == (1, 1)

    asyncio.run(ask())


def test_who_stops_waiting_takes_nothing_from_the_others() -> None:
    async def ask() -> None:
        source = Source()
        hand = VectorsAtHand(source)
        first, second = asyncio.create_task(hand(["a"])), asyncio.create_task(hand(["a"]))
        await asyncio.sleep(0)
        first.cancel()
        source.go.set()
        rows, _ = await second
        assert rows.shape == (1, 1)
        assert source.asked == [["a"]]

    asyncio.run(ask())


def test_the_service_encodes_a_text_once_however_many_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    whole = HashingEmbedder.encode

    def counting(self: HashingEmbedder, texts: Sequence[str]) -> Vectors:
        encoded.extend(texts)
        return whole(self, texts)

    monkeypatch.setattr(HashingEmbedder, "encode", counting)
    service = VectorService(HashingEmbedder(name="hashing"), VectorStore(tmp_path / "v.sqlite"), None)

    async def ask() -> list[Vectors]:
        pairs = await asyncio.gather(*(service.vectors([f"text {i % 7}", f"text {i % 5}"]) for i in range(40)))
        return [rows for rows, _ in pairs]

    rows = asyncio.run(ask())
    assert sorted(encoded) == [f"text {i}" for i in range(7)]
    alone = HashingEmbedder(name="hashing").encode(["text 3"])[0]
    assert np.allclose(rows[3][0], alone / np.linalg.norm(alone))
