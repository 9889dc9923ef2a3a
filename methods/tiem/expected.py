"""What TIEM will ask: the hypergraph (``expected_eeh``), the forecasts, and what the memory learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from harness.expected import (
    ONCE,
    ZERO,
    Expected,
    Range,
    Survey,
    key_of,
    noted,
    tokens_a_char,
    tokens_of,
    tokens_of_messages,
)
from harness.method import Context
from harness.records import CATALYST_TOPICS, EMBED, Catalyst, ResolvedCase
from methods import forecasting
from methods.base import render
from methods.feed import requests_for_vectors
from methods.tiem import csm, distil, hefr, paths
from methods.tiem.budget import SHARES
from methods.tiem.expected_eeh import STATEMENT, SUMMARY
from methods.tiem.gather import skill_query
from methods.tiem.retrieval import prior_query, tier_query
from methods.tiem.skills import DESCRIPTION_CHARS
from methods.tiem.stability import StabilityRule
from methods.tiem.streams import Block

_STATEMENTS = 6
"""Propositions of a short document, at most."""
SKILL = Range(40, 260)
"""Tokens of a skill as it is shown."""
_CHANGED = Range(0.02, 2)
"""Skills that change in a quarter, for each case that resolves in it: merged into few, or two new ones each."""
_ALIKE = 0.95
"""A forecast for which no skill is found asks what the variant without skills asks: that is one call for both."""
_ANSWERED = 0.9
"""Share of the training forecasts that have an answer to learn from, at least."""
_LESSON, _PLAN, _VERDICT = Range(40, 400), Range(20, 200), Range(20, 200)


@dataclass(frozen=True, slots=True)
class Shape:
    """The knobs that the number and length of forecast calls depend on."""

    eeh: bool
    csm: bool
    hefr: bool
    scmr: bool
    budget_chars: int
    skill_k: int
    prior_k: int
    episode_k: int
    theme_k: int


def forecasts(survey: Survey, shape: Shape, frames: Mapping[str, Range], rate: Range) -> list[Expected]:
    """The forecast calls of every case. ``frames``: the prompt without evidence, by catalyst id; ``rate``: tokens a character."""
    found = []
    for case, epoch in survey.cases:
        ctx = survey.context(case)
        frame = frames[case.catalyst_id]
        skills = shape.csm and survey.remembers
        focal, context = _focal_and_context(ctx, shape, skills, rate)
        beside = _concurrent(ctx, shape)
        key = key_of(survey.cell, survey.seed, epoch, case.catalyst_id)
        if shape.hefr:
            calls = Range(_ALIKE, 1) if skills else ONCE
        else:
            streams = (3 if shape.eeh else 0) + (1 if skills else 0)
            calls = Range(1, max(1, streams))
        tokens = (frame + focal + beside) * calls + context
        if shape.scmr and skills:
            found += _paths(case, key, focal, context)
            calls, tokens = Range(0, calls.high), Range(0, tokens.high)
        found.append(Expected("forecast", "forecast", key, calls, tokens, forecasting.REASONED_TOKENS * calls))
    return found


def _paths(case: Catalyst, key: str, focal: Range, evidence: Range) -> list[Expected]:
    """Of up to three skills: a predicate and a judgement each."""
    skill = {"name": "", "domain": case.catalyst_type, "description": ""}
    plan = tokens_of(render(paths.PREDICATE, case=case, skill=skill, predicate_chars=paths.PREDICATE_CHARS))
    judge = tokens_of(render(paths.JUDGE, case=case, predicate="", expected="positive", evidence=()))
    rule = Range(10, SKILL.high)
    calls = Range(0, paths.MAX_PATHS)
    # With no skill there is the joint call instead, which is longer: at least one call either way.
    return [
        Expected.each("scmr_predicate", "forecast", key + "p", Range(1, paths.MAX_PATHS), plan + rule, _PLAN),
        Expected.each(
            "scmr_judge", "forecast", key + "j", calls, judge + rule + Range(0, focal.high + evidence.high), _PLAN
        ),
    ]


def _focal_and_context(ctx: Context, shape: Shape, skills: bool, rate: Range) -> tuple[Range, Range]:
    """Tokens of the focal document, and of what may come with it: within the budget, and no more records than are retrieved."""
    budget = ctx.context_chars or shape.budget_chars
    document = ctx.evidence.focal()
    text = forecasting.document_line(document) if document else ""
    low = tokens_of(text[: int(budget * SHARES["focal"])])
    high = tokens_of(text[:budget])
    most = shape.skill_k * SKILL.high if skills else 0.0
    if shape.eeh:
        most += (_STATEMENTS + shape.prior_k) * STATEMENT.high + (shape.episode_k + shape.theme_k) * SUMMARY.high
    return Range(low.low, high.high), Range(0, min(most, rate.high * (budget - min(len(text), budget))))


def _concurrent(ctx: Context, shape: Shape) -> Range:
    """Documents of the day, or, with the hypergraph, what they state."""
    documents = ctx.evidence.concurrent()
    if shape.eeh:
        return STATEMENT * Range(0, min(forecasting.MAX_CONCURRENT, _STATEMENTS * len(documents)))
    total = ZERO
    for document in documents[: forecasting.MAX_CONCURRENT]:
        total += tokens_of(forecasting.document_line(document))
    return total


async def frames_of(survey: Survey) -> dict[str, Range]:
    """Tokens of each forecast's prompt without any evidence, by catalyst id."""
    empty = {name: Block("", missing=True, passages=()) for name in SHARES}
    found = {}
    for case, _ in survey.cases:
        ctx = survey.context(case)
        messages = await noted(forecasting.ask_with(case, ctx, hefr.inputs_of(empty, tuple(hefr.HEADINGS), ())))
        found[case.catalyst_id] = tokens_of_messages(messages)
    return found


def rate_of(survey: Survey) -> Range:
    """Tokens a character of the documents at hand (200 of them)."""
    step = max(1, len(survey.cases) // 200)
    focal = (survey.context(case).evidence.focal() for case, _ in survey.cases[::step])
    return tokens_a_char(document.text[:2000] for document in focal if document)


def lessons(survey: Survey, rate: Range) -> list[Expected]:
    """One distillation a case with an answer."""
    found = []
    for resolved in survey.lessons:
        if resolved.focal is None:
            continue
        prompt = render(
            distil.TEMPLATE, case=resolved.case, focal=forecasting.document_line(resolved.focal)[: distil.FOCAL_CHARS],
            prob="0.50", direction="positive", rationale="", outcome=resolved.outcome.label, was_right=True,
            domains=CATALYST_TOPICS, hints=distil.STABILITY_HINTS, name_chars=distil.NAME_CHARS,
            description_chars=DESCRIPTION_CHARS,
        )  # fmt: skip
        one = tokens_of(prompt) + Range(4, 12) + rate * Range(0, distil.RATIONALE_CHARS)
        key = key_of(survey.cell, "distill", resolved.case.catalyst_id)
        found.append(Expected.each("distill", "memory", key, Range(_ANSWERED, 1), one, _LESSON))
    return found


def reviews(survey: Survey, times: Sequence[datetime], rule: StabilityRule) -> list[Expected]:
    """One call a skill that changed in the quarter before each review, on up to K cases known by then."""
    usable = [r for r in survey.lessons if r.focal is not None]
    if not usable or not times:
        return []
    cases = [tokens_of(_shown(r)) for r in usable[:: max(1, len(usable) // 200)]]
    one_case = sum(cases, ZERO) * (1 / len(cases))
    skill = {"name": "", "domain": "", "description": ""}
    frame = tokens_of(render(csm.STABILITY_TEMPLATE, skill=skill, cases=())) + Range(10, 280)
    found = []
    for at in times:
        known = [r for r in survey.lessons if r.outcome.resolve_at < at]
        changed = sum(csm.quarter_before(at) <= r.outcome.resolve_at for r in known if r.focal is not None)
        sampled = min(rule.k, len(known))
        if not changed or sampled < rule.k_min:
            continue
        one = frame + one_case * Range(0.7 * sampled, 1.3 * sampled)
        key = key_of(survey.cell, "stability", at.isoformat())
        found.append(Expected.each("stability", "memory", key, _CHANGED * changed, one, _VERDICT * (sampled / 5)))
    return found


def _shown(resolved: ResolvedCase) -> str:
    shown = csm.shown_case(resolved)
    return f"[{shown['id']}] {shown['stock']}, {shown['type']}\n{shown['text']}\nThe return that followed was {shown['outcome']}.\n\n"


def vectors(survey: Survey, shape: Shape, asks: Sequence[Expected]) -> list[Expected]:
    """What is embedded: the queries, and at most all that ``asks`` bring: statements, summaries and names, skills."""
    queries, told = ZERO, 0.0
    for case, _ in survey.cases:
        focal = survey.context(case).evidence.focal()
        asked = [skill_query(case, focal)] if shape.csm and survey.remembers else []
        asked += [tier_query(case, focal.text if focal else ""), prior_query(case)] if shape.eeh else []
        for query in asked:
            queries += tokens_of(query)
    for one in asks:
        if one.purpose in ("extract", "episode", "theme"):
            told += one.tokens_out.high
        elif one.purpose == "distill":
            told += 2 * SKILL.high
    key = key_of("embed", shape.eeh, shape.csm, *(case.catalyst_id for case, _ in survey.cases))
    # The same query may come twice; what was learned is embedded by the run that learns.
    texts = Expected(EMBED, "build", key, ZERO, Range(queries.low / 2, queries.high + told), ZERO)
    return [texts, *requests_for_vectors(survey)]
