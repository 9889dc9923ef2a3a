"""Data goes one way: the imports of every module are read and held against the direction of dependencies."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("harness", "methods", "benchmarks", "reports")

FOR_METHODS = ("records", "clock", "errors", "evidence", "expected", "memory", "method", "text", "tokens")
ALLOWED = {
    "harness": {"harness"},
    "methods": {"methods", *(f"harness.{name}" for name in FOR_METHODS)},
    "benchmarks": {"benchmarks", "harness.records", "harness.clock", "harness.errors"},
    "reports": {"reports", "harness.records", "harness.errors", "harness.replies"},
}


def imported(source: str, module: str) -> set[str]:
    """Absolute names that ``source`` imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*module.split(".")[: -node.level], *([base] if base else [])])
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return names


def violations(source: str, module: str) -> set[str]:
    room = module.split(".")[0]
    ours = {name for name in imported(source, module) if name.split(".")[0] in ROOMS}

    def allowed(name: str) -> bool:
        return any(name == a or name.startswith(f"{a}.") for a in ALLOWED[room])

    return {name for name in ours if not allowed(name)}


MODULES = sorted(p.relative_to(ROOT) for room in ROOMS for p in (ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_imports_follow_the_direction_of_data(path: Path) -> None:
    module = ".".join(path.with_suffix("").parts)
    assert violations((ROOT / path).read_text("utf-8"), module) == set()


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("harness.cell", "from methods.cot import ChainOfThought"),
        ("harness.cell", "def f():\n    import benchmarks.loader"),
        ("reports.build", "from harness import evidence"),
        ("methods.cot", "from harness.store import CellStore"),
        ("methods.cot", "from harness.jobs import BenchmarkIndex"),
        ("benchmarks.loader", "from harness.config import build"),
        ("benchmarks.loader", "import reports"),
    ],
)
def test_a_planted_import_is_caught(module: str, source: str) -> None:
    assert violations(source, module)
