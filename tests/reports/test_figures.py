"""What the eye must be able to tell in the forest plot, measured on the drawn figure."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports import figures
from reports.load import load
from reports.scores import score
from tests.reports.runs import demo_run, rows, write_cell


def drawn(run: Path) -> Figure:
    scores = [s for s in map(score, load([run]).cells) if s.acc is not None]
    figure = figures._draw(scores, "Accuracy")
    figure.canvas.draw()
    return figure


def many(run: Path) -> Path:
    for benchmark in ("astock", "cmin", "edt"):
        for method in range(4):
            for backbone in ("a", "b", "c", "d", "e"):
                write_cell(run, rows(f"m{method}", backbone, benchmark, n=12))
    return run


def upright(axes: Axes) -> list[Line2D]:
    """Lines of one x: base-rate ticks and the 50 % line."""
    return [line for line in axes.lines if len(line.get_xdata()) == 2 and len(set(line.get_xdata())) == 1]  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [demo_run, many, lambda run: write_cell(run, rows(n=9)).parents[2]])
def test_nothing_overlaps_and_no_gap_is_left(run: Path, make: object) -> None:
    figure = drawn(make(run))  # type: ignore[operator]
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    (legend,) = figure.legends
    frame, (title,) = legend.get_window_extent(), figure.texts
    inch = figure.dpi
    assert 0 < min(box.y0 for box in boxes if box) - frame.y1 < 0.2 * inch
    assert 0 < title.get_window_extent().y0 - max(box.y1 for box in boxes if box) < 0.3 * inch
    assert frame.y0 >= 0
    assert frame.x1 <= figure.bbox.x1
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i] if a and b)


def test_ticks_do_not_join_and_the_50_line_is_another_kind_of_line(run: Path) -> None:
    for axes in drawn(demo_run(run)).axes:
        dotted = [line for line in upright(axes) if line.is_dashed()]
        ticks = [line for line in upright(axes) if not line.is_dashed()]
        (even,) = dotted
        assert even.get_xdata()[0] == 50  # type: ignore[index]
        assert len(ticks) == len(axes.get_yticks())
        for tick in ticks:
            low, high = tick.get_ydata()  # type: ignore[misc]
            assert high - low < 0.7  # type: ignore[operator]
            assert tick.get_solid_capstyle() == "butt"
            assert tick.get_color() != even.get_color()


def test_the_legend_explains_both_and_50_is_always_in_sight(run: Path) -> None:
    write_cell(run, [row | {"prob_positive": 0.9, "label": "positive"} for row in rows(n=60)])
    figure = drawn(run)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts[-2:] == ["base rate (always positive)", "50 % (a coin)"]
    assert figure.axes[0].get_xlim()[0] < 50


def test_long_names_keep_what_tells_them_apart(run: Path) -> None:
    name = "a_method_with_a_rather_long_name_that_is_cut"
    for seed in (1, 2):
        write_cell(run, [row | {"seed": seed, "cell": f"c{seed}"} for row in rows(name, n=6, gate="off")])
    labels = [text.get_text() for text in drawn(run).axes[0].get_yticklabels()]
    assert len(set(labels)) == 2
    assert all("seed=" in text and "GATE OFF" in text for text in labels)
