from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from reports.load import load
from reports.pairs import pairs
from reports.published import compare
from reports.scores import Score, score
from tests.reports.runs import meta_of, rows, write_cell


def scored(run: Path, *args: object, **kwargs: object) -> Score:
    write_cell(run, *args, **kwargs)  # type: ignore[arg-type]
    (cell,) = load([run]).cells
    return score(cell)


def test_unusable_answers_are_wrong_and_infrastructure_is_not_scored(run: Path) -> None:
    some = rows(n=10, prob_positive=0.9)
    for i, status in enumerate(("invalid", "truncated", "refused", "rate_limited", "budget", "provider", "bug")):
        some[i] |= {"status": status, "prob_positive": None, "direction": None}
    some[9]["label"] = "dropped"
    s = scored(run, some)
    right = sum(row["label"] == "positive" for row in some[7:9])
    assert (s.n, s.n_scored, s.coverage) == (10, 5, 0.3)
    assert s.acc == pytest.approx(right / 5)
    assert s.state == "incomplete"
    assert any("1 rows lie inside the deadband" in text for text in s.warnings)
    assert any("1 budget, 1 bug, 1 provider, 1 rate_limited" in text for text in s.warnings)


def test_n_is_what_was_expected(run: Path) -> None:
    some = rows(n=10)
    s = scored(run, some, meta=meta_of(some, n=40))
    assert (s.n, s.coverage, s.state) == (40, 0.25, "incomplete")


def test_a_cell_json_without_n_is_said(run: Path) -> None:
    some = rows(n=10)
    s = scored(run, some, meta=meta_of(some, n=None))
    assert s.n == 10
    assert any("states no n" in text for text in s.warnings)


def test_n_that_is_no_product_is_shown_as_it_is(run: Path) -> None:
    s = scored(run, rows(n=5, epochs=2)[:9])
    assert (s.n, s.epochs, s.n_shown) == (9, 2, None)


def test_all_positive_baseline_is_flagged(run: Path) -> None:
    s = scored(run, rows("always_positive", "rehearsal", prob_positive=1.0, n_calls=0, rehearsal=True))
    assert (s.mcc, s.mcc_ci, s.acc) == (0.0, (0.0, 0.0), s.base_rate)
    assert s.notes == ("rehearsal", "no LLM", "MCC 0 by convention")
    assert any("by convention" in text for text in s.warnings)


def test_nothing_scored_is_null_with_a_sentence(run: Path) -> None:
    s = scored(run, rows(n=3, status="provider"))
    assert (s.n_scored, s.acc, s.acc_ci, s.mcc, s.f1_ci, s.brier, s.ece) == (0, None, None, None, None, None, None)
    assert any("acc, mcc" in text for text in s.warnings)
    assert not s.no_llm


def test_epochs_leave_the_interval_as_wide_as_the_catalysts_allow(run: Path, tmp_path: Path) -> None:
    one = rows(n=30)
    three = [row | {"epoch": epoch} for epoch in range(3) for row in one]
    a, b = scored(run, one), scored(tmp_path / "three", three)
    assert (b.n_scored, b.n_clusters) == (90, 30)
    assert b.acc_ci == pytest.approx(a.acc_ci)
    assert b.mcc_ci == pytest.approx(a.mcc_ci)


def test_missing_usage_is_left_out_and_said(run: Path) -> None:
    some = rows(n=4)
    some[0]["prompt_tokens"] = some[1]["total_prompt_tokens"] = None
    s = scored(run, some)
    assert s.tokens_final_mean == pytest.approx(sum(900 + i + 80 for i in (1, 2, 3)) / 3)
    assert s.tokens_total == sum(1660 + i for i in (0, 2, 3))
    assert any("tokens_final_mean leaves out 1 of 4" in text for text in s.warnings)


def test_absent_optional_columns_are_null_and_named(run: Path) -> None:
    path = write_cell(run, rows(n=4))
    pq.write_table(pq.read_table(path).drop_columns(["cost_usd", "seed"]), path)
    (cell,) = load([run]).cells
    s = score(cell)
    assert s.cost_usd is None
    assert s.seed is None
    assert any("no column seed, cost_usd" in text for text in s.warnings)


def test_a_contradicting_direction_is_said(run: Path) -> None:
    some = rows(n=4)
    some[0]["direction"] = "negative" if some[0]["direction"] == "positive" else "positive"
    assert any("1 rows state a direction" in text for text in scored(run, some).warnings)


def test_published_rows_are_comparable_on_their_own_backbone_only(run: Path) -> None:
    for backbone in ("deepseek_v4_flash", "other"):
        write_cell(run, rows("cot", backbone))
    write_cell(run, rows("zero_shot", "rehearsal", rehearsal=True))
    found = compare([score(cell) for cell in load([run]).cells])
    seen = [(c.score.method, c.score.backbone, c.published.backbone, c.comparable) for c in found]
    assert seen == [
        ("cot", "deepseek_v4_flash", "DeepSeek-V4-Flash", True),
        ("cot", "other", "DeepSeek-V4-Flash", False),
        ("cot", "other", "GPT-5.4-mini", False),
        ("zero_shot", "rehearsal", "DeepSeek-V4-Flash", False),
        ("zero_shot", "rehearsal", "GPT-5.4-mini", False),
    ]
    assert found[0].published.acc == pytest.approx(0.5391)


def test_a_lifted_gate_is_never_beside_table_1(run: Path) -> None:
    for method in ("tiem", "cot"):
        write_cell(run, rows(method, gate="off"))
    (only,) = compare([score(cell) for cell in load([run]).cells])
    assert (only.score.method, only.published.table, only.published.method) == ("tiem", "Table 5", "w/o Time Gate")


def test_pairs_by_hand(run: Path) -> None:
    right = [{**row, "prob_positive": 0.9 if row["label"] == "positive" else 0.1} for row in rows(n=20)]
    wrong = [{**row, "method": "cot", "cell": "cot"} for row in right]
    for row in wrong[:6]:
        row["prob_positive"] = 1 - row["prob_positive"]
    wrong[19] |= {"status": "provider", "prob_positive": None}
    write_cell(run, right)
    write_cell(run, wrong)
    (pair,) = pairs(load([run]).cells)
    assert (pair.a, pair.b, pair.n, pair.n_discordant) == ("tiem", "cot", 19, 6)
    assert pair.diff == pytest.approx(6 / 19)
    assert pair.p_mcnemar == pair.p_holm == pytest.approx(2 / 64)
    assert pair.ci is not None
    assert pair.ci[0] < pair.diff < pair.ci[1]
    (back,) = pairs(load([run]).cells, "cot")
    assert back.diff == pytest.approx(-6 / 19)


def test_several_epochs_have_no_mcnemar(run: Path) -> None:
    write_cell(run, rows("tiem", epochs=2))
    write_cell(run, rows("cot", epochs=2))
    (pair,) = pairs(load([run]).cells)
    assert pair.p_mcnemar is pair.p_holm is None
    assert pair.p_cluster is not None
    assert pair.warnings


def test_other_gates_and_seeds_are_not_paired(run: Path) -> None:
    write_cell(run, rows("tiem"))
    write_cell(run, rows("cot", gate="off"))
    write_cell(run, rows("mem0", seed=7) and [row | {"seed": 2} for row in rows("mem0")])
    assert pairs(load([run]).cells) == []
