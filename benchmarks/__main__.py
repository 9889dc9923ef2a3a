"""``python -m benchmarks audit NAME``: look at the data itself, without a model."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.audit.audit import audit
from benchmarks.audit.render import markdown
from benchmarks.settings import parameters_of
from harness.errors import ConfigError, HarnessError


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, whatever was found, or 2 if there is nothing to look at."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Commands on the data; no model is asked."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    _add_audit(commands.add_parser("audit", help="what is wrong with a benchmark before any model has seen it"))
    options = parser.parse_args(arguments)
    try:
        options.run(options)
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
    parser.set_defaults(run=_audit)


def _audit(options: argparse.Namespace) -> None:
    found = audit(parameters_of(options.benchmark, options.root), options.split)
    if options.json is not None:
        text = json.dumps(found.as_json(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        _write(options.json, text)
    print(markdown(found), end="")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}); choose another file") from None


if __name__ == "__main__":
    sys.exit(main())
