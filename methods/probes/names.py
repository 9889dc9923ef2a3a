"""Names and codes of securities in running text: found in the forms people write them, and replaced consistently."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from harness.records import Stock

_CJK = r"㐀-鿿"
_LEGAL = (
    r"(?:,?\s+(?:&\s*Co|Inc(?:orporated)?|Corp(?:oration)?|Co(?:mpany|mpanies)?|L(?:td|imited)|PLC|plc|LLC|L\.?P|Group|Holdings?|"
    r"Trust|N\.?V|S\.?A|A\.?G|SE|US|U\.S|Class [A-C])\b\.?)"
)
"""A legal form and what else may stand behind a name."""
_LEGAL_ZH = rf"(?:[{_CJK}（）()]{{0,8}}?(?:股份有限公司|有限责任公司|有限公司|集团公司))?"
_MARKS_ZH = re.compile(r"^(?:\*?ST|XD|XR|DR|N|C|S)(?=[\u3400-\u9fff])|(?:-[UWV]+|[AB])$")
_GENERIC = frozenset(
    ["advanced", "allied", "american", "applied", "atlantic", "bank", "central", "china", "eastern", "energy", "first", "general", "global", "great", "international", "liberty", "medical", "national", "new", "north", "northern", "pacific", "public", "realty", "royal", "south", "southern", "standard", "state", "united", "universal", "western"]
)  # fmt: skip
_TICKER_BARE = 3
"""A shorter ticker is masked only where it is written as one ((NYSE: T), $T): bare, it is a word."""
_EXCHANGES = r"(?:NYSE|NASDAQ|Nasdaq|NASDAQGS|NYSE ?American|AMEX|OTC|SSE|SZSE|SH|SZ|HKEX)"


@dataclass(frozen=True, slots=True)
class Security:
    """A security as a text may name it."""

    name: str
    code: str

    @classmethod
    def of(cls, stock: Stock) -> Security:
        return cls(stock.name, stock.stock_id)

    @property
    def bare(self) -> str:
        """The code without its market: 600519, AAPL."""
        return self.code.split(".")[0]

    @property
    def market(self) -> str:
        """The suffix of the code; "" without one."""
        return self.code.partition(".")[2]

    @property
    def has_name(self) -> bool:
        """False where the benchmark names a security by its own code."""
        return self.name not in (self.code, self.bare)


def plain(name: str) -> str:
    """``name`` without its legal form, the article, or the mark of a special status."""
    if re.search(f"[{_CJK}]", name):
        return re.sub(r"(?:股份有限公司|有限责任公司|有限公司|集团公司)$", "", _MARKS_ZH.sub("", name.replace(" ", "")))
    return re.sub(rf"{_LEGAL}+\s*$", "", name).removeprefix("The ")


def short_names(name: str) -> list[str]:
    """``name`` and what people make of it, longest first: the plain name, and a first word that stands for it."""
    found = {name, name.replace(" ", "") if re.search(f"[{_CJK}]", name) else name, plain(name)}
    words = plain(name).split()
    if len(words) > 1 and len(words[0]) > 4 and words[0].lower() not in _GENERIC:
        found.add(words[0])
    return sorted((n for n in found if len(n) > 1), key=lambda n: (-len(n), n))


def same_name(one: str, other: str) -> bool:
    """Whether two names differ in nothing but legal form, case, spaces and signs."""
    a, b = (re.sub(r"[\W_]+", "", plain(name)).casefold() for name in (one, other))
    return a == b != ""


@lru_cache(maxsize=4096)
def _pattern(security: Security) -> re.Pattern[str]:
    """Matches the security in a text. Groups: ``code`` with its market, ``coded`` behind an exchange (``led``), ``bare``; else a name."""
    bare = re.escape(security.bare)
    prefixed = rf"(?:{_EXCHANGES}\s*[:：]?\s*)" if not security.bare.isdigit() else r"(?:[Ss][HhZz][.:：]?\s?)"
    market = rf"\.(?:{re.escape(security.market)}|SS|XSHG|XSHE|[A-Z]{{1,2}})" if security.market else r"\.[A-Z]{2}"
    forms = [rf"(?P<code>(?<!\w){bare}{market}\b)", rf"(?P<led>(?<!\w){prefixed})(?P<coded>{bare})(?!\w)"]
    if security.bare.isdigit() or len(security.bare) >= _TICKER_BARE:
        forms.append(rf"(?P<bare>(?<![\w.]){bare}(?!\w|\.\d))")
    else:
        forms.append(rf"(?P<bare>(?<=\$){bare}\b|(?<=\(){bare}(?=\)))")
    if security.has_name:
        forms += [_named(name) for name in short_names(security.name)]
    return re.compile("|".join(forms))


def _named(name: str) -> str:
    if re.search(f"[{_CJK}]", name):
        return re.escape(name) + _LEGAL_ZH
    words = re.escape(name).replace("'", "['’]")
    return rf"(?<!\w)(?i:{words}){_LEGAL}*(?!\w)"


def replaced(text: str, changes: Iterable[tuple[Security, Security]]) -> str:
    """``text`` with each first security of ``changes`` written as the second: names as its name, codes in the form they had."""
    pairs = list(changes)
    found: list[tuple[int, int, str]] = []
    for old, new in pairs:
        for match in _pattern(old).finditer(text):
            if all(match.end() <= start or match.start() >= end for start, end, _ in found):
                found.append((match.start(), match.end(), _written(match, new)))
    out, done = [], 0
    for start, end, instead in sorted(found):
        out += [text[done:start], instead]
        done = end
    return "".join([*out, text[done:]])


def _written(match: re.Match[str], new: Security) -> str:
    groups = match.groupdict()
    if groups["code"]:
        return new.code
    if groups["coded"]:
        return f"{groups['led']}{new.bare}" if new.market else new.bare
    return new.bare if groups["bare"] else new.name


def told_name(text: str, security: Security) -> Security | None:
    """``security`` by the name that ``text`` itself gives it, as in ``AMETEK, Inc. (NYSE: AME)``; None if it gives none.

    For benchmarks that name a security by its own code.
    """
    bare = re.escape(security.bare)
    match = re.search(rf"((?:[A-Z][\w.&'’-]*,?\s+){{1,6}})\({_EXCHANGES}\s*:\s*{bare}\b", text)
    name = plain(match[1].strip(" ,")) if match else ""
    return Security(name, security.code) if len(name) > 1 else None


def is_named(text: str, security: Security) -> bool:
    """Whether ``text`` names ``security``, in whatever form."""
    return _pattern(security).search(text) is not None


def mentioned(text: str, stocks: Mapping[str, Stock], besides: str) -> list[Security]:
    """Securities other than ``besides`` that ``text`` names by name, in the order of their first mention."""
    found = []
    for stock in stocks.values():
        security = Security.of(stock)
        if stock.stock_id != besides and security.has_name:
            places = [text.find(name) for name in short_names(stock.name)[:2]]
            first = min((p for p in places if p >= 0), default=None)
            if first is not None:
                found.append((first, -len(stock.name), stock.stock_id, security))
    return [security for *_, security in sorted(found, key=lambda f: f[:3])]


def masks(own: Security, others: Sequence[Security]) -> list[tuple[Security, Security]]:
    """What to write instead: ``Company A`` and ``CODE-A`` for ``own``, B, C, … for the others; 公司A where the name is Chinese."""
    return [(security, _mask(security, _letter(i))) for i, security in enumerate((own, *others))]


def _mask(security: Security, letter: str) -> Security:
    chinese = re.search(f"[{_CJK}]", security.name) is not None
    return Security(f"公司{letter}" if chinese else f"Company {letter}", f"CODE-{letter}")


def _letter(i: int) -> str:
    return chr(ord("A") + i) if i < 26 else f"{chr(ord('A') + i // 26 - 1)}{chr(ord('A') + i % 26)}"
