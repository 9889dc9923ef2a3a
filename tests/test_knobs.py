"""Whatever can be set is in the YAMLs: ``method.top_k=5`` works on the command line, without a plus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from harness.config import build
from harness.gateway.settings import Endpoint
from tests.support import CONF, config_of


def unsaid(settings: BaseModel, said: Mapping[str, Any], path: str) -> Iterator[str]:
    """Fields of ``settings`` that its YAML does not name."""
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if name not in said:
            yield f"{path}.{name}"
        elif isinstance(value, BaseModel):
            yield from unsaid(value, said[name], f"{path}.{name}")


METHODS = sorted(str(p.relative_to(CONF / "method").with_suffix("")) for p in (CONF / "method").rglob("*.yaml"))
BACKBONES = sorted(p.stem for p in (CONF / "backbone").glob("*.yaml"))


@pytest.mark.parametrize("name", METHODS)
def test_the_yaml_of_a_method_names_all_its_knobs(name: str) -> None:
    component = config_of(f"method={name}").method
    assert list(unsaid(build(component, "method"), {"name": name, **component.knobs}, "method")) == []


@pytest.mark.parametrize("name", BACKBONES)
def test_the_yaml_of_a_backbone_names_all_its_fields(name: str) -> None:
    assert config_of(f"backbone={name}").backbone.model_fields_set == Endpoint.model_fields.keys()


def test_a_knob_that_is_not_named_is_found() -> None:
    component = config_of("method=graphrag").method
    said = {"name": "graphrag", **component.knobs, "search": {"top_k": 10}}
    found = list(unsaid(build(component, "method"), said, "method"))
    assert "method.search.tokens" in found
    assert "method.search.top_k" not in found
