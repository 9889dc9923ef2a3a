"""The documents of the sample: chain steps filled with a company's details, industry notes, and the extras."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from benchmarks.sample.content import TIME_ZONES, Company, Content
from benchmarks.sample.market import Settlement, draw
from harness.clock import Granularity, Stamp, parse_stamp, zone

Key = tuple[str, str]
"""Stock id and decision stamp as written: what names a case in the hand-written files."""

_LAG_SHARE, _LAG_MINUTES = 0.25, 15
_NOTE_CLOCK = {"CN": " 08:40", "US": " 06:45:00"}
_TELLTALE = {
    "CN": "【复盘】自上述公告发布起算，{name}至{day}收盘累计{verb}{move}%，{place}一线的讨论随之降温。",
    "US": "Looking back: from this news to the close on {day}, shares of {name} {verb} {move} percent, and talk in {place} has died down.",
}
_LOOKBACK = {
    "CN": "{name}公告后的观察期已满，股价至{day}收盘累计{verb}{move}%，{partner}方面未作评论。",
    "US": "The reaction to the latest news from {name} is in: shares {verb} {move} percent up to the close on {day}. {partner} had no comment.",
}
_VERBS = {"CN": {True: "上涨", False: "下跌"}, "US": {True: "gained", False: "lost"}}
_JOINERS = {"CN": "、", "US": " and "}
_QUARTERS = {
    "CN": ("上年四季度", "一季度", "二季度", "三季度"),
    "US": ("fourth quarter", "first quarter", "second quarter", "third quarter"),
}


@dataclass(frozen=True, slots=True)
class Draft:
    """A document before it has an id; ``case`` names the decision it is the focal text of."""

    time: Stamp
    title: str
    body: str
    stocks: tuple[str, ...]
    case: Key | None = None


def write_documents(
    content: Content, tones: Mapping[Key, bool], settled: Mapping[Key, Settlement]
) -> tuple[list[dict[str, Any]], dict[Key, str]]:
    """All documents as rows of the event file in order of time, and the id of each case's own document.

    Args:
        content: the hand-written part.
        tones: whether a case's text sounds good; a step that is no case gets a drawn tone.
        settled: outcomes of the cases, told by telltales and look-backs.
    """
    companies = {company.stock_id: company for company in content.companies}
    drafts = [*_chains(content, tones), *_notes(content), *_extras(content, companies, settled)]
    drafts += _copies(content, companies, drafts)
    drafts.sort(key=lambda draft: (draft.time.instant, draft.stocks, draft.body))
    rows, own = [], {}
    seen: Counter[str] = Counter()
    for draft in drafts:
        stem = f"sample_{draft.stocks[0] if len(draft.stocks) == 1 else 'note-' + draft.stocks[0]}_{draft.time.day}"
        seen[stem] += 1
        doc_id = stem if seen[stem] == 1 else f"{stem}_{seen[stem]}"
        if draft.case is not None:
            own[draft.case] = doc_id
        rows.append(
            {
                "doc_id": doc_id,
                "ts": draft.time.text,
                "title": draft.title,
                "body": draft.body,
                "mentioned_stocks": list(draft.stocks),
            }
        )
    return rows, own


def _chains(content: Content, tones: Mapping[Key, bool]) -> Iterator[Draft]:
    for company in content.companies:
        for story, stamps in company.stories:
            for step, stamp in zip(content.stories[story, company.market], stamps, strict=True):
                key = (company.stock_id, stamp.text)
                good = tones.get(key, draw("tone", *key) < 0.5)
                slots = _slots(content, company, stamp)
                body = ("" if company.chinese else " ").join((step.fact, step.tones[good])).format(**slots)
                body = body[0].upper() + body[1:]  # a sentence may begin with a person's office
                title = step.title.format(**slots)
                yield Draft(_published(company, stamp), title, body, (company.stock_id,), key)


def _slots(content: Content, company: Company, stamp: Stamp) -> dict[str, str]:
    def number(slot: str, low: int, high: int) -> int:
        return low + int(draw(slot, company.stock_id, stamp.text) * (high - low + 1))

    amount = number("amount", 12, 98)
    return {
        **company.slots,
        "theme": content.theme_at(company, stamp.day),
        "quarter": _QUARTERS[company.market][(stamp.day.month - 1) // 3],
        "pct": str(number("pct", 8, 45)),
        "pct2": str(number("pct2", 11, 36)),
        "share": str(number("share", 52, 93)),
        "n": str(number("n", 3, 9)),
        "amount": f"{amount / 10:.1f}" if company.chinese else str(amount),
    }


def _published(company: Company, decision: Stamp) -> Stamp:
    """The focal text's stamp: the decision's own, or for some timed ones a few minutes earlier."""
    if decision.date_only or draw("lag", company.stock_id, decision.text) >= _LAG_SHARE:
        return decision
    minutes = 1 + int(draw("minutes", company.stock_id, decision.text) * _LAG_MINUTES)
    return _shifted(decision, -minutes, company.tz)


def _shifted(stamp: Stamp, minutes: int, tz: str) -> Stamp:
    """``stamp`` moved by ``minutes`` of wall clock, written in the same form."""
    local = stamp.instant.astimezone(zone(tz)) + timedelta(minutes=minutes)
    return _stamp_like(stamp, local, tz)


def _stamp_like(model: Stamp, local: datetime, tz: str) -> Stamp:
    form = {Granularity.DAY: "%Y-%m-%d", Granularity.MINUTE: "%Y-%m-%d %H:%M", Granularity.SECOND: "%Y-%m-%d %H:%M:%S"}
    return parse_stamp(local.strftime(form[model.granularity]), tz)


def _notes(content: Content) -> Iterator[Draft]:
    for theme in content.themes:
        for market, tz in TIME_ZONES.items():
            members = [c for c in content.companies if (c.industry, c.market) == (theme.industry, market)]
            body = theme.note[market].format(names=_JOINERS[market].join(c.name for c in members))
            title = "" if market == "CN" else f"{theme.industry.capitalize()}: {theme.phrase[market]}"
            stamp = parse_stamp(f"{theme.since}{_NOTE_CLOCK[market]}", tz)
            yield Draft(stamp, title, body, tuple(c.stock_id for c in members))


def _extras(content: Content, companies: Mapping[str, Company], settled: Mapping[Key, Settlement]) -> Iterator[Draft]:
    for row in content.extras["shared"]:
        for stock in row["stocks"]:
            yield Draft(companies[stock].stamp(row["at"]), row["title"], row["body"], (stock,))
    for row in content.extras["undated"]:
        company = companies[row["stock"]]
        day = company.stamp(row["at"]).day.isoformat()
        yield Draft(company.stamp(day), row["title"], row["body"], (company.stock_id,))
    for row in content.extras["telltale"]:
        company = companies[row["stock"]]
        stamp = _shifted(company.stamp(row["at"]), row["minutes"], company.tz)
        yield _outcome_told(company, stamp, settled[row["stock"], row["at"]], _TELLTALE)
    for row in content.extras["lookback"]:
        company = companies[row["stock"]]
        outcome = settled[row["stock"], row["at"]]
        morning = (outcome.resolve_at + timedelta(days=1)).replace(hour=8, minute=30, second=0)
        stamp = _stamp_like(company.stamp(row["at"]), morning, company.tz)
        yield _outcome_told(company, stamp, outcome, _LOOKBACK)


def _outcome_told(company: Company, stamp: Stamp, outcome: Settlement, template: Mapping[str, str]) -> Draft:
    body = template[company.market].format(
        **company.slots,
        day=outcome.resolve_at.date(),
        verb=_VERBS[company.market][outcome.fwd_ret > 0],
        move=f"{abs(outcome.fwd_ret) * 100:.1f}",
    )
    return Draft(stamp, "" if company.chinese else f"{company.name}: the reaction", body, (company.stock_id,))


def _copies(content: Content, companies: Mapping[str, Company], drafts: list[Draft]) -> list[Draft]:
    by_case = {draft.case: draft for draft in drafts if draft.case is not None}
    copies = []
    for row in content.extras["copy"]:
        original = by_case[row["stock"], row["of"]]
        stamp = companies[row["stock"]].stamp(row["at"])
        copies.append(Draft(stamp, original.title, original.body, original.stocks))
    return copies
