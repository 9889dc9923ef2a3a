from __future__ import annotations

from pathlib import Path

import pytest

from reports import Report, build
from tests.reports.runs import demo_run, grid_run


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of the demo run, built once."""
    run = demo_run(tmp_path_factory.mktemp("demo") / "run")
    return build([run], run / "report")


@pytest.fixture(scope="session")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of a grid over the paper's benchmarks, built once."""
    run = grid_run(tmp_path_factory.mktemp("grid") / "run")
    return build([run], run / "report")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"
