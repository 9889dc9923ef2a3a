"""The paper's Figures 6 to 8 and the differences between methods, drawn from the rows of report.json."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from reports.columns import series_rows
from reports.drawing import LINE, MARGIN, WIDTH, Picture, canvas, frame, heading, method_styles, picture
from reports.findings import Findings
from reports.labels import display_names, titled
from reports.scores import Score

DIFFERENCES, SHIFT, PARETO, AGREEMENT = "differences", "figure6_shift", "figure7_tokens", "figure8_agreement"
NAMES = (DIFFERENCES, SHIFT, PARETO, AGREEMENT)
Row = Mapping[str, Any]
_ROW, _ABOVE, _BELOW = 0.26, 0.4, 0.55  # inches: a method, a panel's name over its rows, its axis under them
_GRID: dict[str, Any] = {"color": "#e6e6e6", "lw": 0.6, "zorder": 0}
_FILLINGS = ("full", "none", "left", "bottom", "right", "top")
_DARK, _SOFT = "#222222", "#555555"


def pictures(f: Findings, data: Mapping[str, Any]) -> list[Picture | None]:
    """Each figure, or None where it has nothing to show."""
    return [
        differences(f, data["pairs"]),
        shift(f, data["shift"]),
        pareto(f, data["tokens"]),
        agreement(f, data["consistency"]),
    ]


def differences(f: Findings, rows: Sequence[Row]) -> Picture | None:
    """The reference method minus each other, with intervals by day; filled where significant after correction."""
    names = display_names(f.scores)
    known = [r for r in rows if r["ci"]]
    references: dict[str, list[Score]] = defaultdict(list)
    for r in known:
        references[r["cell_b"]].append(f.by_cell[r["cell_a"]])
    shown = []
    for r in known:
        name, several = names[r["cell_b"]], references[r["cell_b"]]
        if len(several) > 1:
            name = f"{name} (against {display_names(several)[r['cell_a']]})"
        shown.append({**r, "method": name, "cells": (r["cell_a"], r["cell_b"])})
    if not shown:
        return None
    title = _titled(
        f, f"Accuracy of {f.reference} minus that of each other method, 95 % intervals by decision day", shown
    )

    def draw(axes: Axes, y: int, row: Row, colour: str, mark: str) -> None:
        axes.plot([100 * end for end in row["ci"]], [y, y], color=colour, lw=1.6, solid_capstyle="butt", zorder=2)
        face = colour if row["significant"] else "white"
        axes.plot([100 * row["diff"]], [y], mark, color=colour, mfc=face, ms=6, zorder=3)

    handles = [
        Line2D([], [], color=_DARK, marker="o", lw=1.6, label="significant after Holm, by rows and days"),
        Line2D([], [], color=_DARK, marker="o", mfc="white", lw=1.6, label="not told from zero"),
    ]
    return _panels(
        DIFFERENCES, title, shown, lambda r: f"{r['benchmark']} · {r['backbone']}", draw, "Points", handles, zero=True
    )


def shift(f: Findings, rows: Sequence[Row]) -> Picture | None:
    """Figure 6: accuracy on the reference and the shift benchmarks, the worst of these, and their ratio."""
    shown = [row for row in series_rows(rows, f.by_cell) if row["robustness"] is not None]
    if not shown:
        return None
    title = _titled(
        f, "Accuracy on the reference benchmarks and under shift; the number is the robustness ratio", shown
    )

    def draw(axes: Axes, y: int, row: Row, colour: str, mark: str) -> None:
        reference, moved, worst = (100 * row[key] for key in ("acc_ref", "acc_shift", "acc_worst"))
        axes.plot([reference, moved], [y, y], color=colour, lw=1.2, zorder=1)
        axes.plot([reference], [y], mark, color=colour, mfc="white", ms=7, zorder=3)
        axes.plot([moved], [y], mark, color=colour, ms=7, zorder=3)
        axes.plot([worst], [y], "|", color=colour, ms=11, mew=1.8, zorder=2)
        axes.annotate(
            f"{row['robustness']:.3f}", (1, y), (4, 0), ("axes fraction", "data"), "offset points", va="center",
            fontsize=8, color=_DARK, annotation_clip=False,
        )  # fmt: skip

    handles = [
        Line2D([], [], color=_DARK, marker="o", mfc="white", ls="none", label="reference (astock, finpure)"),
        Line2D([], [], color=_DARK, marker="o", ls="none", label="shift (cmin_us, edt, csmd)"),
        Line2D([], [], color=_DARK, marker="|", ls="none", ms=10, mew=1.8, label="worst of the shift benchmarks"),
    ]
    return _panels(SHIFT, title, shown, lambda r: r["backbone"], draw, "Accuracy, %", handles)


def agreement(f: Findings, rows: Sequence[Row]) -> Picture | None:
    """Figure 8: agreement, kappa and the share both have right, means over benchmarks."""
    means = [row for row in rows if row["benchmark"] == "macro" and not all(f.by_cell[c].no_llm for c in row["cells"])]
    keys = (("agreement", "Agreement, %"), ("kappa", "100 × Cohen's κ"), ("dual_correct", "Both right, %"))
    shown = [
        {**row, "value": row[key], "panel": f"{header} · {row['backbone_a']} and {row['backbone_b']}"}
        for key, header in keys
        for row in series_rows(means, f.by_cell)
        if row[key] is not None
    ]
    if not shown:
        return None
    title = _titled(f, "Agreement between backbones, mean over benchmarks", shown)

    def draw(axes: Axes, y: int, row: Row, colour: str, mark: str) -> None:
        axes.plot([0, 100 * row["value"]], [y, y], color=colour, lw=1.2, zorder=1)
        axes.plot([100 * row["value"]], [y], mark, color=colour, ms=7, zorder=3)

    return _panels(AGREEMENT, title, shown, lambda r: r["panel"], draw, "", [])


def pareto(f: Findings, rows: Sequence[Row]) -> Picture | None:
    """Figure 7: accuracy against tokens of the final call and of all calls, on a logarithmic axis."""
    apart = [key for key in ("gate", "seed") if len({row[key] for row in rows}) > 1]
    shown = [
        {**row, "tokens": row[key], "share": row[share], "panel": (_drawn_together(row, apart), name)}
        for row in series_rows(rows, f.by_cell)
        for name, key, share in (
            ("Final call alone", "tokens_final_mean", "frontier_share_final"),
            ("All calls", "tokens_lifecycle_mean", "frontier_share"),
        )
        if row["acc_mean"] is not None and row[key]
    ]
    if not shown:
        return None
    title = _titled(f, "Accuracy against tokens a forecast; per cent: share of draws on the frontier", shown)
    panels = sorted({row["panel"] for row in shown}, key=lambda panel: (panel[0], panel[1] != "Final call alone"))
    looks = _looks(row["method"] for row in shown)
    handles = [Line2D([], [], ls="none", ms=7, label=name, **look) for name, look in looks.items()]
    handles.append(Line2D([], [], color=_SOFT, ls=(0, (3, 2)), lw=1, label="frontier"))

    def draw_all() -> Figure:
        lines, tall = heading(title), 3.1
        down = math.ceil(len(panels) / 2)
        top, bottom = MARGIN + LINE * len(lines), MARGIN + LINE * math.ceil(len(handles) / 5)
        high = top + down * (tall + _ABOVE + _BELOW) + bottom
        figure = canvas(WIDTH, high)
        for i, name in enumerate(panels):
            below = top + (i // 2) * (tall + _ABOVE + _BELOW) + _ABOVE
            box = (0.7 + (i % 2) * WIDTH / 2, high - below - tall, WIDTH / 2 - 0.95, tall)
            axes = figure.add_axes((box[0] / WIDTH, box[1] / high, box[2] / WIDTH, box[3] / high))
            _scatter(axes, f"{name[1]} · {name[0]}", [row for row in shown if row["panel"] == name], looks)
        frame(figure, lines, handles)
        return figure

    alt = f"{title}. {len(panels)} panels. The same figures stand in the table of accuracy against tokens."
    return picture(PARETO, title, alt, draw_all)


def _drawn_together(row: Row, apart: Sequence[str]) -> str:
    """The backbone of a row, with gate and seed where rows differ in them: one frontier is drawn over each."""
    return " · ".join([row["backbone"], *(f"{key} {row[key]}" for key in apart)])


def _looks(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Colour, mark and filling by name: variants of a method share the first two and differ in how the mark is filled."""
    styles = method_styles(sorted(set(names)))
    seen: Counter[tuple[str, str]] = Counter()
    found = {}
    for name, (colour, mark) in styles.items():
        filling = _FILLINGS[seen[colour, mark] % len(_FILLINGS)]
        seen[colour, mark] += 1
        found[name] = {"color": colour, "marker": mark, "fillstyle": filling, "markerfacecoloralt": "white"}
    return found


def _scatter(axes: Axes, name: str, rows: Sequence[Row], looks: Mapping[str, Mapping[str, Any]]) -> None:
    best: list[Row] = []  # the frontier, carried on to the right edge
    for row in sorted(rows, key=lambda r: (r["tokens"], -r["acc_mean"])):
        if not best or row["acc_mean"] > best[-1]["acc_mean"]:
            best.append(row)
    best.append({**best[-1], "tokens": max(row["tokens"] for row in rows)})
    axes.plot(
        [r["tokens"] for r in best], [100 * r["acc_mean"] for r in best], ls=(0, (3, 2)), lw=1, color=_SOFT,
        drawstyle="steps-post", zorder=1,
    )  # fmt: skip
    for row in rows:
        axes.plot([row["tokens"]], [100 * row["acc_mean"]], ls="none", ms=8, zorder=3, **looks[row["method"]])
        if row["share"] is not None:
            axes.annotate(
                f"{100 * row['share']:.0f} %", (row["tokens"], 100 * row["acc_mean"]), xytext=(6, 5),
                textcoords="offset points", fontsize=7.5, color=_DARK, zorder=4,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(0.12)
    axes.grid(which="major", **_GRID)
    axes.set_axisbelow(True)
    axes.set_title(name, loc="left", fontweight="bold")
    axes.set_xlabel("Tokens a forecast")
    axes.set_ylabel("Accuracy, %")


def _titled(f: Findings, text: str, rows: Sequence[Row]) -> str:
    cells = {cell for row in rows for cell in row["cells"]}
    return titled(text, [s for s in f.scores if s.cell in cells])


def _panels(
    name: str,
    title: str,
    rows: Sequence[Row],
    panel_of: Callable[[Row], str],
    draw: Callable[[Axes, int, Row, str, str], None],
    label: str,
    handles: list[Line2D],
    *,
    zero: bool = False,
) -> Picture:
    """A row a method in panels of two columns, all on one axis; ``draw`` puts one row at height y in its method's colour and mark."""
    panels = [[row for row in rows if panel_of(row) == key] for key in dict.fromkeys(map(panel_of, rows))]
    styles = method_styles(sorted({row["method"] for row in rows}))

    def draw_all() -> Figure:
        lines_of_title, across = heading(title), min(2, len(panels))
        lines = [panels[i : i + across] for i in range(0, len(panels), across)]
        rooms = [_ABOVE + max(map(len, line)) * _ROW + _BELOW for line in lines]
        top, bottom = MARGIN + LINE * len(lines_of_title), MARGIN + (LINE if handles else 0)
        high, column = top + sum(rooms) + bottom, WIDTH / across
        names_room = min(2.9, 0.35 + 0.068 * max(len(row["method"]) for row in rows))
        figure, below, every = canvas(WIDTH, high), top, []
        for line, room in zip(lines, rooms, strict=True):
            for position, panel in enumerate(line):
                tall = len(panel) * _ROW
                left, base = position * column + names_room, high - below - _ABOVE - tall
                axes = figure.add_axes((left / WIDTH, base / high, (column - names_room - 0.55) / WIDTH, tall / high))
                for y, row in enumerate(panel):
                    draw(axes, y, row, *styles[row["method"]])
                _finish(axes, panel, panel_of(panel[0]), label)
                every.append(axes)
            below += room
        limits = [axes.get_xlim() for axes in every]
        for axes in every:
            axes.set_xlim(min(low for low, _ in limits), max(high for _, high in limits))
            if zero:
                axes.axvline(0, color=_SOFT, lw=1.3, ls=(0, (1, 2)), zorder=0.5)
        frame(figure, lines_of_title, handles)
        return figure

    alt = f"{title}. {len(rows)} rows in {len(panels)} panels. The same figures stand in the tables."
    return picture(name, title, alt, draw_all)


def _finish(axes: Axes, panel: Sequence[Row], title: str, label: str) -> None:
    axes.set_yticks(range(len(panel)), [_short(row["method"]) for row in panel])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(panel) - 0.4, -0.6)
    axes.grid(axis="x", **_GRID)
    axes.set_axisbelow(True)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(label)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:18]}…{text[-21:]}"
