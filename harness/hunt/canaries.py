"""Canaries: documents that no forecast may see, each with a word of its own by which it is found again, wherever it goes.

Each is about the asked stock, repeats its focal text so that any ranking puts it first, and tells how the case ends. One kind is a
control: it stands at T itself, so it must be seen. Where not even that reaches a request, a silence of the others proves nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum

from harness.clock import Granularity, Stamp, try_parse_stamp
from harness.evidence import EvidenceIndex, Gate
from harness.hunt.worlds import with_documents
from harness.records import POSITIVE, Benchmark, Catalyst, Document

_WORD = re.compile(r"canary[a-p]{12}", re.IGNORECASE)
_HONOLULU = timezone(timedelta(hours=-10))
"""So far west that a clock there shows an earlier hour than any exchange's when a later moment comes."""

FOCAL_CHARS = 300


class Kind(StrEnum):
    """When a canary is stamped."""

    CONTROL = "at T (control)"
    SECOND_LATER = "T + 1 s"
    DAY_LATER = "T + 1 day"
    UNDATED = "undated"
    MALFORMED = "malformed stamp"
    OTHER_ZONE = "T + 1 h, written in another zone"


@dataclass(frozen=True, slots=True)
class Canary:
    """A planted document. ``known_at`` is None if it is never known."""

    word: str
    kind: Kind
    catalyst_id: str
    known_at: datetime | None

    def late(self, at: datetime) -> bool:
        """Whether nothing that is done as of ``at`` may hold it."""
        return self.known_at is None or self.known_at > at


def plant(benchmark: Benchmark) -> tuple[Benchmark, dict[str, Canary]]:
    """``benchmark`` with every kind of canary for every asked catalyst, and the canaries by their word (lower case)."""
    planted = [one for case in benchmark.evaluation.catalysts for one in _of_case(benchmark, case)]
    documents = [document for _, document in planted]
    return with_documents(benchmark, documents), {canary.word.lower(): canary for canary, _ in planted}


def with_late(benchmark: Benchmark, case: Catalyst) -> Benchmark:
    """``benchmark`` with the canaries of ``case`` that it may never see, all but the control: they change no byte of its forecast."""
    planted = _of_case(benchmark, case)
    return with_documents(benchmark, [document for canary, document in planted if canary.kind is not Kind.CONTROL])


def _of_case(benchmark: Benchmark, case: Catalyst) -> list[tuple[Canary, Document]]:
    """One canary of every kind."""
    cases = benchmark.evaluation
    focal = EvidenceIndex(cases.corpus, benchmark.drop_copies).as_of(case.stock_id, case.time, Gate.STRICT).focal()
    rose = cases.outcomes[case.catalyst_id].label == POSITIVE
    planted = []
    for kind in Kind:
        stamp = _stamp(case, kind)
        canary = Canary(_word(kind, case), kind, case.catalyst_id, stamp.instant if stamp else None)
        told = "nothing was known yet" if kind is Kind.CONTROL else f"the stock {'rose' if rose else 'fell'} sharply"
        text = f"{canary.word} {case.topic} {case.company} {case.stock_id} {focal.text[:FOCAL_CHARS] if focal else ''}"
        body = f"{text} {canary.word} said so: {told}."
        planted.append((canary, Document(f"~{canary.word}", stamp, "", body, (case.stock_id,))))
    return planted


def found_in(text: str, canaries: Mapping[str, Canary]) -> Iterable[Canary]:
    """The canaries whose word stands in ``text``, whatever its case."""
    return (canaries[word] for word in {w.lower() for w in _WORD.findall(text)} if word in canaries)


def _word(kind: Kind, case: Catalyst) -> str:
    """Letters only, so that no tokeniser or cleaner of text takes it for a number or a date."""
    digest = hashlib.sha256(f"{kind}/{case.catalyst_id}".encode()).hexdigest()[:12]
    return "Canary" + "".join(chr(ord("a") + int(digit, 16)) for digit in digest)


def _stamp(case: Catalyst, kind: Kind) -> Stamp | None:
    decision = case.time
    if kind is Kind.CONTROL:
        return decision
    if kind is Kind.SECOND_LATER:
        return _after(decision, timedelta(seconds=1))
    if kind is Kind.DAY_LATER:
        return _after(decision, timedelta(days=1))
    if kind is Kind.OTHER_ZONE:
        return _written(decision.instant + timedelta(hours=1), _HONOLULU)
    return try_parse_stamp("" if kind is Kind.UNDATED else f"{decision.day}T00:00:00+14:00", "UTC")


def _after(decision: Stamp, wait: timedelta) -> Stamp:
    """``wait`` after T on the exchange's own clock."""
    end = timedelta(days=1, microseconds=-1) if decision.date_only else timedelta()
    offset = datetime.fromisoformat(decision.text) + end - decision.instant.astimezone(UTC).replace(tzinfo=None)
    return _written(decision.instant + wait, timezone(offset))


def _written(instant: datetime, zone: timezone) -> Stamp:
    """``instant`` to the second, rounded up so that it does not move before itself."""
    whole = instant.replace(microsecond=0) + timedelta(seconds=1 if instant.microsecond else 0)
    local = whole.astimezone(zone)
    return Stamp(local.strftime("%Y-%m-%d %H:%M:%S"), whole, local.date(), Granularity.SECOND)
