"""Writes the sample benchmark: ``python -m benchmarks.sample.generate`` rewrites its four files byte for byte.

Prices come first (``market``), outcomes are read off them, and only then is the tone of each text chosen: it agrees
with the label in about three of five cases, so that words carry a little signal and no more.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.sample.content import HERE, Company, Content, load_content
from benchmarks.sample.market import PriceBook, Settlement, draw
from benchmarks.sample.texts import write_documents
from harness.clock import Stamp
from harness.records import DROPPED, POSITIVE

EVALUATION_FROM = "2020-09-01"
QUOTA = {"expr": (72, 2), "eval": (32, 1)}
"""Catalysts of a split: so many with a label, and so many more inside the deadband."""
TONE_AGREES = 0.62
LABEL_RULE = "binary: positive if ret>=+0.55%, negative if <=-0.5%, dropped in (-0.5%,+0.55%)"
COMMON_META = {"market": "CN+US", "source": "invented by benchmarks/sample/generate.py", "invented": True}
ENTRY_RULE = (
    "entry_session: first session whose close is after decision_time (close_to_close with a date-only decision: first "
    "session on or after it); entry_price: its open, for close_to_close its close; path[k]: k-th session after it; the "
    "return runs to the close at true_resolve"
)


@dataclass(frozen=True, slots=True)
class Case:
    """A candidate catalyst: a step of a chain, or (``silent``) a decision without a text of its own."""

    company: Company
    time: Stamp
    catalyst_type: str
    silent: bool
    settled: Settlement

    @property
    def catalyst_id(self) -> str:
        return f"sample_{self.company.stock_id}_{self.time.day}"

    @property
    def split(self) -> str:
        return "eval" if self.time.day.isoformat() >= EVALUATION_FROM else "expr"

    @property
    def key(self) -> tuple[str, str]:
        return self.company.stock_id, self.time.text


def build() -> dict[str, str]:
    """The four files as text, by path below this directory."""
    content = load_content()
    chosen = _choose(_candidates(content, PriceBook(content.companies)), _kept(content))
    documents, own = write_documents(content, _tones(chosen), {case.key: case.settled for case in chosen})
    stocks = {
        c.stock_id: {"name": c.name, "industry": c.industry, "market": c.market}
        for c in sorted(content.companies, key=lambda c: c.stock_id)
    }
    split = {name: [_row(case) for case in chosen if case.split == name] for name in QUOTA}
    prices = [_price_row(case, own.get(case.key)) for case in chosen]
    return {
        "eval/Sample.json": _dump(_meta("sample-eval", "eval"), catalysts=split["eval"]),
        "event/Sample.json": _dump(_meta("sample", "data-db/event"), stocks=stocks, text=documents),
        "expr/Sample.json": _dump(_meta("sample-expr", "data-db/expr"), catalysts=split["expr"]),
        "prices/Sample.json": _dump(
            {
                "dataset": "sample prices",
                **COMMON_META,
                "path_columns": ["date", "open", "close"],
                "entry_rule": ENTRY_RULE,
                "label_rule": LABEL_RULE,
            },
            prices=prices,
        ),
    }


def write(root: Path = HERE) -> None:
    """Write the files below ``root``."""
    for path, text in build().items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")


def _candidates(content: Content, book: PriceBook) -> list[Case]:
    companies = {company.stock_id: company for company in content.companies}
    cases = [
        Case(company, stamp, step.catalyst_type, False, book.settle(company, stamp))
        for company in content.companies
        for story, stamps in company.stories
        for step, stamp in zip(content.stories[story, company.market], stamps, strict=True)
    ]
    for row in content.extras["silent"]:
        company = companies[row["stock"]]
        stamp = company.stamp(row["at"])
        cases.append(Case(company, stamp, row["type"], True, book.settle(company, stamp)))
    return cases


def _kept(content: Content) -> set[tuple[str, str]]:
    """Cases that the extras build on, so that they must be among the catalysts."""
    return {
        (row["stock"], row["at"])
        for kind in ("silent", "keep", "telltale", "undated", "lookback")
        for row in content.extras[kind]
    }


def _choose(cases: list[Case], kept: set[tuple[str, str]]) -> list[Case]:
    """The quota of each split, wanted cases first, the others in a drawn order; sorted by catalyst id.

    Raises:
        ValueError: a wanted case fell into the deadband, or there are too few cases.
    """
    order = sorted(cases, key=lambda case: (case.key not in kept, draw("choose", case.catalyst_id)))
    chosen: list[Case] = []
    for split, quota in QUOTA.items():
        for dropped, size in zip((False, True), quota, strict=True):
            pool = [c for c in order if c.split == split and (c.settled.label == DROPPED) is dropped]
            if len(pool) < size:
                raise ValueError(f"{split}: {len(pool)} cases with dropped={dropped}, {size} needed; change the seed")
            chosen += pool[:size]
    missing = kept - {case.key for case in chosen if case.settled.label != DROPPED}
    if missing:
        raise ValueError(f"wanted cases are not among the catalysts: {sorted(missing)}; change the seed or extras.toml")
    return sorted(chosen, key=lambda case: case.catalyst_id)


def _tones(cases: list[Case]) -> dict[tuple[str, str], bool]:
    """Whether each case's text sounds good; right for a share ``TONE_AGREES`` within each split, market and label."""
    groups: dict[tuple[str, str, str], list[Case]] = defaultdict(list)
    for case in sorted(cases, key=lambda case: draw("tone", case.catalyst_id)):
        if not case.silent and case.settled.label != DROPPED:
            groups[case.split, case.company.market, case.settled.label].append(case)
    return {
        case.key: (label == POSITIVE) is (place < round(TONE_AGREES * len(group)))
        for (_, _, label), group in groups.items()
        for place, case in enumerate(group)
    }


def _row(case: Case) -> dict[str, Any]:
    return {
        "catalyst_id": case.catalyst_id,
        "stock_id": case.company.stock_id,
        "catalyst_type": case.catalyst_type,
        "decision_time": case.time.text,
        "resolve_date": case.settled.stated_resolve.isoformat(),
        "outcome": case.settled.label,
        "fwd_ret": case.settled.fwd_ret,
        "horizon_days": case.company.horizon,
        "market": case.company.market,
        "convention": case.company.convention.value,
    }


def _price_row(case: Case, doc_id: str | None) -> dict[str, Any]:
    settled = case.settled
    return {
        "doc_id": doc_id,
        "stock_id": case.company.stock_id,
        "decision_time": case.time.text,
        "entry_session": settled.entry_session.isoformat(),
        "entry_price": settled.entry_price,
        "path": [[bar.day.isoformat(), bar.open, bar.close] for bar in settled.path],
        # The released price file says "deadband" where the catalyst files would say "dropped".
        "label": "deadband" if settled.label == DROPPED else settled.label,
        "true_resolve": f"{settled.resolve_at:%Y-%m-%d %H:%M}",
        "catalysts": [case.catalyst_id],
    }


def _meta(dataset: str, role: str) -> dict[str, Any]:
    return {"dataset": dataset, **COMMON_META, "horizon_days": 5, "split_role": role, "label_rule": LABEL_RULE}


def _dump(meta: dict[str, Any], **parts: dict[str, Any] | Iterable[Any]) -> str:
    return json.dumps({"meta": meta, **parts}, ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    write()
