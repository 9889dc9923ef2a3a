"""The case viewer: every forecast of a report in a compact index, and its details in chunks that the page opens one at a time."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import DataError
from harness.records import NEGATIVE, POSITIVE, Status
from harness.replies import Replies, stores_of
from reports.drawing import method_styles
from reports.viewer_chunks import TEXT_LIMIT, Chunk, not_ok, packed_index, seconds
from reports.viewer_read import CaseCell, read_cells, read_files

ROWS_A_CHUNK = 60
INSIDE_BYTES = 24 * 2**20
"""Details up to this size (in base64) stand inside the page; larger ones in files beside it, which it loads on demand."""
TEXT_BYTES = 384 * 2**20
"""Once the packed details of some benchmarks are larger, those that follow are kept without prompts and replies."""
FOLDER = "cases"
"""Where chunks stand that are not inside the page, next to report.html."""


@dataclass(frozen=True)
class Viewer:
    """What the page needs.

    Attributes:
        index: columns of all forecasts: gzip of JSON in base64.
        chunks: details in base64, by number; the page looks inside itself first, then in ``FOLDER``.
        inside: whether the chunks stand in the page.
        notes: sentences about what is missing or left out.
        forecasts: rows of the index.
    """

    index: str
    chunks: tuple[str, ...]
    inside: bool
    notes: tuple[str, ...]
    forecasts: int

    def write_beside(self, out: Path) -> None:
        """Write the chunks that do not stand in the page; what an earlier report left is removed."""
        shutil.rmtree(out / FOLDER, ignore_errors=True)
        if self.inside:
            return
        (out / FOLDER).mkdir(parents=True)
        for number, text in enumerate(self.chunks):
            (out / FOLDER / f"{number}.js").write_text(f'caseChunk({number},"{text}")\n', encoding="ascii")


@dataclass(frozen=True)
class _Row:
    """A forecast: row ``i`` of cell number ``cell``, about case number ``case``."""

    case: int
    cell: int
    epoch: int
    i: int


def build_viewer(run_dirs: Iterable[Path], names: Mapping[str, str]) -> Viewer:
    """The viewer over the cells ``names`` (cell id -> name as shown) of ``run_dirs``.

    Raises:
        DataError: a Parquet file that is there cannot be read.
    """
    cells = read_cells(run_dirs, names)
    cases: dict[tuple[str, str], int] = {key: number for number, key in enumerate(_cases(cells))}
    rows = sorted(
        (
            _Row(cases[cell.rows["benchmark"][i], cell.rows["catalyst_id"][i]], c, cell.rows["epoch"][i], i)
            for c, cell in enumerate(cells)
            for i in range(cell.size)
        ),
        key=lambda row: (row.case, row.cell, row.epoch),
    )
    chunk_of = _chunk_of(rows, list(cases))
    notes: list[str] = []
    packed, late = _details(cells, rows, chunk_of, notes)
    chunks = tuple(base64.b64encode(chunk).decode("ascii") for chunk in packed)
    inside = sum(map(len, chunks)) <= INSIDE_BYTES
    index = {
        "cells": _cell_table(cells, names),
        "cases": _case_table(cells, rows, list(cases), chunk_of),
        "rows": _row_table(cells, rows, late),
        "folder": None if inside else FOLDER,
        "text_limit": TEXT_LIMIT,
        "notes": notes,
    }
    return Viewer(base64.b64encode(packed_index(index)).decode("ascii"), chunks, inside, tuple(notes), len(rows))


def _cases(cells: Sequence[CaseCell]) -> list[tuple[str, str]]:
    """(benchmark, catalyst id) in the order of benchmark, decision time, id; cases without a time come first."""
    times: dict[tuple[str, str], int] = {}
    for cell in cells:
        for benchmark, catalyst, at in zip(
            cell.rows["benchmark"], cell.rows["catalyst_id"], cell.rows["decision_time"], strict=True
        ):
            times[benchmark, catalyst] = times.get((benchmark, catalyst), -1) if at is None else at
    return sorted(times, key=lambda key: (key[0], times[key], key[1]))


def _chunk_of(rows: Sequence[_Row], cases: Sequence[tuple[str, str]]) -> list[int]:
    """The chunk of each case: whole cases of one benchmark, about ``ROWS_A_CHUNK`` rows."""
    sizes = [0] * len(cases)
    for row in rows:
        sizes[row.case] += 1
    found: list[int] = []
    number, filled = -1, 0
    for case, (benchmark, _) in enumerate(cases):
        if not case or filled + sizes[case] > ROWS_A_CHUNK or benchmark != cases[case - 1][0]:
            number, filled = number + 1, 0
        filled += sizes[case]
        found.append(number)
    return found


def _details(
    cells: Sequence[CaseCell], rows: Sequence[_Row], chunk_of: Sequence[int], notes: list[str]
) -> tuple[list[bytes], list[int | None]]:
    """All chunks packed, and for each row how many of its records are not ok. A benchmark at a time, a cell at a time within it."""
    packed: dict[int, bytes] = {}
    late: list[int | None] = [None] * len(rows)
    without_texts = 0
    lacking: dict[str, list[str]] = {}
    replies = {run: _replies(run, notes) for run in dict.fromkeys(cell.run_dir for cell in cells)}
    for benchmark in dict.fromkeys(cell.rows["benchmark"][0] for cell in cells):
        texts = sum(map(len, packed.values())) <= TEXT_BYTES
        chunks: dict[int, Chunk] = {}
        for c, cell in enumerate(cells):
            if cell.rows["benchmark"][0] != benchmark:
                continue
            files = read_files(cell)
            stored = replies[cell.run_dir]
            asked = any(count != 0 for count in cell.rows["n_calls"])
            for name, there in (
                ("evidence.parquet", files.evidence is not None),
                ("calls.parquet", files.calls is not None or not asked),
                ("the cache of replies", len(stored) > 0 or not asked),
            ):
                if not there:
                    lacking.setdefault(name, []).append(cell.cell)
            for number, row in enumerate(rows):
                if row.cell == c:
                    chunk = chunks.setdefault(chunk_of[row.case], Chunk(texts))
                    chunk.add(number, cell, files, stored, row.i)
                    late[number] = not_ok(files.evidence, (cell.rows["catalyst_id"][row.i], row.epoch))
                    without_texts += not texts
        packed.update({number: chunk.pack() for number, chunk in chunks.items()})
    for stored in replies.values():
        stored.close()
    notes += [_lacks(name, some, len(cells)) for name, some in lacking.items()]
    if without_texts:
        notes.append(
            f"Prompts and replies of {without_texts:,} of {len(rows):,} forecasts are left out to keep the report small; "
            "make a report of fewer runs to see them."
        )
    return [packed[number] for number in sorted(packed)], late


_CONSEQUENCE = {
    "evidence.parquet": "the timeline and the skills of their forecasts cannot be shown",
    "calls.parquet": "their prompts, replies and single calls cannot be shown",
    "the cache of replies": "their prompts and replies cannot be shown",
}


def _lacks(name: str, some: Sequence[str], total: int) -> str:
    who = (
        f"All {total} cells" if len(some) == total > 1 else f"{len(some)} of {total} cells" if total > 1 else "The cell"
    )
    return f"{who} {'lack' if len(some) > 1 else 'lacks'} {name}: {_CONSEQUENCE[name]}."


def _replies(run_dir: Path, notes: list[str]) -> Replies:
    """The stored replies of a run; a damaged store is said, and must not stop a report that needs none of it."""
    try:
        return Replies(stores_of(run_dir))
    except DataError as error:
        notes.append(f"{error}: prompts and replies of this run cannot be shown.")
        return Replies(())


def _cell_table(cells: Sequence[CaseCell], names: Mapping[str, str]) -> dict[str, list[Any]]:
    first = [{key: values[0] for key, values in cell.rows.items()} for cell in cells]
    looks = method_styles(row["method"] for row in first)
    return {
        **{
            key: [row[key] for row in first] for key in ("cell", "method", "backbone", "benchmark", "gate", "rehearsal")
        },
        "name": [names[row["cell"]] for row in first],
        "colour": [looks[row["method"]][0] for row in first],
        "mark": [looks[row["method"]][1] for row in first],
    }


def _case_table(
    cells: Sequence[CaseCell], rows: Sequence[_Row], cases: Sequence[tuple[str, str]], chunk_of: Sequence[int]
) -> dict[str, list[Any]]:
    """Facts of each case, from the first row about it."""
    facts: list[dict[str, Any]] = [{} for _ in cases]
    for row in rows:
        if not facts[row.case]:
            facts[row.case] = {key: values[row.i] for key, values in cells[row.cell].rows.items()}
    plain = ("stock", "market", "catalyst_type", "decision_granularity", "label", "fwd_ret")
    return {
        "benchmark": [benchmark for benchmark, _ in cases],
        "id": [catalyst for _, catalyst in cases],
        **{key: [fact[key] for fact in facts] for key in plain},
        "time": [seconds(fact["decision_time"]) for fact in facts],
        "resolve": [seconds(fact["resolve_time"]) for fact in facts],
        "day": [None if fact["decision_day"] is None else fact["decision_day"].isoformat() for fact in facts],
        "chunk": list(chunk_of),
    }


def _row_table(cells: Sequence[CaseCell], rows: Sequence[_Row], late: Sequence[int | None]) -> dict[str, list[Any]]:
    def column(name: str) -> list[Any]:
        return [cells[row.cell].rows[name][row.i] for row in rows]

    return {
        "case": [row.case for row in rows],
        "cell": [row.cell for row in rows],
        "epoch": [row.epoch for row in rows],
        "prob": column("prob_positive"),
        "status": column("status"),
        "right": [
            _right(*facts)
            for facts in zip(column("label"), column("status"), column("prob_positive"), strict=True)
        ],
        "tokens": [
            None if a is None or b is None else a + b
            for a, b in zip(column("total_prompt_tokens"), column("total_completion_tokens"), strict=True)
        ],
        "cost": column("cost_usd"),
        "calls": column("n_calls"),
        "late": list(late),
    }  # fmt: skip


def _right(label: str | None, status: str, prob: float | None) -> int | None:
    """1 right, 0 wrong, None not scored: the rule by which the report scores."""
    if label not in (POSITIVE, NEGATIVE) or not Status(status).final:
        return None
    return int(status == Status.OK and prob is not None and (prob >= 0.5) == (label == POSITIVE))
