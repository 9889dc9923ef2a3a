"""leak_hunt.json: a later hunt of the same run directory adds to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import DataError
from harness.hunt.run import with_earlier
from harness.hunt.witness import Witness


def found(*verdicts: tuple[str, str]) -> dict[str, Any]:
    return {"rehearsal": True, "detectors": [], "hunted": [{"cell": cell, "verdict": v} for cell, v in verdicts]}


def test_what_an_earlier_hunt_found_stays_and_a_cell_hunted_again_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "leak_hunt.json"
    assert with_earlier(found(("a", "PASS")), path) == found(("a", "PASS"))
    path.write_text(json.dumps(found(("a", "FAIL"), ("b", "FAIL"))), "utf-8")
    assert with_earlier(found(("b", "PASS"), ("c", "PASS")), path) == found(("a", "FAIL"), ("b", "PASS"), ("c", "PASS"))


@pytest.mark.parametrize("text", ["{", "[]", '{"hunted": 3}', '{"hunted": [{}]}'])
def test_a_file_that_is_no_hunt_is_not_written_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "leak_hunt.json").write_text(text, "utf-8")
    with pytest.raises(DataError, match=r"leak_hunt\.json: not the file of a hunt"):
        with_earlier(found(("a", "PASS")), tmp_path / "leak_hunt.json")


def test_a_witness_says_nothing_where_there_is_nothing() -> None:
    """A canary should not be there at all, so there is no line that it stands for."""
    assert Witness("e1", "canaries planted", "embedding request", None, "Canary said so").lines() == [
        "e1, embedding request (canaries planted)",
        "+ Canary said so",
    ]
    assert Witness("e1", "the future deleted", "answer", "up", None).lines()[1:] == ["- up"]
