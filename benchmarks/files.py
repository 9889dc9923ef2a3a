"""Files of a benchmark: found below its root, hashed, decoded, and turned into rows."""

from __future__ import annotations

import hashlib
import json
import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from benchmarks.params import Parameters, Paths
from benchmarks.problems import quote
from benchmarks.rows import Row
from harness.errors import ConfigError, DataError
from harness.records import DataFile

_HERE = Path(__file__).parent
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


@cache
def pinned() -> Mapping[str, str]:
    """SHA-256 of the released files by their path below the root."""
    table: dict[str, str] = json.loads((_HERE / "pinned.json").read_text(encoding="utf-8"))
    return table


class Folder:
    """The directory a benchmark's files are below. Remembers each file read, for the manifest.

    Attributes:
        files: what was read, by path below the root.
        warnings: sentences for the user, with counts.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[str, DataFile] = {}
        self.warnings: list[str] = []

    def find(self, names: Paths, key: str) -> str | None:
        """The first of ``names`` that exists; None if the list allows to go without (ends in null).

        Raises:
            DataError: none exists and one is needed.
        """
        for name in names:
            if name is None or (self.root / name).exists():
                return name
        wanted = " or ".join(str(self.root / name) for name in names if name)
        raise DataError(f"{key}: no such file: {wanted}. Put it there, or set benchmark.root or {key}.")

    def read(self, name: str) -> bytes:
        """The bytes of ``name``.

        Raises:
            DataError: missing, not readable, or empty.
        """
        try:
            data = (self.root / name).read_bytes()
        except OSError as error:
            raise DataError(f"{self.root / name}: cannot be read: {error.strerror}. Set benchmark.root.") from None
        if not data.removeprefix(BOM_UTF8).strip():
            raise DataError(f"{self.root / name}: the file is empty; fetch or write it again.")
        return data

    def record(self, name: str, data: bytes, rows: int) -> None:
        """Enter a file that was read and compare it with the released one, if it is a released one."""
        if name in self.files:
            return
        sha = hashlib.sha256(data).hexdigest()
        known = pinned().get(name)
        self.files[name] = DataFile(name, sha, rows, None if known is None else sha == known)
        if known not in (None, sha):
            self.warnings.append(
                f"{name} differs from the pinned release (SHA-256 {sha[:12]}…, released {known[:12]}…)."
            )

    def text(self, name: str, data: bytes) -> str:
        """``data`` as text without a byte order mark.

        Raises:
            DataError: not UTF-8; the message gives the offset of the first bad byte.
        """
        try:
            return data.decode("utf-8").removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{name}: not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}; save the file as UTF-8."
            ) from None

    def json(self, name: str, text: str, line: int = 1) -> object:
        """The JSON value in ``text``, which begins on ``line`` of ``name``. Lone surrogates become U+FFFD, with a warning.

        Raises:
            DataError: not JSON, or cut off.
        """
        try:
            value = json.loads(text, object_pairs_hook=_object)
        except json.JSONDecodeError as error:
            place = f"line {line + error.lineno - 1}, column {error.colno}"
            raise DataError(f"{name}: invalid JSON at {place}: {error.msg}. Is the file complete?") from None
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name}: invalid JSON from line {line}: {error}.") from None
        if _SURROGATE_ESCAPE.search(text):
            value, count = _replace_surrogates(value)
            if count:
                self.warnings.append(f"{name}: {count} lone surrogates are replaced by U+FFFD.")
        return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; a key that stands twice is refused, for one of its values would be lost without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(k for k in keys if keys.count(k) > 1)!r} stands twice in one object")
    return found


def open_folder(parameters: Parameters) -> Folder:
    """The directory of a benchmark: ``root``, else ``$HARNESS_DATA``; a bundled one unless the root has its files.

    Raises:
        ConfigError: no root given, or no such directory.
    """
    given = parameters.root or (None if parameters.bundled else os.environ.get("HARNESS_DATA"))
    root = Path(given).expanduser() if given else None
    if root is not None and not root.is_dir():
        raise ConfigError(f"benchmark.root = {str(given)!r}: no such directory; set it to where the data is")
    if parameters.bundled and not (root and any((root / name).exists() for name in _names(parameters))):
        return Folder(_HERE / parameters.bundled)
    if root is None:
        raise ConfigError(
            f"benchmark.root: not set for benchmark {parameters.name}; say benchmark.root=DIR on the command line or "
            "export HARNESS_DATA=DIR, the directory with eval/, event/, expr/ and prices/"
        )
    return Folder(root)


def _names(parameters: Parameters) -> list[str]:
    parts = [parameters] if parameters.experience is None else [parameters, parameters.experience]
    names = [parameters.eval, *([parameters.experience.catalysts] if parameters.experience else [])]
    return names + [name for part in parts for name in (*part.event, *part.stocks, *part.prices) if name]


def rows_in(name: str, value: object, key: str, id_field: str) -> list[Row]:
    """The rows of the array ``value[key]``, or of ``value`` itself if it is an array.

    Raises:
        DataError: neither, or without a single row.
    """
    array = value if isinstance(value, list) else object_in(name, value, key).get(key)
    if not isinstance(array, list):
        found = "is missing" if array is None else f"is {quote(array)}"
        raise DataError(f'{name}: "{key}" {found}; expected {{"{key}": [ {{…}}, … ]}}.')
    if not array:
        raise DataError(f'{name}: "{key}" has no rows.')
    return number_rows(name, array, id_field)


def number_rows(name: str, values: Iterable[object], id_field: str) -> list[Row]:
    """``values`` as rows of ``name`` numbered from 1."""
    return [Row(name, number, value, id_field) for number, value in enumerate(values, start=1)]


def object_in(name: str, value: object, key: str) -> Mapping[str, object]:
    """``value``, the top level of a released file.

    Raises:
        DataError: it is not an object.
    """
    if not isinstance(value, dict):
        raise DataError(f'{name}: the top level is {quote(value)}; expected an object with "{key}".')
    return value


def _replace_surrogates(value: object) -> tuple[object, int]:
    """``value`` with every lone surrogate in its texts replaced, and how many there were."""
    if isinstance(value, str):
        return _LONE_SURROGATE.subn("\ufffd", value)
    if isinstance(value, list):
        items = [_replace_surrogates(item) for item in value]
        return [item for item, _ in items], sum(count for _, count in items)
    if isinstance(value, dict):
        pairs = [(_replace_surrogates(key), _replace_surrogates(item)) for key, item in value.items()]
        return {key: item for (key, _), (item, _) in pairs}, sum(a + b for (_, a), (_, b) in pairs)
    return value, 0
