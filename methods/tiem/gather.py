"""What TIEM finds for one forecast: the skills, and the streams of the hypergraph as of T."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.method import Context, Vectors
from harness.records import Catalyst, Document, Passage
from methods.forecasting import MAX_CONCURRENT, base_passages
from methods.tiem.csm import Recollection, SkillQuestion
from methods.tiem.recall import Recalled
from methods.tiem.records import Episode, Proposition, Theme
from methods.tiem.retrieval import (
    nearest_episodes,
    nearest_propositions,
    nearest_themes,
    prior_query,
    tier_query,
)
from methods.tiem.streams import (
    Item,
    Streams,
    episode_passage,
    proposition_passage,
    skill_item,
    statement_passage,
    theme_passage,
)

SKILL_QUERY_CHARS = 400


class Hypergraph(Protocol):
    """What is asked of the hypergraph, each as of the decision of the context."""

    async def propositions_of(
        self, documents: Sequence[Document], stock: str, ctx: Context
    ) -> tuple[Proposition, ...]: ...

    async def episodes(self, stock: str, ctx: Context) -> list[Episode]: ...

    async def themes(self, ctx: Context) -> list[Theme]: ...


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many records of a tier are retrieved."""

    prior: int
    episodes: int
    themes: int


@dataclass(frozen=True, slots=True)
class SkillKnobs:
    """How skills are retrieved: see ``methods.tiem.recall.recall``."""

    k: int
    min_sim: float
    gamma: float
    stability_weight: bool


def skill_query(case: Catalyst, focal: Document | None) -> str:
    """What skills are ranked by."""
    return f"{case.topic}. {focal.text[:SKILL_QUERY_CHARS] if focal else ''}".strip()


async def query_vector(case: Catalyst, ctx: Context) -> Vectors:
    """The vector (d,) of the skill query of ``case``."""
    vector: Vectors = (await ctx.embed([skill_query(case, ctx.evidence.focal())]))[0]
    return vector


async def recalled(case: Catalyst, ctx: Context, knobs: SkillKnobs) -> tuple[Recalled, ...]:
    """The skills for ``case``; none where there is no memory."""
    if ctx.memory is None:
        return ()
    question = SkillQuestion(
        case.catalyst_id,
        await query_vector(case, ctx),
        case.catalyst_type,
        knobs.k,
        knobs.min_sim,
        knobs.gamma,
        knobs.stability_weight,
    )
    found: Recollection = await ctx.memory.recall(question)
    if found.unverifiable:
        ctx.warn(f"skills refused for an incomplete ancestry: {found.unverifiable}")
    return found.skills


async def streams_of(
    case: Catalyst, ctx: Context, skills: Sequence[Recalled], graph: Hypergraph | None, sizes: Sizes
) -> Streams:
    """The streams for ``case``; without a hypergraph the focal and concurrent documents and the skills alone."""
    focal, concurrent = base_passages(ctx.evidence)
    main: dict[str, list[Item]] = {
        "focal": [Item(p.text, (p,)) for p in focal],
        "exp": [skill_item(found, rank) for rank, found in enumerate(skills, start=1)],
        "episode": [],
        "theme": [],
        "prior": [],
    }
    if graph is None:
        return Streams(main, concurrent, skills)
    stock, document = case.stock_id, ctx.evidence.focal()
    about = tier_query(case, document.text if document else "")
    own, same_day, earlier, episodes, themes = await asyncio.gather(
        graph.propositions_of([document] if document else [], stock, ctx),
        graph.propositions_of(ctx.evidence.concurrent(), stock, ctx),
        graph.propositions_of(ctx.evidence.prior(), stock, ctx),
        graph.episodes(stock, ctx),
        graph.themes(ctx),
    )
    prior = await nearest_propositions(earlier, prior_query(case), ctx.embed, sizes.prior)
    chains = await nearest_episodes(episodes, about, ctx.embed, sizes.episodes)
    shared = await nearest_themes(themes, stock, about, ctx.embed, sizes.themes)
    main["focal"] += [_item(statement_passage(p)) for p in own]
    main["episode"] = [_item(episode_passage(hit.record, rank, hit.score)) for rank, hit in enumerate(chains, 1)]
    main["theme"] = [_item(theme_passage(hit.record, ctx.gate, rank, hit.score)) for rank, hit in enumerate(shared, 1)]
    main["prior"] = [_item(proposition_passage(h.record, "prior", rank, h.score)) for rank, h in enumerate(prior, 1)]
    return Streams(main, [proposition_passage(p, "concurrent") for p in same_day[:MAX_CONCURRENT]], skills)


def _item(passage: Passage) -> Item:
    return Item(passage.text, (passage,))
