"""The forecast prompt that all methods share, and the one call that turns it into a Forecast.

Instruction, header, focal document and concurrent documents are the same for every method; a method adds at most one
block of context. So a difference between two methods is a difference of their context, not of their wording.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.evidence import EvidenceView, document_source
from harness.expected import ONCE, ZERO, Expected, Range, Survey, key_of, noted, tokens_of_messages
from harness.method import Context, Message
from harness.records import Catalyst, Document, Forecast, Passage, Status, total
from harness.tokens import count_tokens
from methods.base import render, template_sha256
from methods.schemas import SHARE, TEXT, json_object

TEMPLATES = ("forecast_system.j2", "forecast_user.j2")
MAX_CONCURRENT = 12
"""Concurrent documents shown, oldest first (the paper's U(c))."""

MARKET_NAMES = {"CN": "Chinese A-share", "US": "United States"}

REASONED_ANSWER = json_object(reasoning=TEXT, prob_positive=SHARE)
"""Reasoning first, or the answer would be fixed before it."""

BARE_ANSWER = json_object(prob_positive=SHARE)
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


def within_budget(passages: Sequence[Passage], ctx: Context, native_tokens: int) -> list[Passage]:
    """As ``fit``, to the characters that every method gets (``context.budget=matched``) or to the method's own tokens."""
    if ctx.context_chars is None:
        return fit(passages, native_tokens, count_tokens)
    return fit(passages, ctx.context_chars)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the shared prompt is filled with.

    Attributes:
        focal: text of the focal document; None without one.
        concurrent: texts of the block on T's day.
        context: texts of the method's block; None for a method without one.
        shown: every record behind these texts.
    """

    focal: str | None
    concurrent: tuple[str, ...]
    context: tuple[str, ...] | None
    shown: tuple[Passage, ...]


async def ask(
    case: Catalyst, ctx: Context, *, context: Sequence[Passage] | None = None, reason_first: bool = True
) -> Forecast:
    """Make the forecast call on whole documents and passages.

    Args:
        case: the catalyst.
        ctx: the world as of its decision.
        context: the method's passages, best first and already cut to the budget; None for a method without a block.
        reason_first: ask for reasoning before the probability.
    """
    focal, concurrent = base_passages(ctx.evidence)
    inputs = Inputs(
        focal=focal[0].text if focal else None,
        concurrent=tuple(p.text for p in concurrent),
        context=None if context is None else tuple(p.text for p in context),
        shown=(*focal, *concurrent, *(context or ())),
    )
    return await ask_with(case, ctx, inputs, reason_first=reason_first)


async def ask_with(case: Catalyst, ctx: Context, inputs: Inputs, *, reason_first: bool = True) -> Forecast:
    """Make the forecast call on texts that the method has prepared."""
    messages: list[Message] = [
        {"role": "system", "content": render(TEMPLATES[0], market=MARKET_NAMES.get(case.market, case.market))},
        {
            "role": "user",
            "content": render(
                TEMPLATES[1],
                case=case,
                focal=inputs.focal,
                has_text=ctx.evidence.present,
                concurrent=inputs.concurrent,
                context=inputs.context,
                reason_first=reason_first,
            ),
        },
    ]
    schema = REASONED_ANSWER if reason_first else BARE_ANSWER
    value, call = await asked(ctx, messages, schema, "forecast", essential=("prob_positive",))
    return replace(
        call,
        prob_positive=float(value["prob_positive"]) if value else None,
        rationale=value.get("reasoning") if value else None,
        shown=inputs.shown,
    )


REASONED_TOKENS, BARE_TOKENS = Range(20, 500), Range(6, 40)
"""Tokens of an answer with reasoning, and of one without; what a reasoning model thinks comes on top."""


async def expected_calls(
    survey: Survey,
    ask_of: Callable[[Catalyst, Context], Awaitable[Forecast]],
    answer: Range,
    more: Callable[[Catalyst, Context], Range] = lambda case, ctx: ZERO,
    owner: str = "",
) -> list[Expected]:
    """One call a forecast: the prompt that ``ask_of`` would send, and ``more`` tokens that are not in it yet.

    What is more is known to ``owner`` alone: with anything more, the calls of two owners are different requests.
    """
    found = []
    for case, epoch in survey.cases:
        ctx = survey.context(case)
        messages = await noted(ask_of(case, ctx))
        added = more(case, ctx)
        key = key_of(survey.seed, epoch, prompt_sha256(messages), added, owner if added.high else "")
        found.append(Expected("forecast", "forecast", key, ONCE, tokens_of_messages(messages) + added, answer))
    return found


async def asked(
    ctx: Context,
    messages: Sequence[Message],
    schema: Mapping[str, Any],
    purpose: str,
    essential: tuple[str, ...] | None = None,
) -> tuple[Mapping[str, Any] | None, Forecast]:
    """The value of a reply (None unless it is ok), and a Forecast with what the call says of itself: all but the answer."""
    reply = await ctx.llm.complete(messages, schema=schema, purpose=purpose, essential=essential)
    call = Forecast(
        status=reply.status,
        reason=reply.reason,
        prompt_sha256=prompt_sha256(messages),
        reply_sha256=reply.reply_sha256,
        model_returned=reply.model_returned,
        system_fingerprint=reply.system_fingerprint,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
    )
    return (reply.value if reply.status is Status.OK else None), call


def merged(calls: Sequence[Forecast]) -> Forecast:
    """One Forecast, still without an answer, for an answer that rests on several ``calls``.

    A call without a reply decides the status, so that the row is asked again; else the first unusable reply does. Tokens
    are summed, hashes are hashed together; the model is that of the first call.
    """
    worst = next((c for c in calls if not c.status.final), None)
    worst = worst or next((c for c in calls if c.status is not Status.OK), None)
    return replace(
        calls[0],
        status=worst.status if worst else Status.OK,
        prob_positive=None,
        rationale=None,
        reason=worst.reason if worst else None,
        shown=(),
        prompt_sha256=_hash_of([c.prompt_sha256 for c in calls]),
        reply_sha256=_hash_of([c.reply_sha256 for c in calls]),
        prompt_tokens=total(c.prompt_tokens for c in calls),
        completion_tokens=total(c.completion_tokens for c in calls),
    )


def prompt_sha256(messages: Sequence[Message]) -> str:
    """SHA-256 of what the model is shown: roles and contents, nothing operational."""
    text = "\x1e".join(f"{m['role']}\x1f{m['content']}" for m in messages)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _hash_of(hashes: Sequence[str | None]) -> str:
    return hashlib.sha256("\x1e".join(h or "" for h in hashes).encode()).hexdigest()
