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


class CallFailed(HarnessError):
    """A call that a method needs gave no answer for want of an endpoint; ``status`` is that of the call.

    Raised by methods when going on without the answer would change their result (not for a reply that is unusable).
    """

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status

    def __str__(self) -> str:
        return str(self.args[1])
