"""A build asks everything once, says what it could not use, goes on after a kill, and stops where the endpoint does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.clock import Stamp
from harness.errors import CallFailed
from harness.evidence import EvidenceIndex, Gate
from harness.records import Status
from harness.tokens import split_to_tokens
from methods.tiem import artefacts
from methods.tiem.eeh import eeh_of
from methods.tiem.records import Episode, Theme
from methods.tiem.settings import EehSettings
from tests.tiem.corpora import LOOSE, PromptLLM, Shelf, context, corpus, document, fresh, gathered, run, stamp
from tests.tiem.test_eeh_time import crowded

LATE = stamp("2021-06-30")
DOCUMENT = document("d1", "2021-01-04", "chips step 1. up 1", "A", "B")


def build(
    directory: Path, llm: PromptLLM, warnings: list[str] | None = None, settings: EehSettings = LOOSE
) -> tuple[list[Episode], list[Theme]]:
    ctx = context(EvidenceIndex(crowded(60), True), "A", LATE, llm, Shelf(directory), warnings=warnings)
    eeh = fresh(directory, settings)

    async def both() -> tuple[list[Episode], list[Theme]]:
        return await eeh.episodes("A", ctx), await eeh.themes(ctx)

    return run(both())


def test_propositions_are_the_same_under_every_stock_and_asked_once(tmp_path: Path) -> None:
    llm = PromptLLM()
    ctx = context(EvidenceIndex(corpus([DOCUMENT]), True), "A", LATE, llm, Shelf(tmp_path))
    eeh = fresh(tmp_path)

    async def work() -> list[tuple[object, ...]]:
        return await gathered(eeh.propositions(DOCUMENT, stock, ctx) for stock in "ABABAB")

    found = run(work())
    assert len(llm.asked) == 1
    assert [p.sentence for p in found[0]] == ["chips step 1", "up 1"]  # type: ignore[attr-defined]
    assert [[p.stock for p in own] for own in found] == [[s, s] for s in "ABABAB"]  # type: ignore[attr-defined]
    assert [p.prop_id for p in found[0]] == ["d1#0.0", "d1#0.1"]  # type: ignore[attr-defined]


def test_a_long_document_is_read_chunk_by_chunk(tmp_path: Path) -> None:
    small = LOOSE.model_copy(update={"chunk_tokens": 16, "chunk_overlap": 4})
    long = document("long", "2021-01-04", ". ".join(f"chips step {n}" for n in range(30)), "A")
    llm = PromptLLM()
    ctx = context(EvidenceIndex(corpus([long]), True), "A", LATE, llm, Shelf(tmp_path))
    found = run(fresh(tmp_path, small).propositions(long, "A", ctx))
    assert len(llm.asked) == len(split_to_tokens(long.text, 16, 4)) > 3
    assert [(p.chunk, p.index) for p in found] == sorted((p.chunk, p.index) for p in found)


@pytest.mark.parametrize("status", [Status.INVALID, Status.TRUNCATED, Status.REFUSED])
def test_an_unusable_answer_is_recorded_and_asked_again_by_the_next_run(tmp_path: Path, status: Status) -> None:
    def refuse(purpose: str, prompt: str) -> Status:
        return status if "step 10 of A" in prompt and purpose == "extract" else Status.OK

    warnings: list[str] = []
    broken = PromptLLM(refuse)
    build(tmp_path, broken, warnings)
    assert broken.distinct() == len(broken.asked), "asked again within the run"
    (warning,) = {w for w in warnings if "chunks" in w}
    assert f"A010#0 ({status}: as planned)" in warning
    (failure,) = artefacts.Artefacts(tmp_path).open_failures()
    assert (failure["kind"], failure["item"], failure["status"]) == ("extract", "A010#0", str(status))

    mended, again = PromptLLM(), list[str]()
    assert build(tmp_path, mended, again) == build(tmp_path / "clean", PromptLLM())
    assert [prompt for purpose, prompt in mended.asked if purpose == "extract" and "step 10 of A" not in prompt] == []
    assert mended.purposes()["extract"] == 1
    assert artefacts.Artefacts(tmp_path).open_failures() == []
    assert not any("chunks" in w for w in again)


@pytest.mark.parametrize("kind", ["episode", "theme"])
def test_a_window_or_cluster_without_a_usable_answer_is_dropped_and_counted(tmp_path: Path, kind: str) -> None:
    warnings: list[str] = []
    broken = PromptLLM(lambda purpose, prompt: Status.INVALID if purpose == kind else Status.OK)
    episodes, themes = build(tmp_path, broken, warnings)
    assert themes == []
    assert (episodes == []) == (kind == "episode")
    failures = artefacts.Artefacts(tmp_path).open_failures()
    assert {f["kind"] for f in failures} == {kind}
    assert any("could not be used" in w for w in warnings)
    assert build(tmp_path, PromptLLM()) == build(tmp_path / "clean", PromptLLM())
    assert artefacts.Artefacts(tmp_path).open_failures() == []


@pytest.mark.parametrize("kind", ["extract", "episode", "theme"])
def test_an_endpoint_that_fails_ends_the_build_and_is_not_remembered(tmp_path: Path, kind: str) -> None:
    down = [True]
    llm = PromptLLM(lambda purpose, _: Status.RATE_LIMITED if purpose == kind and down[0] else Status.OK)
    ctx = context(EvidenceIndex(crowded(60), True), "A", LATE, llm, Shelf(tmp_path))
    eeh = fresh(tmp_path)

    async def fail_then_go_on() -> list[Theme]:
        with pytest.raises(CallFailed) as error:
            await eeh.themes(ctx)
        assert error.value.status == Status.RATE_LIMITED
        down[0] = False
        return await eeh.themes(ctx)

    assert run(fail_then_go_on()) == build(tmp_path / "clean", PromptLLM())[1]
    assert eeh.artefacts.failures == []


def test_a_second_run_asks_nothing(tmp_path: Path) -> None:
    first, second = PromptLLM(), PromptLLM()
    assert build(tmp_path, first) == build(tmp_path, second)
    assert first.purposes().keys() == {"extract", "episode", "theme"}
    assert second.asked == []


def test_a_killed_build_goes_on_from_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "PART_ROWS", 4)

    class Killed(BaseException):
        pass

    calls = 0

    def die(purpose: str, prompt: str) -> Status:
        nonlocal calls
        calls += 1
        if calls > 40:
            raise Killed
        return Status.OK

    monkeypatch.setattr(artefacts.Artefacts, "flush", _flush_only_full(artefacts.Artefacts.flush))
    killed = PromptLLM(die)
    with pytest.raises(Killed):
        build(tmp_path, killed)
    monkeypatch.undo()
    resumed = PromptLLM()
    assert build(tmp_path, resumed) == build(tmp_path / "clean", PromptLLM())
    clean = PromptLLM()
    build(tmp_path / "clean2", clean)
    assert 0 < len(clean.asked) - len(resumed.asked) <= 40
    assert len(clean.asked) - len(resumed.asked) > 40 - 8, "a kill loses no more than what a part waits for"


def _flush_only_full(flush: object) -> object:
    """A kill runs no clean-up: only full parts reach the disk."""

    def full_only(self: artefacts.Artefacts) -> None:
        if self._settled >= artefacts.PART_ROWS:
            flush(self)  # type: ignore[operator]

    return full_only


def test_changed_text_is_read_anew(tmp_path: Path) -> None:
    llm = PromptLLM()
    for body in ("chips step 1", "chips step 2"):
        changed = document("d1", "2021-01-04", body, "A")
        ctx = context(EvidenceIndex(corpus([changed]), True), "A", LATE, llm, Shelf(tmp_path))
        (found,) = run(fresh(tmp_path).propositions(changed, "A", ctx))
        assert found.sentence == body
    assert len(llm.asked) == 2


def test_calls_at_the_same_time_share_their_work(tmp_path: Path) -> None:
    index, llm = EvidenceIndex(crowded(), True), PromptLLM()
    eeh = fresh(tmp_path)
    contexts = [context(index, stock, LATE, llm, Shelf(tmp_path)) for stock in "ABC" * 8]

    async def all_at_once() -> list[list[Theme]]:
        await gathered(eeh.episodes(ctx.evidence.stock_id, ctx) for ctx in contexts)
        return await gathered(eeh.themes(ctx) for ctx in contexts)

    themes = run(all_at_once())
    assert all(found == themes[0] for found in themes)
    assert llm.distinct() == len(llm.asked)
    assert llm.most_at_once > 1


def test_work_goes_on_when_one_who_waits_is_cancelled(tmp_path: Path) -> None:
    llm = PromptLLM()
    ctx = context(EvidenceIndex(corpus([DOCUMENT]), True), "A", LATE, llm, Shelf(tmp_path))
    eeh = fresh(tmp_path)

    async def cancel_one() -> int:
        one, other = (asyncio.create_task(eeh.propositions(DOCUMENT, s, ctx)) for s in "AB")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        one.cancel()
        return len(await other)

    assert run(cancel_one()) == 2
    assert len(llm.asked) == 1


def test_documents_out_of_reach_of_each_other_cost_nothing(tmp_path: Path) -> None:
    llm = PromptLLM()
    lonely = [document(f"d{m}", f"2021-{m:02}-01", f"chips step {m}", "A") for m in (1, 2, 3)]
    near = document("near", "2021-03-05", "chips step 4", "A")
    ctx = context(EvidenceIndex(corpus([*lonely, near]), True), "A", LATE, llm, Shelf(tmp_path))
    run(fresh(tmp_path).episodes("A", ctx))
    assert llm.purposes()["extract"] == 2


def test_one_hypergraph_for_all_cells_of_a_corpus_and_another_for_other_knobs(tmp_path: Path) -> None:
    shelf, index = Shelf(tmp_path), EvidenceIndex(corpus([DOCUMENT]), True)
    strict, paper = (context(index, "A", LATE, PromptLLM(), shelf, gate) for gate in (Gate.STRICT, Gate.PAPER))
    assert eeh_of(strict, LOOSE) is eeh_of(paper, LOOSE)
    assert eeh_of(strict, EehSettings()) is not eeh_of(strict, LOOSE)
    other = EvidenceIndex(corpus([DOCUMENT, document("d2", "2021-01-05", "more", "A")]), True)
    assert eeh_of(context(other, "A", LATE, PromptLLM(), shelf), LOOSE) is not eeh_of(strict, LOOSE)


def test_without_industries_themes_need_none_and_the_run_says_so(tmp_path: Path) -> None:
    auto = LOOSE.model_copy(update={"min_industries": "auto"})
    warnings: list[str] = []
    _, themes = build(tmp_path, PromptLLM(), warnings, auto)
    assert themes
    assert sum("industry" in w for w in warnings) == 1

    known = EvidenceIndex(corpus(crowded(60).documents, {"A": "chips"}), True)
    told: list[str] = []
    ctx = context(known, "A", LATE, PromptLLM(), Shelf(tmp_path), warnings=told)
    with_one = run(fresh(tmp_path / "known", auto).themes(ctx))
    assert with_one
    assert all(theme.industries == ("chips",) for theme in with_one)
    assert told == []


def test_the_artefacts_hold_every_proposition_with_its_time_and_nodes(tmp_path: Path) -> None:
    build(tmp_path, PromptLLM())
    found = artefacts.Artefacts(tmp_path).propositions()
    assert {p.doc_id for p in found} == {d.doc_id for d in crowded(60).documents}
    assert all(isinstance(p.time, Stamp) and p.entities for p in found)
    assert next(p.time for p in found if p.doc_id == "A000") == stamp("2021-01-04")
