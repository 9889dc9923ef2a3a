"""Reports read the Parquet files of finished runs and write tables, figures and a page; they call no model."""

from reports.build import Report, build
from reports.terminal import terminal_table

__all__ = ["Report", "build", "terminal_table"]
