"""The composed configuration of one cell: validated at once, every error with its path, and its identity.

A cell's identity is the hash of what changes its result (method knobs, prompts, model, sampling, gate, seed, data), never
of what only changes how it is run (limits, workers, directories, URLs, how many catalysts).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import hydra.utils
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError

from harness.errors import ConfigError
from harness.evidence import Gate
from harness.gateway.settings import Endpoint
from harness.method import MATCHED_CONTEXT_CHARS
from harness.records import Benchmark

IDENTITY_FORMAT = 1
"""Raised when the meaning of a cell changes in a way that its configuration does not show."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Component(_Strict):
    """A part chosen by a YAML: ``_target_`` is called with the remaining keys."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    target: str = Field(alias="_target_")

    @property
    def knobs(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class ContextSettings(_Strict):
    """``matched``: every method's context is cut to 8,000 characters; ``native``: to the method's own budget."""

    budget: Literal["matched", "native"] = "matched"


class RunSettings(_Strict):
    """How to run, as opposed to what (only ``seed`` is part of a cell's identity)."""

    dir: str = Field(default="runs", min_length=1)
    limit: PositiveInt | None = None
    mode: Literal["run", "estimate", "check", "hunt"] = "run"
    seed: int = Field(default=0, ge=0)
    epochs: PositiveInt = 1
    budget_usd: float | None = Field(default=None, ge=0)


class ClusterSettings(_Strict):
    """The Ray session. ``address`` null starts a local one; ``auto`` or ``ray://…`` joins a cluster."""

    address: str | None = None
    workers: PositiveInt = 2
    cells_per_worker: PositiveInt = 6
    object_store_mb: int = Field(default=256, ge=80)


class HuntSettings(_Strict):
    """How much of a benchmark ``run.mode=hunt`` goes through, dozens of times for every method.

    Attributes:
        catalysts: asked ones, spread evenly over the evaluation set.
        experience: past cases kept, those known last: what memories are trained on.
        documents: kept of the evaluated corpus at most, those of asked stocks first; None for all.
    """

    catalysts: PositiveInt = 8
    experience: int = Field(default=24, ge=0)
    documents: PositiveInt | None = None


class CellConfig(_Strict):
    """One cell: method × backbone × benchmark × seed, as composed by Hydra."""

    method: Component
    backbone: Endpoint
    benchmark: Component
    embedder: Component
    cluster: ClusterSettings = ClusterSettings()
    gate: Gate = Gate.STRICT
    memory: Literal["frozen", "online", "none"] = "frozen"
    memory_file: str | None = None
    resolve: Literal["calendar", "released"] = "calendar"
    feed: Literal["docs", "docs+cases"] = "docs+cases"
    context: ContextSettings = ContextSettings()
    run: RunSettings = RunSettings()
    hunt: HuntSettings = HuntSettings()

    @property
    def feed_cases(self) -> bool:
        """Whether resolved cases are fed along with the documents."""
        return self.feed == "docs+cases"

    @property
    def context_chars(self) -> int | None:
        """Characters of a method's context; None for the method's native budget."""
        return MATCHED_CONTEXT_CHARS if self.context.budget == "matched" else None


def validate(raw: Mapping[str, Any]) -> CellConfig:
    """Check a composed configuration.

    Raises:
        ConfigError: naming every unknown key and bad value with its path.
    """
    try:
        return CellConfig.model_validate(dict(raw))
    except ValidationError as error:
        raise ConfigError(explain(error)) from None


def explain(error: ValidationError, prefix: str = "") -> str:
    """One line an error: ``path: what is wrong (value)``."""
    lines = []
    for item in error.errors(include_url=False):
        path = ".".join([*([prefix] if prefix else []), *(str(part) for part in item["loc"])])
        if item["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            lines.append(f"{path}: unknown key; remove it or correct its name")
        elif item["type"] in ("missing", "missing_argument"):
            lines.append(f"{path}: missing; set it in the YAML or on the command line")
        else:
            lines.append(f"{path}: {item['msg']} (got {item['input']!r})")
    return "\n".join(lines)


def build(component: Component, path: str, **extra: Any) -> Any:
    """Call the component's target with its knobs (and ``name``).

    Args:
        component: the part to build.
        path: its place in the configuration, for messages.
        extra: keys that come from elsewhere in the configuration.

    Raises:
        ConfigError: no such target, an unknown knob, or a bad value.
    """
    try:
        target = hydra.utils.get_object(component.target)
    except (ImportError, ValueError, AttributeError) as error:
        raise ConfigError(f"{path}._target_: cannot import {component.target!r} ({error})") from None
    try:
        return target(name=component.name, **component.knobs, **extra)
    except ValidationError as error:
        raise ConfigError(explain(error, path)) from None
    except TypeError as error:
        raise ConfigError(f"{path}: {component.target} does not accept these keys: {error}") from None


def digest(value: Any) -> str:
    """SHA-256 (hex) of ``value`` as canonical JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def cell_identity(
    config: CellConfig, benchmark: Benchmark, method_fingerprint: Mapping[str, Any], memory: str | None
) -> dict[str, Any]:
    """What determines a cell's result, as plain JSON data. ``root`` is left out: what the files hold counts, not where they lie.

    ``memory`` names the trained memory it starts from by what determines that: None for a method that does not learn.
    """
    data_knobs = {k: v for k, v in config.benchmark.knobs.items() if k != "root"}
    return {
        "format": IDENTITY_FORMAT,
        "method": {"name": config.method.name, **method_fingerprint},
        "backbone": config.backbone.identity(),
        "embedder": config.embedder.model_dump(mode="json", by_alias=True, exclude={"endpoint"}),
        "benchmark": {
            "name": config.benchmark.name,
            "settings": data_knobs,
            "files": {Path(f.path).as_posix(): f.sha256 for f in benchmark.files},
        },
        "gate": str(config.gate),
        "memory": config.memory,
        "trained_memory": memory,
        "resolve": config.resolve,
        "feed": config.feed,
        "context": config.context.budget,
        "seed": config.run.seed,
    }


def memory_identity(config: CellConfig, experience: str, learner_fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """What determines a trained memory. All variants of a method share it, and all seeds: it is trained once.

    ``experience`` is the content hash of the experience split.
    """
    return {
        "format": IDENTITY_FORMAT,
        "learner": dict(learner_fingerprint),
        "backbone": config.backbone.identity(),
        "embedder": config.embedder.model_dump(mode="json", by_alias=True, exclude={"endpoint"}),
        "benchmark": experience,
        "gate": str(config.gate),
        "resolve": config.resolve,
        "feed": config.feed,
        "context": config.context.budget,
    }


def cell_name(config: CellConfig, identity: Mapping[str, Any]) -> str:
    """``method__backbone__benchmark__<8 hex>``, the cell's directory."""
    return f"{config.method.name}__{config.backbone.name}__{config.benchmark.name}__{digest(identity)[:8]}"
