"""A small invented benchmark in which past outcomes become known between the decisions, and hunts through it."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from harness.clock import parse_stamp
from harness.config import CellConfig
from harness.hunt.detectors import DETECTORS
from harness.hunt.judges import Finding, Hunt
from harness.hunt.stage import Subject, World, run_world, worlds_of
from harness.hunt.trace import Trace
from harness.jobs import CellSpec
from harness.method import Method
from harness.records import NEGATIVE, POSITIVE, Benchmark, CaseSet, Catalyst, Corpus, DataFile, Document, Outcome, Stock
from tests.support import config_of

TZ = "Asia/Shanghai"
START = datetime(2021, 3, 1, 9, 0)
STOCKS = {
    f"60000{n}": Stock(f"60000{n}", name) for n, name in enumerate(("Alder Pumps", "Birch Valves", "Cedar Ports"))
}
WORDS = [
    "contract",
    "dividend",
    "factory",
    "harbour",
    "orders",
    "permit",
    "profit",
    "recall",
    "strike",
    "supplier",
    "tariff",
    "upgrade",
]


def at(day: float, minutes: int = 0) -> str:
    return (START + timedelta(days=day, minutes=minutes)).strftime("%Y-%m-%d %H:%M")


def document(number: int) -> Document:
    """One a day: of each stock in turn, about two of twelve words."""
    stock = list(STOCKS)[number % 3]
    first, second = WORDS[number % 12], WORDS[(5 * number + 1) % 12]
    text = f"{STOCKS[stock].name} speaks of its {first}.\nA {second} comes on day {number}."
    return Document(f"d{number:02}", parse_stamp(at(number), TZ), "", text, (stock,))


def cases(name: str, days: list[int], wait: int) -> CaseSet:
    """A case on each of ``days``, of each stock in turn, its outcome known ``wait`` days later."""
    catalysts, outcomes = [], {}
    for number, day in enumerate(days):
        stock = list(STOCKS)[number % 3]
        stamp = parse_stamp(at(day, 30), TZ)
        case = Catalyst(f"{name}{day}", stock, STOCKS[stock].name, "earnings", stamp, "CN", 5)
        known = stamp.instant + timedelta(days=wait)
        sign = 1 if number % 2 else -1
        label = POSITIVE if sign > 0 else NEGATIVE
        catalysts.append(case)
        outcomes[case.catalyst_id] = Outcome(case.catalyst_id, label, sign * 0.03, known, stamp.day, known.date())
    return CaseSet(name, tuple(catalysts), outcomes, Corpus(tuple(document(n) for n in range(36)), STOCKS))


FILE = DataFile("tests/hunt/world.py", "0" * 64, 0)
"""The benchmark is made here, so this is its file."""
BENCHMARK = Benchmark("tests", cases("e", [10, 14, 20, 25], 6), cases("p", [2, 4, 6, 8, 9, 11, 16], 7), True, (FILE,))


@cache
def config(*overrides: str) -> CellConfig:
    return config_of("method=zero_shot", "benchmark=sample", *overrides)


def subject(method: Method, *overrides: str) -> Subject:
    """``method`` as a cell, with the training of its memory if it learns."""
    settings = config(*overrides)
    identity = {"backbone": settings.backbone.identity(), "gate": str(settings.gate)}
    learner = method.learner()
    training = None
    if learner is not None and settings.memory == "frozen":
        of_training = settings.model_copy(update={"memory": "online"})
        training = CellSpec("training", of_training, identity, learner, kind="memories", learns=True)
    learns = learner is not None and settings.memory == "online"
    return Subject(CellSpec("cell", settings, identity, method, learns=learns, starts_empty=training is None), training)


def hunted(method: Method, *overrides: str, benchmark: Benchmark = BENCHMARK) -> dict[str, Finding]:
    """The findings of every detector."""
    one = subject(method, *overrides)
    traces: dict[World, Trace] = {world: run_world(one, benchmark, world) for world in worlds_of(benchmark)}
    hunt = Hunt(one, benchmark, traces)
    return {detector.name: detector.finding(hunt) for detector in DETECTORS}


def files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
