"""What a probe shows of a case, in words that can be changed before they are asked about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from harness.evidence import EvidenceView, document_source
from harness.method import Context, Message
from harness.records import Catalyst, Document, Forecast, Passage
from methods import forecasting
from methods.base import render
from methods.probes import dates, names
from methods.probes.names import Security

Input = Literal["nd", "nc", "full"]
"""Nested inputs: security and date; with recent statistics and prior headlines; with the focal text."""

TEMPLATES = ("forecast_system.j2", "probe_user.j2", "probe_scene.j2")
MAX_HEADLINES = 10
_HEADLINE_CHARS = 160


@dataclass(frozen=True, slots=True)
class Scene:
    """Who, when, and as much of the news as its input has.

    Attributes:
        when: decision time in exchange-local words.
        anchor: the day that dates without a year are read by.
        headlines: of earlier documents, newest first; None for an input without them.
        focal: text of the focal document; None for an input without it, or where there is none.
        has_focal: whether the input has a focal text.
    """

    company: str
    code: str
    when: str
    date_only: bool
    anchor: date
    market: str
    horizon: int
    headlines: tuple[str, ...] | None
    focal: str | None
    has_focal: bool

    @property
    def security(self) -> Security:
        return Security(self.company, self.code)

    @property
    def texts(self) -> str:
        """All that is said of the news."""
        return "\n".join([*(self.headlines or ()), self.focal or ""])


def scene_of(case: Catalyst, evidence: EvidenceView, shows: Input) -> tuple[Scene, list[Passage]]:
    """The case as ``shows`` has it, and the records behind it."""
    prior = evidence.prior()[: -MAX_HEADLINES - 1 : -1] if shows != "nd" else []
    focal = evidence.focal() if shows == "full" else None
    shown = [Passage(headline(d), document_source(d, "prior"), rank=i) for i, d in enumerate(prior, 1)]
    if focal:
        shown.append(Passage(forecasting.document_line(focal), document_source(focal, "focal")))
    scene = Scene(
        company=case.company,
        code=case.stock_id,
        when=case.time.text,
        date_only=case.time.date_only,
        anchor=case.time.day,
        market=forecasting.MARKET_NAMES.get(case.market, case.market),
        horizon=case.horizon,
        headlines=None if shows == "nd" else tuple(headline(d) for d in prior),
        focal=forecasting.document_line(focal) if focal else None,
        has_focal=shows == "full",
    )
    return scene, shown


def headline(document: Document) -> str:
    """The title with its date; the beginning of the text where there is no title."""
    words = document.title or " ".join(document.body.split())
    cut = words if len(words) <= _HEADLINE_CHARS else f"{words[: _HEADLINE_CHARS - 1]}…"
    return f"[{document.time.text if document.time else 'unknown time'}] {cut}"


def renamed(scene: Scene, changes: Sequence[tuple[Security, Security]]) -> Scene:
    """With other names and codes, the first of ``changes`` being the scene's own."""
    old, own = changes[0]
    told = None if old.has_name else names.told_name(scene.texts, old)
    changes = [*([(told, own)] if told else []), *changes]
    return replace(_each_text(scene, lambda text: names.replaced(text, changes)), company=own.name, code=own.code)


def anonymous(scene: Scene, evidence: EvidenceView) -> Scene:
    """Names, codes and dates masked, each by the same mark wherever it stands."""
    own = scene.security
    others = names.mentioned(scene.texts, evidence.stocks, besides=scene.code)
    hidden = renamed(scene, names.masks(own, others))
    return replace(
        _each_text(hidden, lambda text: dates.masked(text, scene.anchor)), when=dates.masked(scene.when, scene.anchor)
    )


def moved(scene: Scene, days: int) -> Scene:
    """With every date moved by ``days``."""
    later = _each_text(scene, lambda text: dates.shifted(text, scene.anchor, days))
    return replace(later, when=dates.shifted(scene.when, scene.anchor, days))


def messages(scene: Scene, *, system: str = TEMPLATES[0], user: str = TEMPLATES[1]) -> list[Message]:
    """The conversation that asks about ``scene``."""
    return [
        {"role": "system", "content": render(system, market=scene.market)},
        {"role": "user", "content": render(user, scene=scene)},
    ]


async def ask(scene: Scene, ctx: Context, shown: Sequence[Passage], probe_answer: str | None = None) -> Forecast:
    """The forecast of ``scene``: one call, the probability alone."""
    schema = forecasting.BARE_ANSWER
    value, call = await forecasting.asked(ctx, messages(scene), schema, "probe", essential=("prob_positive",))
    probability = float(value["prob_positive"]) if value else None
    return replace(call, prob_positive=probability, shown=tuple(shown), probe_answer=probe_answer)


def _each_text(scene: Scene, change: Callable[[str], str]) -> Scene:
    headlines = None if scene.headlines is None else tuple(change(text) for text in scene.headlines)
    return replace(scene, headlines=headlines, focal=change(scene.focal) if scene.focal is not None else None)
