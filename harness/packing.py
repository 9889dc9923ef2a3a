"""Texts as the store of replies holds them: zlib, with a dictionary a purpose.

Requests of one purpose share their instruction and their schema, replies their frame: half of what would be written is the same
each time. The first request of a purpose, with its reply, is kept in the store as the dictionary of those after it. A
blob's header names its dictionary (RFC 1950: FDICT and the Adler-32 checksum), so blobs without one are read in the same way.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable

SCHEMA = "CREATE TABLE IF NOT EXISTS dictionaries (purpose TEXT PRIMARY KEY, dictionary BLOB NOT NULL)"
WINDOW = 32_000
"""Bytes of a dictionary: a little less than zlib looks back."""
_LEVEL = 6
_FDICT = 0x20

Unpack = Callable[[bytes], str]


class Packing:
    """The dictionaries of one store, over the connection that reads and writes them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._by_purpose: dict[str, bytes] = {}

    def pack(self, purpose: str, request: str, reply: str | None) -> tuple[bytes, bytes | None]:
        """Both texts as they are stored. Within a transaction: the first of a purpose leaves its dictionary there."""
        first = request.encode()
        second = None if reply is None else reply.encode()
        dictionary = self._of(purpose, second, first)
        return _packed(first, dictionary), None if second is None else _packed(second, dictionary)

    def _of(self, purpose: str, reply: bytes | None, request: bytes) -> bytes:
        """The dictionary of ``purpose``: another process may have been first."""
        if purpose not in self._by_purpose:
            example = ((reply or b"")[: WINDOW // 2] + request)[:WINDOW]
            self._connection.execute("INSERT OR IGNORE INTO dictionaries VALUES (?, ?)", (purpose, example))
            query = "SELECT dictionary FROM dictionaries WHERE purpose = ?"
            self._by_purpose[purpose] = bytes(self._connection.execute(query, (purpose,)).fetchone()[0])
        return self._by_purpose[purpose]

    def forget(self) -> None:
        """Look again in the store: a transaction that left a dictionary there was rolled back."""
        self._by_purpose.clear()


def _packed(text: bytes, dictionary: bytes) -> bytes:
    packer = zlib.compressobj(_LEVEL, zdict=dictionary)
    return packer.compress(text) + packer.flush()


def unpacker(connection: sqlite3.Connection) -> Unpack:
    """What turns a ``request`` or ``reply`` of the store behind ``connection`` back into its text.

    It raises ``zlib.error`` or ``UnicodeDecodeError`` for a damaged blob.
    """
    dictionaries: dict[int, bytes] = {}

    def unpack(blob: bytes) -> str:
        if len(blob) < 6 or not blob[1] & _FDICT:
            return zlib.decompress(blob).decode()
        name = int.from_bytes(blob[2:6], "big")
        if name not in dictionaries:
            for (kept,) in connection.execute("SELECT dictionary FROM dictionaries"):
                dictionaries[zlib.adler32(kept)] = bytes(kept)
        if name not in dictionaries:
            raise zlib.error(f"its dictionary {name:08x} is not in the store")
        reader = zlib.decompressobj(zdict=dictionaries[name])
        text = reader.decompress(blob) + reader.flush()
        if not reader.eof:
            raise zlib.error("it ends too early")
        return text.decode()

    return unpack
