"""An OpenAI-compatible endpoint on loopback that needs no key and no network, for rehearsals, demos and tests.

It is not a language model: its answers are a deterministic function of the request, built from the prompt's own words so
that every part of the real path runs. No claim about a method can be drawn from results made with it.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

from harness.errors import ConfigError

FINGERPRINT = "rehearsal-1"
"""``system_fingerprint`` of every reply: whatever URL or backbone it came by, a rehearsed row is known as one."""

_READY = "rehearsal endpoint on "
_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class RehearsalServer:
    """A running server process. It ends with ``stop``, or when this process does."""

    base_url: str
    process: subprocess.Popen[str]

    def stop(self) -> None:
        """End the server. Does nothing if it has ended."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def start_rehearsal(
    rpm: float | None = None,
    tpm: float | None = None,
    latency: float = 0.0,
    fault: str | None = None,
    variant: str = "a",
    key: str | None = None,
    accepts: str | None = None,
    refusal: int | None = None,
    names: str | None = None,
) -> RehearsalServer:
    """Start a server on a free port and wait until it listens.

    Raises:
        ConfigError: it did not start, e.g. because ``fault`` is not understood.
    """
    options = {"rpm": rpm, "tpm": tpm, "latency": latency, "fault": fault, "variant": variant, "key": key}
    options |= {"accepts": accepts, "refusal": refusal, "names": names}
    arguments = [f"--{name}={value}" for name, value in options.items() if value is not None]
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.rehearsal", "--port=0", "--exit-with-stdin", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C stops the run, not the server that its last calls wait for
    )
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    server = RehearsalServer(line.removeprefix(_READY), process)
    if not line.startswith(_READY):
        server.stop()
        raise ConfigError(f"the rehearsal endpoint did not start with {' '.join(arguments)}; its message is above")
    return server
