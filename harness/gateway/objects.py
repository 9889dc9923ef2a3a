"""JSON objects in running text. No dependencies: the rehearsal server uses it too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)
_MAX_LOOSE_BRACES = 100
MAX_DEPTH = 64
"""Levels of an object that is taken for an answer. Python walks through a few hundred, depending on who asks."""


@dataclass(frozen=True, slots=True)
class Found:
    """An object and where it stands: ``text[start:end]``."""

    value: dict[str, Any]
    start: int
    end: int


def find_objects(text: str) -> list[Found]:
    """Every outermost balanced ``{...}`` of ``text`` that is strict JSON, in order.

    A balanced group that is not JSON (a set in prose, a trailing comma) is skipped whole, so that nothing inside a
    broken object passes for the answer. A brace that is never closed is stepped over, at most 100 times.
    """
    found: list[Found] = []
    loose = 0
    start = text.find("{")
    while start >= 0 and loose < _MAX_LOOSE_BRACES:
        end = _end_of_group(text, start)
        if end is None:
            loose += 1
            end = start + 1
        else:
            value = _load(text[start:end])
            if value is not None:
                found.append(Found(value, start, end))
        start = text.find("{", end)
    return found


def too_deep(value: Any) -> bool:
    """Whether ``value`` nests lists and objects more than ``MAX_DEPTH`` levels deep; found without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for part in level for item in _parts(part) if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _end_of_group(text: str, start: int) -> int | None:
    """Index after the brace that closes the one at ``start``; braces inside JSON strings do not count."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        match token.group():
            case "{":
                depth += 1
            case "}":
                depth -= 1
                if depth == 0:
                    return token.end()
    return None


def _load(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
