"""Figures as SVG and PNG bytes, the same for the same scores. Text in the SVG stays text."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.labels import backbone_name, display_names, titled
from reports.scores import Score

FOREST = "accuracy_forest"
_COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
)  # Okabe & Ito: told apart by the colour-blind
_BASELINE = "#767676"
_BASE_RATE: dict[str, Any] = {"color": "#222222", "lw": 1.6, "solid_capstyle": "butt"}
_EVEN: dict[str, Any] = {"color": "#555555", "lw": 1.3, "ls": (0, (1, 2))}
_MARKS = "osD^vP"
_CJK = ("Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei")
_WIDTH, _MARGIN, _LINE = 11.5, 0.12, 0.2  # inches: the figure, around it, a line of the title or the legend
_ROW, _ABOVE, _BELOW = 0.26, 0.38, 0.5  # inches: a cell, a panel's name over its rows, its axis under them
_KEYS = 5  # entries in a line of the legend
_TICK = 0.27  # half of a base-rate tick in rows: below 0.5, or the ticks of neighbours would join into a line


@dataclass(frozen=True)
class Picture:
    """A drawn figure. ``alt`` says in words what it shows, ``caption`` how to read it."""

    name: str
    title: str
    alt: str
    svg: bytes
    png: bytes
    caption: str = ""


def forest(scores: Sequence[Score]) -> Picture | None:
    """Accuracy of every scored cell with its Wilson interval and base rates, a panel a benchmark; None if nothing is scored."""
    scored = [s for s in scores if s.acc is not None]
    if not scored:
        return None
    title = titled("Accuracy with 95 % interval", scored)
    with matplotlib.rc_context(_style()), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing"
        )  # a label in a script without a font must not stop a report
        figure = _draw(scored, title)
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Title": title})
        figure.savefig(png, format="png", dpi=150, metadata={"Software": None})
    alt = f"{title}. {len(scored)} cells in {len({s.benchmark for s in scored})} panels, one a benchmark. The same figures stand in the results table."
    caption = (
        f"{title}. Dot: accuracy. Line: 95 % Wilson interval. Upright tick: base rate, the accuracy of always answering positive. "
        "Dotted line: 50 %."
    )
    return Picture(FOREST, title, alt, svg.getvalue(), png.getvalue(), caption)


def _style() -> dict[Any, Any]:
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return {
        "svg.hashsalt": "reports", "svg.fonttype": "none", "font.size": 9, "axes.titlesize": 10,
        "font.family": ["DejaVu Sans", *(name for name in _CJK if name in installed)],
        "text.parse_math": False, "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    }  # fmt: skip


def _draw(scores: Sequence[Score], title: str) -> Figure:
    """Panels in one or two columns; every row has the same height, whatever the number of cells."""
    panels = [[s for s in scores if s.benchmark == name] for name in dict.fromkeys(s.benchmark for s in scores)]
    names, colours, limits = display_names(scores), _colours(scores), _range(scores)
    across = min(2, len(panels))
    lines = [panels[i : i + across] for i in range(0, len(panels), across)]
    rooms = [_ABOVE + max(map(len, line)) * _ROW + _BELOW for line in lines]
    heading, handles = textwrap.wrap(title, int(_WIDTH * 10)), _handles(colours)
    top, bottom = _MARGIN + _LINE * len(heading), _MARGIN + _LINE * math.ceil(len(handles) / _KEYS)
    wide, high = _WIDTH, top + sum(rooms) + bottom
    figure = Figure(figsize=(wide, high))
    FigureCanvasAgg(figure)
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
    _frame(figure, heading, handles)
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
    found = {name: (_COLOURS[i % len(_COLOURS)], _MARKS[i % len(_MARKS)]) for i, name in enumerate(backbones)}
    return found | ({"no LLM": (_BASELINE, "o")} if any(s.no_llm for s in scores) else {})


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


def _frame(figure: Figure, heading: list[str], handles: list[Line2D]) -> None:
    """Title above, legend below."""
    high = figure.get_figheight()
    figure.text(0.012, 1 - _MARGIN / high, "\n".join(heading), va="top", ha="left", fontsize=11, fontweight="bold")
    figure.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0.005, 0.0), ncols=_KEYS, frameon=False, fontsize=8.5,
        borderpad=0.3, borderaxespad=0.3,
    )  # fmt: skip
