"""Which cells are compared where a method was run under several settings: like with like, and what cannot be is said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports import contents_paper
from reports.cautions import cautions
from reports.data import as_json
from reports.findings import Findings, find
from reports.load import load
from reports.series import counterpart
from tests.reports.runs import meta_of, rows, write_cell


def found(run: Path, *cells: str) -> Findings:
    """Cells written as ``method aspect=value …``; "no memory" are the words for a method that has none."""
    for text in cells:
        method, *words = text.removesuffix(" no memory").split()
        said = dict(word.split("=") for word in words)
        columns: dict[str, Any] = {key: said.get(key) for key in ("memory", "embedder")}
        of_cell = rows(method, n=30, cell=text.replace(" ", "_"), **columns)
        sha = {"memory_log_sha256": None if text.endswith("no memory") else "ab"}
        identity: dict[str, Any] = {key: said.get(key) for key in ("feed", "context")}
        left_out = said.get("exclude", "none")
        identity["benchmark"] = {"settings": {"exclude": [] if left_out == "none" else [left_out]}}
        write_cell(run, of_cell, meta=meta_of(of_cell, identity=identity, **sha))
    return find(load([run]), "tiem")


def named(f: Findings) -> set[tuple[str, str]]:
    return {(pair.cell_a, pair.cell_b) for pair in f.pairs}


@pytest.mark.parametrize(
    ("aspect", "one", "other"),
    [
        ("memory", "frozen", "online"),
        ("embedder", "hashing", "openai"),
        ("feed", "docs", "docs+cases"),
        ("context", "matched", "native"),
        ("exclude", "none", "focal_repeated"),
    ],
)
def test_two_settings_of_two_methods_are_two_pairs_not_four(run: Path, aspect: str, one: str, other: str) -> None:
    f = found(run, *(f"{method} {aspect}={value}" for method in ("tiem", "mem0") for value in (one, other)))
    assert named(f) == {(f"tiem_{aspect}={value}", f"mem0_{aspect}={value}") for value in (one, other)}
    assert not any("not like for like" in text for pair in f.pairs for text in pair.warnings)
    assert all(pair.p_holm is not None and pair.p_mcnemar is not None for pair in f.pairs)
    low, high = sorted(f.pairs, key=lambda pair: pair.p_mcnemar or 0.0)
    assert low.p_holm == pytest.approx(min(1.0, 2 * (low.p_mcnemar or 0.0))), "Holm is over two, not over four"
    assert high.p_holm == pytest.approx(max(low.p_holm or 0.0, high.p_mcnemar or 0.0))


def test_what_is_not_stated_conflicts_with_nothing(run: Path) -> None:
    f = found(run, "tiem", "mem0 feed=docs", "mem0 feed=docs+cases")
    assert named(f) == {("tiem", "mem0_feed=docs"), ("tiem", "mem0_feed=docs+cases")}
    assert not any(pair.warnings for pair in f.pairs)


def test_one_partner_of_several_references_is_paired_with_those_that_do_not_conflict(run: Path) -> None:
    f = found(run, "tiem memory=frozen", "tiem memory=online", "mem0 memory=frozen", "cot")
    assert named(f) == {
        ("tiem_memory=frozen", "mem0_memory=frozen"), ("tiem_memory=frozen", "cot"), ("tiem_memory=online", "cot"),
    }  # fmt: skip


def test_if_all_conflict_all_are_paired_and_it_is_said_what_differs(run: Path) -> None:
    f = found(run, "tiem embedder=a memory=frozen", "tiem embedder=b memory=frozen", "mem0 embedder=c memory=frozen")
    assert len(f.pairs) == 2
    said = [text for pair in f.pairs for text in pair.warnings]
    assert said == [f"not like for like, as no cell of tiem is: embedder ({ours}, c)" for ours in "ab"]
    assert any("embedder (a, c)" in text for text in cautions(f))


def test_two_conflicts_are_both_named(run: Path) -> None:
    f = found(run, "tiem memory=online context=native", "mem0 memory=frozen context=matched")
    (pair,) = f.pairs
    assert pair.warnings[0].endswith("memory (online, frozen), context (native, matched)")


def test_the_memory_setting_of_a_method_without_memory_conflicts_with_nothing(run: Path) -> None:
    """A grid run as usual and TIEM once more online: zero-shot, which has no memory, is compared with both."""
    f = found(run, "tiem memory=frozen", "tiem memory=online", "cot memory=frozen no memory", "mem0 memory=frozen")
    assert {pair for pair in named(f) if "cot" in pair[1]} == {
        (ours, "cot_memory=frozen_no_memory") for ours in ("tiem_memory=frozen", "tiem_memory=online")
    }
    assert ("tiem_memory=online", "mem0_memory=frozen") not in named(f)


def test_a_method_without_memory_that_was_run_with_each_setting_is_not_crossed(run: Path) -> None:
    f = found(
        run, *(f"{m} memory={v}{no}" for m, no in (("tiem", ""), ("cot", " no memory")) for v in ("frozen", "online"))
    )
    assert len(f.pairs) == 2
    assert all(a.split("=")[1] == b.split("=")[1].split("_")[0] for a, b in named(f))


def test_a_reference_that_nobody_is_held_against_is_named(run: Path) -> None:
    f = found(run, "tiem memory=frozen", "tiem memory=online", "mem0 memory=frozen")
    assert [text for text in cautions(f) if "in no pair" in text] == [
        "tiem_memory=online: in no pair, as every partner has a cell of tiem that is nearer to it in memory, embedder, feed, context or exclude."
    ]


def test_a_reference_without_a_row_is_not_said_to_be_left_out(run: Path) -> None:
    """It is failed, which is said; that another one is nearer would not be the reason."""
    for method in ("tiem", "cot"):
        write_cell(run, rows(method, n=5))
    failed = meta_of(rows("tiem", n=1, cell="tiem_failed"), n=5, status="failed", reason="no key")
    (run / "cells" / "tiem_failed").mkdir()
    (run / "cells" / "tiem_failed" / "cell.json").write_text(json.dumps(failed), encoding="utf-8")
    f = find(load([run]), "tiem")
    assert {s.cell for s in f.scores} > {"tiem_failed"}
    assert not any("in no pair" in text for text in cautions(f))


def test_one_series_is_held_against_the_nearest_of_another_method(run: Path) -> None:
    """What tokens beyond zero-shot are counted from follows the rule of the pairs; without one that stands out there is none."""
    f = found(run, "zero_shot embedder=a", "zero_shot embedder=b", "mem0 embedder=a", "mem0 embedder=c", "cot")
    of = {s.first.cell: s for s in f.series}
    for cell, nearest in (("mem0_embedder=a", "zero_shot_embedder=a"), ("mem0_embedder=c", None), ("cot", None)):
        other = counterpart(of[cell], "zero_shot", f.series)
        assert (other and other.first.cell) == nearest
    alone = counterpart(of["zero_shot_embedder=a"], "cot", f.series)
    assert alone is not None
    assert alone.first.cell == "cot"


def test_the_ablation_stands_beside_the_nearest_of_several_whole_methods(run: Path) -> None:
    """A part left out that has no memory is in two pairs; the table shows that of its own settings, not the last one."""
    f = found(
        run, "tiem memory=frozen", "tiem memory=online", "tiem_wo_csm memory=frozen no memory", "tiem_wo_eeh memory=online",
        "tiem_wo_hefr",
    )  # fmt: skip
    # answers of one method are alike, so pairs are told apart by what they are made to say
    told = replace(f, pairs=tuple(replace(p, diff=0.1 if "frozen" in p.cell_a else 0.2) for p in f.pairs))
    assert len({p.cell_a for p in f.pairs if p.b == "tiem_wo_csm"}) == 2
    shown = {row["cell"].split("_memory")[0]: row.get("diff") for row in contents_paper.ablation(told).rows}
    assert (shown["tiem_wo_csm"], shown["tiem_wo_eeh"]) == (0.1, 0.2)
    assert shown["tiem_wo_hefr"] is None, "two are as near"


def test_a_method_run_with_and_without_an_exclude_is_two_series_each_with_its_own_backbone(run: Path) -> None:
    cells = (
        "tiem exclude=none",
        "tiem exclude=focal_repeated",
        "zero_shot exclude=none",
        "zero_shot exclude=focal_repeated",
    )
    f = found(run, *cells)
    assert {(s.method, s.setting.exclude) for s in f.series} == {
        (method, exclude) for method in ("tiem", "zero_shot") for exclude in ("none", "focal_repeated")
    }
    assert len(f.tokens) == 4
    assert not any("none of them stands for its method" in text for text in f.warnings)
    for s in f.series:
        other = counterpart(s, "zero_shot", f.series)
        assert other is not None
        assert other.setting.exclude == s.setting.exclude


def test_an_exclude_of_each_benchmark_keeps_nothing_apart(run: Path) -> None:
    """What is left out is a matter of the benchmark, as long as a method was run with one choice on each."""
    for benchmark, names in (("astock", []), ("finpure", ["focal_repeated"])):
        some = rows("tiem", benchmark=benchmark, n=20)
        write_cell(run, some, meta=meta_of(some, identity={"benchmark": {"settings": {"exclude": names}}}))
    f = find(load([run]), "tiem")
    assert [len(s.members) for s in f.series] == [2]
    assert f.shifts[0].acc_ref is not None


def test_series_of_one_name_are_told_apart_in_table_1_and_the_figures(run: Path) -> None:
    """On each benchmark there is one cell of the method, so cells need no addition; in a table over benchmarks the rows do."""
    for benchmark, seed in (("astock", 1), ("edt", 2)):
        write_cell(run, [row | {"seed": seed} for row in rows("tiem", benchmark=benchmark, n=20)])
    f = find(load([run]), "tiem")
    assert [row["method"] for row in contents_paper.main(f).rows] == ["tiem (seed=1)", "tiem (seed=2)"]
    shown = contents_paper.efficiency(f, as_json(f, "", ())["tokens"]).rows
    assert [row["method"] for row in shown] == ["tiem (seed=1)", "tiem (seed=2)"]
