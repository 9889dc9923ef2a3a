"""Run jobs in a run directory: resume, one Ray session, manifest."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from rich.console import Console

from harness.jobs import CellResult, Job
from harness.ledger import ledger, ledger_text, read_payments
from harness.progress import STATUS_FILE, ProgressDisplay
from harness.session import Session
from harness.store import RunDirectory, write_json

PACKAGES = (
    "ray",
    "pandas",
    "pyarrow",
    "openai",
    "numpy",
    "scikit-learn",
    "hydra-core",
    "tenacity",
    "exchange_calendars",
)
EXIT_OK, EXIT_INCOMPLETE, EXIT_USAGE, EXIT_BUDGET, EXIT_INTERRUPTED = 0, 1, 2, 3, 130


@dataclass(frozen=True)
class RunResult:
    """What became of every cell, and the exit code that says so."""

    cells: Sequence[CellResult]
    interrupted: bool

    @property
    def exit_code(self) -> int:
        if self.interrupted:
            return EXIT_INTERRUPTED
        if any(c.status == "failed" for c in self.cells):
            return EXIT_INCOMPLETE
        if any(c.budget for c in self.cells):
            return EXIT_BUDGET
        return EXIT_OK if all(c.status == "complete" for c in self.cells) else EXIT_INCOMPLETE


def run_jobs(jobs: Sequence[Job], directory: RunDirectory, console: Console, command: Sequence[str]) -> RunResult:
    """Run what is missing of ``jobs`` in a locked directory; cells whose rows are all there start nothing."""
    started = datetime.now(UTC)
    display = ProgressDisplay(console, directory.path / STATUS_FILE)
    answered = {job.spec.name: _answered(job, directory) for job in jobs}
    for job in jobs:
        if answered[job.spec.name]:
            display.say(f"{job.spec.name}: resumed {answered[job.spec.name]}/{len(job.plan)}")
    if sum(answered.values()):
        display.say(f"resumed {sum(answered.values())}/{sum(len(job.plan) for job in jobs)}")
    done = [result for job in jobs if (result := _complete(job, answered[job.spec.name], directory))]
    names = {result.cell for result in done}
    left = [job for job in jobs if job.spec.name not in names]
    if not left:
        return RunResult(done, interrupted=False)
    display.say("starting the session")
    with display, Session(directory, left[0].spec.config.cluster, display) as session:
        _write_manifest(directory, left, started, None, command, session.resources)
        results = session.run(left)
        _write_manifest(directory, left, started, datetime.now(UTC), command, session.resources)
    write_ledger(directory, display)
    return RunResult([*done, *results], session.interrupted)


def write_ledger(directory: RunDirectory, display: ProgressDisplay) -> None:
    """Print what the run directory has cost so far, and write ``ledger.json``."""
    found = ledger(read_payments(directory.cache))
    write_json(directory.path / "ledger.json", found.as_json())
    if found.total.calls or found.total.unanswered:
        display.say(ledger_text(found, "Paid so far in this run directory:"))


def _complete(job: Job, answered: int, directory: RunDirectory) -> CellResult | None:
    """The result of a cell that has every answer and its files; None if there is something to do."""
    about = directory.store(job.spec.kind, job.spec.name).about()
    if answered < len(job.plan) or about is None or about.get("status") != "complete":
        return None
    return CellResult(job.spec.name, "complete", about.get("counts", {}), len(job.plan), answered)


def _answered(job: Job, directory: RunDirectory) -> int:
    finished = directory.store(job.spec.kind, job.spec.name).finished()
    return sum((case.catalyst_id, epoch) in finished for case, epoch in job.plan)


def _write_manifest(
    directory: RunDirectory,
    jobs: Sequence[Job],
    started: datetime,
    finished: datetime | None,
    command: Sequence[str],
    resources: Mapping[str, float],
) -> None:
    directory.update_manifest(
        {
            "versions": {"python": platform.python_version(), **{p: metadata.version(p) for p in PACKAGES}},
            "git_commit": git_commit(),
            "command": [Path(sys.executable).name, "launch.py", *command],
            "started_at": started.isoformat(),
            "finished_at": finished.isoformat() if finished else None,
            "ray": dict(sorted(resources.items())),
        },
        {job.spec.name: job.spec.config.model_dump(mode="json", by_alias=True) for job in jobs},
        [{"benchmark": job.benchmark.name, **asdict(file)} for job in jobs for file in job.benchmark.files],
    )


def git_commit() -> str | None:
    """Commit of the code that runs, None outside a checkout."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None
