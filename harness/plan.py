"""From composed configurations to jobs: everything is checked and loaded here, before any call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.cell import CellSpec, Job
from harness.config import CellConfig, build, cell_identity, cell_name, digest, validate
from harness.embed import Embedder
from harness.errors import ConfigError
from harness.gateway.budget import check_prices
from harness.method import Method
from harness.records import Benchmark


@dataclass(frozen=True)
class Composed:
    """One composed configuration and the overrides that led to it."""

    raw: Mapping[str, Any]
    overrides: Sequence[str]


def validated(composed: Iterable[Composed]) -> list[CellConfig]:
    """All configurations, checked.

    Raises:
        ConfigError: every error of every cell, each message once; or cells that do not belong in one run.
    """
    configs: list[CellConfig] = []
    errors: dict[str, str] = {}
    for one in composed:
        try:
            configs.append(validate(one.raw))
        except ConfigError as error:
            errors.setdefault(str(error), " ".join(one.overrides))
    if errors:
        raise ConfigError(
            "\n".join(f"{message}\n  (with: {overrides or 'no overrides'})" for message, overrides in errors.items())
        )
    for path, values in (
        ("run.dir", {c.run.dir for c in configs}),
        ("run.mode", {c.run.mode for c in configs}),
        ("cluster", {digest(c.cluster.model_dump()) for c in configs}),
    ):
        if len(values) > 1:
            raise ConfigError(f"{path}: must be the same for all cells of one command; it is swept here")
    return configs


def make_jobs(configs: Sequence[CellConfig], warn: Callable[[str], None]) -> list[Job]:
    """Load every benchmark once, build every method and embedder once to check them, and name the cells.

    Raises:
        HarnessError: bad configuration or data; nothing has been called or written.
    """
    benchmarks: dict[str, Benchmark] = {}
    found: dict[str, Job] = {}
    for config in configs:
        key = digest([config.benchmark.model_dump(mode="json", by_alias=True), config.resolve])
        if key not in benchmarks:
            benchmarks[key] = build(config.benchmark, "benchmark", resolve=config.resolve)
            for warning in benchmarks[key].warnings:
                warn(f"warning: {config.benchmark.name}: {warning}")
        method: Method = build(config.method, "method")
        embedder: Embedder = build(config.embedder, "embedder")
        if method.uses_embedder and embedder.endpoint is not None:
            embedder.endpoint.api_key()
        if method.uses_llm:
            check_prices(config.backbone, config.run.budget_usd)
            if not (config.backbone.rehearsal and config.backbone.base_url is None):
                config.backbone.api_key()  # raises now if its variable is not set
        identity = cell_identity(config, benchmarks[key], method.fingerprint())
        spec = CellSpec(cell_name(config, identity), config, identity, method.instruction_sha256())
        found.setdefault(spec.name, Job(spec, benchmarks[key], method.uses_llm, method.uses_embedder))
    return list(found.values())
