"""What a prompt offers to build an answer from: its sentences, names, numbers, dates, and the drift of its words."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MOST = 8_000
_BREAKS = (". ", "! ", "? ", "。", "！", "？", "；")
_NAME = re.compile(r"[A-Z][A-Za-z0-9&-]+(?: [A-Z][A-Za-z0-9&-]+){0,3}|[一-鿿]{2,6}")
_MARK = re.compile(r"[\[#(](\d{1,4})")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?")
_WORD = re.compile(r"[a-z]+")
_UP_WORDS = (
    "grew grow growth rise rises rising rose beat beats gain gains profit profits profitable record raise raises raised strong "
    "upgrade upgraded upgrades win wins won approve approved approval exceed exceeds exceeded surge surged surges expand "
    "expands expanded expansion improve improved improves increase increased increases buyback dividend outperform"
)
_DOWN_WORDS = (
    "fall falls fell decline declined declines loss losses miss misses missed cut cuts weak downgrade downgraded downgrades "
    "probe lawsuit fraud penalty penalties fine fined delay delayed drop drops dropped warn warns warned warning default "
    "investigation impairment underperform decrease decreased decreases recall resign resigned"
)
_UP, _DOWN = frozenset(_UP_WORDS.split()), frozenset(_DOWN_WORDS.split())
_UP_ZH = re.compile("增长|上涨|盈利|超预期|中标|上调|回购|利好|突破|增持|新高|扭亏|获批")
_DOWN_ZH = re.compile("下降|下跌|亏损|不及预期|处罚|下调|减持|利空|违约|调查|立案|退市|诉讼|风险")


@dataclass(frozen=True, slots=True)
class Material:
    """Parts of one prompt, in order of appearance, never empty; ``drift`` > 0 if its words point up."""

    sentences: tuple[str, ...]
    names: tuple[str, ...]
    marks: tuple[int, ...]
    dates: tuple[str, ...]
    drift: int


def material(prompt: str) -> Material:
    """Take ``prompt`` (its first 8,000 characters) apart."""
    text = prompt[:_MOST]
    return Material(
        sentences=tuple(sentences_of(text)) or (text.strip() or "nothing",),
        names=tuple(dict.fromkeys(_NAME.findall(text))) or ("it",),
        marks=tuple(dict.fromkeys(int(m) for m in _MARK.findall(text))),
        dates=tuple(dict.fromkeys(_DATE.findall(text))) or ("2020-01-01",),
        drift=_drift(text),
    )


def sentences_of(text: str) -> list[str]:
    """The sentences of ``text`` in order, those of a few letters left out."""
    for mark in _BREAKS:
        text = text.replace(mark, f"{mark.rstrip()}\n")
    return [s for line in text.splitlines() if len(s := line.strip(" -*#\t")) > 8]


def _drift(text: str) -> int:
    words = _WORD.findall(text.lower())
    drift = sum(word in _UP for word in words) - sum(word in _DOWN for word in words)
    return drift if text.isascii() else drift + len(_UP_ZH.findall(text)) - len(_DOWN_ZH.findall(text))
