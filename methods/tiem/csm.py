"""The Case-based Skill Memory as a learner: distil, apply, recall, review over the states of a memory log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from harness.clock import Stamp
from harness.evidence import Gate
from harness.memory import Change, State
from harness.method import Lesson, Message, Tools, Vectors
from harness.records import ResolvedCase
from methods.asking import check_answered
from methods.base import render
from methods.forecasting import document_line, prompt_sha256
from methods.schemas import TEXT, json_object
from methods.tiem import recall as ranking
from methods.tiem import skills as operations
from methods.tiem.distil import Proposal, ancestor_of, content_hash, distil
from methods.tiem.recall import Ancestry, Recalled, ancestry
from methods.tiem.skill_json import decoded_state, encoded
from methods.tiem.skills import Put, Skill, evoke, fold, relabel, skill_id
from methods.tiem.stability import STABILITY_WEIGHTS, StabilityRule, Verdict, eligible, label, sample
from methods.vectors import VectorTable

STABILITY_TEMPLATE = "tiem_stability.j2"
CASE_CHARS = 200
MAX_TOKENS = 1_500

_VERDICT = json_object(id=TEXT, verdict={"type": "string", "enum": list(Verdict)})
STABILITY_SCHEMA = json_object(verdicts={"type": "array", "items": _VERDICT})


@dataclass(frozen=True, slots=True)
class CsmSettings:
    """How the memory learns.

    Attributes:
        merge_at: τ, cosine from which EVOKE merges.
        decay: λ_a, weight of the old advantage in a merge.
        right, wrong: start advantage after a right and after a wrong forecast.
        stability: whether skills are reviewed.
        rule: how (Eq. 8).
    """

    merge_at: float
    decay: float
    right: float
    wrong: float
    stability: bool
    rule: StabilityRule


@dataclass(frozen=True, slots=True)
class SkillQuestion:
    """What a forecast asks the memory.

    Attributes:
        catalyst_id: the case that asks; whatever the gate, nothing learned from its own outcome is shown.
        vector: of the query, float32 (d,).
        catalyst_type: κ.
        k, min_sim, gamma, stability_weight: see ``methods.tiem.recall.recall``.
    """

    catalyst_id: str
    vector: Vectors
    catalyst_type: str
    k: int
    min_sim: float
    gamma: float
    stability_weight: bool


@dataclass(frozen=True, slots=True)
class Recollection:
    """The memory's answer: the skills, best first, and how many were refused for an incomplete ancestry."""

    skills: tuple[Recalled, ...] = ()
    unverifiable: int = 0


class SkillMemory:
    """Learns and answers. It holds no skills (the log does), only the vectors it has met: one object an embedder."""

    def __init__(self, settings: CsmSettings) -> None:
        self._settings = settings
        self._vectors = VectorTable()

    async def propose(self, lesson: Lesson, tools: Tools) -> Proposal | None:
        """See ``distil``."""
        return await distil(lesson, tools, right=self._settings.right, wrong=self._settings.wrong)

    async def apply(self, state: State, proposal: Proposal, tools: Tools) -> list[Change]:
        """EVOKE each proposed skill in its order; the second meets the memory that the first left."""
        if proposal.vectors is None:
            return []
        skills, _ = decoded_state(state)
        self._vectors.add([s.text for s in proposal.skills], list(proposal.vectors))
        changes = []
        for index, new in enumerate(proposal.skills):
            met = [s.text for s in skills.values() if s.domain == new.domain]
            await self._vectors.fetch(met, tools.embed)
            done = evoke(
                skills,
                skill_id(proposal.catalyst_id, index),
                new,
                self._vectors,
                merge_at=self._settings.merge_at,
                decay=self._settings.decay,
            )
            changes += [_logged("merge" if c.skill_id in skills else "evoke", c) for c in done]
            skills = fold(skills, done)
        return changes

    async def recall(
        self, state: State, question: SkillQuestion, decision: Stamp, gate: Gate, tools: Tools
    ) -> Recollection:
        """The skills for ``question``.

        ``state`` is the memory as of T under ``strict``, the final one otherwise. ``strict`` and ``paper`` refuse a skill
        with a late or incomplete ancestry (under ``strict`` only a fault of the log can bring one); ``off`` refuses what
        comes from the case that asks, and nothing else.
        """
        skills, unverifiable = decoded_state(state)
        await self._vectors.fetch([s.text for s in skills.values()], tools.embed)
        found = ranking.recall(
            skills,
            question.vector,
            question.catalyst_type,
            self._vectors,
            k=question.k,
            min_sim=question.min_sim,
            gamma=question.gamma,
            stability_weights=STABILITY_WEIGHTS if question.stability_weight else None,
            admits=gate_of(gate, decision, question.catalyst_id),
        )
        return Recollection(tuple(found), 0 if gate is Gate.OFF else unverifiable)

    def review_times(self, first: datetime, last: datetime) -> list[datetime]:
        """Starts of calendar quarters (midnight UTC) in (first, last]; none without reviews."""
        if not self._settings.stability:
            return []
        starts = (quarter for year in range(first.year, last.year + 2) for quarter in quarters(year))
        return [start for start in starts if first < start <= last]

    async def review(self, state: State, at: datetime, known: Sequence[ResolvedCase], tools: Tools) -> list[Change]:
        """Judge the stability of the skills that changed in the quarter that ends at ``at``.

        Every change to a skill's content brings an ancestor that resolved at that moment, so the newest ancestor tells
        when a skill last changed. Each skill is judged by itself: the order of skills and of cases does not matter.
        """
        skills, _ = decoded_state(state)
        ordered = sorted(known, key=lambda r: (r.outcome.resolve_at, r.case.time.instant, r.case.catalyst_id))
        cases = {r.case.catalyst_id: r for r in ordered if r.outcome.resolve_at < at}
        due = [key for key, skill in sorted(skills.items()) if changed_between(skill, quarter_before(at), at)]
        judged = await asyncio.gather(*(self._judge(key, skills[key], cases, at, tools) for key in due))
        return [change for changes in judged for change in changes]

    async def _judge(
        self, key: str, skill: Skill, cases: Mapping[str, ResolvedCase], at: datetime, tools: Tools
    ) -> list[Change]:
        rule = self._settings.rule
        sampled = sample(key, eligible(cases, skill.provenance), rule)
        if len(sampled) < rule.k_min:  # unevaluable, as it is already: every change resets the label
            return []
        shown = [cases[name] for name in sampled]
        prompt = render(STABILITY_TEMPLATE, skill=skill, cases=[shown_case(r) for r in shown])
        messages: list[Message] = [{"role": "user", "content": prompt}]
        reply = await tools.llm.complete(messages, schema=STABILITY_SCHEMA, purpose="stability", max_tokens=MAX_TOKENS)
        check_answered(reply.status, reply.reason, f"stability of {key}")
        verdicts = {v["id"]: Verdict(v["verdict"]) for v in reply.value["verdicts"]} if reply.value else None
        judgement = content_hash(prompt_sha256(messages))
        ancestors = [ancestor_of(r, judgement) for r in shown]
        done = relabel({key: skill}, key, label(sampled, verdicts, rule), ancestors)
        return [_logged("stability" if isinstance(c, Put) else "retire", c) for c in done]


def gate_of(gate: Gate, decision: Stamp, catalyst_id: str) -> Callable[[Skill], bool]:
    """Which skills a forecast of ``catalyst_id`` at ``decision`` may see."""
    if gate is Gate.OFF:
        return lambda skill: catalyst_id not in sources(skill)
    return lambda skill: ancestry(skill, decision) is Ancestry.OK


def sources(skill: Skill) -> set[str]:
    """Ids of the cases whose outcomes shaped ``skill`` or its label."""
    return {*skill.provenance, *(a.source_catalyst_id for a in (*skill.ancestors, *skill.label_ancestors))}


def changed_between(skill: Skill, start: datetime, end: datetime) -> bool:
    """Whether the content of ``skill`` last changed in [start, end)."""
    times = [a.resolve_time for a in skill.ancestors if a.resolve_time is not None]
    return bool(times) and start <= max(times) < end


def quarters(year: int) -> list[datetime]:
    """Starts of the quarters of ``year``, midnight UTC."""
    return [datetime(year, month, 1, tzinfo=UTC) for month in (1, 4, 7, 10)]


def quarter_before(at: datetime) -> datetime:
    """Start of the last quarter that started before ``at``."""
    return max(start for year in (at.year - 1, at.year) for start in quarters(year) if start < at)


def shown_case(resolved: ResolvedCase) -> dict[str, str | None]:
    """A case as a review shows it."""
    case = resolved.case
    return {
        "id": case.catalyst_id,
        "stock": f"{case.company} ({case.stock_id})",
        "type": case.catalyst_type,
        "text": document_line(resolved.focal)[:CASE_CHARS] if resolved.focal else None,
        "outcome": resolved.outcome.label,
    }


def _logged(op: str, change: operations.Change) -> Change:
    return Change(op, change.skill_id, encoded(change.skill) if isinstance(change, Put) else None)
