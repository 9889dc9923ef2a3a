"""The episode tier: which windows of a stock's propositions are one causal chain, and what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from harness.records import Document
from methods.asking import Asker, content_key
from methods.concurrency import Once
from methods.schemas import SHARE, TEXT, json_object
from methods.tiem.artefacts import Artefacts, Failure
from methods.tiem.records import Episode
from methods.tiem.windows import MIN_DOCUMENTS, EpisodeWindow

TEST, DESCRIBE = "tiem_episode_test.j2", "tiem_episode_describe.j2"
EPISODE_TYPES = (
    "announce_chain", "crisis_cascade", "ma_process", "capital_move", "litigation_arc", "restructure", "product_launch",
    "regulatory_response", "other",
)  # fmt: skip
SUMMARY_CHARS = 200

_TEST = json_object(is_episode={"type": "boolean"}, confidence=SHARE)
_DESCRIBE = json_object(type={"type": "string", "enum": list(EPISODE_TYPES)}, summary=TEXT)


@dataclass(frozen=True, slots=True)
class Chain:
    """What the model says of a window that is a causal chain."""

    type: str
    summary: str
    confidence: float


class EpisodeTier:
    """Episodes of windows; a window that reads the same is judged once."""

    def __init__(self, min_confidence: float, artefacts: Artefacts) -> None:
        self._min_confidence = min_confidence
        self._artefacts = artefacts
        self._verdicts: Once[str, Chain | None] = Once()
        for row in artefacts.rows("episodes"):
            chain = Chain(row["type"], row["summary"], row["confidence"]) if row["accepted"] else None
            self._verdicts.put(row["key"], chain)

    async def of(self, window: EpisodeWindow, company: str, asker: Asker) -> Episode | None:
        """The episode that ``window`` is, or None. An unusable answer drops the window and is recorded as a failure.

        Raises:
            CallFailed: the model could not be asked.
        """
        lines = [f"[{p.time.text if p.time else 'unknown time'}] {p.sentence}" for p in window.propositions]
        key = content_key(window.stock, company, lines)
        chain = await self._verdicts.get(key, lambda: self._judge(window, company, lines, key, asker))
        return None if chain is None else _episode(window, chain, lines)

    async def _judge(
        self, window: EpisodeWindow, company: str, lines: Sequence[str], key: str, asker: Asker
    ) -> Chain | None:
        item = f"{window.stock} {window.start.text} to {window.end.text}"
        test = await asker.ask(TEST, _TEST, "episode", company=company, lines=lines)
        if test.value is None:
            self._artefacts.fail(Failure(key, "episode", item, test.status, test.reason))
            return None
        chain, confidence = None, float(test.value["confidence"])
        if test.value["is_episode"] and confidence >= self._min_confidence:
            told = await asker.ask(
                DESCRIBE, _DESCRIBE, "episode", company=company, lines=lines, summary_chars=SUMMARY_CHARS
            )
            if told.value is None:
                self._artefacts.fail(Failure(key, "episode", item, told.status, told.reason))
                return None
            summary = " ".join(told.value["summary"].split())[:SUMMARY_CHARS]
            chain = Chain(told.value["type"], summary, confidence)
        self._artefacts.add(
            episodes=[
                {
                    "key": key,
                    "stock": window.stock,
                    "ts_start": window.start.instant,
                    "ts_end": window.end.instant,
                    "propositions": [p.prop_id for p in window.propositions],
                    "accepted": chain is not None,
                    "confidence": confidence,
                    "type": chain.type if chain else None,
                    "summary": chain.summary if chain else None,
                }
            ]
        )
        return chain


def within_reach(documents: Sequence[Document], days: int) -> list[list[Document]]:
    """Runs of ``documents`` (of one stock, oldest first) that are near enough to share a window: the others need no call.

    A document more than ``days`` from the one before and the one after fills a window of its own and moves no other, so
    leaving it out changes no episode.
    """
    span, runs = timedelta(days=days), list[list[Document]]()
    for document in documents:
        if runs and _instant(document) - _instant(runs[-1][-1]) <= span:
            runs[-1].append(document)
        else:
            runs.append([document])
    return [run for run in runs if len(run) >= MIN_DOCUMENTS]


def _episode(window: EpisodeWindow, chain: Chain, lines: Sequence[str]) -> Episode:
    propositions = tuple(p.prop_id for p in window.propositions)
    extent = [window.start.text, window.end.text]
    identity = content_key(window.stock, extent, propositions, lines, chain.type, chain.summary, chain.confidence)
    return Episode(
        identity[:16],
        window.stock,
        chain.type,
        chain.summary,
        window.start,
        window.end,
        propositions,
        chain.confidence,
    )


def _instant(document: Document) -> datetime:
    assert document.time is not None  # a view returns no document without a time
    return document.time.instant
