"""What TIEM and its variants ask about one case, word for word. ``UPDATE_GOLDEN=1`` writes the files anew."""

from __future__ import annotations

import asyncio
import os
from functools import lru_cache

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

from harness.config import build
from harness.method import Tools
from methods.tiem.method import Tiem
from tests.support import CONF, config_of
from tests.tiem.world import CASE, FOCAL, MEMORY, Embedder, Model, context, lesson, path_of, replies, resolved

VARIANTS = ("tiem", "tiem_wo_eeh", "tiem_wo_csm", "tiem_wo_hefr", "tiem_scmr")


@lru_cache
def variant(name: str) -> Tiem:
    method: Tiem = build(config_of(f"method={name}").method, "method")
    return method


def check(name: str, model: Model) -> None:
    text = "\n\n".join(f"=== {purpose} ===\n{prompt}" for purpose, prompt in sorted(model.prompts)) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        path_of(name).write_text(text, "utf-8")
    assert text == path_of(name).read_text("utf-8")


@pytest.mark.parametrize("name", VARIANTS)
def test_forecast(name: str) -> None:
    method, model = variant(name), Model(replies)
    asyncio.run(method.forecast(CASE, context(method, model)))
    check(name, model)


def test_distillation_and_stability() -> None:
    skill = {
        "name": "n", "description": "d", "domain": "ma", "stability_hint": "sector_specific", "tags": [],
    }  # fmt: skip
    model = Model(lambda purpose, prompt: {"skills": [skill]} if purpose == "distill" else {"verdicts": []})
    tools, learner = Tools(model, Embedder()), variant("tiem")

    async def learn() -> None:
        await learner.propose(lesson(30), tools)
        known = [resolved(n, "negative" if n % 2 else "positive", FOCAL if n else None) for n in range(6)]
        (at,) = learner.review_times(known[0].outcome.resolve_at, resolved(100).outcome.resolve_at)
        await learner.review({"sk_1": MEMORY["sk_1"]}, at, known, tools)

    asyncio.run(learn())
    check("learning", model)


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_read_the_memory_that_the_full_method_trains(name: str) -> None:
    learner = variant(name).learner()
    assert learner == (None if name == "tiem_wo_csm" else variant("tiem"))
    assert learner is None or learner.fingerprint() == variant("tiem").fingerprint()


def test_the_method_glob_lists_every_variant() -> None:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        options = GlobalHydra.instance().config_loader().get_group_options("method")
    assert set(VARIANTS) <= set(options)
