"""What is shown of a run is what is so: rates of now, waits by name, unknown costs as unknown, a dead run as dead."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness import status as command
from harness.errors import HarnessError
from harness.gateway.result import Stats
from harness.jobs import Progress
from harness.progress import STATUS_FILE, Pace, ProgressDisplay, Snapshot, StatusFile, duration, summary
from harness.records import Call
from harness.store import RunDirectory


def call(cost: float | None) -> Call:
    return Call(None, "forecast", "forecast", "r", "m", None, None, 1, False, 1, 0, 1, 0, cost, "ok", 200)


def running(**fields: Any) -> Progress:
    about: dict[str, Any] = {"total": 100, "done": Counter(ok=20, invalid=2), "state": "running", "backbone": "b"}
    return Progress(**{**about, "in_flight": 7, **fields})


STATS = Stats(in_flight=3, waiting=4, waiting_on="rpm", retrying=2, n429=9)


def snapshot(pace: Pace | None = None, **fields: Any) -> Snapshot:
    return Snapshot({"c": running(**fields)}, {"b": STATS}, pace or Pace())


def test_the_line_names_the_limit_the_retries_the_cost_and_the_time_left() -> None:
    clock = [0.0]
    pace = Pace(lambda: clock[0])
    for clock[0], done in ((0.0, 0), (500.0, 50), (501.0, 50), (540.0, 50), (560.0, 52)):
        pace.note({"c": running(done=Counter(ok=done))})
    line = summary(snapshot(pace, cost_usd=0.5, done=Counter(ok=52)))
    assert "4 waiting on rpm, 2 retrying, 9 × 429" in line
    assert "$0.5000" in line
    assert pace.rate() == pytest.approx(2 / 60), "of the last minute, not of the whole run"
    assert "about 24 min 0 s left" in line
    assert pace.left_s(0) is None


def test_an_unknown_cost_is_not_zero() -> None:
    progress = Progress()
    progress.pay([call(0.25), call(None), call(0.25)])
    assert progress.cost_usd is None
    assert "$" not in summary(Snapshot({"c": progress}))
    assert Snapshot({"c": progress}).cell("c")["cost_usd"] is None


def test_a_cell_that_waits_for_its_memory_waits_on_no_limit() -> None:
    cell = snapshot(state="waiting").cell("c")
    assert (cell["waiting_on"], cell["retrying"], cell["left_s"]) == (None, 0, None)
    assert snapshot().cell("c")["waiting_on"] == "rpm"


def test_the_status_file_is_written_at_most_once_a_second_and_at_the_end(tmp_path: Path) -> None:
    clock = [100.0]
    path = tmp_path / STATUS_FILE
    file = StatusFile(path, lambda: clock[0])
    file.write(snapshot(in_flight=1))
    for clock[0] in (100.3, 100.9):
        file.write(snapshot(in_flight=2))
    assert json.loads(path.read_text())["cells"]["c"]["in_flight"] == 1
    clock[0] = 101.0
    file.write(snapshot(in_flight=3))
    assert json.loads(path.read_text())["cells"]["c"]["in_flight"] == 3
    file.write(snapshot(in_flight=0), ended=True)
    ended = json.loads(path.read_text())
    assert (ended["cells"]["c"]["in_flight"], bool(ended["ended_at"])) == (0, True)
    assert [p.name for p in tmp_path.iterdir()] == [STATUS_FILE]


def test_a_status_file_that_cannot_be_written_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise HarnessError("no space")

    monkeypatch.setattr("harness.progress.write_json", refuse)
    out = StringIO()
    with ProgressDisplay(Console(file=out), tmp_path / STATUS_FILE) as display:
        for _ in range(3):
            display.update({"c": running()}, {"b": STATS})
    assert out.getvalue().count("no status file any more: no space") == 1


def test_status_from_another_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([str(tmp_path)]) == 2
    directory = RunDirectory(tmp_path)
    directory.lock()
    StatusFile(tmp_path / STATUS_FILE).write(snapshot(cost_usd=1.5))
    capsys.readouterr()
    assert command.main([str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for said in ("running (process", "22/100", "rpm", "$1.5000", "2 retrying", "9 × 429"):
        assert said in out
    assert directory._lock is not None
    directory._lock.close()  # as the system does when the process ends
    assert command.main([str(tmp_path)]) == 0
    assert "no longer alive" in capsys.readouterr().out
    assert command.main([str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["alive"] is False
    StatusFile(tmp_path / STATUS_FILE).write(snapshot(), ended=True)
    assert command.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("ended at")


def test_asking_for_the_status_keeps_no_run_from_starting(tmp_path: Path) -> None:
    RunDirectory(tmp_path).lock()
    StatusFile(tmp_path / STATUS_FILE).write(snapshot(), ended=True)
    command.main([str(tmp_path)])
    again = RunDirectory(tmp_path)
    again.lock()


def test_texts() -> None:
    assert [duration(s) for s in (5, 90, 3720)] == ["5 s", "1 min 30 s", "1 h 2 min"]
    late = command.alive_text(
        {"updated_at": "2026-01-01T00:00:00+00:00", "ended_at": None, "pid": 1},
        False,
        datetime(2026, 1, 1, 0, 1, tzinfo=UTC),
    )
    assert "last heard of 1 min 0 s ago" in late
