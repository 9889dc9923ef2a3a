"""Progress that says what is going on: a live table in a terminal, plain lines elsewhere, and a status file for other shells."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from harness.errors import HarnessError
from harness.gateway.result import Stats
from harness.jobs import Progress
from harness.records import total
from harness.store import write_json

PLAIN_SECONDS = 10.0
"""Time between two lines where the output is not a terminal."""
STATUS_SECONDS = 1.0
"""Least time between two writes of the status file."""
STATUS_FILE = "status.json"
COLUMNS = ("cell", "state", "done", "under way", "not ok", "waiting on", "retrying", "cost", "left")
TEXT_COLUMNS = 2
"""So many of them, the first, are flush left."""
_ENDED = ("complete", "incomplete", "failed")
_WINDOW_S = 60.0
_ALL = "all"


class Pace:
    """Forecasts a second over the last minute, by cell: what was fast an hour ago says nothing of what is left."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._seen: dict[str, deque[tuple[float, int]]] = {}

    def note(self, cells: Mapping[str, Progress]) -> None:
        """Take the newest counts."""
        now = self._now()
        made = {name: sum(p.done.values()) for name, p in cells.items()}
        for name, count in {**made, _ALL: sum(made.values())}.items():
            seen = self._seen.setdefault(name, deque())
            seen.append((now, count))
            while len(seen) > 1 and seen[1][0] <= now - _WINDOW_S:
                seen.popleft()

    def rate(self, name: str = _ALL) -> float | None:
        """Forecasts a second; None until there is something to measure."""
        seen = self._seen.get(name)
        if not seen or seen[-1][0] <= seen[0][0]:
            return None
        return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])

    def left_s(self, left: int, name: str = _ALL) -> float | None:
        """Seconds for ``left`` forecasts at that rate; None where nothing was forecast in the last minute."""
        rate = self.rate(name)
        return left / rate if left and rate else None


@dataclass
class Snapshot:
    """The counts of one moment.

    Attributes:
        cells: by name of the cell or training.
        endpoints: what each backbone's gateway does, by the backbone's name; those not heard from are left out.
    """

    cells: Mapping[str, Progress]
    endpoints: Mapping[str, Stats] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)

    def endpoint(self, progress: Progress) -> Stats | None:
        """The gateway that the cell calls."""
        return self.endpoints.get(progress.backbone or "")

    def cell(self, name: str) -> dict[str, Any]:
        """One cell as the status file holds it. ``waiting_on`` and ``retrying`` are those of its endpoint, shared with other cells."""
        p = self.cells[name]
        stats = self.endpoint(p)
        running = p.state == "running" and stats is not None
        return {
            "state": p.state,
            "total": p.total,
            "done": p.answered,
            "resumed": p.resumed,
            "in_flight": p.in_flight,
            "not_ok": not_ok(p),
            "counts": dict(sorted(p.done.items())),
            "backbone": p.backbone,
            "waiting_on": stats.waiting_on if running and stats else None,
            "retrying": stats.retrying if running and stats else 0,
            "cost_usd": p.cost_usd,
            "left_s": self.pace.left_s(p.total - p.answered, name) if p.state == "running" else None,
            "learned_up_to": p.frontier.isoformat() if p.frontier else None,
        }

    def as_json(self) -> dict[str, Any]:
        """As the status file holds it."""
        done, total = sum(p.answered for p in self.cells.values()), sum(p.total for p in self.cells.values())
        return {
            "total": {
                "cells": len(self.cells),
                "ended": sum(p.state in _ENDED for p in self.cells.values()),
                "forecasts": total,
                "done": done,
                "a_second": self.pace.rate(),
                "left_s": self.pace.left_s(total - done),
                "cost_usd": cost_of(self.cells),
            },
            "cells": {name: self.cell(name) for name in self.cells},
            "endpoints": {name: asdict(stats) for name, stats in self.endpoints.items()},
        }


class StatusFile:
    """``status.json`` in the run directory: replaced as a whole, at most once a second."""

    def __init__(self, path: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._now = now
        self._last = float("-inf")
        self._about = {"pid": os.getpid(), "started_at": _stamp()}

    def write(self, snapshot: Snapshot, ended: bool = False) -> None:
        """Write, unless the last write is not a second old; the end is always written.

        Raises:
            HarnessError: it cannot be written.
        """
        if self._now() - self._last >= STATUS_SECONDS or ended:
            self._last = self._now()
            about = {**self._about, "updated_at": _stamp(), "ended_at": _stamp() if ended else None}
            write_json(self._path, {**about, **snapshot.as_json()})


class ProgressDisplay:
    """Shows the cells' counts, waits, costs and remaining times. Use as a context manager."""

    def __init__(self, console: Console, status: Path | None = None) -> None:
        self._console = console
        self._pace = Pace()
        self._last_line = time.monotonic()
        self._snapshot: Snapshot | None = None
        self._status = StatusFile(status) if status else None
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None

    def __enter__(self) -> ProgressDisplay:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()
        if self._snapshot is not None:
            self._write_status(self._snapshot, ended=True)

    def update(self, cells: Mapping[str, Progress], endpoints: Mapping[str, Stats]) -> None:
        """Show the newest counts; cheap enough to be called twice a second."""
        self._pace.note(cells)
        self._snapshot = snapshot = Snapshot(cells, endpoints, self._pace)
        self._write_status(snapshot)
        if self._live:
            self._live.update(_table(snapshot))
        elif time.monotonic() - self._last_line >= PLAIN_SECONDS:
            self._last_line = time.monotonic()
            self.say(summary(snapshot))

    def say(self, text: str) -> None:
        """Print one line, above the live table if there is one."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _write_status(self, snapshot: Snapshot, ended: bool = False) -> None:
        if self._status is not None:
            try:
                self._status.write(snapshot, ended)
            except HarnessError as error:  # it must not end a run that can go on
                self._status = None
                self.say(f"no status file any more: {error}")


def summary(snapshot: Snapshot) -> str:
    """One line for all cells: counts, rate, cost, time left (known once something was forecast), and what endpoints wait for."""
    cells = snapshot.cells
    total, answered = sum(p.total for p in cells.values()), sum(p.answered for p in cells.values())
    parts = [
        f"cells {sum(p.state in _ENDED for p in cells.values())}/{len(cells)}",
        f"forecasts {answered}/{total}",
        f"under way {sum(p.in_flight for p in cells.values())}",
        f"not ok {sum(not_ok(p) for p in cells.values())}",
        f"{snapshot.pace.rate() or 0.0:.1f}/s",
    ]
    cost = cost_of(cells)
    if cost:
        parts.append(f"${cost:.4f}")
    learning = [p for p in cells.values() if p.frontier is not None]
    if learning:
        slowest = min(learning, key=lambda p: p.frontier or datetime.max)
        parts.append(f"learned up to {slowest.frontier:%Y-%m-%d}, front {sum(p.front for p in learning)}")
    left = snapshot.pace.left_s(total - answered)
    if left is not None:
        parts.append(f"about {duration(left)} left")
    parts += [f"{name}: {text}" for name, stats in snapshot.endpoints.items() if (text := endpoint_text(stats))]
    return " · ".join(parts)


def endpoint_text(stats: Stats) -> str:
    """What a gateway waits for; empty if it does not."""
    parts = []
    if stats.waiting_on:
        parts.append(f"{stats.waiting} waiting on {stats.waiting_on}")
    if stats.retrying:
        parts.append(f"{stats.retrying} retrying")
    if stats.n429:
        parts.append(f"{stats.n429} × 429 so far")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """``90`` -> ``1 min 30 s``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def not_ok(progress: Progress) -> int:
    """Forecasts of this run that are not ok."""
    return sum(n for status, n in progress.done.items() if status != "ok")


def cost_of(cells: Mapping[str, Progress]) -> float | None:
    """USD paid in this run; None if a part is not known."""
    return total(p.cost_usd for p in cells.values())


def _table(snapshot: Snapshot) -> Table:
    table = Table(caption=summary(snapshot), expand=False)
    for number, name in enumerate(COLUMNS):
        table.add_column(name, justify="left" if number < TEXT_COLUMNS else "right")
    for name in snapshot.cells:
        table.add_row(*cell_texts(name, snapshot.cell(name)))
    return table


def cell_texts(name: str, cell: Mapping[str, Any]) -> list[str]:
    """A cell of the status file as the ``COLUMNS`` of a table."""
    cost, left = cell["cost_usd"], cell["left_s"]
    return [
        name,
        cell["state"],
        f"{cell['done']}/{cell['total']}",
        str(cell["in_flight"]),
        str(cell["not_ok"]),
        cell["waiting_on"] or "",
        str(cell["retrying"]) if cell["retrying"] else "",
        "-" if cost is None else f"${cost:.4f}",
        "" if left is None else duration(left),
    ]


def _stamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
