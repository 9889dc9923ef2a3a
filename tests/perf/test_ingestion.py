"""`make bench`: filling each memory baseline with CSMD, with the rehearsal endpoint at no latency."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.perf


@pytest.mark.parametrize("method", ["mem0", "a_mem", "memgpt"])
def test_filling_a_memory_with_csmd(ray_session: None, data_root: Path, tmp_path: Path, method: str) -> None:
    """Every document of CSMD (copies removed), in order: from the first call of the filling to the last one's reply.

    Without a gate one forecast needs all of them.
    """
    import launch

    where = ("benchmark=csmd", f"benchmark.root='{data_root}'", "feed=docs", "run.limit=1", "gate=off")
    assert launch.main([f"method={method}", *where, f"run.dir='{tmp_path}'"]) == 0
    (filled,) = (tmp_path / "memories").iterdir()
    calls = pd.read_parquet(filled / "calls.parquet")
    records = pd.read_parquet(filled / "memory.parquet")["record_id"].nunique()
    ends = calls["sent_at"] + pd.to_timedelta(calls["latency_s"], unit="s")
    seconds = (ends.max() - calls["sent_at"].min()).total_seconds()
    print(
        f"\n  {method}: {records} records of CSMD in {seconds:.1f} s, {1000 * seconds / records:.1f} ms a record, "
        f"{len(calls) / records:.2f} calls a record",
        flush=True,
    )
