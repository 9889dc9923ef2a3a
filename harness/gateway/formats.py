"""How a server takes a schema: found out once, remembered, and no part of the key that replies are stored under.

Servers differ. Some refuse ``response_format: json_schema`` with 400, 422 or a plain 500 and take ``{"type": "json_object",
"schema": ...}``, some take ``json_object`` alone, some nothing of the kind. A backbone's YAML names the best form its server may take;
a request that is refused in it is sent in the next lower one, and the first form that is answered is kept for all others
and for the next run. While one form is known to be taken, a refusal is the request's own affair.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from harness.gateway.request import WORDED_SCHEMA
from harness.gateway.retry import AttemptFailed, Failure
from harness.gateway.settings import Endpoint
from harness.records import Status

LADDER = ("json_schema", "object_schema", "json_object", "none")
"""Best first. ``object_schema`` is ``json_object`` with the schema beside it."""

_REFUSED = frozenset({400, 415, 422})
_PATIENCE = 2
"""Server errors in the first form before the next one is tried: one may be an accident, unless it names what it refuses."""
_NAMED = ("response_format", "json_schema")

Exchange = tuple[str, dict[str, Any]]


class Facts(Protocol):
    """What is remembered of an endpoint between runs."""

    def fact(self, name: str) -> str | None: ...
    def remember(self, name: str, value: str) -> None: ...


class Wire(Protocol):
    """What sends a body."""

    async def chat(self, body: dict[str, Any]) -> Exchange: ...


@dataclass(slots=True)
class Descent:
    """How far down one request has come while nothing is known: the rung it is on, and the server errors met there."""

    rung: int = 0
    errors: int = 0


class Formats:
    """The form in which one endpoint takes schemas. ``known`` is None until a reply tells."""

    def __init__(self, endpoint: Endpoint, facts: Facts) -> None:
        self._rungs = LADDER[LADDER.index(endpoint.structured) :]
        self._fact = f"structured:{endpoint.name}:{endpoint.model}"
        self._facts = facts
        self._fixed = "response_format" in endpoint.extra_body
        remembered = facts.fact(self._fact)
        self.known = remembered if remembered in self._rungs else None

    async def send(self, wire: Wire, body: dict[str, Any], descent: Descent) -> Exchange:
        """One attempt at ``body`` in the known form, or in the one that this request has come down to.

        Raises:
            AttemptFailed: as the wire; a refusal that another form may help is one to try again.
        """
        if self._fixed or "response_format" not in body:
            return await wire.chat(body)
        rung = self._rungs[descent.rung] if self.known is None else self.known
        try:
            exchange = await wire.chat(shaped(body, rung))
        except AttemptFailed as error:
            if self.known is None and self._goes_down(error.failure, descent):
                raise AttemptFailed(dataclasses.replace(error.failure, retry=True, form=True)) from error
            raise
        if self.known is None:
            self.known = rung
            self._facts.remember(self._fact, rung)
        return exchange

    def settled(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """``body`` in the known form, or in the declared one while none is known."""
        if self._fixed or self.known is None or "response_format" not in body:
            return dict(body)
        return shaped(body, self.known)

    def _goes_down(self, failure: Failure, descent: Descent) -> bool:
        if descent.rung + 1 == len(self._rungs) or failure.http_status is None or failure.status is not Status.PROVIDER:
            return False
        if failure.http_status >= 500:
            descent.errors += 1
            named = any(word in failure.reason for word in _NAMED)
            if descent.rung == 0 and descent.errors < _PATIENCE and not named:
                return False
        elif failure.http_status not in _REFUSED:
            return False
        descent.rung += 1
        return True


def shaped(body: Mapping[str, Any], rung: str) -> dict[str, Any]:
    """``body``, whose ``response_format`` is the declared one, in the form ``rung``; the schema goes into words below the first."""
    asked = body["response_format"]
    if asked["type"] == rung:
        return dict(body)
    lowered = {key: value for key, value in body.items() if key != "response_format"}
    named = asked.get("json_schema")
    if named is not None:
        *before, last = body["messages"]
        words = f"{last['content']}\n\n{WORDED_SCHEMA}{json.dumps(named['schema'], ensure_ascii=False)}"
        lowered["messages"] = [*before, {**last, "content": words}]
    if rung == "object_schema":
        lowered["response_format"] = {"type": "json_object", "schema": named["schema"]}
    elif rung == "json_object":
        lowered["response_format"] = {"type": "json_object"}
    return lowered
