"""What ``benchmark.exclude`` leaves out: the rows of findings, before anything else looks at them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from benchmarks.audit.audit import CHECKS
from benchmarks.audit.finding import Check
from benchmarks.audit.raw import Place, place_of, raw_of
from benchmarks.markets import Markets
from benchmarks.params import CaseFiles
from benchmarks.rows import Row
from benchmarks.sources import EvidenceRows
from harness.errors import ConfigError, DataError


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows that stay, and a sentence that says how many did not."""

    catalysts: Sequence[Row]
    evidence: EvidenceRows
    warning: str


def checks_named(names: Collection[str]) -> list[Check]:
    """The checks of ``names``.

    Raises:
        ConfigError: no such finding, or one that is about the whole benchmark.
    """
    known = {check.id: check for check in CHECKS}
    allowed = ", ".join(check.id for check in CHECKS if check.excludes is not None)
    for name in names:
        near = get_close_matches(name, known, n=1)
        if name not in known:
            hint = (
                f"did you mean {near[0]}?" if near else f"it takes these, no ids of catalysts or documents: {allowed}"
            )
            raise ConfigError(f"benchmark.exclude: no finding {name!r}; {hint}")
        if known[name].excludes is None:
            raise ConfigError(f"benchmark.exclude: {name} is about the whole benchmark; there is no row to leave out")
    return [known[name] for name in names]


def excluding(
    names: Collection[str],
    files: CaseFiles,
    markets: Markets,
    catalysts: Sequence[Row],
    evidence: EvidenceRows,
    prices: Sequence[Row],
) -> Kept:
    """The rows that no finding of ``names`` is about. All are looked for in the files as they are, then left out at once.

    Raises:
        ConfigError: see ``checks_named``.
        DataError: no catalyst is left.
    """
    checks = checks_named(names)
    raw = raw_of(files, markets, catalysts, evidence, prices)
    out = {place_of(row) for check in checks for hit in check.find(raw).hits for row in hit.rows}
    kept, dropped = _split(catalysts, out)
    documents, dropped_documents = _split(evidence.documents or (), out)
    switch = f"benchmark.exclude=[{','.join(names)}]"
    if not kept:
        raise DataError(f"benchmark {files.name}: {switch} leaves no catalyst; leave out fewer findings.")
    warning = (
        f"{switch}: {dropped} of {len(catalysts)} catalysts and {dropped_documents} of {len(evidence.documents or ())} "
        "documents are left out."
    )
    left = evidence if evidence.documents is None else replace(evidence, documents=documents)
    return Kept(kept, left, warning)


def _split(rows: Sequence[Row], out: Collection[Place]) -> tuple[list[Row], int]:
    kept = [row for row in rows if place_of(row) not in out]
    return kept, len(rows) - len(kept)
