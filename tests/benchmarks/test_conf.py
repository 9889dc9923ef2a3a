"""The shipped YAMLs compose, are valid, and load the released files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from omegaconf import OmegaConf

import benchmarks
from benchmarks.files import pinned
from benchmarks.params import parse
from harness.records import Benchmark

CONF = Path(__file__).parents[2] / "conf"
RELEASED = ["astock", "cmin_us", "csmd", "edt", "finpure"]


@pytest.fixture(scope="module", autouse=True)
def hydra() -> Iterator[None]:
    with initialize_config_dir(str(CONF), version_base=None):
        yield


def settings_of(name: str, *overrides: str) -> dict[str, Any]:
    composed = compose(overrides=[f"+benchmark={name}", *overrides])
    settings = OmegaConf.to_container(composed.benchmark, resolve=True)
    assert isinstance(settings, dict)
    assert settings.pop("_target_") == "benchmarks.load"
    return {str(key): value for key, value in settings.items()}


def load_released(name: str, root: Path, *overrides: str, **settings: Any) -> Benchmark:
    return benchmarks.load(**{**settings_of(name, *overrides), "root": str(root), **settings})


def test_a_sweep_over_all_benchmarks_lists_exactly_these() -> None:
    loader = GlobalHydra.instance().config_loader()
    assert sorted(loader.get_group_options("benchmark", ObjectType.CONFIG)) == sorted([*RELEASED, "sample"])


@pytest.mark.parametrize("name", [*RELEASED, "sample"])
def test_yaml(name: str) -> None:
    parameters = parse(settings_of(name))
    assert parameters.name == name
    assert parameters.experience is not None
    assert parameters.experience.name == ("sample" if name == "sample" else "astock")


def test_the_experience_can_be_left_out_or_changed() -> None:
    assert parse(settings_of("edt", "experience@benchmark.experience=none")).experience is None
    assert parse(settings_of("edt", "benchmark.experience=null")).experience is None
    changed = parse(settings_of("edt", "benchmark.experience.catalysts=expr/Mine.json")).experience
    assert changed is not None
    assert changed.catalysts == "expr/Mine.json"


@pytest.mark.data
@pytest.mark.parametrize("name", RELEASED)
def test_released(name: str, released: Path) -> None:
    loaded = load_released(name, released)
    assert len(loaded.evaluation.catalysts) == len(loaded.evaluation.outcomes) == 128
    assert loaded.experience is not None
    assert len(loaded.experience.catalysts) == 3000
    assert loaded.evaluation.corpus.present == (name != "finpure" or (released / "event/FinPURE.json").exists())
    assert all(file.pinned for file in loaded.files if file.path in pinned())
    assert {c.horizon for c in loaded.evaluation.catalysts} == {3 if name == "edt" else 5}
    for outcome in loaded.evaluation.outcomes.values():
        assert outcome.entry_session <= outcome.resolve_session


@pytest.mark.data
def test_released_counts_and_warnings(released: Path) -> None:
    if (released / "event/Astock.json").exists() or (released / "event/FinPURE.json").exists():
        pytest.skip("the counts are those of the partial corpus")
    astock, finpure = load_released("astock", released), load_released("finpure", released)
    assert len(astock.evaluation.corpus.documents) == 2954
    assert astock.experience is not None
    assert astock.experience.corpus is astock.evaluation.corpus
    assert ["45 of 128" in astock.warnings[0], "944 of 3000" in astock.warnings[1]] == [True, True]
    assert sum(w.startswith("benchmark finpure: no event file") for w in finpure.warnings) == 1


@pytest.mark.data
def test_price_paths_and_the_calendar_differ_only_by_suspensions(released: Path) -> None:
    """24 of 25 evaluation and 540 of 566 experience catalysts with a price path resolve as the calendar says."""
    with_paths = load_released("astock", released)
    without = load_released("astock", released, "benchmark.experience.prices=null", prices=None)
    moved: Counter[str] = Counter()
    for part in ("evaluation", "experience"):
        mine, calendar = getattr(with_paths, part).outcomes, getattr(without, part).outcomes
        for key, outcome in mine.items():
            assert outcome.resolve_at >= calendar[key].resolve_at
            moved[part] += outcome.resolve_at != calendar[key].resolve_at
    assert moved == {"evaluation": 1, "experience": 26}


@pytest.mark.data
def test_resolve_times_agree_with_the_price_file(released: Path) -> None:
    outcomes = load_released("astock", released).evaluation.outcomes
    rows = json.loads((released / "prices/Astock.partial.json").read_bytes())["prices"]
    stated = {
        c["catalyst_id"]: row["true_resolve"] for row in rows for c in row.get("catalysts", []) if c["split"] == "eval"
    }
    assert len(stated) == 25
    for catalyst_id, text in stated.items():
        assert f"{outcomes[catalyst_id].resolve_session} 15:00" == text


@pytest.mark.data
def test_released_resolve_dates(released: Path) -> None:
    outcomes = load_released("edt", released, resolve="released").evaluation.outcomes
    assert all(str(o.resolve_session) == o.stated_resolve for o in outcomes.values())
