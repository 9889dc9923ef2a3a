"""HEFR: the streams fused into one forecast call, or, as an ablation, one call a stream and their mean."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from harness.method import Context
from harness.records import Catalyst, Forecast, Passage, Status
from methods import forecasting
from methods.base import render
from methods.tiem.streams import MAIN, Block

TEMPLATE = "tiem_context.j2"
HEADINGS: Mapping[str, str] = {
    "exp": "Experience: rules drawn from earlier cases (advantage from -1 to 1: how well each has served)",
    "episode": "Episodes: earlier chains of events at this company",
    "theme": "Themes: developments that several companies shared",
    "prior": "Earlier statements about this company",
}
"""Streams of the context block in the order of the prompt; ``focal`` has its own place."""


async def joint(case: Catalyst, ctx: Context, blocks: Mapping[str, Block], concurrent: Sequence[Passage]) -> Forecast:
    """The forecast from all streams in one prompt."""
    return await forecasting.ask_with(case, ctx, inputs_of(blocks, tuple(HEADINGS), concurrent))


async def staged(case: Catalyst, ctx: Context, blocks: Mapping[str, Block], concurrent: Sequence[Passage]) -> Forecast:
    """The mean of one forecast a stream that is not missing, each from focal, concurrent and that stream.

    Without any such stream the focal document alone is asked about. The streams are cut as in the joint prompt, so the two
    differ in nothing but the fusion. One reply without a probability leaves the whole without one.
    """
    streams: list[tuple[str, ...]] = [(name,) for name in HEADINGS if not blocks[name].missing] or [()]
    parts = await asyncio.gather(
        *(forecasting.ask_with(case, ctx, inputs_of(blocks, names, concurrent)) for names in streams)
    )
    labels = [names[0] if names else "focal" for names in streams]
    named = [
        part if part.status is Status.OK else replace(part, reason=f"stream {label}: {part.reason}")
        for label, part in zip(labels, parts, strict=True)
    ]
    whole = replace(forecasting.merged(named), shown=shown_of(blocks, concurrent))
    if whole.status is not Status.OK:
        return whole
    rationale = "\n".join(f"[{label}] {part.rationale or ''}" for label, part in zip(labels, parts, strict=True))
    probs = [part.prob_positive for part in parts if part.prob_positive is not None]
    return replace(whole, prob_positive=fmean(probs), rationale=rationale)


def inputs_of(blocks: Mapping[str, Block], names: Sequence[str], concurrent: Sequence[Passage]) -> forecasting.Inputs:
    """What the shared prompt is filled with when the streams ``names`` are shown beside focal and concurrent."""
    return forecasting.Inputs(
        focal=blocks["focal"].text or None,
        concurrent=tuple(p.text for p in concurrent),
        context=(sections(blocks, names),) if names else (),
        shown=shown_of({name: blocks[name] for name in ("focal", *names)}, concurrent),
    )


def sections(blocks: Mapping[str, Block], names: Sequence[str]) -> str:
    """The context block: a heading a stream, what it holds, or that it is missing."""
    return render(TEMPLATE, sections=[{"heading": HEADINGS[name], "block": blocks[name]} for name in names])


def shown_of(blocks: Mapping[str, Block], concurrent: Sequence[Passage]) -> tuple[Passage, ...]:
    """The records behind ``blocks`` and ``concurrent``, in the order of the prompt."""
    rest = [passage for name in MAIN[1:] if name in blocks for passage in blocks[name].passages]
    return (*(blocks["focal"].passages if "focal" in blocks else ()), *concurrent, *rest)
