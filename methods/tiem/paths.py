"""SCMR: each of the best skills is made a predicate, judged on the evidence that tests it, and votes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.method import Context
from harness.records import NEGATIVE, POSITIVE, Catalyst, Forecast, Passage, Status, total
from methods import forecasting
from methods.base import render
from methods.schemas import SHARE, TEXT, json_object
from methods.tiem.hefr import HEADINGS, shown_of
from methods.tiem.recall import Recalled
from methods.tiem.scmr import Judgement, judgement, vote
from methods.tiem.streams import Block, skill_item

PREDICATE, JUDGE = "tiem_scmr_predicate.j2", "tiem_scmr_judge.j2"
MAX_PATHS = 3
PREDICATE_CHARS = 120
ABSTAIN = "abstain"

STREAM_OF: Mapping[str, str] = {"focal": "focal", "prior_event": "prior", "episode": "episode", "theme": "theme"}
"""Evidence type of a predicate -> stream."""

_FOCAL_HEADING = "Focal document"
PREDICATE_SCHEMA = json_object(
    predicate=TEXT,
    evidence_types={
        "type": "array",
        "minItems": 2,
        "maxItems": 4,
        "items": {"type": "string", "enum": list(STREAM_OF)},
    },
    expected_direction={"type": "string", "enum": [POSITIVE, NEGATIVE]},
)
JUDGE_SCHEMA = json_object(
    reason=TEXT,
    direction={"type": "string", "enum": [POSITIVE, NEGATIVE, ABSTAIN]},
    support=SHARE,
)


@dataclass(frozen=True, slots=True)
class Path:
    """One skill's way to a judgement.

    Attributes:
        skill: the skill.
        rank: its rank in what was recalled.
        calls: what its calls say of themselves.
        streams: streams the judge was shown.
        judgement: None if it abstains, or a reply was unusable.
        note: the predicate and what was made of it, for the rationale.
    """

    skill: Recalled
    rank: int
    calls: tuple[Forecast, ...]
    streams: frozenset[str] = frozenset()
    judgement: Judgement | None = None
    note: str = ""


async def by_vote(
    case: Catalyst,
    ctx: Context,
    skills: Sequence[Recalled],
    blocks: Mapping[str, Block],
    otherwise: Callable[[], Awaitable[Forecast]],
) -> Forecast:
    """The vote of up to three skills, the best recalled.

    Without a valid path ``otherwise`` forecasts. The tokens of the paths count in both cases. A path whose call got no reply
    gives the forecast that status: without it the vote would be another one.
    """
    paths = await asyncio.gather(
        *(_path(case, ctx, skill, rank, blocks) for rank, skill in enumerate(skills[:MAX_PATHS], start=1))
    )
    if not paths:
        return await otherwise()
    calls = [call for path in paths for call in path.calls]
    whole = replace(forecasting.merged(calls), shown=_shown(paths, blocks))
    if not whole.status.final:
        return replace(whole, reason=f"SCMR: {whole.reason}")
    prob = vote((path.skill.skill.stability, path.judgement) for path in paths)
    if prob is not None:  # an unusable reply is a path that abstains, not an unusable forecast
        rationale = "\n".join(path.note for path in paths if path.note)
        return replace(whole, status=Status.OK, reason=None, prob_positive=prob, rationale=rationale)
    joint = await otherwise()
    return replace(
        joint,
        prompt_tokens=total((whole.prompt_tokens, joint.prompt_tokens)),
        completion_tokens=total((whole.completion_tokens, joint.completion_tokens)),
    )


async def _path(case: Catalyst, ctx: Context, skill: Recalled, rank: int, blocks: Mapping[str, Block]) -> Path:
    prompt = render(PREDICATE, case=case, skill=skill.skill, predicate_chars=PREDICATE_CHARS)
    plan, first = await _asked(ctx, prompt, PREDICATE_SCHEMA, "scmr_predicate")
    if plan is None:
        return Path(skill, rank, (first,))
    predicate = " ".join(plan["predicate"].split())[:PREDICATE_CHARS]
    streams = [stream for kind, stream in STREAM_OF.items() if kind in plan["evidence_types"]]
    evidence = [{"heading": HEADINGS.get(name, _FOCAL_HEADING), "text": blocks[name].text} for name in streams]
    prompt = render(JUDGE, case=case, predicate=predicate, expected=plan["expected_direction"], evidence=evidence)
    found, second = await _asked(ctx, prompt, JUDGE_SCHEMA, "scmr_judge")
    note = f"{predicate} -> {found['direction']} ({found['support']}): {found['reason']}" if found else ""
    return Path(skill, rank, (first, second), frozenset(streams), judgement(found), note)


async def _asked(
    ctx: Context, prompt: str, schema: Mapping[str, Any], purpose: str
) -> tuple[Mapping[str, Any] | None, Forecast]:
    return await forecasting.asked(ctx, [{"role": "user", "content": prompt}], schema, purpose)


def _shown(paths: Sequence[Path], blocks: Mapping[str, Block]) -> tuple[Passage, ...]:
    """The records behind the judged streams, and the skills: they are shown whole here, whatever the budget."""
    streams = {name for path in paths for name in path.streams}
    skills = tuple(p for path in paths for p in skill_item(path.skill, path.rank).passages)
    return (*shown_of({name: blocks[name] for name in blocks if name in streams}, ()), *skills)
