"""JSON schemas of replies: what several methods build them from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TEXT = {"type": "string"}
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
"""A probability, a confidence, a support."""


def json_object(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with exactly ``properties``."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
