"""The way in: a benchmark's YAML → files → checked records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.audit.exclude import excluding
from benchmarks.catalysts import Draft, read_catalysts, settle
from benchmarks.corpus import Evidence, read_documents, read_stocks
from benchmarks.files import Folder, open_folder
from benchmarks.markets import Markets, markets_of
from benchmarks.params import CaseFiles, Paths, parse
from benchmarks.prices import PricePath, read_prices
from benchmarks.problems import Problems
from benchmarks.sources import EvidenceRows, catalyst_rows, evidence_rows, price_rows
from harness.errors import DataError
from harness.records import Benchmark, CaseSet, Corpus


def load(**values: Any) -> Benchmark:
    """Load and check a benchmark; the ``_target_`` of every ``conf/benchmark/*.yaml``.

    Args:
        values: the keys of ``benchmarks.Parameters``.

    Returns:
        Typed records in an order that does not depend on the order of rows in the files.

    Raises:
        ConfigError: an unknown key, a wrong value, or no root.
        DataError: a file that cannot be read, or bad rows, all of them named (the first ten in full).
    """
    parameters = parse(values)
    folder = open_folder(parameters)
    reader = _Reader(folder, parameters.resolve, Problems(f"benchmark {parameters.name}"))
    evaluation = reader.read(parameters, parameters.eval, "benchmark", parameters.exclude)
    past = parameters.experience
    experience = reader.read(past, past.catalysts, "benchmark.experience") if past else None
    reader.problems.stop_if_any()
    cases = reader.settle(evaluation)
    past_cases = reader.settle(experience) if experience else None
    reader.problems.stop_if_any()
    _refuse_shared_cases(cases, past_cases)
    return Benchmark(
        name=parameters.name,
        evaluation=cases,
        experience=past_cases,
        drop_copies=parameters.drop_copies,
        files=tuple(folder.files[name] for name in sorted(folder.files)),
        warnings=(*folder.warnings, *evaluation.warnings, *(experience.warnings if experience else ())),
    )


@dataclass(frozen=True)
class _Cases:
    """A set of cases whose rows are checked, before the calendar is asked."""

    name: str
    markets: Markets
    drafts: Sequence[Draft]
    evidence: Evidence
    paths: Mapping[str, PricePath]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Reader:
    """Reads sets of cases; files that evaluation and experience share are read, checked and held once."""

    folder: Folder
    resolve: str
    problems: Problems
    evidence: dict[object, Evidence] = field(default_factory=dict)
    paths: dict[Paths, dict[str, PricePath]] = field(default_factory=dict)

    def read(self, files: CaseFiles, catalysts: str, key: str, exclude: tuple[str, ...] = ()) -> _Cases:
        """Rows of ``files`` and of the file ``catalysts``, checked; ``key`` is their path in the configuration.

        What the findings ``exclude`` are about is left out first, so that it cannot fail a check.
        """
        markets = markets_of(files, key)
        rows = catalyst_rows(self.folder, files, catalysts)
        found: EvidenceRows | None = None
        warnings: tuple[str, ...] = ()
        if exclude:
            prices = price_rows(self.folder, files, key)
            kept = excluding(exclude, files, markets, rows, evidence_rows(self.folder, files, key), prices)
            rows, found, warnings = kept.catalysts, kept.evidence, (kept.warning,)
        corpus_of = (files.event, files.stocks, files.format, files.market, files.calendar, exclude)
        if corpus_of not in self.evidence:
            found = found or evidence_rows(self.folder, files, key)
            self.evidence[corpus_of] = _evidence(found, markets, self.problems)
        if files.prices not in self.paths:
            self.paths[files.prices] = read_prices(price_rows(self.folder, files, key), self.problems)
        evidence = self.evidence[corpus_of]
        needs_resolve_date = files.format == "released" or self.resolve == "released"
        drafts = read_catalysts(rows, files, markets, evidence, needs_resolve_date, self.problems)
        warnings += _warnings(files, key, drafts, evidence)
        return _Cases(files.name, markets, drafts, evidence, self.paths[files.prices], warnings)

    def settle(self, cases: _Cases) -> CaseSet:
        """The cases with their outcomes."""
        outcomes = settle(cases.drafts, cases.markets, cases.paths, self.resolve, self.problems)
        catalysts = tuple(draft.catalyst for draft in cases.drafts)
        return CaseSet(cases.name, catalysts, outcomes, cases.evidence.corpus)


def _evidence(rows: EvidenceRows, markets: Markets, problems: Problems) -> Evidence:
    stocks, stated = read_stocks(rows.stocks, markets, problems)
    problems.stop_if_any()  # else everything that mentions a bad stock would be reported as well
    complete = rows.stocks_file is not None and not rows.partial
    documents = read_documents(rows.documents or (), stated, markets, stocks if complete else None, problems)
    corpus = Corpus(documents, dict(sorted(stocks.items())), present=rows.documents is not None)
    return Evidence(corpus, stated, complete, rows.stocks_file)


def _warnings(files: CaseFiles, key: str, drafts: Sequence[Draft], evidence: Evidence) -> tuple[str, ...]:
    """At most one sentence on missing documents and stocks, with counts."""
    who = f"{key} {files.name}"
    n = len(drafts)
    unknown = sum(draft.catalyst.stock_id not in evidence.corpus.stocks for draft in drafts)
    nameless = f"{unknown} of {n} catalysts are of stocks without an entry and go by their id"
    if not evidence.corpus.present:
        names = " or ".join(name for name in files.event if name) or "none is set"
        return (f"{who}: no event file ({names}): {n} of {n} catalysts have no event text; {nameless}.",)
    if unknown:
        source = f"{evidence.stocks_file} is partial" if evidence.stocks_file else "no file lists the stocks"
        return (f"{who}: {source}: {nameless}.",)
    return ()


def _refuse_shared_cases(evaluation: CaseSet, experience: CaseSet | None) -> None:
    """A case to be forecast must not be among those a memory learns from.

    Raises:
        DataError: a catalyst id is in both.
    """
    shared = sorted(evaluation.outcomes.keys() & (experience.outcomes.keys() if experience else set()))
    if shared:
        raise DataError(
            f"benchmark {evaluation.name}: {len(shared)} catalysts are in the evaluation and in the experience, e.g. "
            f"{shared[0]}; take them out of one of the two files."
        )
