"""The reply to a forecast as the strict parser takes it, whatever method asked."""

from __future__ import annotations

from typing import Any

from harness.gateway.reply import parse_object

FORECAST_CORE: dict[str, Any] = {
    "type": "object",
    "properties": {"prob_positive": {"type": "number", "minimum": 0, "maximum": 1}},
    "required": ["prob_positive"],
}
"""All that a forecast reply cannot do without."""


def parse_forecast(text: str) -> tuple[float | None, dict[str, Any] | None, str | None]:
    """(prob_positive, the whole object, None) or (None, None, why). The direction is positive iff prob_positive >= 0.5."""
    value, problem = parse_object(text, FORECAST_CORE)
    return (None, None, problem) if value is None else (float(value["prob_positive"]), value, None)
