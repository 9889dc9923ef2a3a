"""Evaluate forecasting methods: compose the configuration, run all cells in one Ray session, write the report.

    python launch.py method=zero_shot backbone=rehearsal benchmark=sample
    python launch.py -m 'method=glob(*)' backbone=a,b 'benchmark=glob(*)' run.dir=runs/grid
    python launch.py experiment=demo

Hydra only composes: its task collects the configuration of a cell and returns. After Hydra is done all cells run together.
run.mode=estimate says what it will cost, run.mode=check whether everything is there, run.mode=hunt (experiment=leak_hunt) what leaks.
Exit codes: 0 all cells complete; 1 a cell failed or is incomplete, a check is not ok, or a leak was found; 2 bad usage, configuration or data; 3 budget reached;
130 interrupted.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hydra
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from harness.check import check
from harness.errors import ConfigError, HarnessError
from harness.estimate import estimate, estimate_text, write_estimate
from harness.jobs import Job
from harness.plan import Composed, make_jobs, validated
from harness.run import EXIT_BUDGET, EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, RunResult, run_jobs
from harness.store import SEAL, RunDirectory

os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra's errors come to us, instead of being printed with half a traceback
CONF = Path(__file__).resolve().parent / "conf"


def compose(arguments: Sequence[str]) -> list[Composed]:
    """The configurations that ``arguments`` ask for: one, or all of a sweep.

    Raises:
        ConfigError: Hydra refuses the arguments, or a value cannot be resolved.
    """
    composed: list[Composed] = []
    errors: list[str] = []

    @hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
    def collect(config: DictConfig) -> None:
        overrides = list(HydraConfig.get().overrides.task)
        try:
            raw = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
        except OmegaConfBaseException as error:
            errors.append(f"{' '.join(overrides)}: {error}")
            return
        assert isinstance(raw, dict)
        composed.append(Composed({str(key): value for key, value in raw.items()}, overrides))

    with tempfile.TemporaryDirectory() as scratch:  # Hydra insists on a directory of its own; results never go there
        outputs = [f"hydra.run.dir='{scratch}'", f"hydra.sweep.dir='{scratch}'", "hydra.output_subdir=null"]
        overrides = [a for a in arguments if a.startswith("~") or ("=" in a and not a.startswith("-"))]
        options = [a for a in arguments if a not in overrides]
        sys.argv = [sys.argv[0], *options, *outputs, *overrides]  # argparse wants overrides side by side
        try:
            collect()
        except (HydraException, OmegaConfBaseException, ValueError, AssertionError) as error:  # what Hydra raises
            raise ConfigError(_no_such_key(str(error), overrides) or str(error)) from None
        except SystemExit as stop:  # argparse has printed what it does not understand
            if stop.code not in (0, None):
                raise ConfigError("the command line was not accepted (see above)") from None
    if errors:
        raise ConfigError("\n".join(errors))
    return composed


def _no_such_key(message: str, overrides: Sequence[str]) -> str | None:
    """Hydra's ``message`` about an unknown key in our words, with the nearest key there is; None if it is about something else.

    Hydra advises to add the key with +, which the check of the configuration would refuse.
    """
    found = re.match(r"Could not override '([^']+)'", message)
    if found is None:
        return None
    groups = {path.name for path in CONF.iterdir() if path.is_dir()}
    chosen = [o for o in overrides if o.partition("=")[0] in groups and re.fullmatch(r"\w+", o.partition("=")[2])]
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        known = list(_keys(OmegaConf.to_container(hydra.compose("config", overrides=chosen))))
    near = difflib.get_close_matches(found[1], known, n=1)
    hint = f"did you mean {near[0]}?" if near else "python launch.py --help lists what there is."
    return f"{found[1]}: unknown key; {hint}"


def _keys(node: Any, above: str = "") -> Iterator[str]:
    """Every key of a configuration with those above it, as ``run.limit``."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield f"{above}{key}"
            yield from _keys(value, f"{above}{key}.")


def run(arguments: Sequence[str], console: Console) -> int:
    """Run the cells that ``arguments`` ask for and report; returns the exit code.

    Raises:
        HarnessError: bad usage, configuration or data; nothing was called.
    """
    configs = validated(compose(arguments))
    if not configs:
        if any(a.startswith("-") and a not in ("-m", "--multirun") for a in arguments):
            return EXIT_OK  # --help, --cfg, --info: Hydra has printed what was asked for
        raise ConfigError("the sweep names no cell; does a glob match nothing in conf/?")
    mode = configs[0].run.mode
    jobs = make_jobs(configs, lambda text: say(console, text))
    directory = RunDirectory(configs[0].run.dir)
    if mode == "estimate":
        return tell_estimate(jobs, directory, console)
    directory.lock()
    if mode == "check":
        return EXIT_OK if check(jobs, directory, lambda finding: say(console, str(finding))) else EXIT_INCOMPLETE
    if mode == "hunt":
        return hunt_leaks(jobs, directory, console)
    try:
        result = run_jobs(jobs, directory, console, arguments)
    except HarnessError as error:
        say(console, f"error: {error}\n  what to do: run the same command again; finished rows are kept")
        return EXIT_INCOMPLETE
    reported = make_report(directory, console)
    tell_what_was_met(result, console)
    tell_what_is_left(result, console)
    tell_what_to_publish(result, directory, console)
    if result.exit_code == EXIT_BUDGET:
        say(console, f"still to pay:\n{estimate_text(estimate(jobs, directory))}")
    return result.exit_code if reported else result.exit_code or EXIT_INCOMPLETE


def tell_estimate(jobs: Sequence[Job], directory: RunDirectory, console: Console) -> int:
    """Print what the cells will cost, and write it into the run directory."""
    found = estimate(jobs, directory)
    write_estimate(found, directory.path)
    say(console, estimate_text(found))
    return EXIT_OK


def hunt_leaks(jobs: Sequence[Job], directory: RunDirectory, console: Console) -> int:
    """Hunt through the cells and write the report of it; the exit code says whether anything was found."""
    from harness.hunt.run import hunt  # its worlds need what no other command does
    from reports import hunt as page

    clean = hunt(jobs, directory, console, lambda text: say(console, text))
    if any((directory.path / "cells").iterdir()):
        return EXIT_OK if make_report(directory, console) and clean else EXIT_INCOMPLETE
    page.build(directory.path, directory.report)
    return EXIT_OK if clean else EXIT_INCOMPLETE


def make_report(directory: RunDirectory, console: Console) -> bool:
    """Write the report and print its table; False if that is not possible, which changes nothing about the cells."""
    import reports  # plotting takes seconds to load: after the cells, not before

    try:
        reports.terminal_table(reports.build([directory.path], directory.report))
    except HarnessError as error:
        say(console, f"no report: {error}")
        return False
    return True


def tell_what_was_met(result: RunResult, console: Console) -> None:
    """What the cells say of this run, each sentence once, with what it says of the first cell; the rest is in their cell.json."""
    cells: dict[str, list[str]] = defaultdict(list)
    for cell in result.cells:
        for what, detail in cell.met.items():
            cells[what].append(f"{detail} in {cell.cell}" if detail else cell.cell)
    for what, where in cells.items():
        more = f", and in {len(where) - 1} more (see warnings in cell.json)" if len(where) > 1 else ""
        say(console, f"note: {what.rstrip('.')}: {where[0]}{more}")


def tell_what_is_left(result: RunResult, console: Console) -> None:
    """Name every cell that is not complete, why, and how to go on."""
    for cell in result.cells:
        if cell.status != "complete":
            say(console, f"{cell.status}: {cell.cell}\n  why: {cell.reason}\n  what to do: {cell.remedy}")


def tell_what_to_publish(result: RunResult, directory: RunDirectory, console: Console) -> None:
    """The hashes of forecasts whose outcomes are not known yet, and how many of them the world knows already."""
    for cell in result.cells:
        folder = directory.path / "cells" / cell.cell
        if not (folder / SEAL).exists():
            continue
        sha256 = (folder / SEAL).read_text("utf-8").split()[0]
        say(console, f"to publish before the outcomes are known: {sha256}  ({folder})")
        pending = pq.read_table(
            folder / "forecasts.parquet", columns=["resolve_time"], filters=pc.field("label").is_null()
        )
        times = [at for at in pending["resolve_time"].to_pylist() if at is not None]
        late = sum(at <= datetime.now(UTC) for at in times)
        if late:
            say(
                console,
                f"warning: {late} of {len(times)} of these outcomes could be known by now (the first on {min(times):%Y-%m-%d}): a hash "
                "published today says nothing of those forecasts",
            )


def say(console: Console, text: str) -> None:
    """Print ``text`` as it stands: no markup, no cutting."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    console = Console(stderr=True)
    try:
        return run(arguments, console)
    except HarnessError as error:
        say(console, f"error: {error}")
        return EXIT_USAGE
    except KeyboardInterrupt:
        say(console, "aborted: calls in flight may be paid again; run the same command again to resume")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
