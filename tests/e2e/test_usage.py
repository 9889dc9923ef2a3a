"""Bad usage: exit 2, a message to act on, no traceback, no call, nothing written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Ran

pytestmark = pytest.mark.slow


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session must not be started before everything was checked."""
    import harness.run

    def refuse(*_: Any) -> None:
        raise AssertionError("a session was started")

    monkeypatch.setattr(harness.run, "Session", refuse)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["method=nonsense"], ["nonsense"]),
        (["methd=cot"], ["methd: unknown key", "did you mean method?"]),
        (["run.limt=4"], ["run.limt: unknown key", "did you mean run.limit?"]),
        (["method=vanilla_rag", "method.kk=4"], ["method.kk: unknown key", "did you mean method.k?"]),
        (["-m", "method=cot,zero_shot", "backbone.temprature=1"], ["did you mean backbone.temperature?"]),
        (["something.else=1"], ["something.else: unknown key", "--help"]),
        (["+backbone.rpmm=3"], ["backbone.rpmm", "unknown key"]),
        (["backbone.rpm=lots"], ["backbone.rpm", "lots"]),
        (["backbone.max_in_flight=0"], ["backbone.max_in_flight"]),
        (["gate=loose"], ["gate", "loose"]),
        (["run.limit=-1"], ["run.limit", "-1"]),
        (["+run.limt=3"], ["run.limt"]),
        (["method=vanilla_rag", "method.k=0"], ["method.k"]),
        (["method=vanilla_rag", "+method.kk=3"], ["method.kk"]),
        (["+embedder.sizes=3"], ["embedder.sizes"]),
        (["benchmark=edt", "benchmark.root=/no/such/place"], ["benchmark.root", "/no/such/place"]),
        (["benchmark.horizon=0"], ["benchmark.horizon"]),
        (["method._target_=methods.nothing.Here"], ["methods.nothing.Here"]),
        (["-m", "run.dir=a,b"], ["run.dir"]),
        (["backbone=gpt_5_4_mini"], ["OPENAI_API_KEY"]),
        (["run.dir=/proc/none"], ["/proc/none"]),
        (["run.budget_usd=1"], ["prices"]),
        (["-m", "method=cot,zero_shot", "gate=strict,loose"], ["loose"]),
        (["method=zero_shot", "=3"], []),
        (["method=3"], []),
        (["backbone.model='open"], ["backbone.model='open"]),
        (["-m", "method=glob(nothing*)"], ["glob"]),
        (["experiment=nothing"], ["experiment/nothing"]),
        (["benchmark.market=MOON"], ["benchmark.market", "MOON"]),
        (["run.mode=guess"], ["run.mode"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_usage(
    no_session: None,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: list[str],
) -> None:
    import launch

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    given = arguments if any("run.dir" in a for a in arguments) else [*arguments, f"run.dir={tmp_path / 'run'}"]
    code = launch.main(given)
    out = capfd.readouterr()
    text = out.out + out.err
    assert code == 2, text
    assert "Traceback" not in text
    for word in said:
        assert word in text
    assert list(tmp_path.iterdir()) == [], "something was written"


@pytest.mark.parametrize("place", range(3))
def test_options_may_stand_anywhere_among_overrides(place: int) -> None:
    import launch

    arguments = ["method=cot,zero_shot", "run.limit=3"]
    arguments.insert(place, "-m")
    methods = [cell.raw["method"]["name"] for cell in launch.compose(arguments)]
    assert methods == ["cot", "zero_shot"]


def test_bad_data_stops_before_any_call_and_writes_nothing_over(
    run_here: Callable[..., Ran], tmp_path: Path, no_session: None
) -> None:
    """The kinds of bad rows are tested with the loader; here, that launch.py turns them into exit 2."""
    from benchmarks import sample

    source = Path(str(sample.__file__)).parent
    root = tmp_path / "data"
    for folder in ("eval", "event", "expr", "prices"):
        (root / folder).mkdir(parents=True)
        (root / folder / "Sample.json").write_bytes((source / folder / "Sample.json").read_bytes())
    path = root / "eval" / "Sample.json"
    content = json.loads(path.read_text("utf-8"))
    content["catalysts"][3]["decision_time"] = "2020-02-30"
    content["catalysts"][5]["outcome"] = "sideways"
    path.write_text(json.dumps(content), "utf-8")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text("kept")
    run = run_here("method=zero_shot", f"benchmark.root='{root}'")
    assert run.code == 2
    for word in ("eval/Sample.json", "2020-02-30", "sideways", "decision_time", "outcome"):
        assert word in run.text
    assert "Traceback" not in run.text
    assert (tmp_path / "run" / "manifest.json").read_text() == "kept"
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["manifest.json"]
