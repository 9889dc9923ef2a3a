"""The hand-written part of the sample: companies, chains of events, industry themes and extras, read from TOML."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from harness.clock import Convention, Stamp, parse_stamp

HERE = Path(__file__).parent
TIME_ZONES = {"CN": "Asia/Shanghai", "US": "America/New_York"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a chain: template texts with ``{slots}``. ``tones`` maps True (good) and False (bad) to a sentence."""

    catalyst_type: str
    title: str
    fact: str
    tones: dict[bool, str]


@dataclass(frozen=True, slots=True)
class Company:
    """A company; ``slots`` fill the templates, ``stories`` holds (story id, decision stamps of its steps)."""

    stock_id: str
    industry: str
    market: str
    convention: Convention
    horizon: int
    first_price: float
    slots: dict[str, str]
    stories: tuple[tuple[str, tuple[Stamp, ...]], ...]

    @property
    def name(self) -> str:
        return self.slots["name"]

    @property
    def tz(self) -> str:
        return TIME_ZONES[self.market]

    def stamp(self, text: str) -> Stamp:
        """``text`` as a stamp in the time zone of the company's exchange."""
        return parse_stamp(text, self.tz)

    @property
    def chinese(self) -> bool:
        return self.market == "CN"


@dataclass(frozen=True, slots=True)
class Theme:
    """What moves an industry from day ``since`` on; ``phrase`` and ``note`` map a market to text in its language."""

    industry: str
    since: date
    phrase: dict[str, str]
    note: dict[str, str]


@dataclass(frozen=True, slots=True)
class Content:
    """All hand-written content. ``stories`` maps (story id, market) to the steps in that market's language."""

    companies: tuple[Company, ...]
    stories: dict[tuple[str, str], tuple[Step, ...]]
    themes: tuple[Theme, ...]
    extras: dict[str, list[dict[str, Any]]]

    def theme_at(self, company: Company, day: date) -> str:
        """The newest theme of the company's industry that began on or before ``day``."""
        known = [theme for theme in self.themes if theme.industry == company.industry and theme.since <= day]
        return known[-1].phrase[company.market]


def load_content() -> Content:
    """Read the four TOML files beside this module."""
    raw = {name: _read(name) for name in ("companies", "stories", "themes", "extras")}
    return Content(
        companies=tuple(_company(row) for row in raw["companies"]["company"]),
        stories={
            (story["id"], market): tuple(_step(row, market) for row in story["step"])
            for story in raw["stories"]["story"]
            for market in TIME_ZONES
        },
        themes=tuple(_theme(row) for row in raw["themes"]["theme"]),
        extras=raw["extras"],
    )


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))


def _company(row: dict[str, Any]) -> Company:
    tz = TIME_ZONES[row["market"]]
    return Company(
        stock_id=row["id"],
        industry=row["industry"],
        market=row["market"],
        convention=Convention(row["convention"]),
        horizon=row["horizon"],
        first_price=row["price"],
        slots={key: row[key] for key in ("name", "product", "place", "partner", "person", "rival")},
        stories=tuple((story, tuple(parse_stamp(text, tz) for text in stamps)) for story, *stamps in row["stories"]),
    )


def _step(row: dict[str, str], market: str) -> Step:
    # Like the files of the two markets: Chinese notices carry no title, English releases do.
    if market == "CN":
        return Step(row["type"], "", row["zh"], {True: row["zh_good"], False: row["zh_bad"]})
    return Step(row["type"], row["title"], row["en"], {True: row["en_good"], False: row["en_bad"]})


def _theme(row: dict[str, str]) -> Theme:
    return Theme(
        industry=row["industry"],
        since=date.fromisoformat(row["since"]),
        phrase={"CN": row["zh"], "US": row["en"]},
        note={"CN": row["zh_note"], "US": row["en_note"]},
    )
