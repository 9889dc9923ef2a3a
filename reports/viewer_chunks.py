"""Details of forecasts, packed: cases of one benchmark stand together, and every line of text is stored once a chunk.

Methods and backbones ask about the same case with much the same words, so a chunk holds all rows of a few cases, and prompts are
lists of numbers of lines.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.errors import DataError
from harness.replies import Exchange, Replies
from reports.viewer_read import CaseCell, CaseFiles, Slices, answer_of, messages_of, valid_text

TEXT_LIMIT = 60_000
"""Characters of one message or reply that are kept; what is cut is counted in its place."""
_EVIDENCE = ("kind", "item_id", "stock", "gate_rule", "verdict", "chars", "rank", "score")
_TIMES = ("ts_start", "ts_end", "known_at", "visible_from")
_CALL = (
    "purpose", "stage", "model", "status", "attempts", "cache_hit", "prompt_tokens", "cached_tokens", "completion_tokens",
    "reasoning_tokens", "cost_usd", "latency_s", "http_status",
)  # fmt: skip
_REMEMBERED = ("skill", "memory_note")
"""Kinds of evidence whose ``item_id`` may be an object of the memory."""


class Lines:
    """Texts as lists of line numbers; equal lines share a number."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._number: dict[str, int] = {}

    def add(self, text: str) -> list[int]:
        """Numbers of the lines of ``text``, cut at ``TEXT_LIMIT`` characters."""
        over = len(text) - TEXT_LIMIT
        kept = f"{text[:TEXT_LIMIT]}\n[… {over:,} more characters are not kept in this page]" if over > 0 else text
        return [self._add(line) for line in kept.split("\n")]

    def _add(self, line: str) -> int:
        number = self._number.setdefault(line, len(self.lines))
        if number == len(self.lines):
            self.lines.append(line)
        return number


@dataclass
class Chunk:
    """The rows of a few cases. Filled a row at a time; ``pack`` when all are in.

    Attributes:
        texts: whether prompts and replies are kept.
        lines: the texts of all rows.
        exchanges: what was asked and answered by request, or why it is not known; rows share them.
        rows: the details of each row by its number, as JSON.
    """

    texts: bool
    lines: Lines = field(default_factory=Lines)
    exchanges: dict[str, Any] = field(default_factory=dict)
    rows: dict[int, str] = field(default_factory=dict)

    def add(self, number: int, cell: CaseCell, files: CaseFiles, replies: Replies, i: int) -> None:
        """Keep the details of row ``i`` of ``cell`` under ``number``."""
        row = {name: values[i] for name, values in cell.rows.items()}
        key = (row["catalyst_id"], row["epoch"])
        detail = {
            "evidence": _evidence(files.evidence, key),
            "calls": self._calls(files.calls, key, replies),
            "remembered": self._remembered(files, key, row),
            "reason": row["reason"],
            "rationale": None if row["rationale"] is None else self.lines.add(row["rationale"]),
            **{name: row[name] for name in ("prompt_sha256", "reply_sha256", "model_returned", "system_fingerprint")},
            **{name: row[name] for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")},
            **{name: row[name] for name in ("total_prompt_tokens", "total_completion_tokens", "latency_s")},
            "max_evidence_time": seconds(row["max_evidence_time"]),
        }
        self.rows[number] = _json(detail)

    def pack(self) -> bytes:
        """The chunk as gzip of JSON; the same rows give the same bytes."""
        rows = ",".join(f'"{number}":{text}' for number, text in self.rows.items())
        text = f'{{"lines":{_json(self.lines.lines)},"exchanges":{_json(self.exchanges)},"rows":{{{rows}}}}}'
        return gzip.compress(text.encode(), 6, mtime=0)

    def _calls(self, calls: Slices | None, key: tuple[str, int], replies: Replies) -> list[dict[str, Any]] | None:
        if calls is None:
            return None
        found = []
        for at in calls.of(key):
            request = calls.columns["request_sha256"][at]
            self._keep(request, replies)
            found.append(
                {name: calls.columns[name][at] for name in _CALL}
                | {"sent_at": seconds(calls.columns["sent_at"][at]), "request": request}
            )
        return found

    def _keep(self, request: str, replies: Replies) -> None:
        """Store the exchange of ``request`` once a chunk; one that is kept but cannot be read is named, and stops nothing."""
        if not self.texts or request in self.exchanges:
            return
        try:
            exchange = replies.get(request)
            if exchange is not None:
                self.exchanges[request] = self._exchange(exchange)
        except (DataError, ValueError) as error:
            self.exchanges[request] = {"damaged": valid_text(str(error))}

    def _exchange(self, exchange: Exchange) -> dict[str, Any]:
        answer = answer_of(exchange.reply)
        return {
            "messages": [[role, self.lines.add(text)] for role, text in messages_of(exchange.request)],
            "reply": self.lines.add(answer.content),
            "thinking": None if answer.thinking is None else self.lines.add(answer.thinking),
            "finish_reason": answer.finish_reason,
        }

    def _remembered(self, files: CaseFiles, key: tuple[str, int], row: Mapping[str, Any]) -> dict[str, list[int]]:
        """What each skill and note in the prompt held at the decision, by its id; those that the memory does not know are left out."""
        if files.memory is None or files.evidence is None or row["decision_time"] is None:
            return {}
        whole_day = row["decision_day"] if row["decision_granularity"] == "day" else None
        kinds, items = files.evidence.columns["kind"], files.evidence.columns["item_id"]
        found: dict[str, list[int]] = {}
        for at in files.evidence.of(key):
            if kinds[at] in _REMEMBERED and items[at] is not None and items[at] not in found:
                value = files.memory.before(items[at], row["decision_time"], whole_day)
                if value is not None:
                    found[items[at]] = self.lines.add(value)
        return found


def not_ok(evidence: Slices | None, key: tuple[str, int]) -> int | None:
    """Records of a forecast that the gate's check does not call ok; None where there is no evidence file."""
    return None if evidence is None else sum(evidence.columns["verdict"][at] != "ok" for at in evidence.of(key))


def _evidence(evidence: Slices | None, key: tuple[str, int]) -> dict[str, list[Any]] | None:
    if evidence is None:
        return None
    at = evidence.of(key)
    found = {name: [evidence.columns[name][i] for i in at] for name in _EVIDENCE}
    return found | {name: [seconds(evidence.columns[name][i]) for i in at] for name in _TIMES}


def seconds(at: int | None) -> int | None:
    """Whole seconds of microseconds since 1970; a fraction is dropped, so that no record is shown as later than it was."""
    return None if at is None else at // 1_000_000


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text if text.isascii() else valid_text(text)


def packed_index(value: Mapping[str, Sequence[Any]] | Mapping[str, Any]) -> bytes:
    """A JSON value as gzip."""
    return gzip.compress(_json(value).encode(), 9, mtime=0)
