"""From composed configurations to jobs: everything is checked and loaded here, before any call."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.config import (
    CellConfig,
    ContextSettings,
    build,
    cell_identity,
    cell_name,
    digest,
    memory_identity,
    validate,
)
from harness.embed import Embedder
from harness.errors import ConfigError
from harness.evidence import EvidenceIndex, Gate
from harness.gateway.budget import check_prices
from harness.ingestion import reaches
from harness.jobs import CellSpec, Job, TrainedMemory, training_benchmark
from harness.memory import MemoryLog
from harness.memory_file import read_memory
from harness.method import Learner, Method
from harness.records import PENDING, Benchmark, CaseSet


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
        ("run.budget_usd", {c.run.budget_usd for c in configs}),
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
    plan = _Plan(warn)
    for config in configs:
        plan.add(config)
    return _bounded(list(plan.jobs.values()))


class _Plan:
    """Benchmarks and trainings shared by the cells of one command."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self.jobs: dict[str, Job] = {}
        self._warn = warn
        self._benchmarks: dict[str, Benchmark] = {}
        self._contents: dict[tuple[int, bool], str] = {}
        self._trainings: dict[str, Job] = {}
        self._warned: set[str] = set()
        self._files: dict[Path, MemoryLog] = {}

    def add(self, config: CellConfig) -> None:
        """The job of one configuration, unless it is there."""
        method: Method = build(config.method, "method")
        self._check_endpoints(config, method)
        benchmark = self._benchmark(config)
        memory, trained = self._memory(config, benchmark, method)
        learner = method.learner()
        learns = learner is not None and learner.learns_from == "forecasts" and config.memory == "online"
        if learns and memory is not None and memory.training is not None:
            memory = None  # it learns from the experience split in its own run, in one order with the evaluation set
        pending = sum(outcome.label == PENDING for outcome in benchmark.evaluation.outcomes.values())
        if pending and config.memory == "online":
            raise ConfigError(
                f"memory=online: {pending} catalysts of benchmark {config.benchmark.name} have no outcome to learn from yet; "
                "use memory=frozen or memory=none"
            )
        if learns and config.run.epochs > 1:
            raise ConfigError("run.epochs: memory=online learns from each catalyst once; use run.epochs=1")
        identity = cell_identity(config, benchmark, method.fingerprint(), trained)
        name = cell_name(config, identity)
        spec = CellSpec(name, config, identity, method, learns=learns, starts_empty=memory is None)
        job = Job(_widest(spec, self.jobs.get(spec.name)), benchmark, memory)
        if not job.plan:
            raise ConfigError(f"benchmark {config.benchmark.name}: no catalyst is left to forecast (all are dropped)")
        if memory is not None and memory.file is not None:
            _check_reach(job, memory.file, self._file(memory.file).filled_until)
        self.jobs[spec.name] = job

    def _benchmark(self, config: CellConfig) -> Benchmark:
        key = digest([config.benchmark.model_dump(mode="json", by_alias=True), config.resolve])
        if key not in self._benchmarks:
            self._benchmarks[key] = build(config.benchmark, "benchmark", resolve=config.resolve)
            for warning in self._benchmarks[key].warnings:
                self._warn_once(warning)  # benchmarks that share an experience share what is said of it
        return self._benchmarks[key]

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._warn(f"warning: {text}")

    def _check_endpoints(self, config: CellConfig, method: Method) -> None:
        embedder: Embedder = build(config.embedder, "embedder")
        running = config.run.mode == "run"  # an estimate needs no key, and a check says which one is missing
        limited = config.run.budget_usd is not None
        if running and method.uses_embedder and embedder.endpoint is not None:
            embedder.endpoint.api_key()
            check_prices(embedder.endpoint, limited, embeddings=True)
        if method.uses_embedder and config.embedder.name == "hashing" and not config.backbone.rehearsal:
            self._warn_once("embedder=hashing sees shared spelling, not meaning; the paper's is embedder=openai")
        if running and method.uses_llm:
            check_prices(config.backbone, limited)
            if not (config.backbone.rehearsal and config.backbone.base_url is None):
                config.backbone.api_key()  # raises now if its variable is not set

    def _memory(
        self, config: CellConfig, benchmark: Benchmark, method: Method
    ) -> tuple[TrainedMemory | None, str | None]:
        """Where the cell's memory comes from, and the name of that for its identity."""
        learner = method.learner()
        if learner is None or config.memory == "none":
            return None, None
        if config.memory_file is not None:
            file = Path(config.memory_file).expanduser().absolute()
            log = self._file(file)
            for doubt in _doubts(file, log.made_by, learner, config):
                self._warn_once(doubt)
            return TrainedMemory(None, file), log.sha256()
        if learner.learns_from == "records":
            training = self._filling(config, benchmark, learner)
        elif benchmark.experience is not None:
            training = self._training(config, benchmark, benchmark.experience, learner)
        else:
            return None, None  # it starts empty
        return TrainedMemory(training, None), digest(training.spec.identity)

    def _file(self, path: Path) -> MemoryLog:
        """A memory that someone shared, read once."""
        if path not in self._files:
            self._files[path] = read_memory(path)
        return self._files[path]

    def _training(self, config: CellConfig, benchmark: Benchmark, experience: CaseSet, learner: Learner) -> Job:
        """The training of a memory on the experience split."""
        identity = memory_identity(config, self._content(experience, benchmark), learner.fingerprint())
        of_training = config.model_copy(
            update={
                "benchmark": config.benchmark.model_copy(update={"name": experience.name}),
                "memory": "online",
            }
        )
        return self._trained(of_training, identity, learner, training_benchmark(benchmark, experience))

    def _filling(self, config: CellConfig, benchmark: Benchmark, learner: Learner) -> Job:
        """The filling of a memory with the records of a benchmark.

        It is done in order of time whatever the gate and whatever is shown of it, so neither is a part of what it is.
        """
        of_filling = config.model_copy(update={"gate": Gate.STRICT, "context": ContextSettings()})
        with_own_cases = config.feed_cases and config.memory == "online"
        cases = [benchmark.experience] if benchmark.experience and config.feed_cases else []
        fed = [self._content(source, benchmark) for source in cases]
        content = digest([self._content(benchmark.evaluation, benchmark, with_own_cases), *fed])
        identity = memory_identity(of_filling, content, learner.fingerprint())
        return self._trained(of_filling, identity, learner, benchmark)

    def _trained(self, config: CellConfig, identity: dict[str, Any], learner: Learner, benchmark: Benchmark) -> Job:
        key = digest(identity)
        if key not in self._trainings:
            name = f"{learner.name}__{config.backbone.name}__{config.benchmark.name}__{key[:8]}"
            run = config.run.model_copy(update={"seed": 0, "epochs": 1, "limit": None})
            alone = config.model_copy(update={"run": run})
            spec = CellSpec(name, alone, identity, learner, kind="memories", learns=True)
            self._trainings[key] = Job(spec, benchmark)
        return self._trainings[key]

    def _content(self, cases: CaseSet, benchmark: Benchmark, with_cases: bool = True) -> str:
        """As ``content_sha256``, computed once."""
        key = (id(cases), with_cases)
        if key not in self._contents:
            self._contents[key] = content_sha256(cases, benchmark.drop_copies, with_cases)
        return self._contents[key]


def _bounded(jobs: Sequence[Job]) -> list[Job]:
    """``jobs``, the fillings among their trainings bounded by the last forecast that reads them: no record after it is paid for."""
    readers: defaultdict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.memory and job.memory.training and job.memory.training.spec.ingests:
            readers[job.memory.name].append(job)
    fillings: dict[str, TrainedMemory] = {}
    for name, some in readers.items():
        ends = [end for job in some if (end := job.reads_until) is not None]
        until = max(ends) if len(ends) == len(some) else None
        memory = some[0].memory
        assert memory is not None
        assert memory.training is not None
        spec = replace(memory.training.spec, fed_until=until)
        fillings[name] = replace(memory, training=replace(memory.training, spec=spec))
    return [replace(job, memory=fillings.get(job.memory.name, job.memory)) if job.memory else job for job in jobs]


def _doubts(file: Path, made_by: Mapping[str, Any] | None, learner: Learner, config: CellConfig) -> list[str]:
    """What speaks against reading the memory in ``file``, though it can be read.

    Raises:
        ConfigError: it is the memory of another method.
    """
    if made_by is None:
        return []
    run, maker, reader = str(made_by["run"]), made_by["learner"], learner.fingerprint()
    if maker["class"] != reader["class"]:
        raise ConfigError(
            f"memory_file: {file} is a memory of {maker['class']} (run {run}), and method={learner.name} needs one of "
            f"{reader['class']}; give a memory of that method, or leave memory_file out"
        )
    _, backbone, benchmark, *_ = [*run.split("__"), "", "", ""]
    doubts = []
    if digest(maker) != digest(reader):
        doubts.append("with other settings or prompts of the method")
    if backbone and backbone != config.backbone.name:
        doubts.append(f"with backbone={backbone}, not {config.backbone.name}")
    if benchmark and learner.learns_from == "records" and benchmark != config.benchmark.name:
        doubts.append(f"on benchmark={benchmark}, not {config.benchmark.name}")
    return [f"memory_file: {file} was made {doubt} (run {run})" for doubt in doubts]


def _check_reach(job: Job, file: Path, filled: datetime | None) -> None:
    """Raises ConfigError: the forecasts of ``job`` would miss records that the memory in ``file`` was not filled with."""
    wanted = job.reads_until
    if filled is not None and not reaches(filled, wanted):
        need = f"up to {wanted.isoformat()}" if wanted else f"to the end, because of gate={job.spec.config.gate}"
        raise ConfigError(
            f"memory_file: {file} was filled up to {filled.isoformat()} only, and these forecasts need it {need}; "
            "fill it further (without run.limit, or with a larger one), or set a smaller run.limit"
        )


def _widest(spec: CellSpec, other: Job | None) -> CellSpec:
    """Of two runs of one cell, the one that asks for more: a sweep over run.limit or run.epochs is a sweep over its rows."""
    if other is None:
        return spec
    one, two = spec.config.run, other.spec.config.run
    limit = None if one.limit is None or two.limit is None else max(one.limit, two.limit)
    run = one.model_copy(update={"limit": limit, "epochs": max(one.epochs, two.epochs)})
    return replace(spec, config=spec.config.model_copy(update={"run": run}))


def content_sha256(cases: CaseSet, drop_copies: bool, with_cases: bool = True) -> str:
    """Hash of everything that is learned from: documents, names of companies, and cases with outcomes and resolve times."""
    rows = [
        [c.catalyst_id, c.stock_id, c.company, c.catalyst_type, c.time.text, c.market, c.horizon,
         o.label, o.fwd_ret, o.resolve_at.isoformat()]
        for c in (cases.catalysts if with_cases else ())
        for o in [cases.outcomes[c.catalyst_id]]
    ]  # fmt: skip
    names = sorted((s.stock_id, s.name) for s in cases.corpus.stocks.values())
    return hashlib.sha256(
        f"{digest(rows)}{digest(names)}{EvidenceIndex(cases.corpus, drop_copies).key}".encode()
    ).hexdigest()
