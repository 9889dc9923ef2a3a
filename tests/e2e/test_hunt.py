"""The hunt as a command: exit codes, the file, the page."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.e2e.conftest import Ran

pytestmark = pytest.mark.slow
SMALL = ("experiment=leak_hunt", "hunt.catalysts=2", "hunt.experience=6", "hunt.documents=60")


@pytest.mark.reported
def test_clean_methods_exit_0(run_here: Callable[..., Ran]) -> None:
    ran = run_here("-m", *SMALL, "method=zero_shot,majority")
    assert ran.code == 0, ran.text
    found = json.loads((ran.directory / "leak_hunt.json").read_text("utf-8"))
    assert [one["method"] for one in found["hunted"]] == ["zero_shot", "majority"]
    for one in found["hunted"]:
        assert [f["detector"] for f in one["findings"]] == [d["name"] for d in found["detectors"]]
        assert len(one["catalysts"]) == 2
        assert one["documents"] == 60
    assert "truncation" in (ran.directory / "report" / "report.html").read_text("utf-8").lower()
    assert (ran.directory / "report" / "report.md").exists()
    assert not list((ran.directory / "cells").iterdir()), "a hunt makes no cells"


def test_a_leak_exits_1_with_its_witness(run_here: Callable[..., Ran]) -> None:
    ran = run_here(*SMALL, "method=zero_shot", "method._target_=tests.hunt.leaky.LookingAtTheClock")
    assert ran.code == 1, ran.text
    assert "FAIL: frozen clock" in ran.text
    assert "today is 2003-05-06" in ran.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["backbone=gpt_5_4_mini"], "backbone=rehearsal"),
        (["method=vanilla_rag", "embedder=openai"], "embedder=hashing"),
        (["hunt.catalysts=0"], "hunt.catalysts"),
        (["+hunt.cats=2"], "hunt.cats"),
    ],
)
def test_bad_usage_exits_2(run_here: Callable[..., Ran], arguments: list[str], said: str) -> None:
    ran = run_here("experiment=leak_hunt", "method=zero_shot", *arguments)
    assert ran.code == 2, ran.text
    assert said in ran.text
