"""What a run has cost, and for what: read from the payments that the reply stores hold beside the replies.

A payment is committed together with the reply it paid for, so the ledger and the store agree after any kill; ``calls.parquet`` is
written a moment later and may lack the last second. Attempts that nobody answered may have been billed: they are listed apart,
at the most they can have cost, and count in the total.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.errors import DataError
from harness.gateway.cache import PAYMENT_COLUMNS, UNANSWERED, Payment
from harness.listing import listing
from harness.records import EMBED, total
from harness.replies import STORES, endpoint_of, open_store

STAGES = ("build", "memory", "forecast", "retry")
SHARED = "(shared)"
"""Cell of calls that no cell owns: embeddings."""


@dataclass(frozen=True, slots=True)
class Paid:
    """A payment with the backbone (or embeddings endpoint) it went to."""

    backbone: str
    payment: Payment


@dataclass(frozen=True, slots=True)
class Line:
    """Sums over payments. A sum is None if a part of it is unknown.

    Attributes:
        calls: replies paid for, usable or not.
        cost_usd: of these replies.
        unanswered: attempts without an answer.
        unanswered_usd: the most they can have cost.
    """

    cell: str
    backbone: str
    stage: str
    calls: int
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    unanswered: int
    unanswered_usd: float | None


@dataclass(frozen=True, slots=True)
class Ledger:
    """Lines by cell and stage, by stage, and their total."""

    cells: tuple[Line, ...]
    stages: tuple[Line, ...]
    total: Line

    def as_json(self) -> dict[str, Any]:
        """As ``ledger.json`` holds it."""
        rows = {
            name: [asdict(line) for line in lines] for name, lines in (("cells", self.cells), ("stages", self.stages))
        }
        return {**rows, "total": asdict(self.total)}


def read_payments(cache: Path, stores: str = STORES) -> list[Paid]:
    """All payments of the ``stores`` (a pattern) in ``cache``, the directory of that name in a run directory.

    Raises:
        DataError: a store is damaged.
    """
    return [paid for path in sorted(cache.glob(stores)) for paid in _payments_of(path)]


def _payments_of(path: Path) -> list[Paid]:
    with closing(open_store(path)) as db:
        try:
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
            if "payments" not in tables:  # a store of an earlier version
                return []
            rows = db.execute(f"SELECT {', '.join(PAYMENT_COLUMNS)} FROM payments ORDER BY rowid").fetchall()
        except sqlite3.Error as error:
            raise DataError(f"{path}: {error}; python -m harness.cache verify {path} says what is damaged") from None
    return [Paid(endpoint_of(path), Payment(*row)) for row in rows]


def spent_usd(cache: Path) -> float:
    """USD that the payments in ``cache`` have cost, unanswered attempts at the most; unknown costs are left out."""
    return sum(paid.payment.cost_usd or 0.0 for paid in read_payments(cache))


def ledger(paid: Iterable[Paid], cost: Callable[[Paid], float | None] | None = None) -> Ledger:
    """The ledger of ``paid``, at ``cost`` (default: what each cost when it was paid)."""
    price = cost or (lambda one: one.payment.cost_usd)
    every = [(one, price(one)) for one in paid]
    cells: defaultdict[tuple[str, str, str], list[tuple[Paid, float | None]]] = defaultdict(list)
    stages: defaultdict[str, list[tuple[Paid, float | None]]] = defaultdict(list)
    for one, usd in every:
        cells[one.payment.cell or SHARED, one.backbone, one.payment.stage].append((one, usd))
        stages[one.payment.stage].append((one, usd))
    known = [stage for stage in STAGES if stage in stages]
    order = [*known, *sorted(stages.keys() - set(known))]
    return Ledger(
        tuple(_line(*key, cells[key]) for key in sorted(cells, key=lambda k: (k[0], k[1], order.index(k[2])))),
        tuple(_line("", "", stage, stages[stage]) for stage in order),
        _line("", "", "total", every),
    )


def _line(cell: str, backbone: str, stage: str, every: Sequence[tuple[Paid, float | None]]) -> Line:
    answered = [(one.payment, usd) for one, usd in every if one.payment.status != UNANSWERED]
    lost = [usd for one, usd in every if one.payment.status == UNANSWERED]
    return Line(
        cell,
        backbone,
        stage,
        calls=len(answered),
        input_tokens=total(p.prompt_tokens for p, _ in answered),
        cached_tokens=total(p.cached_tokens or 0 for p, _ in answered),
        output_tokens=total(p.completion_tokens if p.purpose != EMBED else 0 for p, _ in answered),
        reasoning_tokens=total(p.reasoning_tokens or 0 for p, _ in answered),
        cost_usd=total(usd for _, usd in answered),
        unanswered=len(lost),
        unanswered_usd=total(lost),
    )


def usd(value: float | None) -> str:
    """A cost as it is shown: ``-`` where it is not known."""
    return "-" if value is None else f"${value:,.4f}"


def count(value: int | None) -> str:
    """A count as it is shown."""
    return "-" if value is None else f"{value:,}"


def ledger_text(found: Ledger, title: str) -> str:
    """The ledger as text: a row a cell and stage, the stages of all cells, the total."""
    several = len({line.cell for line in found.cells}) > 1
    groups = [lines for lines in (found.cells, found.stages if several else (), (found.total,)) if lines]
    rows: list[list[str] | None] = []
    for lines in groups:
        rows += [*([None] if rows else []), *(_shown(line) for line in lines)]
    head = ("cell", "stage", "calls", "input", "cached", "output", "reasoning", "cost", "unanswered", "at most")
    return f"{title}\n{listing(head, rows, left=2)}"


def _shown(line: Line) -> list[str]:
    lost = [count(line.unanswered), usd(line.unanswered_usd)] if line.unanswered else ["", ""]
    tokens = (line.calls, line.input_tokens, line.cached_tokens, line.output_tokens, line.reasoning_tokens)
    return [line.cell or "all cells", line.stage, *(count(n) for n in tokens), usd(line.cost_usd), *lost]
