"""TIEM: hypergraph evidence and skill memory, fused into one forecast; its parts can be switched off."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from harness.clock import Stamp
from harness.evidence import Gate
from harness.expected import Expected, Survey
from harness.memory import Change, State
from harness.method import Context, Lesson, Tools
from harness.records import Catalyst, Document, Forecast, ResolvedCase
from methods import forecasting
from methods.base import BaseMethod
from methods.tiem import csm as skill_memory
from methods.tiem import distil, expected, expected_eeh, gather, hefr, paths
from methods.tiem import eeh as event_graph
from methods.tiem.csm import CsmSettings, Recollection, SkillMemory, SkillQuestion
from methods.tiem.distil import Proposal
from methods.tiem.settings import EehSettings
from methods.tiem.stability import StabilityRule
from methods.tiem.streams import within_budget

MEMORY_VARIANT = {"name": "tiem", "eeh": True, "csm": True, "hefr": True, "scmr": False}
"""The variant whose forecasts train the memory that all variants read."""


class Tiem(BaseMethod):
    """One forecast from focal text, episodes, themes, prior statements and skills.

    Attributes:
        eeh: use the hypergraph; without it the focal document and the skills alone.
        csm: use the skill memory; without it nothing is learned.
        hefr: one joint call; without it one call a stream, and their mean.
        scmr: let the best skills be judged on their own evidence and vote first.
        budget_chars: characters that the five main streams share with ``context.budget=native``.
        prior_k, episode_k, theme_k: records retrieved of each tier.
        hypergraph: how the hypergraph is built.
        skill_k, skill_min_sim, skill_gamma: Top-k, μ and γ of Eq. 9.
        stability_weight: weigh a skill's score by its stability.
        merge_at, decay: τ and λ_a of EVOKE.
        right_advantage, wrong_advantage: start advantage of a skill after a right and after a wrong forecast.
        stability: review the skills at the starts of quarters.
        stability_rule: how they are reviewed (Eq. 8).
        train_limit: learn from the first N cases of the experience by decision time only; None for all.
    """

    uses_embedder: ClassVar[bool] = True
    learns_from: ClassVar[Literal["forecasts", "records"]] = "forecasts"
    templates: ClassVar[tuple[str, ...]] = (
        *forecasting.TEMPLATES,
        *event_graph.TEMPLATES,
        hefr.TEMPLATE,
        distil.TEMPLATE,
        skill_memory.STABILITY_TEMPLATE,
        paths.PREDICATE,
        paths.JUDGE,
    )
    eeh: bool = True
    csm: bool = True
    hefr: bool = True
    scmr: bool = False
    budget_chars: int = Field(8_000, ge=500)
    prior_k: int = Field(6, ge=0)
    episode_k: int = Field(3, ge=0)
    theme_k: int = Field(2, ge=0)
    hypergraph: EehSettings = EehSettings.model_validate({})
    skill_k: int = Field(5, ge=1)
    skill_min_sim: float = Field(0.30, ge=-1, le=1)
    skill_gamma: float = Field(0.0, ge=0)
    stability: bool = True
    stability_weight: bool = False
    merge_at: float = Field(0.85, ge=-1, le=1)
    decay: float = Field(0.9, ge=0, le=1)
    right_advantage: float = Field(0.2, ge=-1, le=1)
    wrong_advantage: float = Field(-0.1, ge=-1, le=1)
    stability_rule: StabilityRule = StabilityRule()
    train_limit: int | None = Field(None, ge=1)

    @field_validator("scmr")
    @classmethod
    def _needs_skills(cls, scmr: bool, others: ValidationInfo) -> bool:
        if scmr and not others.data.get("csm"):
            raise ValueError("needs csm=true: the skills of the memory are what votes")
        return scmr

    def instruction_sha256(self) -> str:
        return forecasting.instruction_sha256()

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        knobs = gather.SkillKnobs(self.skill_k, self.skill_min_sim, self.skill_gamma, self.stability_weight)
        skills = await gather.recalled(case, ctx, knobs) if self.csm else ()
        graph = event_graph.eeh_of(ctx, self.hypergraph) if self.eeh else None
        streams = await gather.streams_of(case, ctx, skills, graph, self._sizes)
        blocks = within_budget(streams.main, ctx.context_chars or self.budget_chars)
        fuse = hefr.joint if self.hefr else hefr.staged

        async def fused() -> Forecast:
            return await fuse(case, ctx, blocks, streams.concurrent)

        return await paths.by_vote(case, ctx, skills, blocks, fused) if self.scmr else await fused()

    async def prepare(self, case: Catalyst, ctx: Context) -> None:
        if self.csm:
            await gather.query_vector(case, ctx)
        if self.eeh:
            graph = event_graph.eeh_of(ctx, self.hypergraph)
            await gather.streams_of(case, ctx, (), graph, self._sizes)

    async def expected(self, survey: Survey) -> list[Expected]:
        """The hypergraph, the forecasts and what the memory learns: see ``methods.tiem.expected``."""
        shape = expected.Shape(
            self.eeh,
            self.csm,
            self.hefr,
            self.scmr,
            self.budget_chars,
            self.skill_k,
            self.prior_k,
            self.episode_k,
            self.theme_k,
        )
        rate, frames = expected.rate_of(survey), await expected.frames_of(survey)
        asks = expected.forecasts(survey, shape, frames, rate)
        if self.eeh:
            asks += expected_eeh.expected_calls(expected_eeh.reached(survey, self.hypergraph), self.hypergraph)
        if survey.lessons:
            first = min(case.time.instant for case, _ in survey.cases)
            times = self.review_times(first, max(r.outcome.resolve_at for r in survey.lessons))
            asks += expected.lessons(survey, rate)
            asks += expected.reviews(survey, times, self.stability_rule)
        return [*asks, *expected.vectors(survey, shape, asks)]

    def learner(self) -> Tiem | None:
        """The full method with the same parameters: all variants that have a memory read the one that it trains."""
        return Tiem.model_validate({**self.model_dump(), **MEMORY_VARIANT}) if self.csm else None

    def scope_of(self, item: Document | ResolvedCase) -> str | None:
        return None

    async def propose(self, lesson: Lesson, tools: Tools) -> Proposal | None:
        return await self._memory.propose(lesson, tools)

    async def apply(self, state: State, proposal: Proposal, at: datetime, tools: Tools) -> list[Change]:
        return await self._memory.apply(state, proposal, tools)

    async def recall(
        self, state: State, question: SkillQuestion, decision: Stamp, gate: Gate, tools: Tools
    ) -> Recollection:
        return await self._memory.recall(state, question, decision, gate, tools)

    def review_times(self, first: datetime, last: datetime) -> list[datetime]:
        return self._memory.review_times(first, last)

    async def review(self, state: State, at: datetime, known: Sequence[ResolvedCase], tools: Tools) -> list[Change]:
        return await self._memory.review(state, at, known, tools)

    @property
    def _sizes(self) -> gather.Sizes:
        return gather.Sizes(self.prior_k, self.episode_k, self.theme_k)

    @cached_property
    def _memory(self) -> SkillMemory:
        return SkillMemory(
            CsmSettings(
                merge_at=self.merge_at,
                decay=self.decay,
                right=self.right_advantage,
                wrong=self.wrong_advantage,
                stability=self.stability,
                rule=self.stability_rule,
            )
        )
