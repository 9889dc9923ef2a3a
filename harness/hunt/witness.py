"""What speaks against a method."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Witness:
    """What speaks against a method.

    Attributes:
        catalyst: the forecast, or the record of a memory.
        world: the world in which it was seen.
        place: request, answer, memory, artefact.
        expected: the line as it is in the hunted benchmark; None for a canary, which should not be there at all.
        found: the line as it is in ``world``; None where there is no such line.
    """

    catalyst: str
    world: str
    place: str
    expected: str | None
    found: str | None

    def lines(self) -> list[str]:
        """In words: where, then the two lines, as far as there are any."""
        told = [f"{sign} {line}" for sign, line in (("-", self.expected), ("+", self.found)) if line is not None]
        return [f"{self.catalyst}, {self.place} ({self.world})", *told]
