"""The results table for a terminal or a log file: what fits; the rest is in the report."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from reports.build import Report
from reports.tables import Table

OF_PROBES = ("benchmark", "backbone", "probe", "n", "value", "p_holm", "verdict")
COLUMNS = ("benchmark", "backbone", "method", "n", "coverage", "acc", "mcc", "f1_macro", "notes")
"""What is shown; the intervals of MCC and macro F1 are left to the report."""


def terminal_table(report: Report, console: Console | None = None, page: str | None = None) -> None:
    """Print the results table, that of the probes, and the number of warnings; columns are never cut, whatever the width.

    ``page`` is where the reader finds the page, if not in ``report.out``.
    """
    out = console or Console()
    by_name = {table.name: table for table in report.tables}
    if "results" in by_name:
        _print(out, by_name["results"], COLUMNS, "acc")
    if "probes" in by_name and by_name["probes"].rows:
        _print(out, by_name["probes"], OF_PROBES, "value")
    elif "probe_cells" in by_name:  # no test is possible
        _print(out, by_name["probe_cells"], COLUMNS, "acc")
    if report.warnings:
        out.print(Text(f"{len(report.warnings)} warnings in the report."), soft_wrap=True)
    out.print(Text(f"Report: {page or report.out / 'report.html'}"), soft_wrap=True)


def _print(out: Console, table: Table, keys: tuple[str, ...], with_interval: str) -> None:
    """``keys`` of ``table``, the interval of one of them beside it."""
    grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    shown = [(i, column) for i, column in enumerate(table.visible) if column.key in keys]
    for _, column in shown:
        grid.add_column(Text(column.header), justify="left" if column.kind == "text" else "right", no_wrap=True)
    for row in table.shown():
        texts = (f"{row[i].text} {row[i].ci if column.key == with_interval else ''}".strip() for i, column in shown)
        grid.add_row(*map(Text, texts))
    needed = Measurement.get(out, out.options.update(width=10_000), grid).maximum
    out.print(Text(table.caption), soft_wrap=True)
    before, out.width = out.width, max(out.width, needed)
    out.print(grid)
    out.width = before
