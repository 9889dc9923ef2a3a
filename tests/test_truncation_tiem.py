"""TIEM and its variants: delete the future (documents and outcomes), train and run again, compare prompts byte for byte.

The experience is cut to its last cases, so that a memory is trained in seconds and the first Astock decisions still fall before
its last outcomes are known.
"""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from harness.records import Benchmark, Catalyst
from tests.support import benchmark_of, config_of, run_cells

pytestmark = [pytest.mark.data, pytest.mark.slow]

VARIANTS = ("tiem", "tiem_wo_eeh", "tiem_wo_csm", "tiem_wo_hefr", "tiem_scmr")
EVAL = {"astock": "Astock", "edt": "EDT_ood", "cmin_us": "CMIN-US_ood", "csmd": "CSMD_ood"}
EVENT = {**EVAL, "astock": "Astock.partial"}
EXPERIENCE = 30
"""Cases of the experience that are kept."""


@pytest.fixture(scope="module")
def small_root(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The released data with the last cases of the experience only."""
    root = tmp_path_factory.mktemp("small")
    for folder in ("eval", "event", "expr", "prices"):
        shutil.copytree(data_root / folder, root / folder, copy_function=shutil.copy)
    path = root / "expr" / "Astock.json"
    path.chmod(0o644)
    content = json.loads(path.read_text("utf-8"))
    listed = {d["doc_id"] for d in json.loads((root / "event" / "Astock.partial.json").read_text("utf-8"))["text"]}
    with_text = [c for c in content["catalysts"] if c["catalyst_id"] in listed]
    content["catalysts"] = sorted(with_text, key=lambda c: c["decision_time"])[-EXPERIENCE:]
    path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
    return root


def loaded(root: Path, benchmark: str) -> Benchmark:
    return benchmark_of(config_of(f"benchmark={benchmark}", f"benchmark.root='{root}'"))


def cut_at(root: Path, benchmark: str, case: Catalyst, to: Path) -> Path:
    """``root`` as it was known at the decision of ``case``: no later document, no later outcome but the case's own row."""
    whole = loaded(root, benchmark)
    assert whole.experience is not None
    now = case.time.instant
    outcomes = {**whole.experience.outcomes, **whole.evaluation.outcomes}
    stamps = {
        d.doc_id: d.time.instant for c in (whole.experience, whole.evaluation) for d in c.corpus.documents if d.time
    }
    for folder in ("eval", "event", "expr", "prices"):
        shutil.copytree(root / folder, to / folder)

    def keep(path: Path, key: str, wanted: Any) -> None:
        content = json.loads(path.read_text("utf-8"))
        content[key] = [row for row in content[key] if wanted(row)]
        path.chmod(0o644)
        path.write_text(json.dumps(content, ensure_ascii=False), "utf-8")

    known = {name for name, outcome in outcomes.items() if outcome.resolve_at < now} | {case.catalyst_id}
    keep(to / "expr" / "Astock.json", "catalysts", lambda row: row["catalyst_id"] in known)
    keep(to / "eval" / f"{EVAL[benchmark]}.json", "catalysts", lambda row: row["catalyst_id"] in known)
    for name in {EVENT[benchmark], EVENT["astock"]}:
        keep(to / "event" / f"{name}.json", "text", lambda row: stamps.get(row["doc_id"], datetime.max) <= now)
    return to


def prompts(
    root: Path, benchmark: str, scratch: Path, names: list[str], *overrides: str
) -> dict[tuple[str, str], str | None]:
    """Prompt hashes by (method, catalyst)."""
    configs = [
        config_of(f"method={m}", f"benchmark={benchmark}", f"benchmark.root='{root}'", *overrides) for m in VARIANTS
    ]
    rows = run_cells(configs, scratch, names)
    return {
        (m, r["catalyst_id"]): r["prompt_sha256"] for m, some in rows.items() for r in some if r["catalyst_id"] in names
    }


@pytest.mark.parametrize("benchmark", sorted(EVAL))
def test_deleting_the_future_changes_no_prompt_of_any_variant(small_root: Path, tmp_path: Path, benchmark: str) -> None:
    cases = loaded(small_root, benchmark).evaluation.catalysts
    sampled = [cases[0], cases[70]] if benchmark == "astock" else [cases[70]]
    whole = prompts(small_root, benchmark, tmp_path / "whole", [c.catalyst_id for c in sampled])
    for case in sampled:
        root = cut_at(small_root, benchmark, case, tmp_path / f"root-{case.catalyst_id}")
        cut = prompts(root, benchmark, tmp_path / f"cut-{case.catalyst_id}", [case.catalyst_id])
        for variant in VARIANTS:
            assert cut[variant, case.catalyst_id] == whole[variant, case.catalyst_id], (variant, case.catalyst_id)


def test_also_while_the_memory_learns_through_the_evaluation_set(small_root: Path, tmp_path: Path) -> None:
    cases = loaded(small_root, "csmd").evaluation.catalysts
    case = cases[30]
    online = ("memory=online", "run.limit=31")
    whole = prompts(small_root, "csmd", tmp_path / "whole", [case.catalyst_id], *online)
    cut = prompts(
        cut_at(small_root, "csmd", case, tmp_path / "root"), "csmd", tmp_path / "cut", [case.catalyst_id], *online
    )
    assert cut == whole


def test_under_the_paper_gate_the_future_shows(small_root: Path, tmp_path: Path) -> None:
    """A skill that a later outcome was merged into is not seen at T. Strict shows it as it was; here the difference is caught."""
    case = loaded(small_root, "astock").evaluation.catalysts[0]
    root = cut_at(small_root, "astock", case, tmp_path / "root")
    for gate, same in (("paper", False), ("strict", True)):
        # So low a threshold that skills do merge, and so many skills asked for that the merged ones are among them.
        overrides = (f"gate={gate}", "method.merge_at=0.2", "method.skill_k=60", "method.skill_min_sim=-1")
        whole = prompts(small_root, "astock", tmp_path / f"whole-{gate}", [case.catalyst_id], *overrides)
        cut = prompts(root, "astock", tmp_path / f"cut-{gate}", [case.catalyst_id], *overrides)
        assert (cut == whole) == same, gate
