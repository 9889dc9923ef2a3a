"""What is compared over benchmarks and backbones: shift, tokens, agreement, several runs, returns."""

from __future__ import annotations

import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score, f1_score, matthews_corrcoef

from harness.records import CALL_SCHEMA
from reports import feasible, frontier
from reports.agreement import kappa
from reports.cautions import cautions
from reports.data import as_json
from reports.finance import newey_west
from reports.findings import find
from reports.intervals import wilson
from reports.labels import display_names
from reports.load import load
from reports.shift import REFERENCE, SHIFT
from tests.reports.runs import meta_of, rows, write_cell

Rows = list[dict[str, Any]]


def share(method: str, backbone: str, benchmark: str, right: int, n: int = 20, **same: Any) -> Rows:
    """``right`` of ``n`` answers are right, each on its own day."""
    found = rows(method, backbone, benchmark, n=n, **same)
    for i, row in enumerate(found):
        row["prob_positive"] = 0.8 if (row["label"] == "positive") == (i < right) else 0.2
        row["direction"] = "positive" if row["prob_positive"] >= 0.5 else "negative"
        row["decision_day"] = date(2024, 3, 1) + timedelta(days=i)
    return found


def reported(run: Path, *cells: Rows) -> dict[str, Any]:
    """What report.json would hold."""
    for cell in cells:
        write_cell(run, cell)
    f = find(load([run]), "tiem")
    return as_json(f, "", cautions(f))


def test_shift_by_hand(run: Path) -> None:
    right = dict(zip((*REFERENCE, *SHIFT), (16, 12, 9, 10, 14), strict=True))
    data = reported(run, *(share("tiem", "b", name, k) for name, k in right.items()))
    (row,) = data["shift"]
    assert row["acc_ref"] == pytest.approx(0.7)
    assert row["acc_shift"] == pytest.approx(33 / 60)
    assert (row["acc_worst"], row["worst"]) == (pytest.approx(0.45), "cmin_us")
    assert row["robustness"] == pytest.approx(33 / 60 / 0.7)
    cells = {cell["benchmark"]: cell for cell in data["cells"]}
    assert row["f1_shift"] == pytest.approx(sum(cells[name]["f1_macro"] for name in SHIFT) / 3)
    assert row["acc_shift_ci"][0] < row["acc_shift"] < row["acc_shift_ci"][1]
    assert row["robustness_ci"][0] < row["robustness"] < row["robustness_ci"][1]


def test_shift_of_an_incomplete_set_is_null_and_named(run: Path) -> None:
    data = reported(run, *(share("tiem", "b", name, 12) for name in (*REFERENCE, "edt")))
    (row,) = data["shift"]
    assert row["acc_ref"] == pytest.approx(0.6)
    assert (row["acc_shift"], row["acc_worst"], row["f1_shift"], row["robustness"]) == (None, None, None, None)
    assert any("tiem with b lacks cmin_us, csmd" in text for text in data["warnings"])


def test_agreement_by_hand_with_its_mean(run: Path) -> None:
    cells = [share("cot", b, name, k) for name in ("astock", "edt") for b, k in (("x", 15), ("y", 10))]
    data = reported(run, *cells)
    astock, edt, macro = data["consistency"]
    assert [row["benchmark"] for row in (astock, edt, macro)] == ["astock", "edt", "macro"]
    assert (astock["backbone_a"], astock["backbone_b"], astock["n"]) == ("x", "y", 20)
    assert astock["agreement"] == pytest.approx(15 / 20)
    assert astock["dual_correct"] == pytest.approx(10 / 20)
    said = [[row["direction"] for row in cell] for cell in cells[:2]]
    assert astock["kappa"] == pytest.approx(cohen_kappa_score(*said))
    assert macro["kappa"] == pytest.approx((astock["kappa"] + edt["kappa"]) / 2)
    assert (macro["n"], macro["n_benchmarks"]) == (40, 2)


def test_constant_raters_have_no_kappa(run: Path) -> None:
    always = [rows("cot", b, n=6, prob_positive=0.9, direction="positive") for b in ("x", "y")]
    data = reported(run, *always)
    assert [row["kappa"] for row in data["consistency"]] == [None, None]
    assert {row["agreement"] for row in data["consistency"]} == {1.0}
    assert any("kappa is null where each backbone gives one class only" in text for text in data["warnings"])
    assert kappa(np.array([True, True]), np.array([False, False])) is None
    assert kappa(np.array([True, True]), np.array([True, False])) == 0.0


def test_answers_that_cannot_be_used_do_not_agree(run: Path) -> None:
    a, b = share("cot", "x", "astock", 10), share("cot", "y", "astock", 10)
    for row in (a[0], b[0], b[1]):
        row |= {"status": "invalid", "prob_positive": None, "direction": None}
    first, _ = reported(run, a, b)["consistency"]
    assert (first["n"], first["n_answered"], first["agreement"]) == (20, 18, 1.0)
    assert first["dual_correct"] == pytest.approx(8 / 20)


def test_settings_are_kept_apart_and_twins_left_out(run: Path) -> None:
    cells = [
        share("cot", b, "astock", 10, gate=gate, cell=f"{b}{gate}") for b in ("x", "y") for gate in ("strict", "off")
    ]
    data = reported(run, *cells, share("cot", "z", "astock", 9, cell="z1"), share("cot", "z", "astock", 8, cell="z2"))
    assert {(row["backbone_a"], row["backbone_b"], row["gate"]) for row in data["consistency"]} == {
        ("x", "y", "strict"), ("x", "y", "off"),
    }  # fmt: skip
    assert any(text.startswith("z1, z2: same method") for text in data["warnings"])


def tokens(found: Rows, final: int, every: int, cost: float) -> Rows:
    for row in found:
        row |= {
            "prompt_tokens": final - 100, "completion_tokens": 100, "total_prompt_tokens": every - 200,
            "total_completion_tokens": 200, "cost_usd": cost,
        }  # fmt: skip
    return found


def test_tokens_and_dollars_by_hand(run: Path) -> None:
    zero = tokens(share("zero_shot", "b", "astock", 8), 1000, 1000, 0.01)
    tiem = tokens(share("tiem", "b", "astock", 12), 3000, 9000, 0.05)
    data = reported(run, zero, tiem)
    first, second = sorted(data["tokens"], key=lambda row: row["method"])
    assert first["method"] == "tiem"
    assert first["acc_mean"] == pytest.approx(0.6)
    assert first["tokens_final_mean"] == 3000
    assert first["acc_per_ln_tokens"] == pytest.approx(0.6 / math.log(3000))
    assert first["marginal_acc_per_1k"] == pytest.approx(0.2 / 2)
    assert first["tokens_lifecycle_mean"] == 9000
    assert first["cost_per_forecast"] == pytest.approx(0.05)
    assert first["cost_per_correct"] == pytest.approx(20 * 0.05 / 12)
    assert first["cost_per_extra_correct"] == pytest.approx(20 * 0.04 / 4)
    assert (second["marginal_acc_per_1k"], second["cost_per_extra_correct"]) == (None, None)
    assert second["frontier_share"] > 0.99  # nothing else takes as few tokens
    assert 0.9 < first["frontier_share"] <= 1


def test_calls_that_belong_to_no_row_are_part_of_the_life_cycle(run: Path) -> None:
    cell = tokens(share("graphrag", "b", "astock", 12, n=10), 1000, 1000, 0.01)
    path = write_cell(run, cell).with_name("calls.parquet")
    shared = dict.fromkeys(CALL_SCHEMA.names) | {"stage": "build", "purpose": "extract", "attempts": 1, "status": "ok"}
    calls = [
        shared | {"request_sha256": "a", "prompt_tokens": 3000, "completion_tokens": 1000, "cost_usd": 0.2},
        shared | {"request_sha256": "a", "prompt_tokens": 3000, "completion_tokens": 1000, "cost_usd": 0.0, "cache_hit": True},
        shared | {"request_sha256": "b", "prompt_tokens": 1000, "completion_tokens": None, "cost_usd": 0.1},
        shared | {"request_sha256": "c", "epoch": 0, "prompt_tokens": 900, "completion_tokens": 100, "cost_usd": 0.01},
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(calls, schema=CALL_SCHEMA), path)
    (row,) = reported(run)["tokens"]
    assert row["tokens_lifecycle_mean"] == pytest.approx(1000 + 5000 / 10)
    assert row["cost_per_forecast"] == pytest.approx(0.01 + 0.3 / 10)
    assert row["shared_known"]


def test_dominated_methods_are_never_on_the_frontier() -> None:
    acc, used = np.array([[0.6, 0.5, 0.6, 0.7]]), np.array([[10.0, 10.0, 10.0, 99.0]])
    assert frontier.undominated(acc, used).tolist() == [[True, False, True, True]]


def test_benchmarks_are_drawn_apart_on_the_frontier(run: Path) -> None:
    """Two benchmarks of as many days: with the same draws of both, what is won on one would always be lost on the other."""
    cells = []
    for method, taken in (("zero_shot", 1000), ("cot", 2000)):
        for benchmark in ("astock", "edt"):
            cell = tokens(share(method, "b", benchmark, 20), taken, taken, 0.01)
            early = (method, benchmark) in (("zero_shot", "astock"), ("cot", "edt"))
            for i, row in enumerate(cell):  # right on the first ten days, or on the last ten
                said = 0.8 if (row["label"] == "positive") == ((i < 10) == early) else 0.2
                row |= {"prob_positive": said, "direction": "positive" if said >= 0.5 else "negative"}
            cells.append(cell)
    shares = {row["method"]: row["frontier_share"] for row in reported(run, *cells)["tokens"]}
    assert shares["zero_shot"] == 1
    tie = (
        stats.binom.pmf(range(21), 20, 0.5) ** 2
    ).sum()  # of two independent draws; cot is ahead in half of the others
    assert shares["cot"] == pytest.approx((1 - tie) / 2, abs=0.04)


def test_runs_and_sampling_are_told_apart(run: Path) -> None:
    a = share("cot", "b", "astock", 10)
    b = [{**row, "epoch": 1} for row in share("cot", "b", "astock", 14)]
    (row,) = reported(run, [*a, *b])["spread"]
    assert (row["runs"], row["n"], row["acc_min"], row["acc_max"]) == (2, 20, 0.5, 0.7)
    assert row["acc_sd_runs"] == pytest.approx(np.std([0.5, 0.7], ddof=1))
    assert row["flip_share"] == pytest.approx(4 / 20)
    means = np.array([1.0] * 10 + [0.5] * 4 + [0.0] * 6)
    assert row["acc_se_sampling"] == pytest.approx(means.std(ddof=1) / np.sqrt(20))
    assert row["acc_se_day"] == pytest.approx(row["acc_se_sampling"])
    assert row["run_variance"] == pytest.approx(max(0.0, 0.02 - row["answer_variance"] / 20))


def test_seeds_are_runs_too(run: Path) -> None:
    cells = [share("cot", "b", "astock", k) for k in (10, 12)]
    for number, cell in enumerate(cells):
        for row in cell:
            row |= {"seed": number, "cell": f"s{number}"}
    data = reported(run, *cells)
    assert [(row["runs"], row["acc_min"], row["acc_max"]) for row in data["spread"]] == [(2, 0.5, 0.6)]
    assert [cell["acc_ci"] for cell in data["cells"]] == [wilson(k / 20, 20) for k in (10, 12)]


def test_returns_by_hand(run: Path) -> None:
    found = rows("cot", "b", n=12)
    rng = np.random.default_rng(3)
    for i, row in enumerate(found):
        row |= {
            "decision_day": date(2024, 3, 1 + i // 3),
            "fwd_ret": float(rng.normal()),
            "prob_positive": float(rng.random()),
        }
    (row,) = reported(run, found)["finance"]
    days = [found[i : i + 3] for i in range(0, 12, 3)]
    ic = [stats.spearmanr([r["prob_positive"] for r in day], [r["fwd_ret"] for r in day]).statistic for day in days]
    assert (row["ic_days"], row["ic_mean"]) == (4, pytest.approx(np.mean(ic)))
    assert row["icir"] == pytest.approx(np.mean(ic) / np.std(ic, ddof=1))
    legs = [
        np.mean([r["fwd_ret"] for r in day if r["prob_positive"] >= 0.5]) - np.mean([r["fwd_ret"] for r in day if r["prob_positive"] < 0.5])
        for day in days
        if 0 < sum(r["prob_positive"] >= 0.5 for r in day) < 3
    ]  # fmt: skip
    assert (row["ls_days"], row["ls_gross"]) == (len(legs), pytest.approx(np.mean(legs)))
    assert row["ls_net"] == pytest.approx(np.mean(legs) - 0.004)


def test_the_majority_of_the_day_in_hindsight(run: Path) -> None:
    """Three days: two of three rise, a tie, one of three rises."""
    labels = ("positive", "positive", "negative", "positive", "negative", "negative", "positive", "negative")
    days = (1, 1, 1, 2, 2, 3, 3, 3)
    found = rows("cot", "b", n=8)
    for row, label, day in zip(found, labels, days, strict=True):
        row |= {"label": label, "decision_day": date(2024, 3, day)}
    data = reported(run, found)
    assert data["hindsight"] == [
        {
            "benchmark": "astock", "n": 8, "n_days": 3, "always_positive": 0.5, "acc": 5 / 8,
            "mcc": pytest.approx(matthews_corrcoef([1, 1, 0, 1, 0, 0, 1, 0], [1, 1, 1, 1, 1, 0, 0, 0])),
            "f1_macro": pytest.approx(f1_score([1, 1, 0, 1, 0, 0, 1, 0], [1, 1, 1, 1, 1, 0, 0, 0], average="macro")),
            "label": "",
        }
    ]  # fmt: skip
    assert "majority" not in [cell["method"] for cell in data["cells"]]


def test_days_of_one_rank_correlation_have_no_ratio(run: Path) -> None:
    """Spearman's 0.9 on each of seven days: its standard deviation is 0, not the 1e-16 of rounding."""
    cell = rows(n=35)
    for i, row in enumerate(cell):
        row |= {
            "decision_day": date(2024, 3, 1) + timedelta(days=i // 5),
            "prob_positive": (0.1, 0.3, 0.2, 0.4, 0.5)[i % 5], "fwd_ret": (0.01, 0.02, 0.03, 0.04, 0.05)[i % 5],
        }  # fmt: skip
    (found,) = reported(run, cell)["finance"]
    assert found["ic_mean"] == pytest.approx(0.9)
    assert (found["ic_sd"], found["icir"], found["ic_t"]) == (0, None, None)


def test_newey_west_by_hand() -> None:
    values = np.random.default_rng(4).normal(0.2, 1, 30)
    t, lags = newey_west(values)
    centred = values - values.mean()
    variance = centred @ centred
    for lag in range(1, lags + 1):
        variance += 2 * (1 - lag / (lags + 1)) * (centred[lag:] @ centred[:-lag])
    assert lags == 4
    assert t == pytest.approx(values.mean() / np.sqrt(variance / 30**2 * 30 / 29))
    assert newey_west(np.ones(9)) == (None, 0)
    assert newey_west(np.array([1.0, 2.0])) == (None, 0)


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ((0.5312, 0.06, 0.4298), None),
        ((0.5911, 0.18, 0.5884), "Acc 59.11 % is no share of 128 answers; a mean of 3 runs could be"),
        ((0.5312, 0.9, 0.4298), "no 128 answers give Acc 53.12 %, MCC 0.90 and macro F1 42.98 % together"),
    ],
)
def test_published_figures_are_held_against_their_n(figures: tuple[float, float, float], said: str | None) -> None:
    assert feasible.note(*figures) == said


def test_a_file_without_rows_is_a_cell_without_figures(run: Path) -> None:
    path = write_cell(run, rows("tiem", n=1))
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    data = reported(run, rows("cot", n=3))
    empty = next(cell for cell in data["cells"] if cell["method"] == "tiem")
    assert (empty["n"], empty["n_scored"], empty["coverage"], empty["acc"], empty["mcc_ci"]) == (0, 0, None, None, None)
    assert any("coverage is null: no forecast was expected" in text for text in data["warnings"])


@pytest.mark.parametrize("n", [1, 2])
def test_tiny_cells_make_a_report(run: Path, n: int) -> None:
    data = reported(run, rows("tiem", n=n), rows("cot", n=n), rows("tiem", "other", n=n))
    assert {cell["n_scored"] for cell in data["cells"]} == {n}


def test_all_invalid_is_wrong_and_bounded(run: Path) -> None:
    data = reported(run, rows("tiem", n=6, status="invalid"))
    (cell,) = data["cells"]
    assert (cell["acc"], cell["coverage"], cell["acc_if_right"], cell["acc_answered"]) == (0.0, 0.0, 1.0, None)
    assert (cell["brier"], cell["ece"]) == (None, None)


def test_feeds_are_kept_apart_and_named(run: Path) -> None:
    for feed in ("docs", "docs+cases"):
        found = share("mem0", "x", "astock", 10, cell=f"mem0{feed}")
        write_cell(run, found, meta=meta_of(found, identity={"feed": feed, "context": "matched"}))
    f = find(load([run]), "tiem")
    assert [s.setting.feed for s in f.series] == ["docs", "docs+cases"]
    assert sorted(display_names(f.scores).values()) == ["mem0 (feed=docs)", "mem0 (feed=docs+cases)"]
    assert not any("none of them stands for its method" in text for text in cautions(f))


def excluding(*names: str) -> dict[str, Any]:
    return {"benchmark": {"settings": {"exclude": list(names)}}}


def test_cells_that_leave_out_other_findings_are_named_and_told_of(run: Path) -> None:
    """The same method on all of a benchmark and on a part of it: no repetition of one run, and no two hash codes to guess by."""
    for names, n in (((), 10), (("no_prior", "focal_repeated"), 8)):
        for method in ("tiem", "cot"):
            found = share(method, "x", "csmd", n - 1, n=n, cell=f"{method}{n}")
            write_cell(run, found, meta=meta_of(found, identity=excluding(*names)))
    f = find(load([run]), "tiem")
    names = display_names(f.scores)
    assert (names["tiem10"], names["tiem8"]) == ("tiem (exclude=none)", "tiem (exclude=focal_repeated+no_prior)")
    assert not f.spreads
    (told,) = [text for text in cautions(f) if "do not stand on the same data" in text]
    assert "10 catalysts, exclude=none: cot10; tiem10" in told
    assert "8 catalysts, exclude=focal_repeated+no_prior: cot8; tiem8" in told


def test_cells_of_another_limit_are_told_of(run: Path) -> None:
    for method, n in (("tiem", 10), ("cot", 8)):
        found = share(method, "x", "csmd", n - 1, n=n, cell=method)
        write_cell(run, found, meta=meta_of(found, identity=excluding()))
    (told,) = [text for text in cautions(find(load([run]), "tiem")) if "do not stand on the same data" in text]
    assert "8 catalysts: cot — 10 catalysts: tiem" in told


def test_a_cell_that_is_not_complete_is_on_the_same_data(run: Path) -> None:
    for method, n in (("tiem", 10), ("cot", 8)):
        found = share(method, "x", "csmd", n - 1, n=n, cell=method)
        write_cell(run, found, meta=meta_of(found, identity=excluding(), n=10))
    assert not any("do not stand on the same data" in text for text in cautions(find(load([run]), "tiem")))


def test_a_reliability_curve_by_hand(run: Path) -> None:
    """Two benchmarks of 20 rows, what was said to be likely apart from what was not: two bins of 20 rows."""
    cells = [
        share("cot", "x", name, right, cell=f"cot{name}", label=label)
        for name, right, label in (("astock", 15, "positive"), ("csmd", 20, "negative"))
    ]
    data = reported(run, *cells, share("majority", "x", "astock", 9, n_calls=0))
    (curve,) = data["reliability"]
    assert (curve["method"], curve["n"], curve["cells"]) == ("cot", 40, ("cotastock", "cotcsmd"))
    unlikely, likely = curve["points"]
    assert (unlikely["n"], unlikely["prob_mean"], unlikely["outcome_mean"]) == (
        20,
        pytest.approx(0.2),
        pytest.approx(0.2),
    )
    assert likely["n"] == 20
    assert likely["prob_mean"] == pytest.approx((15 * 0.8 + 5 * 0.2) / 20)
    assert likely["outcome_mean"] == pytest.approx((15 * 1.0 + 5 * 0.2) / 20), (
        "rows of one probability share their outcome"
    )
    assert likely["ci"] == wilson(likely["outcome_mean"], 20)


def test_too_few_rows_give_no_curve(run: Path) -> None:
    assert reported(run, share("cot", "x", "astock", 10, n=39))["reliability"] == []
