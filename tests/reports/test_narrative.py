"""The first screen's sentences, from hand-made reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reports import Report
from reports.data import as_json
from reports.findings import find
from reports.load import load
from reports.narrative import narrative
from reports.wording import Sentence
from tests.reports.runs import rows, write_cell

Row = dict[str, Any]


def cell(method: str = "tiem", **more: Any) -> Row:
    return {
        "cell": method, "method": method, "backbone": "b", "benchmark": "d", "no_llm": False, "state": "complete", "n": 100,
        "counts": {"ok": 100}, "coverage": 1.0, "constant": False, "acc": 0.6, "acc_ci": (0.5, 0.7), "acc_ci_day": (0.48, 0.72),
        "base_rate": 0.5, "effective_n_day": 80.0, "design_effect_day": 1.25, "n_days": 20, "n_scored": 100, "n_clusters": 100, "epochs": 1,
        "n_pending": 0, "n_dropped": 0, "positive_share": 0.5, "tokens_total": 1000.0,
        "cost_usd": 0.5, "evidence_records": 50,
    } | more  # fmt: skip


def pair(b: str, **more: Any) -> Row:
    return {
        "a": "tiem", "b": b, "backbone": "b", "benchmark": "d", "gate": "strict", "seed": 0, "n": 100, "n_days": 20, "n_discordant": 30, "diff": 0.1, "ci": (0.02, 0.18),
        "significant": False, "p_holm": 0.2, "p_cluster_holm": 0.3, "mde": 0.12, "n_needed": 144,
    } | more  # fmt: skip


def evidence(**more: Any) -> Row:
    return {"method": "tiem", "gate": "strict", "cells": ["tiem"], "checked": 50, "late": 0, "unverifiable": 0} | more


def report(**more: Any) -> Row:
    return {
        "label": "",
        "reference": "tiem",
        "cells": [cell()],
        "pairs": [],
        "audit": [evidence()],
        "ledger": [],
        "unbegun": [],
    } | more


def about(topic: str, made: Row) -> list[Sentence]:
    return [sentence for sentence in narrative(made) if sentence.topic == topic]


def test_the_label_is_the_first_line() -> None:
    first = narrative(report(label="Rehearsal endpoint — not a language model"))[0]
    assert (first.topic, first.text, first.tone) == ("label", "Rehearsal endpoint — not a language model.", "care")
    assert narrative(report())[0].topic != "label"


def test_a_difference_is_named_with_its_interval() -> None:
    (said,) = about("differences", report(pairs=[pair("cot", significant=True, p_holm=0.01), pair("mem0")]))
    assert "b: 1 of 2 differences between tiem and another method is significant" in said.text
    assert "tiem − cot on d +10.0 points [+2.0, +18.0]" in said.text
    assert said.numbers["significant"] == 1
    assert said.see == "pairs"


def test_one_that_passes_by_rows_alone_is_not_called_significant() -> None:
    (said,) = about("differences", report(pairs=[pair("cot", p_holm=0.01, p_cluster_holm=0.4)]))
    assert "the difference between tiem and cot is not significant" in said.text
    assert "would pass by rows alone" in said.text
    assert said.tone == "care"


def test_what_is_open_states_the_n_that_is_needed() -> None:
    pairs = [pair("cot", n_needed=300, mde=0.2), pair("mem0"), pair("memgpt", mde=None), pair("x", significant=True)]
    (said,) = about("undecided", report(pairs=pairs))
    assert "2 comparisons cannot be told apart at n\u00a0=\u00a0100" in said.text
    assert "12.0 to 20.0 points" in said.text
    assert "tiem − mem0 on d +10.0 points [+2.0, +18.0], would need about 144 rows instead of 100" in said.text
    (enough,) = about("undecided", report(pairs=[pair("cot", n_needed=90)]))
    assert "seen alone, but not among 1" in enough.text
    (unknown,) = about("undecided", report(pairs=[pair("cot", n_needed=None, diff=0.0)]))
    assert unknown.numbers["nearest"] is None


def test_families_that_differ_in_seed_are_told_apart() -> None:
    said = about("differences", report(pairs=[pair("cot"), pair("cot", seed=1)]))
    assert [sentence.text.split(":")[0] for sentence in said] == ["b (seed 0)", "b (seed 1)"]


def test_nothing_to_compare_is_said() -> None:
    assert "no cell of tiem with a partner" in about("differences", report())[0].text
    assert (
        "no row is scored in both cells of the one pair"
        in about("differences", report(pairs=[pair("cot", diff=None)]))[0].text
    )


def test_a_pair_that_no_test_can_judge_is_not_called_undecided_by_one() -> None:
    pairs = [
        pair("cot", n_discordant=0, diff=0.0, mde=None),
        pair("mem0", n_days=1, p_cluster_holm=None, mde=None),
        pair("x"),
    ]
    made = report(pairs=pairs)
    assert "the difference between tiem and x is not significant" in about("differences", made)[0].text
    told = [said.text for said in about("undecided", made)]
    assert "1 comparison cannot be told apart" in told[0]
    assert "tiem and cot are right on the same rows throughout" in told[1]
    assert "all shared rows of 1 comparison (mem0) fall on one decision day" in told[2]
    assert not about("differences", report(pairs=pairs[:2])), (
        "nothing was tested, so nothing is said to have failed a test"
    )


def test_days_too_few_or_unknown_for_the_test_by_days_are_said() -> None:
    """With five days the sign flips cannot fall below 1/16, so no n "needed" and no "not significant" is claimed."""
    made = report(pairs=[pair("cot", n_days=5, p_holm=0.001, n_needed=9), pair("mem0", n_days=None, p_holm=0.001)])
    assert not about("differences", made)
    few, unknown = about("undecided", made)
    assert "1 comparison (cot) fall on fewer than 6 decision days" in few.text
    assert "1 comparison (mem0) cannot be tested by days" in unknown.text
    assert about("differences", report(pairs=[pair("cot", n_days=6)]))


def test_only_tests_that_were_made_are_named() -> None:
    several = pair("cot", significant=True, p_holm=None, p_cluster_holm=0.01)
    (said,) = about("differences", report(pairs=[several]))
    assert "0.05), by decision days: " in said.text
    (both,) = about("differences", report(pairs=[several, pair("mem0")]))
    assert "by rows and by decision days (with several epochs by days alone)" in both.text


def test_cells_of_one_method_are_told_apart() -> None:
    cells = [cell(name=f"tiem (feed={feed})", acc_ci_day=None) for feed in ("docs", "cases")]
    (said,) = (s for s in about("constant", report(cells=cells)) if s.tone == "care")
    assert "tiem (feed=docs) × b × d; tiem (feed=cases) × b × d" in said.text
    (pairs,) = about(
        "differences", report(pairs=[pair("cot", significant=True, name_a="tiem (feed=docs)", name_b="cot")])
    )
    assert "tiem (feed=docs) − cot on d" in pairs.text


def test_outcomes_that_are_not_known_yet() -> None:
    said = about("coverage", report(cells=[cell(n_pending=30)]))[-1]
    assert said.text.startswith("30 forecasts of 1 cell are about outcomes that are not known yet")
    assert said.numbers["pending"] == 30


def test_outcomes_inside_the_dead_band() -> None:
    some = cell("cot", n_dropped=30, n_scored=70)
    nothing = cell("mem0", n_dropped=99, n_scored=0, counts={"ok": 100}, acc=None, coverage=0.99, effective_n_day=None)
    (said,) = (s for s in about("coverage", report(cells=[cell(), some, nothing])) if "dead band" in s.text)
    assert said.text == (
        "129 of 200 forecasts of 2 cells are about outcomes inside the dead band, neither a rise nor a fall, so not scored. Nothing is left to "
        "score in mem0 × b × d, so it has no accuracy."
    )
    assert said.tone == "care"
    assert said.numbers == {"dropped": 129, "rows": 200, "cells": 2, "without_a_scored_row": 1}
    (partly,) = (s for s in about("coverage", report(cells=[some])) if "dead band" in s.text)
    assert partly.tone == "plain"
    assert "Nothing is left" not in partly.text


def test_a_cell_with_nothing_but_the_dead_band_is_said_from_its_rows(run: Path) -> None:
    """From Parquet on: a count of the label itself, not of what happens to be unscored."""
    every = [{**row, "label": "dropped", "correct": None} for row in rows("tiem", n=7)]
    late = [{**row, "label": None, "correct": None} for row in rows("cot", n=5)]
    for found in (every, late):
        write_cell(run, found)
    f = find(load([run]), "tiem")
    texts = [s.text for s in about("coverage", as_json(f, "", ())) if "dead band" in s.text]
    assert len(texts) == 1
    assert texts[0].startswith("7 of 7 forecasts of 1 cell are about outcomes inside the dead band")
    assert "Nothing is left to score in tiem × " in texts[0]


def test_rows_of_several_epochs_are_said_to_repeat_their_catalysts() -> None:
    """Repeats of a question are alike whatever the day, so the day alone must not be given as the reason."""
    repeated = cell(n_scored=300, n_clusters=100, epochs=3, n=300, counts={"ok": 300})
    (said,) = (s for s in about("constant", report(cells=[repeated])) if "alike" in s.text)
    assert said.text.startswith("Answers of one decision day, and answers to one catalyst again, are alike")
    assert "300 rows (100 catalysts × 3 epochs) tell as much as 80 independent ones" in said.text
    partly = cell(n_scored=250, n_clusters=100, epochs=3)
    (said,) = (s for s in about("constant", report(cells=[partly])) if "alike" in s.text)
    assert "250 rows (about 100 catalysts) tell as much" in said.text
    (once,) = (s for s in about("constant", report()) if "alike" in s.text)
    assert "100 rows tell as much as 80" in once.text
    assert "again" not in once.text


def test_a_difference_larger_than_any_is_not_given_as_one_to_look_for() -> None:
    (said,) = about("undecided", report(pairs=[pair("cot", mde=1.4, n_needed=None)]))
    assert "Not even methods that never agree" in said.text


def test_coverage_that_is_not_clean() -> None:
    cells = [
        cell(),
        cell("cot", coverage=0.9996),
        cell("mem0", state="incomplete", n=100, counts={"ok": 25}, coverage=0.25),
    ]
    unfinished, below = about("coverage", report(cells=cells))
    assert "1 of 3 cells is not complete (25 of 100 forecasts have a row): mem0 × b × d" in unfinished.text
    assert "2 of 3 cells are below full coverage; the lowest is mem0 × b × d at 25.0 %" in below.text
    assert "99.9 %" in about("coverage", report(cells=[cell(coverage=0.9996)]))[0].text, "never rounded up to full"
    assert about("coverage", report())[0].tone == "good"
    same = cell(constant=True, positive_share=1.0)
    assert "the same answer to everything" in about("coverage", report(cells=[same]))[-1].text
    assert "labels of one class only" in about("coverage", report(cells=[cell(constant=True)]))[-1].text


def test_an_audit_that_is_not_clean() -> None:
    (said,) = about("audit", report(audit=[evidence(late=2), evidence(gate="off")]))
    assert "Under the gate strict, 2 late and 0 unverifiable of 50" in said.text
    assert "cannot be trusted" in said.text
    (unseen,) = about("audit", report(audit=[], cells=[cell(evidence_records=None)]))
    assert "1 cell that asked a model has no evidence on file" in unseen.text
    (bare,) = about("audit", report(audit=[], cells=[cell(evidence_records=0)]))
    assert "No record of evidence entered a prompt of 1 cell that asked a model: tiem × b × d" in bare.text
    untouched = cell(counts={}, evidence_records=None)
    assert not about("audit", report(audit=[], cells=[untouched])), "a cell without a row asked nothing"
    assert about("audit", report())[0].tone == "good"


def test_cost_says_what_is_not_known() -> None:
    assert "used 1,000 tokens and cost US$ 0.50 at list price" in about("cost", report())[0].text
    cells = [cell(), cell("cot", cost_usd=None, tokens_total=None)]
    text = about("cost", report(cells=cells))[0].text
    assert "without 1 cell that does not report them" in text
    assert "without 1 cell of unknown price" in text
    assert "no price is known" in about("cost", report(cells=[cell(cost_usd=None)]))[0].text
    (part,) = about("cost", report(cells=[cell(tokens_unknown=11, cost_unknown=1, cost_usd=0.0004)]))
    assert "1,000 tokens (without 11 forecasts that do not report them)" in part.text
    assert "cost less than US$ 0.01 at list price (without 1 forecast of unknown price)" in part.text
    assert part.numbers["forecasts_without_tokens"] == 11
    assert "No model was asked" in about("cost", report(cells=[cell(no_llm=True)]))[0].text
    paid = report(ledger=[{"run": 1, "total": {"cost_usd": 1.25}}])
    assert "So far US$ 1.25 was paid" in about("cost", paid)[0].text


def test_a_constant_answer_is_the_yardstick() -> None:
    said = about("constant", report(cells=[cell(acc_ci_day=(0.55, 0.7)), cell("cot")]))
    assert said[0].text.startswith("1 of 2 cells with a model is more accurate than the better constant answer")
    assert "100 rows tell as much as 80 independent ones" in said[1].text
    assert about("constant", report(cells=[cell()]))[0].text.startswith("None of 1 cell")
    (said,) = (s for s in about("constant", report(cells=[cell(acc_ci_day=None)])) if s.tone == "care")
    assert "there is no interval over days (tiem × b × d)" in said.text
    no_room = [s.text for s in about("constant", report(cells=[cell(base_rate=1.0, effective_n_day=None)]))]
    assert not no_room, "nothing is more accurate than always"


def test_an_empty_report_still_speaks() -> None:
    assert [s.topic for s in narrative(report(cells=[], audit=[]))] == ["differences", "cost"]


def test_cells_without_a_row_are_not_passed_over() -> None:
    (said,) = about("coverage", report(unbegun=["cot__b__d__01234567"]))
    assert said.text.startswith("1 cell that is part of the run has no row yet")
    assert "cot__b__d__01234567" in said.text
    assert "Every forecast" in about("coverage", report())[0].text


def test_the_sentences_are_in_report_json_with_their_numbers(demo: Report) -> None:
    assert [tuple(s) for s in demo.data["summary"]] == [("topic", "text", "tone", "numbers", "see")] * len(
        demo.data["summary"]
    )
    assert demo.data["summary"][0]["text"].startswith("TIME GATE OFF")
