"""Distillation: what a case teaches once its outcome is known, as one or two skills."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.method import Lesson, Message, Tools, Vectors
from harness.records import CATALYST_TOPICS, NEGATIVE, POSITIVE, ResolvedCase, Status
from methods.asking import check_answered
from methods.base import render
from methods.forecasting import document_line, prompt_sha256
from methods.schemas import TEXT, json_object
from methods.tiem.skills import DESCRIPTION_CHARS, Ancestor, Skill

TEMPLATE = "tiem_distil.j2"
FOCAL_CHARS = 400
RATIONALE_CHARS = 600
NAME_CHARS = 80
TAG_CHARS = 40
MAX_TAGS = 8
MAX_TOKENS = 600
STABILITY_HINTS = ("stable_across_sectors", "sector_specific", "regime_dependent", "company_specific")

_SKILL = json_object(
    name=TEXT,
    description=TEXT,
    domain={"type": "string", "enum": list(CATALYST_TOPICS)},
    stability_hint={"type": "string", "enum": list(STABILITY_HINTS)},
    tags={"type": "array", "items": TEXT},
)
SCHEMA = json_object(skills={"type": "array", "minItems": 1, "maxItems": 2, "items": _SKILL})
"""Lengths are cut when the reply is read: a skill that is a little long is no reason to ask again."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a case teaches.

    Attributes:
        vectors: of ``skills``, float32 (n, d); they travel along, so that a commit waits for nobody.
        reason: why there are no skills; None if there are some.
    """

    catalyst_id: str
    skills: tuple[Skill, ...]
    reason: str | None = None
    vectors: Vectors | None = field(default=None, compare=False, repr=False)


async def distil(lesson: Lesson, tools: Tools, *, right: float, wrong: float) -> Proposal | None:
    """Ask what the case teaches.

    Args:
        lesson: the case, its outcome and the forecast made of it.
        tools: the backbone and the embedder.
        right: start advantage of a skill whose case was forecast rightly.
        wrong: the same, wrongly.

    Returns:
        None for a case that teaches nothing (no answer was given, or there was no document to learn from); a proposal
        without skills for an unusable reply.

    Raises:
        CallFailed: the endpoint gave no reply.
    """
    resolved, forecast = lesson.resolved, lesson.forecast
    if forecast.status is not Status.OK or forecast.prob_positive is None or resolved.focal is None:
        return None
    direction = POSITIVE if forecast.prob_positive >= 0.5 else NEGATIVE
    was_right = direction == resolved.outcome.label
    prompt = render(
        TEMPLATE,
        case=resolved.case,
        focal=document_line(resolved.focal)[:FOCAL_CHARS],
        prob=f"{forecast.prob_positive:.2f}",
        direction=direction,
        rationale=(forecast.rationale or "").strip()[:RATIONALE_CHARS],
        outcome=resolved.outcome.label,
        was_right=was_right,
        domains=CATALYST_TOPICS,
        hints=STABILITY_HINTS,
        name_chars=NAME_CHARS,
        description_chars=DESCRIPTION_CHARS,
    )
    messages: list[Message] = [{"role": "user", "content": prompt}]
    reply = await tools.llm.complete(messages, schema=SCHEMA, purpose="distill", max_tokens=MAX_TOKENS)
    check_answered(reply.status, reply.reason, f"distillation of {resolved.case.catalyst_id}")
    case_id = resolved.case.catalyst_id
    if reply.value is None:
        return Proposal(case_id, (), f"{reply.status}: {reply.reason}")
    advantage = right if was_right else wrong
    found = [skill_of(item, resolved, advantage, prompt_sha256(messages)) for item in reply.value["skills"]]
    skills = tuple(skill for skill in found if skill is not None)
    if not skills:
        return Proposal(case_id, (), "no skill in the reply has a name and a description")
    return Proposal(case_id, skills, vectors=await tools.embed([skill.text for skill in skills]))


def skill_of(item: Mapping[str, Any], resolved: ResolvedCase, advantage: float, prompt: str) -> Skill | None:
    """The skill in one ``item`` of a reply, cut to length; None without a name or a description."""
    name = " ".join(item["name"].split())[:NAME_CHARS].strip()
    description = " ".join(item["description"].split())[:DESCRIPTION_CHARS].strip()
    if not name or not description:
        return None
    tags = (" ".join(tag.split()).casefold()[:TAG_CHARS].strip() for tag in item["tags"][:MAX_TAGS])
    lesson = content_hash(prompt, name, description, item["domain"])
    return Skill(
        name=name,
        description=description,
        domain=item["domain"],
        advantage=advantage,
        tags=tuple(sorted({*(tag for tag in tags if tag), item["stability_hint"]})),
        time=resolved.outcome.resolve_at,
        provenance=(resolved.case.catalyst_id,),
        ancestors=(ancestor_of(resolved, lesson),),
    )


def ancestor_of(resolved: ResolvedCase, lesson_hash: str) -> Ancestor:
    """``resolved`` as an ancestor; ``lesson_hash`` names what was made of it."""
    case, outcome = resolved.case, resolved.outcome
    known = content_hash(case.catalyst_id, outcome.label, repr(outcome.fwd_ret), outcome.resolve_at.isoformat())
    return Ancestor(case.catalyst_id, case.time.instant, outcome.resolve_at, known, lesson_hash)


def content_hash(*parts: str) -> str:
    """16 hex digits of the SHA-256 of ``parts``: they only tell contents apart, and a memory holds very many."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
