"""``python -m reports RUNS… --out DIR``: one report from one or several run directories, here or in a bucket."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from harness.errors import HarnessError
from reports import remote
from reports.build import build, obsolete
from reports.terminal import terminal_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, or 2 if the runs cannot be scored."""
    parser = argparse.ArgumentParser(
        prog="python -m reports", description="Write a comparison report from run directories."
    )
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="directory that holds cells/*/forecasts.parquet, or its address (s3://…, gs://…)",
    )
    parser.add_argument(
        "--out", help="where to write, a directory or an address (default: RUN/report; needed for several runs)"
    )
    parser.add_argument("--reference", help="method that the others are paired with (default: tiem)")
    parser.add_argument(
        "--audit",
        action="extend",
        nargs="+",
        metavar="FILE",
        default=[],
        help="audits of the data to show, written by python -m benchmarks audit NAME --json FILE",
    )
    options = parser.parse_args(arguments)
    if options.out is None and len(options.runs) > 1:
        parser.error("several runs: say where to write with --out DIR")
    with remote.workspace() as here:
        try:
            runs = [here.run(run) for run in options.runs]
            audits = [here.file(audit) for audit in options.audit]
            out = here.out(options.out or remote.joined(options.runs[0], "report"))
            report = build(runs, out, reference=options.reference, audits=audits)
            here.send(obsolete(report))
        except HarnessError as error:
            print(f"reports: {here.said(str(error))}", file=sys.stderr)
            return 2
        terminal_table(report, page=here.said(str(out / "report.html")))
        for run in here.left:
            print(
                f"{run}/cache stays where it is, so the page shows no prompt and no reply. To see them, copy the run directory here first."
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
