"""Small corpora, a model that answers from the prompt alone, and the context of a decision: a build without endpoint or files."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from harness.clock import Stamp, parse_stamp
from harness.evidence import EvidenceIndex, Gate
from harness.gateway.result import Completion
from harness.method import Context, Message, Vectors
from harness.records import Call, Corpus, Document, Status, Stock
from methods.tiem.eeh import Eeh
from methods.tiem.settings import EehSettings

T = TypeVar("T")
TZ = "Asia/Shanghai"
TOPICS = ("tariff", "chips", "lithium")
LOOSE = EehSettings(
    min_episodes=1, episode_days=6, theme_days=60, episode_confidence=0.2, theme_confidence=0.1, min_industries=0
)
"""Lenient enough for themes in a corpus of a dozen documents."""


def stamp(text: str) -> Stamp:
    return parse_stamp(text, TZ)


def document(doc_id: str, ts: str, body: str, *stocks: str) -> Document:
    return Document(doc_id, stamp(ts), "", body, stocks)


def corpus(documents: Iterable[Document], industries: Mapping[str, str] | None = None) -> Corpus:
    listed = tuple(documents)
    names = sorted({s for d in listed for s in d.stocks} | {"A", "B", "C"})
    return Corpus(listed, {s: Stock(s, f"Company {s}", (industries or {}).get(s)) for s in names})


def cut(whole: Corpus, decision: Stamp) -> Corpus:
    """``whole`` without what comes after ``decision``; the table of securities is not a matter of time."""
    known = tuple(d for d in whole.documents if d.time and d.time.instant <= decision.instant)
    return Corpus(known, whole.stocks)


def fraction(*parts: str) -> float:
    """A number in [0, 1) that depends on ``parts`` alone."""
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:4], "big") / 2**32


@dataclass
class PromptLLM:
    """Answers from the prompt alone and keeps what it was asked.

    ``status`` may turn an answer into another outcome: it gets (purpose, prompt).
    """

    status: Callable[[str, str], Status] = lambda purpose, prompt: Status.OK
    asked: list[tuple[str, str]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None,
        purpose: str,
        essential: tuple[str, ...] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        prompt = "\n".join(m["content"] for m in messages)
        self.asked.append((purpose, prompt))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        status = self.status(purpose, prompt)
        assert schema is not None
        value = _answer(messages[-1]["content"], schema) if status is Status.OK else None
        reason = None if status is Status.OK else "as planned"
        call = Call(None, purpose, "build", "r", "m", None, None, 1, False, 1, 0, 1, 0, None, status, 200)
        return Completion(status, value, json.dumps(value), reason, "r", "s", "m", calls=(call,))

    def purposes(self) -> Counter[str]:
        return Counter(purpose for purpose, _ in self.asked)

    def distinct(self) -> int:
        return len(set(self.asked))


def _answer(prompt: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    names = set(schema["properties"])
    if names == {"propositions"}:
        passage = prompt.split("## Passage\n", 1)[1].split("\n\n## Your answer", 1)[0]
        return {"propositions": [_fact(s) for s in re.split(r"[.。]\s*", passage) if s.strip()]}
    if names == {"is_episode", "confidence"}:
        return {"is_episode": fraction(prompt, "is") < 0.9, "confidence": round(fraction(prompt, "sure"), 2)}
    if names == {"type", "summary"}:
        topic = next((t for t in TOPICS if t in prompt), "nothing")
        return {"type": "other", "summary": f"{topic} {fraction(prompt, 'summary'):.6f}"}
    if names == {"is_theme", "name", "description", "confidence"}:
        topic = next((t for t in TOPICS if t in prompt), "nothing")
        return {
            "is_theme": True,
            "name": f"{topic} wave {int(fraction(prompt, 'name') * 5)}",
            "description": f"About {topic}.",
            "confidence": round(fraction(prompt, "theme"), 2),
        }
    assert names == {"type"}
    return {"type": "tech_wave"}


def _fact(sentence: str) -> dict[str, Any]:
    words = sorted(set(sentence.split()))[: 1 + int(fraction(sentence) * 4)]
    entities = [{"name": w, "type": "company"} for w in words]
    relations = [{"src": words[0], "dst": words[-1], "type": "related"}] if len(words) > 1 else []
    return {"sentence": sentence, "entities": entities, "relations": relations}


async def embed(texts: Sequence[str]) -> Vectors:
    """Unit vectors that say the topic, and a little of the text."""
    rows = []
    for text in texts:
        row = np.array([float(t in text) for t in TOPICS] + [0.0] * 8)
        row[len(TOPICS) :] = [0.1 * (fraction(text, str(i)) - 0.5) for i in range(8)]
        rows.append(row / np.linalg.norm(row))
    return np.array(rows, dtype=np.float32)


@dataclass
class Shelf:
    """A ``Shared`` in memory, with directories below ``root``."""

    root: Path
    objects: dict[str, Any] = field(default_factory=dict)

    def __call__(self, key: str, make: Callable[[Path], T]) -> T:
        if key not in self.objects:
            self.objects[key] = make(self.root / key)
        made: T = self.objects[key]
        return made


def context(
    index: EvidenceIndex,
    stock: str,
    decision: Stamp,
    llm: PromptLLM,
    shelf: Shelf,
    gate: Gate = Gate.STRICT,
    warnings: list[str] | None = None,
) -> Context:
    return Context(
        benchmark="tests",
        gate=gate,
        evidence=index.as_of(stock, decision, gate),
        experience=(),
        memory=None,
        llm=llm,
        build_llm=llm,
        embed=embed,
        shared=shelf,
        feed_cases=False,
        context_chars=None,
        rng=lambda: np.random.default_rng(0),
        warn=(warnings if warnings is not None else []).append,
    )


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def gathered(works: Iterable[Awaitable[T]]) -> list[T]:
    return list(await asyncio.gather(*works))


def fresh(directory: Path, settings: EehSettings = LOOSE) -> Eeh:
    return Eeh(settings, directory)
