"""Answers that no model should give: every graph method has a defined result for each, and counts it where the user sees it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.gateway.request import ChatRequest
from harness.gateway.settings import Endpoint
from harness.local import RehearsingGateway
from harness.records import Forecast, Status
from methods import graph_reading
from methods.graphrag.index import KINDS as GRAPHRAG
from methods.hipporag.openie import KINDS as HIPPORAG
from tests.support import benchmark_of, config_of, forecasts_of

METHODS = ("hipporag", "hipporag2", "graphrag", "lightrag", "hypergraphrag")
KINDS: dict[str, Mapping[str, str]] = {
    "hipporag": HIPPORAG, "hipporag2": HIPPORAG, "graphrag": GRAPHRAG,
    "lightrag": graph_reading.KINDS, "hypergraphrag": graph_reading.KINDS,
}  # fmt: skip
NAMES = ("name", "source", "target", "subject", "object")
Script = Callable[[str, str], str]
"""(the answer that a unit would get, the unit) -> the answer that it gets."""


class ScriptedGateway(RehearsingGateway):
    """The rehearsal endpoint, except that ``script`` rewrites what is answered about a unit."""

    def __init__(self, endpoint: Endpoint, script: Script) -> None:
        super().__init__(endpoint)
        self._script = script

    def text(self, request: ChatRequest, body: Mapping[str, Any]) -> str:
        usual = super().text(request, body)
        unit = next(str(m["content"]) for m in request.messages if m["role"] == "user")
        return self._script(usual, unit) if request.purpose in ("extract", "glean") else usual


def renamed(value: Any, name: str) -> Any:
    """``value`` with every name in it replaced."""
    if isinstance(value, list):
        return [name if isinstance(item, str) else renamed(item, name) for item in value]
    if isinstance(value, dict):
        return {key: name if key in NAMES else renamed(item, name) for key, item in value.items()}
    return value


def same_two(usual: str, unit: str) -> str:
    """Acme and Beta, whatever the unit says of them."""
    said = unit[:200]
    ends = {"source": "Acme", "target": "Beta", "description": said, "strength": 5, "keywords": "deal"}
    two = [{"name": name, "type": "organization", "description": f"{name}: {said}"} for name in ("Acme", "Beta")]
    value: dict[str, Any] = json.loads(usual)
    if "named_entities" in value:
        value = {"named_entities": ["Acme", "Beta"]}
    elif "triples" in value:
        value = {"triples": [{"subject": "Acme", "relation": "deals with", "object": "Beta"}]}
    elif "segments" in value:
        members = [{**entity, "key_score": 80} for entity in two]
        value = {"segments": [{"text": said, "completeness": 8, "entities": members}]}
    elif "relationships" in value:
        ends.pop("keywords")
        value = {"entities": two, "relationships": [ends]}
    else:
        value = {"entities": two, "relations": [ends]}
    return json.dumps(value)


SCRIPTS: dict[str, Script] = {
    "malformed": lambda usual, unit: usual[: len(usual) // 2],
    "none": lambda usual, unit: json.dumps(renamed(json.loads(usual), "None")),
    "long": lambda usual, unit: json.dumps(renamed(json.loads(usual), "A" * 10_000)),
    "nothing": lambda usual, unit: json.dumps({key: [] for key in json.loads(usual)}),
    "same two": same_two,
}
COUNTED: dict[str, dict[str, tuple[str, ...]]] = {
    "malformed": dict.fromkeys(METHODS, ("unread",))
    | {"hipporag": ("entities", "triples"), "hipporag2": ("entities", "triples")},
    "none": dict.fromkeys(METHODS, ("none",)) | {"lightrag": ("nameless",), "hypergraphrag": ("nameless",)},
    "long": {
        "hipporag": ("name", "triple"), "hipporag2": ("name", "triple"), "graphrag": ("entity", "relation"),
        "lightrag": ("long",), "hypergraphrag": ("long",),
    },
    "nothing": dict.fromkeys(METHODS, ("silent",)) | {"lightrag": ("empty",), "hypergraphrag": ("empty",)},
    "same two": dict.fromkeys(METHODS, ()),
}  # fmt: skip


def run(directory: Path, method: str, script: Script) -> tuple[dict[str, Forecast], list[str]]:
    config = config_of(f"method={method}", "feed=docs", "run.limit=3")
    warnings: list[str] = []
    gateway = ScriptedGateway(config.backbone, script)
    return forecasts_of(config, benchmark_of(config), directory, gateway=gateway, warnings=warnings), warnings


@pytest.mark.parametrize("case", SCRIPTS)
@pytest.mark.parametrize("method", METHODS)
def test_an_odd_answer_is_defined_and_counted(tmp_path: Path, method: str, case: str) -> None:
    found, warnings = run(tmp_path, method, SCRIPTS[case])
    assert {forecast.status for forecast in found.values()} == {Status.OK}
    for kind in COUNTED[case][method]:
        (said,) = (text for text in warnings if text.startswith(KINDS[method][kind]))
        number, _, first = said.removeprefix(KINDS[method][kind] + ": ").partition(", first ")
        assert int(number) > 0
        assert first
    if case == "same two":
        assert not [text for text in warnings if "not be used" in text]
        shown = {passage.source.kind for forecast in found.values() for passage in forecast.shown}
        # The light family finds two names only if the question is like them: its floor of similarity holds.
        assert method in ("lightrag", "hypergraphrag") or shown & {"passage", "entity"}
