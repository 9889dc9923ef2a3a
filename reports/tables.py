"""One table, four outputs: CSV with full precision, and Markdown, LaTeX (booktabs) and HTML with rounded figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["text", "int", "percent", "decimal", "p", "usd", "flag"]
MISSING = "—"
_MD = str.maketrans({c: "\\" + c for c in "\\`*_|<>[]~"} | {"\n": " "})
_TEX = str.maketrans(
    {c: "\\" + c for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "[": "{[}", "]": "{]}"}
    | {"—": "---", "–": "--", "×": r"$\times$", "÷": r"$\div$", "−": "$-$", "\n": " "}
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
    """

    key: str
    header: str
    kind: Kind = "text"
    ci: str | None = None
    shown: bool = True
    text: str | None = None


@dataclass(frozen=True)
class Shown:
    """One cell of a table as people read it."""

    text: str
    ci: str
    numeric: bool


@dataclass(frozen=True)
class Table:
    """Rows by column key, in the order they are shown. ``caption`` already carries its label; ``note`` explains the columns."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Any], ...]
    note: str = ""

    @property
    def visible(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.shown)

    def shown(self) -> list[list[Shown]]:
        """Rounded text, shape (rows, visible columns)."""
        return [[_show(column, row) for column in self.visible] for row in self.rows]

    def to_csv(self) -> str:
        """Fractions at full precision, an empty field for missing."""
        header = [name for column in self.columns for name in (column.key, *_ends(column))]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(header)
        for row in self.rows:
            writer.writerow([value for column in self.columns for value in _raw(column, row)])
        return out.getvalue()

    def to_markdown(self) -> str:
        """A pipe table under its caption."""
        head = [column.header.translate(_MD) for column in self.visible]
        rule = ["---" if column.kind == "text" else "---:" for column in self.visible]
        body = [[f"{cell.text} {cell.ci}".strip().translate(_MD) for cell in row] for row in self.shown()]
        lines = [f"**{self.caption.translate(_MD)}**", "", *(f"| {' | '.join(line)} |" for line in (head, rule, *body))]
        return "\n".join([*lines, *(["", self.note.translate(_MD)] if self.note else [])]) + "\n"

    def to_latex(self) -> str:
        """A ``table*`` for ``\\usepackage{booktabs}``; labels outside Latin script need XeLaTeX or LuaLaTeX."""
        spec = "".join("l" if column.kind == "text" else "r" for column in self.visible)
        head = " & ".join(column.header.translate(_TEX) for column in self.visible)
        body = [
            " & ".join(f"{cell.text} {cell.ci}".strip().translate(_TEX) for cell in row) + r" \\"
            for row in self.shown()
        ]
        return "\n".join(
            [
                r"\begin{table*}", r"\centering", r"\small", rf"\caption{{{self.caption.translate(_TEX)}}}",
                rf"\label{{tab:{self.name}}}", rf"\begin{{tabular}}{{{spec}}}", r"\toprule", head + r" \\", r"\midrule",
                *body, r"\bottomrule", r"\end{tabular}", r"\end{table*}", "",
            ]
        )  # fmt: skip


def escape_markdown(text: str) -> str:
    """``text`` so that Markdown shows it as it is."""
    return str(text).translate(_MD)


def _show(column: Column, row: Mapping[str, Any]) -> Shown:
    interval = row.get(column.ci) if column.ci else None
    ends = f"[{_format(column.kind, interval[0])}, {_format(column.kind, interval[1])}]" if interval else ""
    instead = row.get(column.text) if column.text else None
    return Shown(instead or _format(column.kind, row.get(column.key)), ends, column.kind != "text")


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


def _ends(column: Column) -> Sequence[str]:
    return (f"{column.ci}_low", f"{column.ci}_high") if column.ci else ()


def _raw(column: Column, row: Mapping[str, Any]) -> list[Any]:
    value = row.get(column.key)
    text = ", ".join(value) if isinstance(value, tuple) else str(value).lower() if isinstance(value, bool) else value
    return [text, *((row.get(column.ci) or (None, None)) if column.ci else ())]
