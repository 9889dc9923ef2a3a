"""What reaches a prompt and what is said of it: the budget, the evidence rows, the staged variant, the vote."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evidence import Gate, verdict
from harness.records import Forecast, Passage, Source, Status
from methods.tiem.budget import CUT_MARK
from methods.tiem.skill_json import encoded
from methods.tiem.streams import MAIN, Item, within_budget
from tests.tiem.test_prompts import variant
from tests.tiem.world import (
    CASE,
    DOCUMENTS,
    FOCAL,
    GRAPH,
    MEMORY,
    SKILLS,
    Graph,
    Model,
    Script,
    context,
    document,
    replies,
)


def forecast(name: str, script: Script = replies, **world: Any) -> tuple[Forecast, Model]:
    method, model = variant(name), Model(script)
    return asyncio.run(method.forecast(CASE, context(method, model, **world))), model


def kinds(found: Forecast) -> list[str]:
    return [p.source.kind for p in found.shown]


def item(text: str, name: str) -> Item:
    return Item(text, (Passage(text, Source(name, text, None, None, None, None, None, "")),))


texts = st.lists(st.text(st.sampled_from("ab…\n "), min_size=1, max_size=60), max_size=6)


@given(st.fixed_dictionaries(dict.fromkeys(MAIN, texts)), st.integers(0, 300))
def test_the_streams_never_exceed_the_budget_and_list_what_is_shown(main: dict[str, list[str]], chars: int) -> None:
    items = {name: [item(text, name) for text in own] for name, own in main.items()}
    blocks = within_budget(items, chars)
    assert sum(len(b.text) for b in blocks.values()) <= chars
    for name, block in blocks.items():
        listed = "\n".join(p.text for p in block.passages)
        assert block.text.removesuffix(CUT_MARK).startswith(listed) or listed.startswith(block.text)
        assert len(block.text) - len(listed) <= len(CUT_MARK) + 1
        assert all(p.text for p in block.passages)
        assert block.missing == (not main[name])


def test_a_long_world_is_cut_to_the_budget_in_the_prompt_itself() -> None:
    long = [document(d.doc_id, d.time.text, f"{d.body} " + "More of it. " * 900) for d in DOCUMENTS if d.time]
    many = {
        f"sk_{n}": encoded(dataclasses.replace(SKILLS["sk_1"], name=f"n{n}", description="profit " * 71))
        for n in range(5)
    }
    found, model = forecast("tiem", documents=long, state=many)
    prompt = model.prompts[0][1]
    main = [p for p in found.shown if p.source.kind not in ("concurrent", "skill_ancestor")]
    assert 7_000 < sum(len(p.text) for p in main) <= 8_000
    assert CUT_MARK in prompt
    assert "d4#0.5" not in {p.source.item_id for p in found.shown}, "what the budget cut away is not listed"
    concurrent = [p for p in found.shown if p.source.kind == "concurrent"]
    assert len(concurrent) == 12
    assert all(p.text in prompt for p in concurrent)


def test_evidence_lists_every_record_behind_the_prompt() -> None:
    found, model = forecast("tiem")
    assert kinds(found) == (
        ["focal"] * 3 + ["concurrent"] + ["skill", "skill_ancestor"] * 2 + ["episode", "theme"] + ["prior"] * 2
    )
    prompt = model.prompts[0][1]
    assert all(p.text in prompt for p in found.shown)
    assert {verdict(p.source, CASE.time) for p in found.shown} == {"ok"}
    ancestors = [p for p in found.shown if p.source.kind == "skill_ancestor"]
    assert all(not p.text and p.source.ts_start and p.source.ts_end for p in ancestors)


def test_a_document_told_after_the_decision_is_nowhere_without_lifting_the_gate() -> None:
    for gate in (Gate.STRICT, Gate.PAPER):
        assert "rose sharply" not in forecast("tiem", gate=gate)[1].prompts[0][1]
    assert "rose sharply" in forecast("tiem", gate=Gate.OFF)[1].prompts[0][1]


def test_variants_leave_out_what_they_are_named_for() -> None:
    assert set(kinds(forecast("tiem_wo_csm")[0])) == {"focal", "concurrent", "episode", "theme", "prior"}
    without = forecast("tiem_wo_eeh")[0]
    assert kinds(without) == ["focal", "concurrent"] + ["skill", "skill_ancestor"] * 2
    assert without.shown[1].source.item_id == "d3"  # the document itself, not its propositions


def test_missing_streams_are_named() -> None:
    _, model = forecast("tiem", state=None, graph=Graph(), documents=())
    prompt = model.prompts[0][1]
    assert prompt.count("Missing: nothing of this kind was found.") == 4
    assert "No event text: no document" in prompt


def test_refused_skills_are_counted() -> None:
    said: list[str] = []
    state = {**MEMORY, "broken": encoded(dataclasses.replace(SKILLS["sk_1"], time=None))}
    forecast("tiem", state=state, warnings=said)
    assert said == ["skills refused for an incomplete ancestry: 1"]


# Staged


def staged_script(**probs: float | Status) -> Script:
    def script(purpose: str, prompt: str) -> Mapping[str, Any] | Status:
        heading = {"### Exp": "exp", "### Epi": "episode", "### The": "theme", "### Ear": "prior"}
        name = next((n for h, n in heading.items() if h in prompt), "focal")
        said = probs[name]
        return said if isinstance(said, Status) else {"reasoning": f"by {name}", "prob_positive": said}

    return script


def test_staged_is_the_mean_of_one_call_a_stream() -> None:
    found, model = forecast("tiem_wo_hefr", staged_script(exp=0.2, episode=0.4, theme=0.9, prior=0.5))
    assert found.prob_positive == pytest.approx(0.5)
    assert len(model.prompts) == 4
    assert (found.prompt_tokens, found.completion_tokens) == (400, 40)
    assert found.rationale is not None
    assert found.rationale.startswith("[exp] by exp\n[episode] by episode")
    assert found.shown == forecast("tiem")[0].shown
    assert all(FOCAL.body in prompt for _, prompt in model.prompts)


def test_staged_asks_for_no_missing_stream() -> None:
    found, model = forecast("tiem_wo_hefr", staged_script(exp=0.2, prior=0.4), graph=Graph())
    assert found.prob_positive == pytest.approx(0.3)
    found, model = forecast(
        "tiem_wo_hefr", staged_script(focal=0.7), graph=Graph(), state=None, documents=[DOCUMENTS[2], FOCAL]
    )
    assert (found.prob_positive, len(model.prompts)) == (0.7, 1)


@pytest.mark.parametrize(
    ("probs", "status", "reason"),
    [
        ({"theme": Status.INVALID}, Status.INVALID, "stream theme"),
        ({"exp": Status.TRUNCATED, "prior": Status.REFUSED}, Status.TRUNCATED, "stream exp"),
        ({"exp": Status.INVALID, "prior": Status.RATE_LIMITED}, Status.RATE_LIMITED, "stream prior"),
    ],
)
def test_staged_has_no_answer_if_a_stream_has_none(probs: dict[str, Any], status: Status, reason: str) -> None:
    found, _ = forecast(
        "tiem_wo_hefr", staged_script(**{"exp": 0.5, "episode": 0.5, "theme": 0.5, "prior": 0.5} | probs)
    )
    assert (found.status, found.prob_positive) == (status, None)
    assert found.reason is not None
    assert found.reason.startswith(reason)


# SCMR


def scmr_script(**changes: Any) -> Script:
    def script(purpose: str, prompt: str) -> Mapping[str, Any] | Status:
        said = changes.get(purpose, replies(purpose, prompt))
        if callable(said):
            said = said(prompt)
        return said if isinstance(said, Status) else {**replies(purpose, prompt), **said}

    return script


def test_the_vote_decides_without_the_joint_call() -> None:
    found, model = forecast("tiem_scmr")
    assert found.prob_positive == 1.0
    assert sorted(model.purposes()) == ["scmr_judge"] * 2 + ["scmr_predicate"] * 2
    assert (found.prompt_tokens, found.completion_tokens) == (400, 40)
    assert found.rationale is not None
    assert found.rationale.splitlines()[0].startswith("IF profit doubles THEN positive -> positive (0.5)")


def test_a_judge_sees_just_the_evidence_that_tests_the_predicate() -> None:
    found, model = forecast("tiem_scmr")
    judged = [prompt for purpose, prompt in model.prompts if purpose == "scmr_judge"]
    assert all("A contract led to" in p and "Port renewal" not in p and "wins a port contract" not in p for p in judged)
    assert kinds(found) == ["focal"] * 3 + ["episode"] + ["skill", "skill_ancestor"] * 2


def test_a_split_vote_is_weighed() -> None:
    def judge(prompt: str) -> dict[str, Any]:
        return {"direction": "negative", "support": 0.25} if "IF two" in prompt else {}

    def predicate(prompt: str) -> dict[str, Any]:
        return {"predicate": "IF two" if "Target raised" in prompt else "IF one " + "x" * 200}

    found, model = forecast("tiem_scmr", scmr_script(scmr_predicate=predicate, scmr_judge=judge))
    assert found.prob_positive == pytest.approx(0.5 / 0.75)
    assert "x" * 114 not in "".join(p for purpose, p in model.prompts if purpose == "scmr_judge")


@pytest.mark.parametrize(
    ("changes", "calls"),
    [
        ({"scmr_judge": {"direction": "abstain"}}, 5),
        ({"scmr_judge": Status.INVALID}, 5),
        ({"scmr_judge": {"support": 0}}, 5),
        ({"scmr_predicate": Status.REFUSED}, 3),
    ],
)
def test_without_a_valid_path_the_joint_call_decides_and_all_tokens_count(changes: Any, calls: int) -> None:
    found, model = forecast("tiem_scmr", scmr_script(**changes))
    assert found.prob_positive == 0.6
    assert model.purposes().count("forecast") == 1
    assert len(model.prompts) == calls
    assert (found.prompt_tokens, found.completion_tokens) == (100 * calls, 10 * calls)
    assert found.shown == forecast("tiem")[0].shown


def test_an_unusable_path_abstains() -> None:
    def judge(prompt: str) -> Any:
        return Status.INVALID if "IF two" in prompt else {"direction": "negative"}

    def predicate(prompt: str) -> dict[str, Any]:
        return {"predicate": "IF two"} if "Target raised" in prompt else {}

    found, _ = forecast("tiem_scmr", scmr_script(scmr_predicate=predicate, scmr_judge=judge))
    assert (found.status, found.reason, found.prob_positive) == (Status.OK, None, 0.0)


def test_without_skills_there_is_nothing_to_vote() -> None:
    found, model = forecast("tiem_scmr", state={})
    assert (found.prob_positive, model.purposes()) == (0.6, ["forecast"])


@pytest.mark.parametrize("purpose", ["scmr_predicate", "scmr_judge"])
def test_a_path_without_a_reply_leaves_the_forecast_open(purpose: str) -> None:
    found, _ = forecast("tiem_scmr", scmr_script(**{purpose: Status.PROVIDER}))
    assert (found.status, found.prob_positive) == (Status.PROVIDER, None)


def test_at_most_three_skills_vote() -> None:
    many = {f"sk_{n}": MEMORY["sk_1"] for n in range(5)}
    assert forecast("tiem_scmr", state=many, graph=GRAPH)[1].purposes().count("scmr_predicate") == 3
