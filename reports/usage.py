"""What the answers of a cell took: tokens and dollars of each row, and of the calls that belong to no row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.load import Cell
from reports.measure import both, no_llm
from reports.metrics import Floats


@dataclass(frozen=True)
class Usage:
    """Tokens and dollars of one cell.

    Attributes:
        final: tokens of the final call a row, shape (rows of the cell,); NaN where unknown, 0 in a cell that makes no call.
        every: tokens of all calls a row; ``cost``: US$ a row, at list price.
        shared_tokens, shared_cost: of calls for an index or a memory, each different request once; None where calls.parquet is missing
            or a part is unknown.
    """

    final: Floats
    every: Floats
    cost: Floats
    shared_tokens: float | None
    shared_cost: float | None

    def mean_of_all(self, shared: float | None, rows: Floats) -> float | None:
        """``rows`` with an equal part of ``shared`` (0 if unknown) each, averaged over the known; None if none is known."""
        known = rows[~np.isnan(rows)]
        return float(known.mean()) + (shared or 0.0) / rows.size if known.size else None


def usage(cell: Cell, prices: Mapping[str, float]) -> Usage:
    """Usage of ``cell``; ``prices`` gives what a request has cost whoever paid it, see ``paid_prices``."""
    rows = cell.rows
    silent = no_llm(cell)

    def column(values: Sequence[float | None]) -> Floats:
        found = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        return np.nan_to_num(found) if silent else found

    tokens, cost = (None, None) if cell.calls is None else _shared(cell.calls, prices)
    return Usage(
        final=column(both(rows["prompt_tokens"], rows["completion_tokens"])),
        every=column(both(rows["total_prompt_tokens"], rows["total_completion_tokens"])),
        cost=column(rows["cost_usd"]),
        shared_tokens=tokens,
        shared_cost=cost,
    )


def paid_prices(cells: Sequence[Cell]) -> dict[str, float]:
    """What each request has cost: a later cell that finds the reply in the cache pays nothing, but needs it all the same."""
    found: dict[str, float] = {}
    for cell in cells:
        for sha, cost in zip(
            *((cell.calls or {}).get(name, []) for name in ("request_sha256", "cost_usd")), strict=True
        ):
            if sha is not None and cost is not None:
                found[sha] = max(found.get(sha, 0.0), cost)
    return found


def _shared(calls: Mapping[str, Sequence[object]], prices: Mapping[str, float]) -> tuple[float | None, float | None]:
    """Tokens and dollars of the calls without an epoch, each request once; None if one is unknown."""
    tokens: dict[object, float | None] = {}
    cost: dict[object, float | None] = {}
    columns = (calls[name] for name in ("epoch", "request_sha256", "prompt_tokens", "completion_tokens", "cost_usd"))
    for i, (epoch, sha, prompt, completion, usd) in enumerate(zip(*columns, strict=True)):
        if epoch is None:
            key = i if sha is None else sha
            # an embedding has no completion
            tokens[key] = None if prompt is None else float(prompt) + float(completion or 0)
            cost[key] = prices.get(str(sha), usd)
    return tuple(None if None in part.values() else float(sum(part.values())) for part in (tokens, cost))  # type: ignore[return-value, arg-type]
