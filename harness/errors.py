"""Errors that a user can act on. Every message names the file, row, key and value and says what to do."""

from __future__ import annotations


class HarnessError(Exception):
    """Base of the errors shown to users without a traceback."""


class ConfigError(HarnessError):
    """Bad usage or configuration (exit code 2, before any call)."""


class DataError(HarnessError):
    """Bad benchmark data (exit code 2, before any call)."""


class ClockError(HarnessError):
    """A timestamp that cannot be parsed, or a date outside the exchange calendar."""


class GateError(HarnessError):
    """A record that the time gate forbids reached a prompt: always a bug, never a warning."""


class EndpointError(HarnessError):
    """An endpoint refused every request of this kind (wrong key, unknown model): the cell cannot go on."""
