"""The results table for a terminal or a log file: what fits; the rest is in the report."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from reports.build import Report

COLUMNS = ("benchmark", "backbone", "method", "n", "coverage", "acc", "mcc", "f1_macro", "notes")
"""What is shown; the intervals of MCC and macro F1 are left to the report."""


def terminal_table(report: Report, console: Console | None = None) -> None:
    """Print the results table and the number of warnings; columns are never cut, whatever the width of the console."""
    out = console or Console()
    table = next(table for table in report.tables if table.name == "results")
    grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    shown = [(i, column) for i, column in enumerate(table.visible) if column.key in COLUMNS]
    for _, column in shown:
        grid.add_column(Text(column.header), justify="left" if column.kind == "text" else "right", no_wrap=True)
    for row in table.shown():
        texts = (f"{row[i].text} {row[i].ci if column.key == 'acc' else ''}".strip() for i, column in shown)
        grid.add_row(*map(Text, texts))
    needed = Measurement.get(out, out.options.update(width=10_000), grid).maximum
    out.print(Text(table.caption), soft_wrap=True)
    before, out.width = out.width, max(out.width, needed)
    out.print(grid)
    out.width = before
    if report.warnings:
        out.print(Text(f"{len(report.warnings)} warnings in the report."), soft_wrap=True)
    out.print(Text(f"Report: {report.out / 'report.html'}"), soft_wrap=True)
