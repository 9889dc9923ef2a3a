"""The hunt of one command: every (method, world) is a Ray task; the driver joins, prints the table and writes leak_hunt.json."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ray
from rich.console import Console

from harness.config import build
from harness.errors import ConfigError, DataError
from harness.hunt.detectors import DETECTORS, judged
from harness.hunt.judges import Finding, Hunt, Verdict
from harness.hunt.stage import Subject, World, run_world, worlds_of
from harness.hunt.trace import Trace
from harness.hunt.worlds import hunted
from harness.jobs import Job
from harness.records import Benchmark
from harness.run import git_commit
from harness.session import start_ray
from harness.store import RunDirectory, write_json

FILE = "leak_hunt.json"
MARKS = {Verdict.PASS: "pass", Verdict.FAIL: "FAIL", Verdict.NOT_TESTABLE: "n.t."}

Say = Callable[[str], None]


def hunt(jobs: Sequence[Job], directory: RunDirectory, console: Console, say: Say) -> bool:
    """Hunt through all ``jobs`` and write ``leak_hunt.json``; True if no detector failed.

    Raises:
        ConfigError: a backbone or an embedder that would have to be called.
    """
    for job in jobs:
        _refuse_calls(job)
    started = time.monotonic()
    cluster = jobs[0].spec.config.cluster
    with ExitStack() as exit:
        if not ray.is_initialized():
            start_ray(cluster.address, cluster.object_store_mb)
            exit.callback(ray.shutdown)
        found = _joined(jobs, say)
    write_json(directory.path / FILE, with_earlier(as_json(found), directory.path / FILE))
    _print(found, console)
    say(
        f"hunted {len(found)} cells through {sum(len(h.traces) for h, _ in found)} worlds in {time.monotonic() - started:.0f} s"
    )
    return not any(f.verdict is Verdict.FAIL for _, findings in found for f in findings.values())


def _refuse_calls(job: Job) -> None:
    config = job.spec.config
    if job.spec.method.uses_llm and not config.backbone.rehearsal:
        raise ConfigError(
            f"run.mode=hunt asks no model: backbone={config.backbone.name} cannot be used; use backbone=rehearsal"
        )
    if job.spec.method.uses_embedder and build(config.embedder, "embedder").endpoint is not None:
        raise ConfigError(
            f"run.mode=hunt asks no endpoint: embedder={config.embedder.name} cannot be used; use embedder=hashing"
        )


def _joined(jobs: Sequence[Job], say: Say) -> list[tuple[Hunt, dict[str, Finding]]]:
    """Run every world of every job, and judge a method as soon as its last world is in."""
    task = ray.remote(run_world).options(num_cpus=1, max_retries=2)
    smaller: dict[Any, tuple[Benchmark, Any]] = {}
    pending: dict[Any, tuple[int, World]] = {}
    parts: list[tuple[Subject, Benchmark, dict[World, Trace], int]] = []
    for number, job in enumerate(jobs):
        settings = job.spec.config.hunt
        limit = job.spec.config.run.limit
        key = (id(job.benchmark), settings, limit)
        if key not in smaller:
            benchmark = hunted(job.benchmark, limit, settings.catalysts, settings.experience, settings.documents)
            smaller[key] = benchmark, ray.put(benchmark)
        benchmark, reference = smaller[key]
        subject = Subject.of(job)
        worlds = worlds_of(benchmark)
        parts.append((subject, benchmark, {}, len(worlds)))
        pending |= {task.remote(subject, reference, world): (number, world) for world in worlds}
    found: dict[int, tuple[Hunt, dict[str, Finding]]] = {}
    while pending:
        (ready,), _ = ray.wait(list(pending), num_returns=1)
        number, world = pending.pop(ready)
        subject, benchmark, traces, total = parts[number]
        try:
            traces[world] = ray.get(ready)
        except ray.exceptions.RayError as error:
            traces[world] = Trace({}, failure=f"its process died or raised: {str(error).strip().splitlines()[-1]}")
        if len(traces) == total:
            result = Hunt(subject, benchmark, traces)
            found[number] = result, judged(result)
            say(f"{len(found)}/{len(jobs)} {subject.spec.name}: {_in_short(found[number][1])}")
    return [found[number] for number in range(len(jobs))]


def _in_short(findings: dict[str, Finding]) -> str:
    failed = [name for name, finding in findings.items() if finding.verdict is Verdict.FAIL]
    passed = sum(finding.verdict is Verdict.PASS for finding in findings.values())
    return f"FAIL: {', '.join(failed)}" if failed else f"{passed} of {len(findings)} pass, the rest is not testable"


def as_json(found: Sequence[tuple[Hunt, dict[str, Finding]]]) -> dict[str, Any]:
    """The content of ``leak_hunt.json``: who was hunted through what, every finding, and what each detector can see."""
    return {
        "rehearsal": True,
        "detectors": [{"name": d.name, "sees": d.sees, "blind_to": d.blind_to} for d in DETECTORS],
        "hunted": [
            {
                "cell": h.subject.spec.name,
                "method": h.subject.spec.config.method.name,
                "backbone": h.subject.spec.config.backbone.name,
                "benchmark": h.subject.spec.config.benchmark.name,
                "gate": str(h.subject.spec.config.gate),
                "memory": h.subject.spec.config.memory,
                "feed": h.subject.spec.config.feed,
                "embedder": h.subject.spec.config.embedder.name,
                "catalysts": [c.catalyst_id for c in h.benchmark.evaluation.catalysts],
                "documents": len(h.benchmark.evaluation.corpus.documents),
                "experience": len(h.benchmark.experience.catalysts) if h.benchmark.experience else 0,
                "worlds": len(h.traces),
                "git_commit": git_commit(),
                "config": h.subject.spec.config.model_dump(mode="json", by_alias=True),
                "data": [asdict(file) for file in h.benchmark.files],
                "sent": dict(h.base.sent),
                "findings": [{"detector": name, **asdict(finding)} for name, finding in findings.items()],
            }
            for h, findings in found
        ],
    }


def with_earlier(found: dict[str, Any], path: Path) -> dict[str, Any]:
    """``found`` after what earlier hunts of the run directory found of other cells: a FAIL does not vanish by the next command.

    Raises:
        DataError: the file there is no hunt's.
    """
    if not path.exists():
        return found
    try:
        earlier = json.loads(path.read_text("utf-8"))["hunted"]
        anew = {one["cell"] for one in found["hunted"]}
        kept = [one for one in earlier if one["cell"] not in anew]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not the file of a hunt ({error}); move it away") from None
    return found | {"hunted": [*kept, *found["hunted"]]}


def _print(found: Sequence[tuple[Hunt, dict[str, Finding]]], console: Console) -> None:
    rows = [["method", "benchmark", *(d.short for d in DETECTORS)]]
    for h, findings in found:
        config = h.subject.spec.config
        rows.append([config.method.name, config.benchmark.name, *(MARKS[f.verdict] for f in findings.values())])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    title = "Leak hunt. pass: what was planted showed nowhere; n.t.: not testable here"
    console.print(
        "\n".join([title, *lines]), markup=False, highlight=False, soft_wrap=True
    )  # a table of Rich's would cut columns
    for h, findings in found:
        for name, finding in findings.items():
            if finding.verdict is Verdict.FAIL:
                console.print(
                    f"{h.subject.spec.config.method.name}: {name}: {finding.why}", markup=False, soft_wrap=True
                )
                if finding.witness:
                    console.print(
                        "\n".join(f"  {line}" for line in finding.witness.lines()), markup=False, soft_wrap=True
                    )
