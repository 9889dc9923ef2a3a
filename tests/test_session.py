"""The session of a run: what keeps it from starting is said."""

from __future__ import annotations

from typing import Any

import pytest
import ray

from harness.errors import HarnessError
from harness.session import start_ray


@pytest.mark.parametrize(
    ("address", "said"),
    [(None, r"Ray did not start \(timed out\); wait"), ("10.0.0.9:6379", r"cluster\.address=10\.0\.0\.9:6379")],
)
def test_a_session_that_does_not_come_up_is_said(
    monkeypatch: pytest.MonkeyPatch, address: str | None, said: str
) -> None:
    def refuse(**_: Any) -> None:
        raise Exception("timed out")  # as Ray does

    monkeypatch.setattr(ray, "init", refuse)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    with pytest.raises(HarnessError, match=said):
        start_ray(address, 256)


def test_a_local_session_is_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def busy(**options: Any) -> None:
        tried.append(options["address"])
        if len(tried) == 1:
            raise Exception("timed out")

    monkeypatch.setattr(ray, "init", busy)
    monkeypatch.setattr(ray, "shutdown", lambda: tried.append("shut down"))
    start_ray(None, 256)
    assert tried == ["local", "shut down", "local"]
