"""Reliability diagrams: what share of the rises that were said to have a probability came true."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.columns import series_rows
from reports.drawing import LINE, MARGIN, WIDTH, Picture, canvas, frame, heading, method_styles, picture
from reports.findings import Findings
from reports.labels import titled

RELIABILITY = "reliability"
_ACROSS, _ROOM, _ABOVE, _BELOW, _LEFT = 4, 2.1, 0.4, 0.45, 0.55  # panels; inches
_SAID: dict[str, Any] = {"color": "#999999", "lw": 1}


def reliability(f: Findings, rows: Sequence[Mapping[str, Any]]) -> Picture | None:
    """Share of rises against mean probability, a panel a method and backbone; None without ``rows`` of report.json."""
    if not rows:
        return None
    shown = sorted(series_rows(rows, f.by_cell), key=lambda row: (row["backbone"], row["method"]))
    title = titled("Reliability: how often what was said to be likely came true", f.behind(rows))
    styles = method_styles(sorted({row["method"] for row in shown}))

    def draw() -> Figure:
        lines, down = heading(title), math.ceil(len(shown) / _ACROSS)
        top, bottom, column = MARGIN + LINE * len(lines), MARGIN + LINE, WIDTH / _ACROSS
        high = top + down * (_ABOVE + _ROOM + _BELOW) + bottom
        figure = canvas(WIDTH, high)
        for i, row in enumerate(shown):
            base = high - top - (i // _ACROSS) * (_ABOVE + _ROOM + _BELOW) - _ABOVE - _ROOM
            left = (i % _ACROSS) * column + _LEFT
            axes = figure.add_axes((left / WIDTH, base / high, (column - _LEFT - 0.15) / WIDTH, _ROOM / high))
            _panel(axes, row["points"], *styles[row["method"]])
            axes.set_title(f"{row['method']}\n{row['backbone']}", loc="left", fontsize=8, fontweight="bold")
            if i % _ACROSS == 0:
                axes.set_ylabel("Came true, %")
            if i >= len(shown) - _ACROSS:
                axes.set_xlabel("Said, %")
        frame(figure, lines, [Line2D([], [], label="as often as was said", **_SAID)])
        return figure

    alt = f"{title}. {len(shown)} panels, one a method and backbone. The points stand in report.json, as reliability."
    return picture(RELIABILITY, title, alt, draw)


def _panel(axes: Axes, points: Sequence[Mapping[str, Any]], colour: str, mark: str) -> None:
    axes.plot([0, 100], [0, 100], zorder=1, **_SAID)
    said, came = ([100 * p[key] for p in points] for key in ("prob_mean", "outcome_mean"))
    for x, p in zip(said, points, strict=True):
        axes.plot(
            [x, x], [100 * end for end in p["ci"]], color=colour, lw=1, alpha=0.5, solid_capstyle="butt", zorder=2
        )
    axes.plot(said, came, color=colour, marker=mark, ms=4.5, lw=1.2, zorder=3)
    for limits, ticks in ((axes.set_xlim, axes.set_xticks), (axes.set_ylim, axes.set_yticks)):
        limits(-3, 103)
        ticks((0, 50, 100))
    axes.grid(color="#e6e6e6", lw=0.6)
    axes.set_axisbelow(True)
