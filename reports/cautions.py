"""Warnings: what is missing, undefined or not to be trusted, each said once with the cells it is true of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from reports.findings import Findings
from reports.gates import REFERENCE_GATE
from reports.load import Cell, Loaded
from reports.pairs import Pair
from reports.scores import Score


def cautions(f: Findings) -> tuple[str, ...]:
    """Sentences for the reader; one that is true of several cells is said once and names them."""
    found = [
        *f.loaded.warnings,
        *_missing_files(f.loaded),
        *_different_data(f.loaded.cells, f.scores),
        *_about_cells(f.scores),
        *_about_pairs(f.pairs),
    ]
    if f.pairs:
        found += _unpaired(f)
    elif f.scores:
        found.append(_no_pairs(f.scores, f.reference))
    found += [
        f"{t.method}: {t.late} late records of kind {t.kind} entered prompts under the strict gate; its figures cannot be trusted."
        for t in f.tallies
        if t.gate == "strict" and t.late
    ]
    found += [
        f"time_gate: {g.score.cell} is compared with strict on the {g.n_shared} rows scored in both, not on all."
        for g in f.gates
        if g.score.gate != REFERENCE_GATE
        and g.n_shared is not None
        and g.n_shared < max(g.score.n_scored, g.n_strict or 0)
    ]
    if f.scores and not f.gates:
        found.append("time_gate is empty: no cell was run under more than one gate.")
    if f.scores and not f.comparisons:
        found.append("No published figure belongs to these methods and benchmarks: published is empty.")
    found += [
        f"{c.published.table}, {c.published.method} with {c.published.backbone} on {c.published.benchmark}: {c.published.note}."
        for c in {c.published: c for c in f.comparisons if c.published.note}.values()
    ]
    return (*found, *f.warnings)


def _missing_files(loaded: Loaded) -> list[str]:
    found = [
        f"manifest.json is missing in run {number}: versions, git commit and data checksums are unknown."
        for number, manifest in enumerate(loaded.manifests, 1)
        if manifest is None
    ]
    for absent, consequence in (
        (
            [c for c in loaded.cells if c.meta is None],
            "cell.json is missing: n is the number of rows, so a catalyst that was never asked goes unnoticed",
        ),
        (
            [c for c in loaded.cells if c.evidence is None],
            "evidence.parquet is missing: the audit leaves these cells out",
        ),
    ):
        if absent:
            found.append(_about(consequence, absent, len(loaded.cells)))
    return found


def _different_data(cells: Sequence[Cell], scores: Sequence[Score]) -> list[str]:
    """A sentence a benchmark whose cells are not all about the same catalysts (``run.limit``, other files) or leave out other findings.

    Catalysts are compared between complete cells only: that a cell has too few rows is said of the cell.
    """
    groups: dict[str, dict[tuple[str | None, frozenset[str] | None], list[str]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for cell, score in zip(cells, scores, strict=True):
        asked = frozenset(cell.rows["catalyst_id"]) if score.state == "complete" else None
        groups[cell.benchmark][cell.exclude, asked].append(cell.cell)
    found = []
    for benchmark, alike in groups.items():
        excludes, complete = {exclude for exclude, _ in alike}, {asked for _, asked in alike if asked is not None}
        if len(excludes) < 2 and len(complete) < 2:
            continue
        told = [
            f"{_data(exclude, asked, len(excludes) > 1)}: {'; '.join(of)}" for (exclude, asked), of in alike.items()
        ]
        found.append(
            f"The cells of {benchmark} do not stand on the same data, so only differences in pairs, over the rows that both cells have "
            f"scored, compare like with like. {' — '.join(told)}."
        )
    return found


def _data(exclude: str | None, asked: frozenset[str] | None, excludes_differ: bool) -> str:
    count = "not complete" if asked is None else f"{len(asked):,} catalysts"
    return f"{count}, exclude={exclude or 'unknown'}" if excludes_differ else count


def _about_cells(scores: Sequence[Score]) -> list[str]:
    by_text: dict[str, list[Score]] = {}
    for s in scores:
        if s.state != "complete":
            why = [
                f"the cell is {s.state}",
                f": {s.reason.rstrip('.')}" if s.reason else "",
                f". What to do: {s.remedy}" if s.remedy else "",
            ]
            by_text.setdefault("".join(why), []).append(s)
        for text in s.warnings:
            by_text.setdefault(text, []).append(s)
    return [_about(text, cells, len(scores)) for text, cells in by_text.items()]


def _about_pairs(pairs: Sequence[Pair]) -> list[str]:
    by_text: dict[str, list[Pair]] = {}
    for pair in pairs:
        for text in pair.warnings:
            by_text.setdefault(text, []).append(pair)
    return [
        f"All {len(pairs)} pairs: {text}."
        if len(alike) == len(pairs) > 1
        else f"{'; '.join(f'{pair.cell_a} and {pair.cell_b}' for pair in alike)}: {text}."
        for text, alike in by_text.items()
    ]


def _unpaired(f: Findings) -> list[str]:
    """Cells of the reference that are compared with nothing although another one is, on the same data with the same backbone."""
    paired = {pair.cell_a for pair in f.pairs}
    places = {(pair.backbone, pair.benchmark, pair.gate, pair.seed) for pair in f.pairs}
    left = [
        s
        for s in f.scores
        if s.method == f.reference
        and s.counts
        and s.cell not in paired
        and (s.backbone, s.benchmark, s.gate, s.seed) in places
    ]
    text = f"in no pair, as every partner has a cell of {f.reference} that is nearer to it in memory, embedder, feed, context or exclude"
    return [_about(text, left, len(f.scores))] if left else []


def _no_pairs(scores: Sequence[Score], reference: str) -> str:
    """Why nothing is compared; where the reference is absent, which methods could take its place."""
    if any(s.method == reference for s in scores):
        return f"pairs is empty: no cell of the reference method {reference!r} shares backbone, benchmark, gate and seed with another method."
    text = f"pairs is empty: there is no cell of the reference method {reference!r}."
    others = sorted({s.method for s in scores if s.n_scored and not s.no_llm})
    if len(others) < 2:
        return text
    return f"{text} Methods here: {', '.join(others)}. Compare one of them with the rest: python -m reports RUN --reference NAME."


def _about(text: str, cells: Sequence[Cell] | Sequence[Score], total: int) -> str:
    if total > 1 and len(cells) == total:
        return f"All {total} cells: {text.rstrip('.')}."
    return f"{'; '.join(cell.cell for cell in cells)}: {text.rstrip('.')}."
