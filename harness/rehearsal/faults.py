"""Faults on purpose: which request suffers is a function of the request and of how often it was seen, so retries succeed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from harness.errors import ConfigError

REPLY_FAULTS = frozenset({"malformed", "truncated", "refused", "empty"})
TRANSPORT_FAULTS = frozenset({"reset", "hang"})


@dataclass(frozen=True, slots=True)
class Faults:
    """Shares of requests by fault. A number is an HTTP status; the names are in this module."""

    shares: tuple[tuple[str, float], ...] = ()
    seed: int = 0

    @classmethod
    def parse(cls, spec: str | None, seed: int = 0) -> Faults:
        """Read ``500=0.05,reset=0.02,malformed=0.1``.

        Raises:
            ConfigError: an unknown fault, a share outside [0, 1], or shares above 1 together.
        """
        shares: list[tuple[str, float]] = []
        for part in filter(None, (piece.strip() for piece in (spec or "").split(","))):
            name, _, text = part.partition("=")
            status = name.isdecimal() and 400 <= int(name) <= 599
            try:
                share = float(text)
            except ValueError:
                share = -1.0
            if not (status or name in REPLY_FAULTS | TRANSPORT_FAULTS) or not 0 <= share <= 1:
                known = ", ".join(sorted(REPLY_FAULTS | TRANSPORT_FAULTS))
                raise ConfigError(f"fault={spec!r}: {part!r} is not NAME=SHARE with a status 400-599 or one of {known}")
            shares.append((name, share))
        if sum(share for _, share in shares) > 1:
            raise ConfigError(f"fault={spec!r}: the shares add up to more than 1")
        return cls(tuple(shares), seed)

    def choose(self, request: bytes, seen: int) -> str | None:
        """The fault of the request with digest ``request`` at its ``seen``-th coming (from 0), or None."""
        if not self.shares:
            return None
        draw = hashlib.blake2b(b"%d|%d|" % (self.seed, seen) + request, digest_size=8).digest()
        left = int.from_bytes(draw) / 2**64
        for name, share in self.shares:
            if left < share:
                return name
            left -= share
        return None
