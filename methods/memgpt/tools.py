"""The tools that the agent may call, as schemas, and its arguments held against them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.text import clean
from methods.memgpt.blocks import BLOCKS
from methods.memgpt.store import ARCHIVAL, BY_DATE, CONVERSATION
from methods.schemas import TEXT

SEND, APPEND, REPLACE, INSERT = "send_message", "core_memory_append", "core_memory_replace", "archival_memory_insert"
HEARTBEAT = "request_heartbeat"

_BLOCK = {"type": "string", "enum": list(BLOCKS)}
_PAGE = {"type": "integer", "minimum": 0, "maximum": 1000, "description": "Page of the results, from 0."}
_DATE = {"type": "string", "description": "YYYY-MM-DD, included."}
_MORE = {"type": "boolean", "description": "true to be called again at once, to act on the result."}


def _tool(
    name: str, description: str, optional: tuple[str, ...] = (), **parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """A tool; ``block`` among the parameters stands for one that is called ``name``."""
    named = {"name" if p == "block" else p: schema for p, schema in parameters.items()}
    required = [p for p in named if p not in optional]
    schema = {"type": "object", "properties": {**named, HEARTBEAT: _MORE}, "required": required}
    return {"name": name, "description": description, "parameters": schema}


TOOLS = (
    _tool(SEND, "Say something. Nobody needs to be told anything while records are read.", message=TEXT),
    _tool(APPEND, "Add a line to a block of the working context.", block=_BLOCK, content=TEXT),
    _tool(
        REPLACE,
        "Replace text in a block of the working context; an empty new_content deletes it.",
        block=_BLOCK,
        old_content=TEXT,
        new_content=TEXT,
    ),
    _tool(INSERT, "Put a self-contained note, with its date, into archival memory.", content=TEXT),
    _tool(ARCHIVAL, "Search archival memory by meaning.", ("page",), query=TEXT, page=_PAGE),
    _tool(CONVERSATION, "Search all messages ever seen for a text.", ("page",), query=TEXT, page=_PAGE),
    _tool(
        BY_DATE, "List all messages seen from one day to another.", ("page",),
        start_date=_DATE, end_date=_DATE, page=_PAGE,
    ),
)  # fmt: skip
NAMES = {tool["name"]: tool for tool in TOOLS}
SEARCHES = (ARCHIVAL, CONVERSATION, BY_DATE)


def read(arguments: str) -> dict[str, Any] | None:
    """The arguments of a call; None where they are no JSON object.

    A lone surrogate comes as an escape, so it is there only now: it could be neither sent nor stored. NaN is not JSON.
    """
    try:
        given = clean(json.loads(arguments, parse_constant=_refused))
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def checked(name: str, arguments: str) -> dict[str, Any]:
    """The arguments of a call, as the tool takes them.

    Raises:
        LookupError: there is no such tool.
        ValueError: the arguments cannot be read, or are not those of the tool.
    """
    if name not in NAMES:
        raise LookupError(f"no tool is called {name}")
    given = read(arguments)
    if given is None:
        raise ValueError(f"the arguments of {name} cannot be read: {arguments[:200]}")
    parameters = NAMES[name]["parameters"]
    missing = [p for p in parameters["required"] if p not in given]
    unknown = [p for p in given if p not in parameters["properties"]]
    texts = {p for p, schema in parameters["properties"].items() if schema["type"] == "string"}
    wrong = [p for p in given if p in texts and not isinstance(given[p], str)]
    for what, names in (("missing", missing), ("unknown", unknown), ("not a text", wrong)):
        if names:
            raise ValueError(f"{name}: {what}: {', '.join(names)}")
    return given
