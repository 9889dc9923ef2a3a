"""The context block of the graph methods: three tables within a budget, every row with its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.method import Context
from harness.records import Catalyst, Forecast, Passage
from harness.tokens import count_tokens
from methods import forecasting
from methods.base import render

TEMPLATE = "graph_context.j2"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a heading, best first; ``share`` is its part of the matched budget, ``tokens`` its native one."""

    heading: str
    rows: tuple[Passage, ...]
    share: float
    tokens: int


def fitted(tables: Sequence[Table], chars: int | None) -> list[Table]:
    """The tables cut at the ends of rows; those without a row are left out.

    Args:
        tables: in the order in which they are shown.
        chars: characters of the whole block, headings and line ends included; what a table leaves of its share is the next
            one's. None for the native budget: each table's own tokens.
    """
    room = 0.0 if chars is None else chars - sum(_line(table.heading) for table in tables)
    kept, left = [], 0.0
    for table in tables:
        if chars is None:
            rows = forecasting.fit(table.rows, table.tokens, count_tokens)
        else:
            left += table.share * room
            rows = forecasting.fit(table.rows, int(left + 1e-9), _line)
            left -= sum(_line(row.text) for row in rows)
        ranked = tuple(replace(row, rank=rank) for rank, row in enumerate(rows, start=1))
        kept.append(replace(table, rows=ranked))
    return [table for table in kept if table.rows]


async def ask(case: Catalyst, ctx: Context, tables: Sequence[Table]) -> Forecast:
    """The forecast from ``tables``, cut to the budget of the context."""
    shown = fitted(tables, ctx.context_chars)
    focal, concurrent = forecasting.base_passages(ctx.evidence)
    inputs = forecasting.Inputs(
        focal=focal[0].text if focal else None,
        concurrent=tuple(p.text for p in concurrent),
        context=(render(TEMPLATE, tables=shown),) if shown else (),
        shown=(*focal, *concurrent, *(row for table in shown for row in table.rows)),
    )
    return await forecasting.ask_with(case, ctx, inputs)


def _line(text: str) -> int:
    return len(text) + 1
