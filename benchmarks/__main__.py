"""``python -m benchmarks audit NAME`` looks at the data itself; ``resolve RUN`` adds outcomes to forecasts made before them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.audit.audit import audit
from benchmarks.audit.render import markdown
from benchmarks.resolve import resolve
from benchmarks.settings import parameters_of
from harness.errors import ConfigError, HarnessError


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, whatever was found, or 2 for bad usage, configuration or data."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Commands on the data; no model is asked."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    _add_audit(commands.add_parser("audit", help="what is wrong with a benchmark before any model has seen it"))
    _add_resolve(commands.add_parser("resolve", help="add outcomes to forecasts that were made before they were known"))
    options = parser.parse_args(arguments)
    try:
        options.run_command(options)
    except HarnessError as error:
        print(f"benchmarks {options.command}: {error}", file=sys.stderr)
        return 2
    return 0


def _add_audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("benchmark", metavar="NAME", help="name of a YAML in conf/benchmark")
    parser.add_argument(
        "--root", metavar="DIR", help="directory of its files (default: as in the YAML, else $HARNESS_DATA)"
    )
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the findings as JSON as well")
    parser.add_argument(
        "--split",
        choices=("eval", "experience"),
        default="eval",
        help="the catalysts to forecast, or those of the experience",
    )
    parser.set_defaults(run_command=_audit)


def _audit(options: argparse.Namespace) -> None:
    found = audit(parameters_of(options.benchmark, options.root), options.split)
    if options.json is not None:
        text = json.dumps(found.as_json(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        _write(options.json, text)
    print(markdown(found), end="")


def _add_resolve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="run directory made with benchmark.prospective=true")
    parser.add_argument(
        "--outcomes", metavar="FILE", type=Path, required=True, help="table or JSON with catalyst_id and fwd_ret"
    )
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="where to write the cells with outcomes")
    parser.add_argument(
        "--published",
        action="extend",
        metavar="SHA256",
        nargs="+",
        default=[],
        help="hashes that were published: every cell's must be one",
    )
    parser.set_defaults(run_command=_resolve)


def _resolve(options: argparse.Namespace) -> None:
    cells, warnings = resolve(options.run, options.outcomes, options.out, options.published, datetime.now(UTC))
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print("| cell | forecasts | without outcome | scored | right | accuracy | SHA-256 of the forecasts |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for c in cells:
        accuracy = f"{c.right / c.scored:.4f}" if c.scored else "not defined"
        print(f"| {c.cell} | {c.n} | {c.open} | {c.scored} | {c.right} | {accuracy} | {c.sha256} |")
    print(f"\nWith intervals and comparisons: python -m reports {options.out}")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}); choose another file") from None


if __name__ == "__main__":
    sys.exit(main())
