"""Progress that says what is going on: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime

from rich.console import Console
from rich.live import Live
from rich.table import Table

from harness.cell import Progress

PLAIN_SECONDS = 10.0
"""Time between two lines where the output is not a terminal."""


class ProgressDisplay:
    """Shows the cells' counts, rate, cost and remaining time. Use as a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = time.monotonic()
        self._last_line = self._started
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None

    def __enter__(self) -> ProgressDisplay:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def update(self, cells: Mapping[str, Progress]) -> None:
        """Show the newest counts; cheap enough to be called twice a second."""
        elapsed = time.monotonic() - self._started
        if self._live:
            self._live.update(_table(cells, summary(cells, elapsed)))
        elif time.monotonic() - self._last_line >= PLAIN_SECONDS:
            self._last_line = time.monotonic()
            self.say(summary(cells, elapsed))

    def say(self, text: str) -> None:
        """Print one line, above the live table if there is one."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def summary(cells: Mapping[str, Progress], elapsed: float) -> str:
    """One line for all cells: counts, rate, cost, time left (known once something was forecast)."""
    total = sum(p.total for p in cells.values())
    answered = sum(p.answered for p in cells.values())
    fresh = sum(sum(p.done.values()) for p in cells.values())
    bad = sum(n for p in cells.values() for status, n in p.done.items() if status != "ok")
    ended = sum(p.state in ("complete", "incomplete", "failed") for p in cells.values())
    rate = fresh / elapsed if elapsed > 0 else 0.0
    parts = [
        f"cells {ended}/{len(cells)}",
        f"forecasts {answered}/{total}",
        f"in flight {sum(p.in_flight for p in cells.values())}",
        f"not ok {bad}",
        f"{rate:.1f}/s",
        f"${sum(p.cost_usd for p in cells.values()):.4f}",
    ]
    learning = [p for p in cells.values() if p.frontier is not None]
    if learning:
        slowest = min(learning, key=lambda p: p.frontier or datetime.max)
        parts.append(f"learned up to {slowest.frontier:%Y-%m-%d}, front {sum(p.front for p in learning)}")
    if rate > 0 and total > answered:
        parts.append(f"about {(total - answered) / rate:.0f} s left")
    return " · ".join(parts)


def _table(cells: Mapping[str, Progress], caption: str) -> Table:
    table = Table(caption=caption, expand=False)
    for name, justify in (
        ("cell", "left"),
        ("state", "left"),
        ("done", "right"),
        ("in flight", "right"),
        ("not ok", "right"),
        ("cost", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for name, p in cells.items():
        bad = sum(n for status, n in p.done.items() if status != "ok")
        table.add_row(name, p.state, f"{p.answered}/{p.total}", str(p.in_flight), str(bad), f"${p.cost_usd:.4f}")
    return table
