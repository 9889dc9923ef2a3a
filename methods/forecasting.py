"""The forecast prompt that all methods share, and the one call that turns it into a Forecast.

Instruction, header, focal document and concurrent documents are the same for every method; a method adds at most one
block of context. So a difference between two methods is a difference of their context, not of their wording.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from harness.evidence import EvidenceView, document_source
from harness.method import Context, Message
from harness.records import Catalyst, Document, Forecast, Passage, Status
from methods.base import render, template_sha256

TEMPLATES = ("forecast_system.j2", "forecast_user.j2")
MAX_CONCURRENT = 12
"""Concurrent documents shown, oldest first (tiem.md §3: U(c))."""

MARKET_NAMES = {"CN": "Chinese A-share", "US": "United States"}

_PROB = {"type": "number", "minimum": 0, "maximum": 1}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


REASONED_ANSWER = _object(reasoning={"type": "string"}, prob_positive=_PROB)
"""Reasoning first, or the answer would be fixed before it."""

BARE_ANSWER = _object(prob_positive=_PROB)
"""Zero-shot alone answers without reasoning."""


def instruction_sha256() -> str:
    """Hash of the forecast instruction shared by all methods (logged with every cell)."""
    return hashlib.sha256("".join(template_sha256(name) for name in TEMPLATES).encode()).hexdigest()


def document_line(document: Document) -> str:
    """A document as it stands in a prompt: always with its own date."""
    stamp = document.time.text if document.time else "unknown time"
    return f"[{stamp}] {document.text}"


def base_passages(evidence: EvidenceView) -> tuple[list[Passage], list[Passage]]:
    """The focal passage (none or one) and the concurrent ones, the same for every method."""
    focal = evidence.focal()
    shown = [Passage(document_line(focal), document_source(focal, "focal"))] if focal else []
    concurrent = [
        Passage(document_line(d), document_source(d, "concurrent")) for d in evidence.concurrent()[:MAX_CONCURRENT]
    ]
    return shown, concurrent


def fit(passages: Sequence[Passage], budget: int, size: Any = len) -> list[Passage]:
    """The longest prefix of ``passages`` whose summed ``size`` of text is within ``budget``: cut at record boundaries."""
    kept: list[Passage] = []
    used = 0
    for passage in passages:
        used += size(passage.text)
        if used > budget:
            break
        kept.append(passage)
    return kept


async def ask(
    case: Catalyst, ctx: Context, *, context: Sequence[Passage] | None = None, reason_first: bool = True
) -> Forecast:
    """Make the forecast call.

    Args:
        case: the catalyst.
        ctx: the world as of its decision.
        context: the method's passages, best first and already cut to the budget; None for a method without a block.
        reason_first: ask for reasoning before the probability.
    """
    focal, concurrent = base_passages(ctx.evidence)
    messages: list[Message] = [
        {"role": "system", "content": render(TEMPLATES[0], market=MARKET_NAMES.get(case.market, case.market))},
        {
            "role": "user",
            "content": render(
                TEMPLATES[1],
                case=case,
                focal=focal[0].text if focal else None,
                has_text=ctx.evidence.present,
                concurrent=[p.text for p in concurrent],
                context=None if context is None else [p.text for p in context],
                reason_first=reason_first,
            ),
        },
    ]
    schema = REASONED_ANSWER if reason_first else BARE_ANSWER
    reply = await ctx.llm.complete(messages, schema=schema, purpose="forecast", essential=("prob_positive",))
    value = reply.value if reply.status is Status.OK else None
    return Forecast(
        status=reply.status,
        prob_positive=float(value["prob_positive"]) if value else None,
        rationale=value.get("reasoning") if value else None,
        reason=reply.reason,
        shown=(*focal, *concurrent, *(context or ())),
        prompt_sha256=prompt_sha256(messages),
        reply_sha256=reply.reply_sha256,
        model_returned=reply.model_returned,
        system_fingerprint=reply.system_fingerprint,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
    )


def prompt_sha256(messages: Sequence[Message]) -> str:
    """SHA-256 of what the model is shown: roles and contents, nothing operational."""
    text = "\x1e".join(f"{m['role']}\x1f{m['content']}" for m in messages)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
