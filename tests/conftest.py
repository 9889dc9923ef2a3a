"""One Ray session for all tests; what is skipped for want of data or a browser is said in the summary."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's own 15 starves its processes beside other tests
settings.register_profile("harness", deadline=None)  # wall-clock deadlines make tests depend on the machine
settings.load_profile("harness")
ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cases", default=str(ROOT / "tests" / "parity" / "cases"), help="directory of parity cases (tests/parity)"
    )


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """A local Ray cluster, started once."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    from harness.session import start_ray

    start_ray(address=None, object_store_mb=256)
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The released benchmark files; tests that need them are marked ``data``."""
    root = os.environ.get("HARNESS_DATA")
    if not root:
        pytest.skip("HARNESS_DATA is not set: tests on the released benchmarks are left out")
    return Path(root).resolve()


@pytest.fixture(scope="session", autouse=True)
def released_benchmarks_are_loaded_once() -> Iterator[None]:
    """Records are immutable and the released files stay as they are, so tests that configure the same benchmark share it."""
    import benchmarks

    root, load = os.environ.get("HARNESS_DATA"), benchmarks.load
    loaded: dict[str, Any] = {}

    def shared(**values: Any) -> Any:
        if root is None or Path(str(values.get("root"))).resolve() != Path(root).resolve():
            return load(**values)
        key = json.dumps(values, sort_keys=True, default=str)
        if key not in loaded:
            loaded[key] = load(**values)
        return loaded[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmarks, "load", shared)
        yield
