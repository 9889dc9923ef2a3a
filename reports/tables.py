"""One table, four outputs: CSV with full precision, and Markdown, LaTeX (booktabs) and HTML with rounded figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any, Literal

Kind = Literal["text", "int", "percent", "decimal", "p", "usd", "flag"]
MISSING = "—"
_WIDE = 10  # columns beyond which LaTeX sets them closer together
_MD = str.maketrans({c: "\\" + c for c in "\\`*_|<>[]~"} | {"\n": " "})
_TEX = str.maketrans(
    {c: "\\" + c for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "[": "{[}", "]": "{]}"}
    | {"—": "---", "–": "--", "×": r"$\times$", "÷": r"$\div$", "−": "$-$", "\n": " "}
    | {"κ": r"$\kappa$", "Σ": r"$\Sigma$", "²": "$^2$"}
)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        key: key in a row, and header in the CSV.
        header: what people read.
        kind: how values are shown; percent takes fractions.
        ci: key of the interval shown after the value; ``<ci>_low`` and ``<ci>_high`` in the CSV.
        shown: False for columns of the CSV only.
        text: key of a text that, where a row has one, is shown instead of the value; the CSV keeps the value.
        over: heading above this column and its neighbours of the same ``over``.
        interval: the value is an interval, in the CSV ``<key>_low`` and ``<key>_high``.
        ranked: mark the highest and the second highest value of each group of rows, see ``Table.group``.
    """

    key: str
    header: str
    kind: Kind = "text"
    ci: str | None = None
    shown: bool = True
    text: str | None = None
    over: str = ""
    interval: bool = False
    ranked: bool = False

    @property
    def heading(self) -> str:
        """The header with what stands over it."""
        return f"{self.over} {self.header}".strip()


@dataclass(frozen=True)
class Shown:
    """One cell of a table as people read it; ``mark`` is "best", "second" or ""."""

    text: str
    ci: str
    numeric: bool
    mark: str = ""

    @property
    def whole(self) -> str:
        """Value and interval."""
        return f"{self.text} {self.ci}".strip()


@dataclass(frozen=True)
class Table:
    """Rows by column key, in the order they are shown. ``caption`` already carries its label; ``note`` explains the columns.

    ``group`` names the keys of a row within which ranked columns are ranked.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Any], ...]
    note: str = ""
    group: tuple[str, ...] = ()

    @property
    def visible(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.shown)

    def shown(self) -> list[list[Shown]]:
        """Rounded text, shape (rows, visible columns)."""
        podium = {column.key: self._podium(column.key) for column in self.visible if column.ranked}
        return [
            [_show(column, row, self._mark(podium, column.key, row)) for column in self.visible] for row in self.rows
        ]

    def _podium(self, key: str) -> dict[tuple[Any, ...], list[float]]:
        """The different values of each group with at least two of them, highest first."""
        values: dict[tuple[Any, ...], set[float]] = {}
        for row in self.rows:
            if row.get(key) is not None:
                values.setdefault(self._group(row), set()).add(row[key])
        return {group: sorted(found, reverse=True) for group, found in values.items() if len(found) > 1}

    def _mark(
        self, podium: Mapping[str, Mapping[tuple[Any, ...], list[float]]], key: str, row: Mapping[str, Any]
    ) -> str:
        values = podium.get(key, {}).get(self._group(row), [])
        return "best" if row.get(key) in values[:1] else "second" if row.get(key) in values[1:2] else ""

    def _group(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in self.group)

    def to_csv(self) -> str:
        """Fractions at full precision, an empty field for missing."""
        header = [name for column in self.columns for name in _fields(column)]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(header)
        for row in self.rows:
            writer.writerow([value for column in self.columns for value in _raw(column, row)])
        return out.getvalue()

    def to_markdown(self) -> str:
        """A pipe table under its caption."""
        head = [column.heading.translate(_MD) for column in self.visible]
        rule = ["---" if column.kind == "text" else "---:" for column in self.visible]
        marks = {"best": "**{}**", "second": "<u>{}</u>"}
        body = [[marks.get(cell.mark, "{}").format(cell.whole.translate(_MD)) for cell in row] for row in self.shown()]
        lines = [f"**{self.caption.translate(_MD)}**", "", *(f"| {' | '.join(line)} |" for line in (head, rule, *body))]
        return "\n".join([*lines, *(["", self.note.translate(_MD)] if self.note else [])]) + "\n"

    def to_latex(self) -> str:
        """A ``table*`` for ``\\usepackage{booktabs,graphicx}``, shrunk if it is wider than the text.

        Labels outside Latin script need XeLaTeX or LuaLaTeX.
        """
        spec = "".join("l" if column.kind == "text" else "r" for column in self.visible)
        head = " & ".join(column.header.translate(_TEX) for column in self.visible)
        marks = {"best": r"\textbf{{{}}}", "second": r"\underline{{{}}}"}
        body = [
            " & ".join(marks.get(cell.mark, "{}").format(cell.whole.translate(_TEX)) for cell in row) + r" \\"
            for row in self.shown()
        ]
        size = r"\small" if len(self.visible) <= _WIDE else r"\small\setlength{\tabcolsep}{3pt}"
        return "\n".join(
            [
                r"\begin{table*}", r"\centering", size, rf"\caption{{{self.caption.translate(_TEX)}}}",
                rf"\label{{tab:{self.name}}}", rf"\setbox0=\hbox{{\begin{{tabular}}{{{spec}}}", r"\toprule",
                *self._spanning(), head + r" \\", r"\midrule", *body, r"\bottomrule", r"\end{tabular}}",
                r"\leavevmode\ifdim\wd0>\textwidth\resizebox{\textwidth}{!}{\box0}\else\box0\fi", r"\end{table*}", "",
            ]
        )  # fmt: skip

    def _spanning(self) -> list[str]:
        """The line of headings over several columns, with rules under them; nothing if there are none."""
        if not any(column.over for column in self.visible):
            return []
        runs = [(over, len(list(columns))) for over, columns in groupby(self.visible, key=lambda column: column.over)]
        cells = [
            rf"\multicolumn{{{n}}}{{c}}{{{over.translate(_TEX)}}}" if over else " & " * (n - 1) for over, n in runs
        ]
        ends = list(accumulate(n for _, n in runs))
        rules = [rf"\cmidrule(lr){{{end - n + 1}-{end}}}" for (over, n), end in zip(runs, ends, strict=True) if over]
        return [" & ".join(cells) + r" \\", " ".join(rules)]


def escape_markdown(text: str) -> str:
    """``text`` so that Markdown shows it as it is."""
    return str(text).translate(_MD)


def _show(column: Column, row: Mapping[str, Any], mark: str) -> Shown:
    value, beside = row.get(column.key), row.get(column.ci) if column.ci else None
    instead = row.get(column.text) if column.text else None
    text = _ends(column.kind, value) if column.interval and value else _format(column.kind, value)
    return Shown(instead or text, _ends(column.kind, beside) if beside else "", column.kind != "text", mark)


def _ends(kind: Kind, interval: Sequence[float]) -> str:
    return f"[{_format(kind, interval[0])}, {_format(kind, interval[1])}]"


def _format(kind: Kind, value: Any) -> str:
    if value is None:
        return MISSING
    match kind:
        case "percent":
            return f"{100 * value:.2f}"
        case "decimal":
            return f"{value:.3f}"
        case "p":
            return "<0.001" if value < 0.001 else f"{value:.3f}"
        case "int":
            return f"{value:,.0f}"
        case "usd":
            return f"{value:,.4f}"
        case "flag":
            return "yes" if value else "no"
        case "text":
            return ", ".join(value) if isinstance(value, tuple) else str(value)


def _fields(column: Column) -> Sequence[str]:
    """Names of the fields that a column has in the CSV."""
    if column.interval:
        return (f"{column.key}_low", f"{column.key}_high")
    return (column.key, *((f"{column.ci}_low", f"{column.ci}_high") if column.ci else ()))


def _raw(column: Column, row: Mapping[str, Any]) -> list[Any]:
    value = row.get(column.key)
    if column.interval:
        return list(value or (None, None))
    text = ", ".join(value) if isinstance(value, tuple) else str(value).lower() if isinstance(value, bool) else value
    return [text, *((row.get(column.ci) or (None, None)) if column.ci else ())]
