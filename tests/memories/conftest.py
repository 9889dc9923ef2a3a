"""For tests on what a memory may know: a model that does write down what it reads."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from harness.gateway.request import ChatRequest
from harness.gateway.result import Completion
from harness.local import RehearsingGateway
from harness.records import Status


class Faithful(RehearsingGateway):
    """The rehearsal endpoint's answers, but for Mem0: there they are too few and too random for a record to leave a trace.

    Every record is one fact; it is added, or takes the place of the first fact shown, or is added while that one is deleted.
    """

    async def complete(self, request: ChatRequest) -> Completion:
        reply = await super().complete(request)
        prompt = request.messages[-1]["content"]
        value: dict[str, Any]
        if request.purpose == "mem0_facts":
            value = {"facts": [prompt.split("user: ", 1)[1].split("\n\nReply")[0].replace("\n", " ")[:300]]}
        elif request.purpose == "mem0_update":
            value = {"memory": _decisions(prompt)}
        else:
            return reply
        return replace(reply, status=Status.OK, value=value, text=json.dumps(value), reason=None)


def _decisions(prompt: str) -> list[dict[str, str]]:
    on_file, new = prompt.split("## On file\n")[1].split("## New\n")
    first = re.match(r"\[0\] (.*)", on_file)
    (fact,) = re.findall(r"^- (.*)", new, re.MULTILINE)
    kind = sum(map(ord, fact)) % 4
    if first and kind == 0:
        return [{"id": "0", "text": fact, "event": "UPDATE"}]
    added = {"id": "99", "text": fact, "event": "ADD"}
    return [{"id": "0", "text": first[1], "event": "DELETE"}, added] if first and kind == 1 else [added]


@pytest.fixture
def faithful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.RehearsingGateway", Faithful)
