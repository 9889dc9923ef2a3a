"""Probes in the report: values by hand, verdicts, what is missing or wrong, and that forecasts stay apart."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from harness.errors import DataError
from reports import cutoff, probe_tables, probes
from reports.__main__ import main
from reports.answers import answers
from reports.build import build
from reports.load import load
from reports.scores import score
from tests.reports.runs import meta_of, rows, write_cell

TRUTH = [i % 3 != 0 for i in range(30)]  # 20 rises, 10 falls
FIRST = datetime(2024, 3, 1, 7, tzinfo=UTC)


def cell(
    name: str,
    right: list[bool],
    *,
    truth: list[bool] = TRUTH,
    said: list[Any] | None = None,
    backbone: str = "b",
    **same: Any,
) -> list[dict[str, Any]]:
    """A probe's rows, a case a day; ``right`` says which answers are."""
    found = rows(f"probe_{name}", backbone, "sample", n=len(truth), **same)
    for i, row in enumerate(found):
        positive = truth[i] == right[i]
        row |= {
            "label": "positive" if truth[i] else "negative", "fwd_ret": 0.02 if truth[i] else -0.02, "prob_positive": 0.8 if positive else 0.3,
            "direction": "positive" if positive else "negative", "correct": right[i], "decision_day": (FIRST + timedelta(days=i)).date(),
            "probe_answer": json.dumps(said[i]) if said else None, **same,
        }  # fmt: skip
    return found


def found(run: Path, *cells: list[dict[str, Any]]) -> probes.Findings:
    for some in cells:
        write_cell(run, some, meta=meta_of(some))
    loaded, ours = probes.apart(load([run]))
    return probes.find(loaded.cells, [score(c, answers(c)) for c in loaded.cells], ours)


ALL, NONE = [True] * 30, [False] * 30
HALF = [i % 2 == 0 for i in range(30)]
CHANGED = [{"changed": True}] * 30


def test_name_date_probe_by_hand(tmp_path: Path) -> None:
    nd = [i < 24 for i in range(30)]
    f = found(tmp_path, cell("nd", nd), cell("nc", HALF), cell("full", ALL))
    (row,) = f.name_dates
    assert (row.n, row.n_days, row.membase) == (30, 30, 0.8)
    assert row.base_rate == row.majority == pytest.approx(2 / 3)
    assert row.base_distance == pytest.approx(0.8 - 2 / 3)
    assert (row.acc_nc, row.acc_full, row.delta_content) == (0.5, 1.0, 0.5)
    assert row.positive_full == pytest.approx(2 / 3)
    assert row.positive_nd == pytest.approx(sum(t == r for t, r in zip(TRUTH, nd, strict=True)) / 30)
    # one case a day: the interval of a mean difference is Student's, with n - 1 degrees of freedom
    differences = [1.0 - h for h in HALF]
    sd = math.sqrt(sum((d - 0.5) ** 2 for d in differences) / 29)
    half = stats.t.ppf(0.975, 29) * sd / math.sqrt(30)
    assert row.delta_content_ci == pytest.approx((0.5 - half, 0.5 + half))
    assert f.warnings == (
        "cutoff has no row for backbone b: its YAML declares no cutoff (backbone.cutoff=YYYY-MM-DD).",
    )


def test_without_the_other_inputs_only_the_name_and_date_are_scored(tmp_path: Path) -> None:
    (row,) = found(tmp_path, cell("nd", ALL)).name_dates
    assert (row.membase, row.delta_content, row.acc_full) == (1.0, None, None)


def test_all_alike_says_nothing_about_how_a_mean_varies(tmp_path: Path) -> None:
    (row,) = found(tmp_path, cell("nd", ALL), cell("nc", NONE), cell("full", ALL)).name_dates
    assert (row.delta_content, row.delta_content_ci) == (1.0, None)


def test_effects_by_hand(tmp_path: Path) -> None:
    up = cell("news_up", [t == (i % 5 != 0) for i, t in enumerate(TRUTH)], said=CHANGED)
    down = cell("news_down", [not t for t in TRUTH], said=CHANGED)
    swapped = cell("swapped", HALF, said=[{"changed": i < 20} for i in range(30)])
    f = found(tmp_path, cell("full", ALL), up, down, swapped, cell("masked", NONE))
    by_change = {e.change: e for e in f.effects}
    assert by_change["masked"].same == 0.0
    assert by_change["masked"].moved == 1.0
    assert by_change["masked"].prob_moved == pytest.approx(0.5)
    assert by_change["swapped"].n == 20, "cases whose input could not be changed are left out"
    assert by_change["swapped"].same == 0.5
    # contrary: a rise is shown falling news (answered wrong), a fall rising news (said to rise unless i % 5 == 0: then right)
    falls = [i for i, t in enumerate(TRUTH) if not t]
    right = sum(i % 5 == 0 for i in falls)
    assert by_change["contrary"].acc_after == pytest.approx(right / 30)
    assert by_change["contrary"].lean == pytest.approx(0.5 * (24 / 30)), "0.8 against 0.3 wherever rising news say so"


def test_tests_by_hand_and_holm(tmp_path: Path) -> None:
    f = found(tmp_path, cell("nd", ALL), cell("full", ALL), cell("masked", HALF))
    by_probe = {t.probe: t for t in f.tests}
    nd, masked = by_probe["name_date"], by_probe["masked"]
    assert nd.value == pytest.approx(1 / 3)
    assert masked.value == 0.5
    assert (nd.verdict, masked.verdict) == ("FAIL", "FAIL")
    assert nd.p is not None
    assert masked.p is not None
    assert nd.p_holm == pytest.approx(max(nd.p, 2 * masked.p))


def test_a_difference_the_other_way_is_no_exposure(tmp_path: Path) -> None:
    f = found(tmp_path, cell("nd", NONE), cell("full", NONE), cell("swapped", ALL, said=CHANGED))
    assert {t.probe: (t.verdict, t.value) for t in f.tests} == {
        "name_date": ("PASS", pytest.approx(-2 / 3)), "swapped": ("PASS", -1.0),
    }  # fmt: skip


def test_recall_and_its_interaction_by_hand(tmp_path: Path) -> None:
    said = [
        {"recalled": i < 15, "return_percent": (2.0 if TRUTH[i] else -2.0) if i < 12 else 0.0 if i == 12 else -3.0}
        for i in range(30)
    ]
    full = [i < 14 for i in range(30)]
    f = found(tmp_path, cell("recall", ALL, said=said), cell("full", full))
    by_probe = {t.probe: t for t in f.tests}
    spoken = [i for i in range(15) if i != 12]  # a return of zero has no direction
    right = [i for i in spoken if i < 12 or not TRUTH[i]]
    recall = by_probe["recall"]
    assert recall.n == len(spoken)
    assert recall.value == pytest.approx((len(right) - sum(TRUTH[i] for i in spoken)) / len(spoken))
    table = (
        sum(full[i] for i in right), sum(not full[i] for i in right),
        sum(full) - sum(full[i] for i in right), 30 - sum(full) - sum(not full[i] for i in right),
    )  # fmt: skip
    interaction = by_probe["recall_interaction"]
    assert interaction.table == table
    a, b, c, d = (x + 0.5 for x in table)
    assert interaction.value == pytest.approx(a * d / b / c)
    assert interaction.p == pytest.approx(stats.fisher_exact([table[:2], table[2:]]).pvalue)
    assert interaction.verdict == "FAIL"


def test_recognition_by_hand(tmp_path: Path) -> None:
    said = [{"named": i < 6, "coded": 3 <= i < 9, "dated": i < 4, "month": i < 10, "year": True} for i in range(30)]
    f = found(tmp_path, cell("identify", ALL, said=said))
    (row,) = f.identities
    assert (row.who, row.named, row.coded, row.dated, row.both) == (0.3, 0.2, 0.2, 4 / 30, 4 / 30)
    (test,) = f.tests
    assert test.p == pytest.approx(stats.binom.sf(8, 30, 0.05))
    assert test.verdict == "FAIL"


def test_few_days_cannot_be_tested(tmp_path: Path) -> None:
    f = found(tmp_path, cell("nd", [True] * 5, truth=TRUTH[:5]))
    (test,) = f.tests
    assert (test.verdict, test.n_units, test.p_least) == ("NOT TESTABLE", 5, 2 / 2**5)


def test_a_pass_is_said_only_where_a_failure_would_have_survived_the_correction(tmp_path: Path) -> None:
    """Six days reach 0.031 at best: enough for one test, not for one of two."""
    alone = found(tmp_path / "one", cell("nd", [False] * 6, truth=TRUTH[:6]))
    assert [test.verdict for test in alone.tests] == ["PASS"]
    cells = [cell(probe, [False] * 6, truth=TRUTH[:6]) for probe in ("nd", "full", "masked")]
    two = found(tmp_path / "two", *cells)
    assert [(test.probe, test.verdict) for test in two.tests] == [
        ("name_date", "NOT TESTABLE"), ("masked", "NOT TESTABLE"),
    ]  # fmt: skip


def test_answers_that_cannot_be_used_are_wrong_in_the_probe_and_left_out_of_effects(tmp_path: Path) -> None:
    lost = {"status": "invalid", "prob_positive": None, "direction": None, "correct": None, "probe_answer": None}
    nd, full, masked = cell("nd", ALL), cell("full", ALL), cell("masked", ALL)
    for some in (nd, full):
        some[4] |= lost
    masked[5] |= {**lost, "status": "rate_limited"}
    f = found(tmp_path, nd, full, masked)
    assert f.name_dates[0].membase == pytest.approx(29 / 30)
    (effect,) = f.effects
    assert (effect.n, effect.same) == (28, 1.0)
    assert any("1 of 30 answers are missing" in text for text in f.warnings)


def test_of_two_samples_the_larger_counts(tmp_path: Path) -> None:
    small = cell("nd", [False] * 10, truth=TRUTH[:10], cell="probe_nd__b__sample__ffffffff")
    f = found(tmp_path, cell("nd", ALL), small)
    assert [row.membase for row in f.name_dates] == [1.0]
    assert any("probe_nd__b__sample__ffffffff: left out" in text for text in f.warnings)


def test_backbones_are_kept_apart(tmp_path: Path) -> None:
    f = found(tmp_path, cell("nd", ALL), cell("nd", NONE, backbone="c"))
    assert {row.backbone: row.membase for row in f.name_dates} == {"b": 1.0, "c": 0.0}
    assert [s.tone for s in probe_tables.narrative(f)] == ["care", "plain"]


def test_a_damaged_answer_is_named(tmp_path: Path) -> None:
    bad = cell("recall", ALL, said=[{"recalled": False}] * 30)
    bad[3]["probe_answer"] = "[1"
    with pytest.raises(DataError, match=r"probe_recall__b__sample.*'sample-0003'.*probe_answer is '\[1'"):
        found(tmp_path, bad)


def test_nothing_but_forecasts(tmp_path: Path) -> None:
    f = found(tmp_path, rows("tiem"))
    assert (f.scores, f.tests, f.name_dates) == ((), (), ())
    assert "ndp is empty" in f.warnings[0]
    assert probe_tables.tables(f, probes.as_json(f)) == ()


def test_accuracy_before_and_after_a_cutoff(tmp_path: Path) -> None:
    some = cell("nd", [i < 15 for i in range(30)])
    write_cell(tmp_path, some, meta=meta_of(some, cutoff="2024-03-15"))
    (curve,), told = cutoff.curves(load([tmp_path]).cells)
    assert told == []
    assert (curve.n_before, curve.n_after, curve.before, curve.after, curve.drop) == (15, 15, 1.0, 0.0, 1.0)
    assert curve.drop_ci is None, "no spread within either part: nothing to make an interval of"
    assert [(m.month, m.n, m.after) for m in curve.months] == [("2024-03", 30, False)]


def test_cutoff_rows_of_a_rehearsal_say_so(tmp_path: Path) -> None:
    some = rows("tiem", "rehearsal", "sample", rehearsal=True)
    write_cell(tmp_path, some, meta=meta_of(some, cutoff="2024-03-05"))
    report = build([tmp_path], tmp_path / "report")
    (table,) = (t for t in report.tables if t.name == "cutoff")
    (drawn,) = (p for p in report.figures if p.name == "cutoff_curve")
    assert all("not a language model" in text for text in (table.caption, drawn.title, table.rows[0]["label"]))


def test_a_report_of_nothing_but_probes_opens_with_them(run: Path) -> None:
    """No table over methods, no warning that they are missing, and none of an earlier report stays behind."""
    probed = cell("nd", HALF)
    write_cell(run / "probes", probed, meta=meta_of(probed))
    (run / "report" / "tables").mkdir(parents=True)
    (run / "report" / "tables" / "results.csv").write_text("of an earlier report", "utf-8")
    alone = build([run / "probes"], run / "report")
    assert [table.name for table in alone.tables] == ["probes", "probe_cells", "ndp"]
    assert {path.stem for path in (run / "report" / "tables").iterdir()} == {"probes", "probe_cells", "ndp"}
    assert not any(
        "pairs is empty" in text or "time_gate is empty" in text or "published" in text for text in alone.warnings
    )
    page = (run / "report" / "report.html").read_text("utf-8")
    assert "nothing to show" not in page
    assert page.index('id="probes"') < page.index('id="cases"')
    assert "<dt>methods</dt>" not in page


@pytest.mark.parametrize("name", ["nd", "unheard_of"])
def test_a_run_of_nothing_but_probes_is_printed(run: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Also where no test is possible: then the probes' accuracies stand there."""
    probed = cell(name, HALF)
    write_cell(run, probed, meta=meta_of(probed))
    assert main([str(run)]) == 0
    printed = capsys.readouterr().out
    assert "Results" not in printed
    assert "50.00" in printed if name == "unheard_of" else "name_date" in printed
