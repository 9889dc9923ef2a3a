"""Texts as they are stored: nothing lost, little written, nothing read with the wrong dictionary."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import packing
from harness.packing import Packing, unpacker


def a_store(path: Path | str = ":memory:") -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute(packing.SCHEMA)
    return connection


@pytest.fixture
def store() -> Iterator[sqlite3.Connection]:
    connection = a_store()
    yield connection
    connection.close()


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(st.lists(st.tuples(st.sampled_from(["forecast", "extract", ""]), TEXTS, st.none() | TEXTS), max_size=8))
def test_every_text_comes_back(rows: list[tuple[str, str, str | None]]) -> None:
    store = a_store()
    packed = [Packing(store).pack(*rows[0])] if rows else []  # as a process that wrote one and was killed
    packing_ = Packing(store)
    packed += [packing_.pack(*row) for row in rows[1:]]
    unpack = unpacker(store)
    assert [(unpack(a), None if b is None else unpack(b)) for a, b in packed] == [row[1:] for row in rows]
    store.close()


def test_what_is_the_same_in_every_request_is_hardly_written_again(store: sqlite3.Connection) -> None:
    instruction = " ".join(f"word{i * i % 977}" for i in range(400))
    box = Packing(store)
    first, second = (box.pack("forecast", f"{instruction} case {n}", None)[0] for n in (1, 2))
    assert len(second) < len(zlib.compress(instruction.encode())) / 10
    assert len(first) < len(zlib.compress(instruction.encode())) / 10, "the dictionary is there from the first on"


def test_rows_of_a_store_without_dictionaries_are_read(store: sqlite3.Connection) -> None:
    assert unpacker(store)(zlib.compress(b"as before", 1)) == "as before"


def test_two_writers_agree_on_a_dictionary(tmp_path: Path) -> None:
    first, second = a_store(tmp_path / "s"), a_store(tmp_path / "s")
    with first:
        one, _ = Packing(first).pack("forecast", "a request of the first writer", None)
    with second:
        other, _ = Packing(second).pack("forecast", "a request of the second writer", None)
    assert first.execute("SELECT count(*) FROM dictionaries").fetchone() == (1,)
    assert unpacker(first)(other) == "a request of the second writer"
    assert unpacker(second)(one) == "a request of the first writer"
    first.close()
    second.close()


def test_a_dictionary_that_was_rolled_back_is_left_again(store: sqlite3.Connection) -> None:
    box = Packing(store)
    box.pack("forecast", "rolled back", None)
    store.rollback()
    box.forget()
    with store:
        blob, _ = box.pack("forecast", "kept", None)
    assert unpacker(store)(blob) == "kept"


def test_a_missing_dictionary_and_a_torn_blob_are_errors(store: sqlite3.Connection) -> None:
    with store:
        blob, _ = Packing(store).pack("forecast", "some text that is long enough to be torn" * 3, None)
    with pytest.raises(zlib.error):
        unpacker(store)(blob[:-3])
    with pytest.raises(zlib.error):
        unpacker(store)(blob[:-1] + bytes([blob[-1] ^ 1]))
    with store:
        store.execute("UPDATE dictionaries SET dictionary = ?", (b"another",))
    with pytest.raises(zlib.error, match="dictionary"):
        unpacker(store)(blob)
