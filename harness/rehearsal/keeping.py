"""Requests to note what a text says, or what becomes of a list of notes: answered in the text's own words.

Anything that stands in a record can thus be found again in what is made of it. Random pieces would lose it, and a test that
plants a text and looks for it later would prove nothing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness.rehearsal.material import sentences_of

_HEARD = re.compile(r"^user: (.*?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
"""What a conversation quoted in a prompt has the user say, up to an empty line."""

_NOTED = re.compile(r"^\[(\d{1,4})\] (.+)$", re.MULTILINE)
_NEW = re.compile(r"^- (.+)$", re.MULTILINE)
_FACTS = 4
_FACT_CHARS = 240
_KINDS = 8
"""Of so many new notes one takes an old one's place and one has an old one deleted; all others are added."""


def facts_in(prompt: str) -> list[str]:
    """Sentences of what the user says in the conversation that ``prompt`` quotes: the first three and the last, cut at 240
    characters; none if it quotes no conversation.
    """
    said = [s for heard in _HEARD.findall(prompt) for s in sentences_of(heard) or [heard.strip()] if s]
    kept = said if len(said) <= _FACTS else [*said[: _FACTS - 1], said[-1]]
    return [sentence[:_FACT_CHARS] for sentence in dict.fromkeys(kept)]


def is_decision(schema: Mapping[str, Any]) -> bool:
    """Whether ``schema`` is that of a decision about a note: its number, its text and what becomes of it."""
    properties = schema.get("properties", {})
    events = properties.get("event", {}).get("enum", ()) if isinstance(properties.get("event"), Mapping) else ()
    return {"id", "text"} <= properties.keys() and {"ADD", "UPDATE", "DELETE", "NONE"} <= set(events)


def decisions_on(prompt: str, rng: random.Random) -> list[dict[str, str]]:
    """What becomes of the numbered notes and of the new ones, which stand behind a dash below the last of these."""
    noted: Sequence[tuple[str, str]] = _NOTED.findall(prompt)
    numbers = {text: number for number, text in noted}
    decisions = []
    for text in _NEW.findall(prompt.rsplit("\n## ", 1)[-1]):
        kind = rng.randrange(_KINDS)
        number, old = rng.choice(noted) if noted else ("", "")
        if text in numbers:
            decisions.append(_decision(numbers[text], text, "NONE"))
        elif noted and kind == 0:
            decisions.append(_decision(number, text, "UPDATE"))
        else:
            if noted and kind == 1:
                decisions.append(_decision(number, old, "DELETE"))
            decisions.append(_decision(str(len(noted) + len(decisions)), text, "ADD"))
    return decisions


def _decision(number: str, text: str, event: str) -> dict[str, str]:
    return {"id": number, "text": text, "event": event}
