"""``benchmark.exclude``: what a finding is about is left out before anything else looks at it."""

from __future__ import annotations

from pathlib import Path

import pytest

import benchmarks
from benchmarks.audit.audit import CHECKS
from harness.errors import ConfigError, DataError
from harness.records import Benchmark
from tests.benchmarks.conftest import Content, write
from tests.benchmarks.quiet import SETTINGS, cases, quiet, texts


def load(root: Path, content: Content, *exclude: str) -> Benchmark:
    write(root, content)
    return benchmarks.load(**SETTINGS, root=str(root), exclude=list(exclude))


def test_catalysts_are_left_out(tmp_path: Path) -> None:
    content = quiet()
    cases(content)[5]["fwd_ret"] = -0.4
    found = load(tmp_path, content, "return_beyond_limit")
    assert {c.catalyst_id for c in found.evaluation.catalysts} == {f"c{i}" for i in range(31)} - {"c5"}
    assert found.warnings == (
        "benchmark.exclude=[return_beyond_limit]: 1 of 31 catalysts and 0 of 62 documents are left out.",
    )


def test_documents_are_left_out(tmp_path: Path) -> None:
    content = quiet()
    texts(content)[15]["body"] = texts(content)[14]["body"]
    found = load(tmp_path, content, "repeated_body")
    assert "d7b" not in {d.doc_id for d in found.evaluation.corpus.documents}
    assert len(found.evaluation.corpus.documents) == 61


def test_all_findings_are_looked_for_before_anything_is_left_out(tmp_path: Path) -> None:
    content = quiet()
    texts(content)[15]["body"] = texts(content)[14]["body"]
    found = load(tmp_path, content, "repeated_body", "focal_repeated")
    assert "c7" not in {c.catalyst_id for c in found.evaluation.catalysts}


def test_what_a_run_would_refuse_can_be_left_out(tmp_path: Path) -> None:
    content = quiet()
    cases(content)[5]["outcome"] = "positive"
    cases(content)[6]["decision_time"] = "soon"
    cases(content)[8]["catalyst_id"] = "c7"
    del content["event/Quiet.json"]["stocks"]["600009.SH"]
    every = ("label_contradicts_return", "unreadable_row", "duplicate_id", "unknown_stock")
    with pytest.raises(DataError, match="bad row"):
        load(tmp_path, content, *every[1:])
    assert len(load(tmp_path, content, *every).evaluation.catalysts) == 27


def test_nothing_is_left_out_unless_asked(tmp_path: Path) -> None:
    content = quiet()
    texts(content)[15]["body"] = texts(content)[14]["body"]
    found = load(tmp_path, content)
    assert (len(found.evaluation.catalysts), len(found.evaluation.corpus.documents), found.warnings) == (31, 62, ())


def test_experience_is_not_touched(tmp_path: Path) -> None:
    content = quiet()
    past = [{**row, "catalyst_id": f"past{i}"} for i, row in enumerate(cases(content))]
    content["expr/Quiet.json"] = {"catalysts": past}
    for row in (cases(content)[5], past[5]):
        row["fwd_ret"] = -0.4
    texts(content)[15]["body"] = texts(content)[14]["body"]
    write(tmp_path, content)
    split = {key: value for key, value in SETTINGS.items() if key not in ("eval", "prices")}
    found = benchmarks.load(
        **SETTINGS,
        root=str(tmp_path),
        exclude=["return_beyond_limit", "repeated_body"],
        experience={**split, "catalysts": "expr/Quiet.json"},
    )
    assert found.experience is not None
    assert (len(found.evaluation.catalysts), len(found.experience.catalysts)) == (30, 31)
    assert (len(found.evaluation.corpus.documents), len(found.experience.corpus.documents)) == (61, 62)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("repeated_bodies", "did you mean repeated_body?"),
        ("xyz", "it takes these, no ids of catalysts or documents: unreadable_row, "),
        ("c5", "no ids of catalysts"),
        ("few_decision_days", "about the whole benchmark"),
    ],
)
def test_a_name_that_excludes_nothing(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
        load(tmp_path, quiet(), name)


def test_what_is_allowed_is_what_excludes_rows(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, quiet(), "xyz")
    listed = str(caught.value).partition("documents: ")[2].split(", ")
    assert listed == [check.id for check in CHECKS if check.excludes is not None]


@pytest.mark.parametrize(
    ("value", "example"), [("focal_repeated", "focal_repeated"), (None, "focal_repeated"), (3, "focal_repeated")]
)
def test_a_finding_without_brackets(tmp_path: Path, value: object, example: str) -> None:
    with pytest.raises(
        ConfigError,
        match=rf"benchmark\.exclude = {value!r}: write findings in brackets, 'benchmark\.exclude=\[{example}\]'",
    ):
        benchmarks.load(**SETTINGS, root=str(write_quiet(tmp_path)), exclude=value)


def test_leaving_out_everything_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="leaves no catalyst"):
        benchmarks.load(**{**SETTINGS, "event": None}, root=str(write_quiet(tmp_path)), exclude=["no_focal"])


def write_quiet(root: Path) -> Path:
    write(root, quiet())
    return root


def test_every_finding_says_what_to_do() -> None:
    for check in CHECKS:
        assert check.remedy
        assert (f"benchmark.exclude=[{check.id}]" in check.remedy) == (check.excludes is not None)
