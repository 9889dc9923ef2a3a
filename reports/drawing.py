"""How figures are drawn and written: one style, one colour and mark a method, the same bytes for the same data. SVG text stays text."""

from __future__ import annotations

import hashlib
import io
import textwrap
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

BASELINE = "#767676"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Okabe & Ito: told apart by the colour-blind."""
MARKS = "osD^vP"
WIDTH, MARGIN, LINE = 11.5, 0.12, 0.2
"""Inches: the figure, around it, a line of the title or the legend."""
KEYS = 5
"""Entries in a line of the legend."""
_CJK = ("Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei")
_METHODS = {
    "tiem": ("#D55E00", "*"), "zero_shot": ("#000000", "o"), "cot": ("#5D5D5D", "s"), "vanilla_rag": ("#0072B2", "o"),
    "memgpt": ("#009E73", "s"), "mem0": ("#009E73", "D"), "a_mem": ("#00573F", "^"), "hipporag": ("#56B4E9", "v"),
    "probe_nd": ("#009E73", "v"), "probe_full": ("#000000", "D"), "probe_recall": ("#CC79A7", "^"),
    "graphrag": ("#CC79A7", "P"), "lightrag": ("#8B3A6B", "X"), "hypergraphrag": ("#E69F00", "D"),
}  # fmt: skip
_FREE = tuple((colour, mark) for mark in "<>hpdH" for colour in COLOURS)


@dataclass(frozen=True)
class Picture:
    """A drawn figure. ``alt`` says in words what it shows."""

    name: str
    title: str
    alt: str
    svg: bytes
    png: bytes


def picture(name: str, title: str, alt: str, draw: Callable[[], Figure]) -> Picture:
    """Draw in the common style and write both formats."""
    with matplotlib.rc_context(_style()), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing"
        )  # a label in a script without a font must not stop a report
        figure = draw()
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Title": title})
        figure.savefig(png, format="png", dpi=150, metadata={"Software": None})
    return Picture(name, title, alt, svg.getvalue(), png.getvalue())


def canvas(wide: float, high: float) -> Figure:
    """An empty figure of that many inches."""
    figure = Figure(figsize=(wide, high))
    FigureCanvasAgg(figure)
    return figure


def heading(title: str, wide: float = WIDTH) -> list[str]:
    """Lines of a title that fit a figure of ``wide`` inches."""
    return textwrap.wrap(title, int(wide * 10))


def frame(figure: Figure, lines: Sequence[str], handles: list[Line2D], keys: int = KEYS) -> None:
    """Title above, legend below."""
    high = figure.get_figheight()
    figure.text(0.012, 1 - MARGIN / high, "\n".join(lines), va="top", ha="left", fontsize=11, fontweight="bold")
    figure.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0.005, 0.0), ncols=keys, frameon=False, fontsize=8.5,
        borderpad=0.3, borderaxespad=0.3,
    )  # fmt: skip


def method_styles(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and mark by the name of a method, the same in every figure of every report; variants look like their method."""
    return {name: _METHODS.get(_base(name)) or _FREE[_digest(_base(name)) % len(_FREE)] for name in names}


def _base(name: str) -> str:
    return name.split(" (")[0]


def _digest(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")


def _style() -> dict[Any, Any]:
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return {
        "svg.hashsalt": "reports", "svg.fonttype": "none", "font.size": 9, "axes.titlesize": 10,
        "font.family": ["DejaVu Sans", *(name for name in _CJK if name in installed)],
        "text.parse_math": False, "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    }  # fmt: skip
