"""The theme tier: clusters of episodes across stocks, and what they have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from harness.clock import Granularity, Stamp
from harness.method import Embed
from methods.asking import Asker, content_key
from methods.concurrency import Once, bounded_map
from methods.schemas import SHARE, TEXT, json_object
from methods.tiem.artefacts import Artefacts, Failure
from methods.tiem.records import Episode, Theme
from methods.tiem.themes import GRID_ORIGIN, ClusterRule, ThemeWindow, cluster, keep, known_industries, members

TEST, CLASSIFY = "tiem_theme_test.j2", "tiem_theme_classify.j2"
THEME_TYPES = (
    "policy_shock", "tech_wave", "supply_chain_stress", "sector_rotation", "black_swan_spillover", "macro_cycle",
    "other",
)  # fmt: skip
NAME_WORDS = 8
CLUSTERS_AT_ONCE = 16

_TEST = json_object(is_theme={"type": "boolean"}, name=TEXT, description=TEXT, confidence=SHARE)
_CLASSIFY = json_object(type={"type": "string", "enum": list(THEME_TYPES)})


@dataclass(frozen=True, slots=True)
class Development:
    """What the model says of a cluster that is one theme."""

    name: str
    description: str
    type: str
    confidence: float


class ThemeTier:
    """Themes of windows; a cluster that reads the same is judged once."""

    def __init__(self, min_confidence: float, artefacts: Artefacts) -> None:
        self._min_confidence = min_confidence
        self._artefacts = artefacts
        self._verdicts: Once[str, Development | None] = Once()
        for row in artefacts.rows("themes"):
            told = (row["name"], row["description"], row["type"], row["confidence"])
            self._verdicts.put(row["key"], Development(*told) if row["accepted"] else None)

    async def of(
        self,
        window: ThemeWindow,
        episodes: Sequence[Episode],
        industries: Mapping[str, str | None],
        rule: ClusterRule,
        company: Callable[[str], str],
        asker: Asker,
        embed: Embed,
    ) -> list[Theme]:
        """Themes of ``window`` among ``episodes`` as they stood at its close, in the order of their clusters.

        Raises:
            CallFailed: the model could not be asked.
        """
        inside = members(window, episodes)
        if len({e.stock for e in inside}) < rule.min_stocks or len(inside) < rule.min_size:
            return []
        vectors = await embed([e.summary for e in inside])
        clusters = await asyncio.to_thread(cluster, vectors, rule.min_size)
        kept = [keep([inside[i] for i in rows], industries, rule) for rows in clusters]

        async def theme(own: Sequence[Episode]) -> Theme | None:
            return await self._theme(own, window, industries, company, asker)

        found = await bounded_map(theme, [own for own in kept if own], CLUSTERS_AT_ONCE)
        return [theme for theme in found if theme is not None]

    async def _theme(
        self,
        own: Sequence[Episode],
        window: ThemeWindow,
        industries: Mapping[str, str | None],
        company: Callable[[str], str],
        asker: Asker,
    ) -> Theme | None:
        lines = [f"[{e.start.text} to {e.end.text}] {company(e.stock)}: {e.summary}" for e in own]
        key = content_key(lines)
        told = await self._verdicts.get(key, lambda: self._judge(own, lines, key, asker))
        if told is None:
            return None
        stocks, episodes = tuple(sorted({e.stock for e in own})), tuple(sorted(e.episode_id for e in own))
        close = window.close.isoformat()
        return Theme(
            theme_id=content_key(close, episodes, told.name, told.description, told.type, told.confidence)[:16],
            name=told.name,
            description=told.description,
            type=told.type,
            confidence=told.confidence,
            stocks=stocks,
            industries=known_industries(stocks, industries),
            episodes=episodes,
            start=min((e.start for e in own), key=_instant),
            end=max((e.end for e in own), key=_instant),
            known_at=window.close,
        )

    async def _judge(self, own: Sequence[Episode], lines: Sequence[str], key: str, asker: Asker) -> Development | None:
        start, end = min(e.start.instant for e in own), max(e.end.instant for e in own)
        stocks = sorted({e.stock for e in own})
        item = f"{', '.join(stocks)} {start:%Y-%m-%d} to {end:%Y-%m-%d}"
        test = await asker.ask(TEST, _TEST, "theme", lines=lines, name_words=NAME_WORDS)
        if test.value is None:
            self._artefacts.fail(Failure(key, "theme", item, test.status, test.reason))
            return None
        told, confidence = None, float(test.value["confidence"])
        name = " ".join(test.value["name"].split()[:NAME_WORDS])
        description = " ".join(test.value["description"].split())
        if test.value["is_theme"] and confidence >= self._min_confidence:
            kind = await asker.ask(CLASSIFY, _CLASSIFY, "theme", name=name, description=description, lines=lines)
            if kind.value is None:
                self._artefacts.fail(Failure(key, "theme", item, kind.status, kind.reason))
                return None
            told = Development(name, description, kind.value["type"], confidence)
        self._artefacts.add(
            themes=[
                {
                    "key": key,
                    "stocks": stocks,
                    "ts_start": start,
                    "ts_end": end,
                    "episodes": sorted(e.episode_id for e in own),
                    "accepted": told is not None,
                    "confidence": confidence,
                    "name": name,
                    "description": description,
                    "type": told.type if told else None,
                }
            ]
        )
        return told


def newest_close(decision: Stamp, days: int, step: int) -> datetime:
    """The latest close of the grid whose themes may be retrieved at ``decision``, whatever documents there are.

    It is before T; if T is date-only, before T's day (taken as 25 hours long, the longest a day can be).
    """
    limit = decision.instant - timedelta(hours=25) if decision.date_only else decision.instant
    first, stride = GRID_ORIGIN + timedelta(days=days), timedelta(days=step)
    return first + (-((first - limit) // stride) - 1) * stride


def close_stamp(close: datetime) -> Stamp:
    """The close of a window as a decision time: what is seen then is dated before that instant."""
    return Stamp(f"{close:%Y-%m-%d %H:%M:%S}", close, close.date(), Granularity.SECOND)


def _instant(stamp: Stamp) -> datetime:
    return stamp.instant
