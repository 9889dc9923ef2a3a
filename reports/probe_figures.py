"""The paper's Figure 5 and the curve over time, drawn from the rows of report.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.drawing import COLOURS, LINE, MARGIN, MARKS, WIDTH, Picture, canvas, frame, heading, method_styles, picture
from reports.labels import titled
from reports.probes import Findings

FIGURE5, CUTOFF = "figure5_name_date", "cutoff_curve"
NAMES = (FIGURE5, CUTOFF)
_ROW, _ABOVE, _BELOW, _SIDE, _GAP = 0.34, 0.38, 0.5, 2.0, 0.3  # inches
_INPUTS = (("nd", "name and date"), ("nc", "with headlines"), ("full", "with the text"))
Row = Mapping[str, Any]


def pictures(f: Findings, data: Mapping[str, Any]) -> tuple[Picture, ...]:
    """Every figure with something to show; ``data`` is the content of report.json."""
    return tuple(drawn for drawn in (name_date(f, data["ndp"]), cutoff_curve(f, data["cutoff"])) if drawn)


def name_date(f: Findings, rows: Sequence[Row]) -> Picture | None:
    """MemBase, its distance from the base rate, the content effect, and how often each input says positive; a line a backbone and benchmark."""
    if not rows:
        return None
    cells = {cell for row in rows for cell in row["cells"]}
    title = titled(
        "Name-Date Probe (as the paper's Figure 5), 95 % intervals", [s for s in f.scores if s.cell in cells]
    )
    alt = f"{title}. {len(rows)} lines, one a backbone and benchmark, in four panels. The same figures stand in the table of the Name-Date Probe."
    return picture(FIGURE5, title, alt, lambda: _draw(rows, title))


def _draw(rows: Sequence[Row], title: str) -> Figure:
    lines = heading(title)
    tall = len(rows) * _ROW
    top, bottom = MARGIN + LINE * len(lines), MARGIN + LINE
    high = top + _ABOVE + tall + _BELOW + bottom
    figure = canvas(WIDTH, high)
    wide = (WIDTH - _SIDE - 4 * _GAP) / 4
    panels = [
        figure.add_axes(((_SIDE + i * (wide + _GAP)) / WIDTH, (bottom + _BELOW) / high, wide / WIDTH, tall / high))
        for i in range(4)
    ]
    for y, row in enumerate(rows):
        _dot(panels[0], y, row, "membase", "membase_ci")
        panels[0].plot([100 * row["base_rate"]] * 2, [y - 0.27, y + 0.27], color="#222222", lw=1.6)
        _dot(panels[1], y, row, "base_distance", "base_distance_ci")
        _dot(panels[2], y, row, "delta_content", "delta_content_ci")
        for i, (key, _) in enumerate(_INPUTS):
            if row[f"positive_{key}"] is not None:
                panels[3].plot(
                    [100 * row[f"positive_{key}"]], [y], MARKS[i], color=COLOURS[i], ms=5, mfc="none" if i else None
                )
        panels[3].plot([100 * row["base_rate"]] * 2, [y - 0.27, y + 0.27], color="#222222", lw=1.6)
    names = [f"{row['backbone']} · {row['benchmark']}" for row in rows]
    titles = ("MemBase, %", "MemBase − base, points", "Δ content, points", "Says positive, %")
    for i, (axes, name) in enumerate(zip(panels, titles, strict=True)):
        axes.set_yticks(
            range(len(rows)), [n if len(n) <= 30 else f"{n[:29]}…" for n in names] if i == 0 else [""] * len(rows)
        )
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_title(name, loc="left", fontweight="bold")
        axes.grid(axis="x", color="#e6e6e6", lw=0.6)
        axes.set_axisbelow(True)
        axes.axvline(50 if i in (0, 3) else 0, color="#555555", lw=1.0, ls=(0, (1, 2)))
    inputs = [
        Line2D([], [], color=COLOURS[i], marker=MARKS[i], ls="none", ms=5, mfc="none" if i else None, label=words)
        for i, (_, words) in enumerate(_INPUTS)
    ]
    base = Line2D([], [], color="#222222", marker="|", mew=1.6, ls="none", ms=10, label="base rate (share of rises)")
    frame(figure, lines, [*inputs, base])
    return figure


def _dot(axes: Axes, y: int, row: Row, key: str, ends: str) -> None:
    if row[key] is None:
        return
    if row[ends] is not None:
        axes.plot([100 * end for end in row[ends]], [y, y], color=COLOURS[0], lw=1.6, solid_capstyle="butt")
    axes.plot([100 * row[key]], [y], MARKS[0], color=COLOURS[0], ms=5)


def cutoff_curve(f: Findings, rows: Sequence[Row]) -> Picture | None:
    """Accuracy by month, a panel a backbone and benchmark, a line a method, the cutoff upright; None without a declared cutoff."""
    if not rows:
        return None
    cells = {cell for row in rows for cell in row["cells"]}
    words = "Accuracy by month of the decision, and the declared training cutoff"
    title = titled(words, [s for s in f.every if s.cell in cells])
    panels = sorted({(row["backbone"], row["benchmark"]) for row in rows})
    alt = f"{title}. {len(panels)} panels, one a backbone and benchmark. The same figures stand in report.json."
    return picture(CUTOFF, title, alt, lambda: _curves(rows, panels, title))


def _curves(rows: Sequence[Row], panels: Sequence[tuple[str, str]], title: str) -> Figure:
    styles = method_styles(row["method"] for row in rows)
    keys = -(-len(styles) // 5)
    lines, tall = heading(title), 2.2
    top, bottom = MARGIN + LINE * len(lines), MARGIN + LINE * keys
    high = top + len(panels) * (_ABOVE + tall + _BELOW) + bottom
    figure = canvas(WIDTH, high)
    for i, place in enumerate(panels):
        low = high - top - (i + 1) * (_ABOVE + tall + _BELOW) + _BELOW
        axes = figure.add_axes((0.7 / WIDTH, low / high, (WIDTH - 1.0) / WIDTH, tall / high))
        own = [row for row in rows if (row["backbone"], row["benchmark"]) == place]
        months = sorted({m["month"] for row in own for m in row["months"]} | {row["cutoff"][:7] for row in own})
        at = {month: x for x, month in enumerate(months)}
        for row in own:
            colour, mark = styles[row["method"]]
            xs = [at[m["month"]] for m in row["months"]]
            axes.plot(xs, [100 * m["acc"] for m in row["months"]], color=colour, marker=mark, ms=5, lw=1.2)
        for cutoff in {row["cutoff"] for row in own}:
            axes.axvline(at[cutoff[:7]] + (int(cutoff[8:]) - 16) / 31, color="#222222", lw=1.6)
        axes.axhline(50, color="#555555", lw=1.0, ls=(0, (1, 2)))
        step = max(1, len(months) // 12)
        axes.set_xticks(range(0, len(months), step), months[::step])
        axes.set_title(" · ".join(place), loc="left", fontweight="bold")
        axes.set_ylabel("Accuracy, %")
        axes.set_ylim(-3, 103)
        axes.grid(axis="y", color="#e6e6e6", lw=0.6)
    handles = [Line2D([], [], color=c, marker=m, lw=1.2, ms=5, label=name) for name, (c, m) in styles.items()]
    frame(figure, lines, [*handles, Line2D([], [], color="#222222", lw=1.6, label="declared cutoff")])
    return figure
