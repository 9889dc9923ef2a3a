"""Cells that differ in the gate or the memory alone: the reader sees which is which in every table, figure, title and in the viewer."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

import pytest

from reports import Report, build
from reports.labels import display_names, label
from reports.load import load
from reports.scores import score
from reports.viewer import build_viewer
from tests.reports.runs import evidence_of, meta_of, rows, write_cell

BENCHMARKS = ("astock", "finpure", "cmin_us", "edt", "csmd")
CELLS = (
    ("tiem", "strict", "frozen"), ("tiem", "strict", "online"), ("tiem", "off", "frozen"), ("cot", "strict", "frozen"), ("cot", "off", "frozen"),
    ("zero_shot", "off", "frozen"),
)  # fmt: skip


def write(run: Path, benchmarks: tuple[str, ...], backbones: tuple[str, ...] = ("x",)) -> None:
    for benchmark in benchmarks:
        for backbone in backbones:
            for method, gate, memory in CELLS:
                cell = f"{method}__{backbone}__{benchmark}__{gate}{memory}"
                found = rows(method, backbone, benchmark, n=22, gate=gate, memory=memory, cell=cell)
                sha = "ab" if method == "tiem" else None
                write_cell(run, found, meta=meta_of(found, memory_log_sha256=sha), evidence=evidence_of(found))


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Report:
    run = tmp_path_factory.mktemp("twins") / "run"
    write(run, BENCHMARKS, ("x", "y"))
    return build([run], run / "report")


def test_no_two_rows_of_a_table_read_alike(twins: Report) -> None:
    """Numbers aside, and of the audit the cells, which it sums over by gate."""
    compared = 0
    for table in twins.tables:
        words = [i for i, column in enumerate(table.visible) if column.kind == "text" and column.key != "notes"]
        named = [tuple(row[i].text for i in words) for row in table.shown()]
        if "method" in {column.key for column in table.visible}:
            compared += len(named)
            assert len(set(named)) == len(named), table.name
    assert compared > 200


def test_a_row_with_a_lifted_gate_says_so_in_every_table(twins: Report) -> None:
    for table in twins.tables:
        keys = [column.key for column in table.visible]
        for row in table.shown():
            method = row[keys.index("method")].text if "method" in keys else ""
            if "zero_shot" in method:
                assert "gate=off" in method or "off" in row[keys.index("gate")].text, (table.name, method)


def test_every_figure_names_each_twin_apart(twins: Report) -> None:
    seen = 0
    for picture in twins.figures:
        texts = [re.sub(r"&[a-z#0-9]+;", "", t) for t in re.findall(r"<text[^>]*>([^<]*)</text>", picture.svg.decode())]
        named = {text for text in texts if text.startswith("tiem (")}
        if named:
            seen += 1
            for one in ("gate=off", "memory=frozen", "memory=online"):
                assert any(one in text for text in named), (picture.name, named)
        assert "tiem" not in texts, picture.name
        assert "zero_shot" not in texts, picture.name
    assert seen >= 4


def test_twins_have_marks_of_their_own_where_marks_are_all_there_is(twins: Report) -> None:
    """In accuracy against tokens the legend is what names a mark; and no frontier is drawn over two gates."""
    (svg,) = (picture.svg.decode() for picture in twins.figures if picture.name == "figure7_tokens")
    for words in ("x · gate strict", "x · gate off", "y · gate strict", "y · gate off"):
        assert f"All calls · {words}" in svg


def test_one_partner_of_two_references_is_two_named_rows(twins: Report) -> None:
    (svg,) = (picture.svg.decode() for picture in twins.figures if picture.name == "differences")
    for memory in ("frozen", "online"):
        assert f">cot (gate=strict) …tiem (memory={memory}))<" in svg, (
            "too long a name is cut in the middle, where nothing tells it apart"
        )


def test_a_short_name_says_against_which_reference_in_full(run: Path) -> None:
    for method, memory in (("tiem", "frozen"), ("tiem", "online"), ("cot", None)):
        write_cell(run, rows(method, n=22, memory=memory, cell=f"{method}{memory}"))
    (svg,) = (p.svg.decode() for p in build([run], run / "report").figures if p.name == "differences")
    for memory in ("frozen", "online"):
        assert f">cot (against tiem (memory={memory}))<" in svg


def test_the_label_names_the_twin_that_it_is_true_of_once(run: Path) -> None:
    write(run, ("astock",))
    scores = [score(cell) for cell in load([run]).cells]
    some = [s for s in scores if s.method == "tiem"]
    assert label([*some, *some]) == "TIME GATE OFF (cells: tiem (gate=off, memory=frozen) × x × astock)"
    names = display_names(scores)
    assert sorted(names.values()) == [
        "cot (gate=off)", "cot (gate=strict)", "tiem (gate=off, memory=frozen)", "tiem (gate=strict, memory=frozen)", "tiem (gate=strict, memory=online)",
        "zero_shot (gate=off)",
    ]  # fmt: skip
    index = json.loads(gzip.decompress(base64.b64decode(build_viewer([run], names).index)))
    assert sorted(index["cells"]["name"]) == sorted(names.values())


def test_a_gate_is_not_named_where_all_have_it(run: Path) -> None:
    for method in ("tiem", "cot"):
        write_cell(run, rows(method, n=5, gate="off", cell=method))
    scores = [score(cell) for cell in load([run]).cells]
    assert set(display_names(scores).values()) == {"tiem", "cot"}
    assert label(scores) == "TIME GATE OFF"
