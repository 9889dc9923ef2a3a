"""Runs and reports that lie in a bucket: what a report reads is fetched, what it writes is sent, and messages keep the user's addresses.

Addresses are those of ``pyarrow.fs.FileSystem.from_uri``: s3://, gs://, abfs://, hdfs:// and file://. A file:// address is used where it is.
"""

from __future__ import annotations

import mimetypes
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

import pyarrow as pa
from pyarrow import fs

from harness.errors import DataError

OF_RUN = ("manifest.json", "ledger.json", "leak_hunt.json")
OF_CELL = ("cell.json", "forecasts.parquet", "evidence.parquet", "calls.parquet", "memory.parquet")
"""What a report reads of a run and of each of its cells. The cache of replies is large and stays where it is."""
PAGE = "report.html"
_AT_ONCE = 16
_GCS_RETRIES = "retry_limit_seconds"
_GCS_SECONDS = 60
"""Google's client would try for a quarter of an hour, also without credentials."""
_OF_ADDRESSES = "%:/?#[]@!$&'()*+,;="
_FAILURES = (pa.ArrowException, OSError, ImportError)


@dataclass
class Workspace:
    """Local paths for what a command names by path or by address; a path stands for itself.

    Attributes:
        folder: where copies go.
        names: the address of each copy, as messages show it.
        left: addresses of runs whose replies were left where they are.
    """

    folder: Path
    names: dict[Path, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    _runs: dict[str, Path] = field(default_factory=dict)
    _target: tuple[Any, str, Path] | None = None

    def run(self, text: str) -> Path:
        """A run directory; of one in a bucket a copy of what a report reads.

        Raises:
            DataError: no such directory or bucket, no access, or an address of an unknown kind.
        """
        if text not in self._runs:  # the same address twice is one run
            self._runs[text] = self._copied(text, self._fetch_run)
        return self._runs[text]

    def file(self, text: str) -> Path:
        """A file, or a copy of one in a bucket.

        Raises:
            DataError: as ``run``.
        """

        def fetch(filesystem: Any, path: str, copy: Path, name: str) -> None:
            with _told(name):
                fs.copy_files(path, str(copy), source_filesystem=filesystem)

        return self._copied(text, fetch)

    def out(self, text: str) -> Path:
        """The directory to write to; ``send`` brings what is written there to an address.

        Raises:
            DataError: no such bucket, no access, or an address of an unknown kind.
        """

        def look(filesystem: Any, path: str, copy: Path, name: str) -> None:
            with _told(name, "the report cannot be written here"):
                _files_below(filesystem, path)
            self._target = (filesystem, path, copy)

        return self._copied(text, look)

    def send(self, obsolete: Iterable[str]) -> None:
        """Write the report to its address, the page last; ``obsolete`` files and details of an earlier report there are removed.

        Raises:
            DataError: it cannot be written.
        """
        if self._target is None:
            return
        filesystem, path, copy = self._target
        new = sorted(file.relative_to(copy).as_posix() for file in copy.rglob("*") if file.is_file())
        with _told(self.names[copy], "the report cannot be written here"):
            _remove(filesystem, path, {*obsolete} - {*new}, {*new})
            for folder in sorted({str(PurePosixPath(path, name).parent) for name in new}):
                filesystem.create_dir(folder, recursive=True)

            def put(name: str) -> None:
                kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
                with filesystem.open_output_stream(f"{path}/{name}", metadata={"Content-Type": kind}) as stream:
                    stream.write((copy / name).read_bytes())

            _each(put, [name for name in new if name != PAGE])
            put(PAGE)

    def said(self, text: str) -> str:
        """``text`` with the addresses of the copies that it names."""
        for path, name in self.names.items():
            text = text.replace(str(path), name)
        return text

    def _copied(self, text: str, fetch: Callable[[Any, str, Path, str], None]) -> Path:
        if not is_address(text):
            return Path(text)
        filesystem, path = _opened(text)
        if isinstance(filesystem, fs.LocalFileSystem):
            return Path(path)
        copy = self.folder / f"{len(self.names):06}"  # no name is the beginning of another
        self.names[copy] = name_of(text)
        fetch(filesystem, path.rstrip("/"), copy, name_of(text))
        return copy

    def _fetch_run(self, filesystem: Any, path: str, copy: Path, name: str) -> None:
        copy.mkdir()
        with _told(name):
            here = {info.base_name: info.type for info in filesystem.get_file_info(fs.FileSelector(path))}
            wanted = [file for file in OF_RUN if here.get(file) == fs.FileType.File]
            if here.get("cells") == fs.FileType.Directory:
                (copy / "cells").mkdir()
                for file in _files_below(filesystem, f"{path}/cells"):
                    cell, *rest = file.split("/")
                    if rest:
                        (copy / "cells" / cell).mkdir(exist_ok=True)
                    if len(rest) == 1 and rest[0] in OF_CELL:
                        wanted.append(f"cells/{file}")
        if here.get("cache") == fs.FileType.Directory:
            self.left.append(name)

        def get(file: str) -> None:
            with _told(f"{name}/{file}"):
                fs.copy_files(f"{path}/{file}", str(copy / file), source_filesystem=filesystem, use_threads=False)

        _each(get, wanted)


@contextmanager
def workspace() -> Iterator[Workspace]:
    """A workspace whose copies are removed in the end."""
    with tempfile.TemporaryDirectory(prefix="report-") as folder:
        yield Workspace(Path(folder).resolve())


def is_address(text: str) -> bool:
    """Whether ``text`` is an address rather than a path."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://|file:", text) is not None


def name_of(address: str) -> str:
    """``address`` as messages show it: without what tells how to connect, and without a secret."""
    parts = urlsplit(address)
    who, at, where = parts.netloc.rpartition("@")
    place = where if ":" in who else f"{who}{at}{where}"
    return f"{parts.scheme}://{place}{parts.path}".rstrip("/")


def joined(text: str, name: str) -> str:
    """``name`` below the directory ``text``, a path or an address."""
    if not is_address(text):
        return str(Path(text) / name)
    place, mark, how = text.partition("?")
    return f"{place.rstrip('/')}/{name}{mark}{how}"


def bounded(address: str) -> str:
    """``address`` with an end to the attempts of Google's client, where it names none."""
    if not address.startswith(("gs://", "gcs://")) or _GCS_RETRIES in address:
        return address
    return f"{address}{'&' if '?' in address else '?'}{_GCS_RETRIES}={_GCS_SECONDS}"


def encoded(address: str) -> str:
    """``address`` with the spaces and the letters of other scripts encoded that pyarrow refuses; what is encoded already stays."""
    return quote(address, safe=_OF_ADDRESSES)


def _opened(address: str) -> tuple[Any, str]:
    with _told(name_of(address), "cannot be opened", hide=address):
        found: tuple[Any, str] = fs.FileSystem.from_uri(encoded(bounded(address)))
        return found


@contextmanager
def _told(name: str, what: str = "cannot be read", hide: str = "") -> Iterator[None]:
    """Failures of a file system as a message that names ``name`` and says what to look at; ``hide`` is never repeated in it."""
    try:
        yield
    except _FAILURES as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        if hide:
            for secret in (encoded(bounded(hide)), bounded(hide), encoded(hide), hide):
                why = why.replace(secret, name)
        raise DataError(
            f"{name}: {what} ({why}). Check the address (s3://, gs://, abfs://, hdfs:// and file:// are known, or a path), and that the "
            "credentials in the environment give access."
        ) from error


def _files_below(filesystem: Any, path: str) -> list[str]:
    """Files at any depth below the directory ``path``, relative to it; none where it is missing."""
    try:
        found = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
    except FileNotFoundError:
        return []
    return [str(PurePosixPath(info.path).relative_to(path)) for info in found if info.type == fs.FileType.File]


def _remove(filesystem: Any, path: str, obsolete: Collection[str], new: Collection[str]) -> None:
    """Remove what an earlier report left at ``path``: files of ``obsolete``, and details of forecasts that are not ``new``."""
    for name in _files_below(filesystem, path):
        if name in obsolete or (name.startswith("cases/") and name not in new):
            filesystem.delete_file(f"{path}/{name}")


def _each(do: Callable[[str], None], names: Iterable[str]) -> None:
    """``do`` for every name, several at once; the first failure is raised."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(do, names):
            pass
