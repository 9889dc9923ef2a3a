"""Rows as aligned plain text: nothing is wrapped or cut, so it can be read in a log and searched."""

from __future__ import annotations

from collections.abc import Sequence


def listing(head: Sequence[str], rows: Sequence[Sequence[str] | None], left: int = 1) -> str:
    """``head`` and ``rows`` in columns, the first ``left`` flush left, the others flush right; None draws a line."""
    every = [list(head), *(list(row) for row in rows if row is not None)]
    widths = [max(len(row[i]) for row in every) for i in range(len(head))]

    def line(row: Sequence[str] | None) -> str:
        if row is None:
            return "─" * (sum(widths) + 2 * (len(widths) - 1))
        cells = [
            text.ljust(w) if i < left else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join(line(row) for row in (list(head), None, *rows))
