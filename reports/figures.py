"""Which figures the report has; accuracy of every cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports import figures_paper as paper
from reports.drawing import (
    BASELINE,
    COLOURS,
    KEYS,
    LINE,
    MARGIN,
    MARKS,
    WIDTH,
    Picture,
    canvas,
    frame,
    heading,
    picture,
)
from reports.figures_calibration import RELIABILITY, reliability
from reports.findings import Findings
from reports.labels import backbone_name, display_names, titled
from reports.scores import Score

FOREST = "accuracy_forest"
NAMES = (FOREST, RELIABILITY, *paper.NAMES)
_BASE_RATE: dict[str, Any] = {"color": "#222222", "lw": 1.6, "solid_capstyle": "butt"}
_EVEN: dict[str, Any] = {"color": "#555555", "lw": 1.3, "ls": (0, (1, 2))}
_ROW, _ABOVE, _BELOW = 0.26, 0.38, 0.5  # inches: a cell, a panel's name over its rows, its axis under them
_TICK = 0.27  # half of a base-rate tick in rows: below 0.5, or the ticks of neighbours would join into a line


def pictures(f: Findings, data: Mapping[str, Any]) -> tuple[Picture, ...]:
    """Every figure with something to show; ``data`` is the content of report.json."""
    return tuple(
        drawn for drawn in (forest(f.scores), reliability(f, data["reliability"]), *paper.pictures(f, data)) if drawn
    )


def forest(scores: Sequence[Score]) -> Picture | None:
    """Accuracy of every scored cell with its Wilson interval and base rates, a panel a benchmark; None if nothing is scored."""
    scored = [s for s in scores if s.acc is not None]
    if not scored:
        return None
    title = titled("Accuracy with 95 % interval", scored)
    alt = f"{title}. {len(scored)} cells in {len({s.benchmark for s in scored})} panels, one a benchmark. The same figures stand in the results table."
    return picture(FOREST, title, alt, lambda: _draw(scored, title))


def _draw(scores: Sequence[Score], title: str) -> Figure:
    """Panels in one or two columns; every row has the same height, whatever the number of cells."""
    panels = [[s for s in scores if s.benchmark == name] for name in dict.fromkeys(s.benchmark for s in scores)]
    names, colours, limits = display_names(scores), _colours(scores), _range(scores)
    across = min(2, len(panels))
    lines = [panels[i : i + across] for i in range(0, len(panels), across)]
    rooms = [_ABOVE + max(map(len, line)) * _ROW + _BELOW for line in lines]
    lines_of_title, handles = heading(title), _handles(colours)
    top, bottom = MARGIN + LINE * len(lines_of_title), MARGIN + LINE * math.ceil(len(handles) / KEYS)
    wide, high = WIDTH, top + sum(rooms) + bottom
    figure = canvas(wide, high)
    names_room, gap = min(2.9, 0.35 + 0.068 * max(len(_row_name(s, names)) for s in scores)), 0.25  # inches
    column = wide / across
    below = top
    for line, room in zip(lines, rooms, strict=True):
        for position, panel in enumerate(line):
            tall = len(panel) * _ROW
            box = (position * column + names_room, high - below - _ABOVE - tall, column - names_room - gap, tall)
            axes = figure.add_axes((box[0] / wide, box[1] / high, box[2] / wide, box[3] / high))
            _panel(axes, panel, colours, names)
            axes.set_xlim(*limits)
        below += room
    frame(figure, lines_of_title, handles)
    return figure


def _panel(axes: Axes, panel: Sequence[Score], colours: dict[str, tuple[str, str]], names: dict[str, str]) -> None:
    for y, s in enumerate(panel):
        assert s.acc is not None
        assert s.acc_ci is not None
        colour, mark = colours[backbone_name(s) if not s.no_llm else "no LLM"]
        axes.plot([100 * end for end in s.acc_ci], [y, y], color=colour, lw=1.6, solid_capstyle="butt", zorder=2)
        axes.plot([100 * s.acc], [y], mark, color=colour, ms=5, zorder=3)
        assert s.base_rate is not None
        axes.plot([100 * s.base_rate] * 2, [y - _TICK, y + _TICK], zorder=1, **_BASE_RATE)
    axes.set_yticks(range(len(panel)), [_row_name(s, names) for s in panel])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(panel) - 0.4, -0.6)
    axes.axvline(50, zorder=0.5, **_EVEN)
    axes.grid(axis="x", color="#e6e6e6", lw=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.set_title(panel[0].benchmark, loc="left", fontweight="bold")
    axes.set_xlabel("Accuracy, %")


def _row_name(s: Score, names: dict[str, str]) -> str:
    text = names[s.cell] + (" · GATE OFF" if s.gate == "off" and "gate=" not in names[s.cell] else "")
    return text if len(text) <= 40 else f"{text[:18]}…{text[-21:]}"  # seed and gate, which tell rows apart, stand last


def _colours(scores: Sequence[Score]) -> dict[str, tuple[str, str]]:
    """Colour and mark of each backbone; baselines without a model are grey."""
    backbones = sorted({s.backbone for s in scores if not s.no_llm})
    found = {name: (COLOURS[i % len(COLOURS)], MARKS[i % len(MARKS)]) for i, name in enumerate(backbones)}
    return found | ({"no LLM": (BASELINE, "o")} if any(s.no_llm for s in scores) else {})


def _range(scores: Sequence[Score]) -> tuple[float, float]:
    """Common limits in per cent, to the next 5 outwards, so that panels can be compared by eye; 50 % is always inside."""
    values = [0.5, *(v for s in scores for v in (*(s.acc_ci or ()), s.base_rate) if v is not None)]
    return 5 * math.floor(20 * min(values)) - 1, 5 * math.ceil(20 * max(values)) + 1


def _handles(colours: dict[str, tuple[str, str]]) -> list[Line2D]:
    """The legend: one entry a backbone, the base rate, the 50 % line."""
    cells = [Line2D([], [], color=c, marker=m, lw=1.6, ms=5, label=name) for name, (c, m) in colours.items()]
    base = Line2D(
        [], [], color=_BASE_RATE["color"], marker="|", mew=_BASE_RATE["lw"], ls="none", ms=10,
        label="base rate (always positive)",
    )  # fmt: skip
    return [*cells, base, Line2D([], [], label="50 % (a coin)", **_EVEN)]
