"""What a method reaches past its context while it runs: the benchmark's own files, the network, other programs.

The worlds of a hunt differ in memory only. What is read from elsewhere is the same in all of them, so no comparison can see it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_PROGRAMS = ("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec")
_CONNECTIONS = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
}
"""Which argument of the event says where to."""
_watches: list[tuple[tuple[str, ...], dict[str, None]]] = []


@contextmanager
def watching(files: Collection[str]) -> Iterator[dict[str, None]]:
    """What is reached while the block runs, each thing once, as keys in order.

    Args:
        files: paths below the benchmark's root. A file counts whose path ends so, wherever it lies.
    """
    _install()
    watch: tuple[tuple[str, ...], dict[str, None]] = (tuple(f"{os.sep}{path}" for path in files), {})
    _watches.append(watch)
    try:
        yield watch[1]
    finally:
        _watches.remove(watch)


@cache
def _install() -> None:
    """Once a process: an audit hook of Python cannot be taken away, so it asks who is watching."""
    sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watches:
        return
    said = None
    if event == "open" and isinstance(arguments[0], str | bytes):
        path = os.path.realpath(os.fsdecode(arguments[0]))  # a link to a file is that file
        for files, reached in _watches:
            if path.endswith(files):
                reached[f"file {path}"] = None
    elif event in _CONNECTIONS and arguments[_CONNECTIONS[event]] is not None:
        said = f"connection to {arguments[_CONNECTIONS[event]]}"
    elif event in _PROGRAMS:
        said = f"program {arguments[0] or arguments[1]}"
    elif event == "os.fork":
        said = "another process (os.fork)"
    if said is not None:
        for _, reached in _watches:
            reached[said] = None
