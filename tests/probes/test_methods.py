"""What probes ask: a nested sample, prompts that know no future and no outcome of their own, exact matches, an estimate."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import launch
from harness.config import build
from harness.errors import ConfigError
from harness.estimate import estimate
from harness.jobs import CellSpec, planned
from harness.plan import make_jobs
from harness.records import NEGATIVE, POSITIVE, Benchmark, Forecast
from harness.store import RunDirectory
from methods.probes.anonymous import identified
from tests.probes.stub import PROBES
from tests.support import RecordingGateway, benchmark_of, config_of, forecasts_of

configured = lru_cache(config_of)
"""Composing takes longer than asking."""
BENCH = benchmark_of(configured("benchmark=sample"))
CASES = BENCH.evaluation.catalysts
OTHER = {POSITIVE: NEGATIVE, NEGATIVE: POSITIVE}
ANSWERS = {
    "prob_positive": 0.6, "recalled": True, "return_percent": 1.5, "company": None, "code": None, "date": None,
}  # fmt: skip


def asked(
    probe: str, scratch: Path, bench: Benchmark = BENCH, only: list[str] | None = None, *more: str
) -> dict[str, Forecast]:
    config = configured(f"method=probe/{probe}", "memory=online", *more)
    return forecasts_of(config, bench, scratch, only, RecordingGateway(value=ANSWERS))


def sampled(*overrides: str) -> list[str]:
    config = configured("method=probe/nd", *overrides)
    return [case.catalyst_id for case, _ in planned(BENCH, CellSpec("c", config, {}, build(config.method, "method")))]


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 5))
def test_samples_are_nested_seeded_and_in_order(few: int, many: int, seed: int) -> None:
    probe = build(configured("method=probe/nd").method, "method")
    few, many = sorted((few, many))
    small, large = (list(probe.model_copy(update={"sample": n}).chosen(CASES, seed)) for n in (few, many))
    assert len(small) == min(few, len(CASES))
    assert [c for c in large if c in small] == small
    assert sorted(large, key=CASES.index) == large


def test_all_probes_ask_the_same_cases_and_another_seed_asks_others() -> None:
    assert sampled("method.sample=8") == sampled("method.sample=8")
    assert sampled("method.sample=8", "run.limit=3") == sampled("method.sample=8")[:3]
    assert sampled("method.sample=8", "run.seed=1") != sampled("method.sample=8")
    assert sampled("method.sample=null") == [
        c.catalyst_id for c in CASES if BENCH.evaluation.outcomes[c.catalyst_id].label in OTHER
    ]


def test_a_probe_is_named_as_one() -> None:
    with pytest.raises(ConfigError, match=r"method\.name"):
        build(config_of("method=probe/nd", "method.name=nd").method, "method")


@pytest.mark.parametrize("probe", PROBES)
def test_no_prompt_knows_the_future_or_its_own_outcome(probe: str, tmp_path: Path) -> None:
    case = CASES[len(CASES) // 2]
    whole = asked(probe, tmp_path, only=[case.catalyst_id])[case.catalyst_id]
    outcomes = {
        name: replace(o, label=OTHER[o.label]) if o.resolve_at >= case.time.instant and o.label in OTHER else o
        for name, o in BENCH.evaluation.outcomes.items()
    }
    corpus = BENCH.evaluation.corpus
    past = tuple(d for d in corpus.documents if d.time and d.time.instant <= case.time.instant)
    cut = replace(
        BENCH, evaluation=replace(BENCH.evaluation, outcomes=outcomes, corpus=replace(corpus, documents=past))
    )
    again = asked(probe, tmp_path / "cut", cut, [case.catalyst_id])[case.catalyst_id]
    assert again.prompt_sha256 == whole.prompt_sha256
    planted = replace(past[-1], doc_id="zz", time=case.time, body="planted", title="planted", stocks=(case.stock_id,))
    told = replace(cut, evaluation=replace(cut.evaluation, corpus=replace(corpus, documents=(*past, planted))))
    assert (
        asked(probe, tmp_path / "told", told, [case.catalyst_id])[case.catalyst_id].prompt_sha256 == whole.prompt_sha256
    ) == (probe in ("nd", "nc", "recall")), "a text at T itself is the focal one"


def test_inputs_are_nested(tmp_path: Path) -> None:
    kinds = {
        probe: {p.source.kind for f in asked(probe, tmp_path / probe).values() for p in f.shown}
        for probe in ("nd", "nc", "full")
    }
    assert kinds == {"nd": set(), "nc": {"prior"}, "full": {"prior", "focal"}}


def test_other_news_come_from_another_stock_with_the_wanted_outcome_known_before(tmp_path: Path) -> None:
    assert BENCH.experience is not None
    sets = (BENCH.evaluation, BENCH.experience)
    outcomes = {name: o for cases in sets for name, o in cases.outcomes.items()}
    donors = {c.catalyst_id: c for cases in sets for c in cases.catalysts}
    by_id = {c.catalyst_id: c for c in CASES}
    for probe, wanted in (("news_up", POSITIVE), ("news_down", NEGATIVE)):
        found = asked(probe, tmp_path / probe)
        told = {name: json.loads(f.probe_answer or "{}") for name, f in found.items()}
        assert sum(t["changed"] for t in told.values()) > 20
        for name, t in told.items():
            if not t["changed"]:
                continue
            case, donor = by_id[name], donors[t["donor"]]
            assert outcomes[t["donor"]].label == wanted
            assert outcomes[t["donor"]].resolve_at < case.time.instant
            assert (donor.market, donor.stock_id == case.stock_id) == (case.market, False)
            (new,) = (p for p in found[name].shown if p.source.kind == "other_news")
            assert donor.company not in new.text
            assert donor.stock_id not in new.text


def test_without_experience_the_news_stay_and_it_is_said(tmp_path: Path) -> None:
    bare = replace(BENCH, experience=None)
    config = configured("method=probe/news_up", "memory=none")
    found = forecasts_of(config, bare, tmp_path, None, RecordingGateway(value=ANSWERS))
    assert {f.probe_answer for f in found.values()} == {'{"changed": false}'}
    full = asked("full", tmp_path / "full")
    assert {n: f.prompt_sha256 for n, f in found.items()} == {n: f.prompt_sha256 for n, f in full.items()}


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ({"company": "沧汐储能股份有限公司", "code": "991101", "date": "2020-09-24"}, {"named", "coded", "dated", "month", "year"}),
        ({"company": " 沧汐储能 ", "code": "SH991101", "date": "2020年9月"}, {"named", "coded", "month", "year"}),
        ({"company": "公司A", "code": "991101.SH", "date": "2020/9/23"}, {"coded", "month", "year"}),
        ({"company": None, "code": None, "date": "2020"}, {"year"}),
        ({"company": "", "code": "CODE-A", "date": "[day T]"}, set()),
        ({"company": 12, "code": 991101, "date": 2020}, {"coded", "year"}),
        ({"code": "1991101"}, set()),
        ({}, set()),
    ],
)  # fmt: skip
def test_recognition_is_an_exact_match(said: dict[str, str | None], right: set[str]) -> None:
    case = next(c for c in CASES if c.catalyst_id == "sample_991101.SH_2020-09-24")
    found = identified(case, said)
    assert {key for key in ("named", "coded", "dated", "month", "year") if found[key]} == right


@pytest.mark.parametrize("percent", ["3%", True, None, [1]])
def test_a_return_that_is_no_number_is_none(percent: object, tmp_path: Path) -> None:
    config = configured("method=probe/recall", "memory=online")
    gateway = RecordingGateway(value={**ANSWERS, "return_percent": percent})
    (found,) = forecasts_of(config, BENCH, tmp_path, [CASES[0].catalyst_id], gateway).values()
    assert json.loads(found.probe_answer or "") == {"recalled": True, "return_percent": None}


def test_a_benchmark_that_names_stocks_by_code_has_no_name_to_recognise() -> None:
    case = replace(CASES[0], company="DISH", stock_id="DISH.US")
    found = identified(case, {"company": "DISH", "code": "dish"})
    assert (found["named"], found["coded"]) == (False, True)


def test_an_estimate_counts_a_call_a_case_and_shared_prompts_once(tmp_path: Path) -> None:
    priced = ("backbone.prices.input=1", "backbone.prices.output=10", "method.sample=4")
    names = ("nd", "full", "shifted")
    jobs = make_jobs([config_of(f"method=probe/{name}", *priced) for name in names], lambda text: None)
    jobs += make_jobs([config_of("method=probe/shifted", "method.days=0", *priced)], lambda text: None)
    found = estimate(jobs, RunDirectory(tmp_path))
    assert found.total.calls.low == 12, "moved by nothing it is the prompt of full"
    assert found.total.cost_usd is not None
    assert 0 < found.total.cost_usd.low < found.total.cost_usd.high


@pytest.mark.parametrize(
    ("experiment", "probes", "memory"),
    [
        ("name_date_probe", {"nd", "nc", "full"}, "frozen"),
        ("anonymisation", {"full", "masked", "identify"}, "frozen"),
        ("counterfactuals", {"full", "news_up", "news_down", "swapped", "shifted"}, "online"),
        ("recall", {"recall", "full"}, "frozen"),
        ("probes", set(PROBES), "online"),
    ],
)
def test_experiments_name_their_probes(experiment: str, probes: set[str], memory: str) -> None:
    cells = launch.compose([f"experiment={experiment}", "method.sample=3", "backbone=rehearsal"])
    assert {cell.raw["method"]["name"] for cell in cells} == {f"probe_{name}" for name in probes}
    assert len(cells) == len(probes)
    assert all((cell.raw["method"]["sample"], cell.raw["memory"]) == (3, memory) for cell in cells)


def test_a_grid_over_all_methods_has_no_probe() -> None:
    assert not [c for c in launch.compose(["experiment=demo"]) if c.raw["method"]["name"].startswith("probe_")]
