"""Text that can be sent and stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def clean(value: Any) -> Any:
    """``value`` with every lone surrogate in its texts replaced by U+FFFD: such text cannot be sent or stored as UTF-8."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, Mapping):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value
