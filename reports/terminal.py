"""The results table for a terminal, or for a log file at full width."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from reports.build import Report


def terminal_table(report: Report, console: Console | None = None) -> None:
    """Print the results table and the number of warnings; columns are never cut, whatever the width of the console."""
    out = console or Console()
    table = next(table for table in report.tables if table.name == "results")
    grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.visible:
        grid.add_column(Text(column.header), justify="left" if column.kind == "text" else "right", no_wrap=True)
    for row in table.shown():
        grid.add_row(*(Text(f"{cell.text} {cell.ci}".strip()) for cell in row))
    needed = Measurement.get(out, out.options.update(width=10_000), grid).maximum
    out.print(Text(table.caption), soft_wrap=True)
    before, out.width = out.width, max(out.width, needed)
    out.print(grid)
    out.width = before
    if report.warnings:
        out.print(Text(f"{len(report.warnings)} warnings in the report."), soft_wrap=True)
    out.print(Text(f"Report: {report.out / 'report.html'}"), soft_wrap=True)
