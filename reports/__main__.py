"""``python -m reports RUNS… --out DIR``: one report from one or several run directories."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.errors import HarnessError
from reports.build import build
from reports.terminal import terminal_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, or 2 if the runs cannot be scored."""
    parser = argparse.ArgumentParser(
        prog="python -m reports", description="Write a comparison report from run directories."
    )
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="directory that holds cells/*/forecasts.parquet"
    )
    parser.add_argument("--out", type=Path, help="where to write (default: RUN/report; needed for several runs)")
    parser.add_argument("--reference", help="method that the others are paired with (default: tiem)")
    parser.add_argument(
        "--audit",
        action="extend",
        nargs="+",
        type=Path,
        metavar="FILE",
        default=[],
        help="audits of the data to show, written by python -m benchmarks audit NAME --json FILE",
    )
    options = parser.parse_args(arguments)
    if options.out is None and len(options.runs) > 1:
        parser.error("several runs: say where to write with --out DIR")
    try:
        out = options.out or options.runs[0] / "report"
        report = build(options.runs, out, reference=options.reference, audits=options.audit)
    except HarnessError as error:
        print(f"reports: {error}", file=sys.stderr)
        return 2
    terminal_table(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
