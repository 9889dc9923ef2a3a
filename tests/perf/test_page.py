"""The page over the paper's grid: 14,080 forecasts with prompts and evidence. Printed, not asserted."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from reports import build
from reports.load import load
from reports.viewer import build_viewer
from tests.reports.browser import CHROMIUM, chromium, opened
from tests.reports.cases import grid_run

pytestmark = [
    pytest.mark.perf,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found"),
]

CHOICES = (["method", "method_03"], ["answer", "wrong"], ["benchmark", "edt"], ["method", ""])
FILTER = """([name, value]) => {
    const begun = performance.now(), box = document.getElementById(`case-${name}`);
    box.value = value;
    box.dispatchEvent(new Event("change"));
    document.getElementById("case-list").offsetHeight;  // the layout is part of it
    return performance.now() - begun;
}"""
SORT = """() => {
    const begun = performance.now();
    document.querySelector("[data-sort=tokens]").click();
    document.getElementById("case-list").offsetHeight;
    return performance.now() - begun;
}"""
OPEN = """async () => {
    const begun = performance.now(), box = document.getElementById("case");
    const seen = new Promise((done) => {
        new MutationObserver(() => box.querySelector("article") && done()).observe(box, { childList: true, subtree: true });
    });
    document.querySelector("#case-list [role=option]").click();
    await seen;
    return performance.now() - begun;
}"""


def test_the_page_of_the_whole_grid(tmp_path: Path) -> None:
    run = grid_run(tmp_path / "run", cases=640)
    begun, cpu = time.perf_counter(), time.process_time()
    viewer = build_viewer([run], {cell.cell: cell.cell for cell in load([run]).cells})
    print(
        f"\n{viewer.forecasts:,} forecasts: viewer built in {time.perf_counter() - begun:.1f} s, {time.process_time() - cpu:.1f} s of CPU"
    )
    report = build([run], tmp_path / "report")
    page = report.out / "report.html"
    beside = sum(path.stat().st_size for path in report.out.glob("cases/*"))
    print(f"report.html {page.stat().st_size / 1e6:.1f} MB, beside it {beside / 1e6:.1f} MB")
    with chromium() as browser, opened(browser, page) as tab:
        paint = tab.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        ready = tab.page.evaluate('Number(document.getElementById("cases").dataset.ready)')
        filters = [tab.page.evaluate(FILTER, choice) for choice in CHOICES]
        sort = tab.page.evaluate(SORT)
        opening = tab.page.evaluate(OPEN)
    print(
        f"first paint {paint:.0f} ms, viewer ready {ready:.0f} ms, filters {', '.join(f'{ms:.0f}' for ms in filters)} ms, sort {sort:.0f} ms, case opened {opening:.0f} ms"
    )
    shutil.rmtree(run)
