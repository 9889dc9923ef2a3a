"""The page in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from methods.tiem.hefr import HEADINGS
from reports import Report, build, viewer
from tests.reports.browser import CHROMIUM, chromium, opened
from tests.reports.cases import case_run, full_cell
from tests.reports.runs import evidence_of, meta_of, rows, write_cell

pytestmark = [
    pytest.mark.page,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: the page is not opened in a browser"),
]
TIEM, ZERO = "tiem__deepseek_v4_flash__astock__0a1b2c3d", "zero_shot__deepseek_v4_flash__astock__0a1b2c3d"
PROMPTS = [
    (Path(__file__).parents[2] / "methods" / "prompts" / f"{name}.j2").read_text("utf-8")
    for name in ("forecast_user", "tiem_scmr_predicate", "tiem_scmr_judge")
]


def link(case: str, a: str, b: str | None = None) -> str:
    return f"#case=astock/{case}&a={a}.0" + (f"&b={b}.0" if b else "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """report.html of a run with all its files."""
    run = case_run(tmp_path_factory.mktemp("cases") / "run")
    return build([run], run / "report").out / "report.html"


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1280, "dark"), (390, "light")])
def test_the_page_fits_and_is_quiet(browser: Any, demo: Report, width: int, scheme: str) -> None:
    with opened(browser, demo.out / "report.html", width=width, scheme=scheme) as tab:
        assert tab.page.title() == demo.title
        assert "TIME GATE OFF" in tab.text("h1")
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
        assert tab.count("[data-table=results] tbody tr") == len(demo.scores)
    assert tab.said == []
    assert tab.outward == []


def test_figures_stay_readable_on_a_phone(browser: Any, demo: Report) -> None:
    """They keep the size at which their labels can be read and scroll on their own; their captions and the page do not."""
    with opened(browser, demo.out / "report.html", width=390) as tab:
        widths = tab.page.evaluate(
            "[...document.querySelectorAll('figure img')].map(i => i.getBoundingClientRect().width)"
        )
        assert len(widths) == len(demo.figures)
        assert min(widths) >= 700
        inside = "[...document.querySelectorAll('figcaption, .plot')].every(e => e.getBoundingClientRect().right <= innerWidth)"
        assert tab.page.evaluate(inside)
        assert tab.page.evaluate("[...document.querySelectorAll('.plot')].every(e => e.scrollWidth > e.clientWidth)")


def test_the_first_screen_is_the_narrative(browser: Any, demo: Report) -> None:
    with opened(browser, demo.out / "report.html") as tab:
        shown = tab.text("#summary")
        for sentence in demo.data["summary"]:
            assert sentence["topic"] == "label" or sentence["text"] in shown
        box = tab.page.locator("#summary").bounding_box()
        assert box["y"] < 300


def test_a_table_sorts_by_a_click_and_keeps_missing_values_last(browser: Any, demo: Report) -> None:
    with opened(browser, demo.out / "report.html") as tab:
        head = tab.page.locator("[data-table=results] thead th", has_text="Acc").first
        column = head.evaluate("h => h.cellIndex")

        def values() -> list[str]:
            return [
                cell.split()[0]
                for cell in tab.page.locator(f"[data-table=results] tbody td:nth-child({column + 1})").all_inner_texts()
            ]

        before = values()
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == "descending"
        largest = values()
        head.locator("button").press("Enter")
        smallest = values()
    known = sorted(float(value) for value in before if value != "—")
    missing = ["—"] * before.count("—")
    assert missing
    assert [*map(str, largest)] == [*(f"{value:.2f}" for value in reversed(known)), *missing]
    assert smallest == [*(f"{value:.2f}" for value in known), *missing]


def test_filters_narrow_the_list_and_their_counts_add_up(browser: Any, cases: Path) -> None:
    with opened(browser, cases) as tab:
        assert tab.text("#case-count").startswith("36 of 36 forecasts")
        tab.choose("method", "zero_shot")
        assert tab.text("#case-count").startswith("12 of 36")
        tab.choose("status", "invalid")
        assert tab.text("#case-count") == "1 of 36 forecasts: 0 right, 1 wrong, 0 not scored."
        assert "✗ invalid" in tab.text("#case-list")
        tab.choose("answer", "wrong")
        tab.choose("gate", "all records ok")
        tab.choose("type", "earnings")
        tab.choose("backbone", "deepseek_v4_flash")
        tab.choose("benchmark", "astock")
        assert tab.text("#case-count").startswith("1 of 36")
        assert "(0)" in tab.text("#case-method")
        tab.page.fill("#case-search", "no such stock")
        assert tab.page.is_visible("#case-none")
        tab.page.click("#case-reset")
        assert tab.text("#case-count").startswith("36 of 36")
        tab.choose("gate", "late or unverifiable")
        assert "⚑" in tab.text("#case-list")
    assert tab.said == []


def test_the_viewer_counts_as_the_report_scores(browser: Any, cases: Path) -> None:
    data = build([cases.parent.parent], cases.parent).data
    with opened(browser, cases) as tab:
        for cell in data["cells"]:
            tab.choose("method", cell["method"])
            right = round(cell["acc"] * cell["n_scored"])
            assert f": {right} right, {cell['n_scored'] - right} wrong" in tab.text("#case-count")


def test_a_case_shows_evidence_prompt_reply_skills_and_cost(browser: Any, cases: Path) -> None:
    with opened(browser, cases) as tab:
        tab.choose("method", "tiem")
        tab.page.click("#case-list [role=option] >> nth=0")
        case = tab.case()
        text = case.inner_text()
        for part in (
            "T, decision",
            "2 hours AFTER T",
            "IF orders rise THEN up",
            "reports for astock-0000",
            "from 3 earlier records",
            "Cost at list price",
        ):
            assert part in text or part in case.text_content(), part
        assert "A rule of the future" not in case.text_content(), "a skill is shown as it was at the decision"
        streams = case.locator("[data-stream]").evaluate_all("nodes => nodes.map(n => n.dataset.stream)")
        assert streams == ["role", "question", "focal", "concurrent", "context", "skill", "answer"]
        colours = case.locator("[data-stream]").evaluate_all(
            "nodes => nodes.map(n => getComputedStyle(n).borderInlineStartColor)"
        )
        assert len(set(colours)) == 4, "frame, focal document, same day, skills"
        assert case.locator("tr.not-ok").count() == 1
        assert case.locator("svg.timeline .record").count() == 7
        case.locator("svg.timeline .record").nth(2).click()
        assert case.locator("tr.chosen").count() == 1
    assert tab.said == []


def test_two_methods_side_by_side_with_what_only_one_prompt_holds(browser: Any, cases: Path) -> None:
    with opened(browser, cases, link("astock-0002", TIEM)) as tab:
        tab.case()
        tab.page.locator("#case select").nth(1).select_option(index=2)
        tab.page.wait_for_selector("#case .columns.two article >> nth=1")
        assert tab.count("#case article") == 2
        assert "b=zero_shot" in tab.page.url
        first, second = tab.page.locator("#case article").all()
        assert first.locator(".only").all_inner_texts() == [
            "## Retrieved context",
            "### Experience: rules",
            "IF orders rise THEN up (tiem)",
        ]
        assert second.locator(".only").count() == 0
        with opened(browser, cases, link("astock-0002", TIEM, ZERO)) as again:
            again.case()
            assert again.count("#case article") == 2
            assert again.text("#case") == tab.text("#case"), "the address alone gives the same view"


def test_a_link_opens_its_case_and_back_closes_it(browser: Any, cases: Path) -> None:
    with opened(browser, cases, "#method=tiem") as tab:
        assert tab.text("#case-count").startswith("12 of 36"), "filters are part of the address"
        tab.page.click("#case-list [role=option] >> nth=4")
        assert "astock-0004" in tab.case().inner_text()
        tab.page.click("text=Next →")
        tab.page.wait_for_selector("#case dd:has-text('astock-0005')")
        tab.page.go_back()
        tab.page.wait_for_selector("#case dd:has-text('astock-0004')")
        tab.page.go_back()
        tab.page.wait_for_selector("#case", state="hidden")
        assert tab.text("#case-count").startswith("12 of 36")
        tab.page.evaluate("location.hash = '#pairs'")
        assert tab.text("#case-count").startswith("12 of 36"), "a section's link is left to the browser"


def test_a_link_to_another_report_is_said(browser: Any, cases: Path) -> None:
    for fragment in (link("elsewhere", TIEM), link("astock-0001", "another_cell")):
        with opened(browser, cases, fragment) as tab:
            assert "This report holds no forecast" in tab.text("#case-lost")
            assert tab.page.is_hidden("#case")


def test_the_keyboard_alone_will_do(browser: Any, cases: Path) -> None:
    with opened(browser, cases) as tab:
        keys = tab.page.keyboard
        tab.page.focus("#case-reset")
        for _ in range(20):
            keys.press("Tab")
            if tab.page.evaluate("document.activeElement.id") == "case-list":
                break
        keys.press("End")
        keys.press("ArrowUp")
        active = tab.page.get_attribute("#case-list", "aria-activedescendant")
        assert active == "option-34"
        assert tab.page.get_attribute(f"#{active}", "aria-selected") == "true"
        keys.press("Enter")
        tab.case()
        assert tab.page.evaluate("document.activeElement.id") == "case-title"
        keys.press("ArrowRight")
        tab.page.wait_for_selector("#option-35.active")
        tab.case()
        keys.press("Escape")
        tab.page.wait_for_selector("#case", state="hidden")
        assert tab.page.evaluate("document.activeElement.id") == "case-list"


HOSTILE = "</script><script>window.hacked = 1</script><img src='http://127.0.0.1:9/x' onerror='window.hacked = 2'> \" ' & {{ 7 * 7 }} مرحبا 沪市公告 \ud83d end"


def test_hostile_text_is_shown_as_text(browser: Any, run: Path) -> None:
    shown = HOSTILE.replace("\ud83d", "\ufffd")
    some = rows("tiem", n=3, rationale=shown, stock=shown.replace("/", ""), catalyst_type="<b>bold</b>")
    full_cell(run, some, lambda row: HOSTILE if row["catalyst_id"].endswith("1") else shown)
    page = build([run], run / "report").out / "report.html"
    with opened(browser, page, "#case=astock/astock-0000") as tab:
        text = tab.case().inner_text()
        assert text.count(shown) == 2, "in the prompt and the rationale"
        assert shown.replace('"', '\\"') in text, "in the reply, which is JSON"
        assert "<b>bold</b>" in text
        rtl = tab.page.evaluate(
            "[...document.querySelectorAll('#case .text > div')].every(n => getComputedStyle(n).unicodeBidi === 'isolate')"
        )
        assert rtl, "text of one line cannot turn the next"
        assert tab.page.evaluate("window.hacked") is None
    assert (tab.said, tab.outward) == ([], [])


def test_a_lone_surrogate_in_a_reply_is_replaced(browser: Any, run: Path) -> None:
    some = rows("tiem", n=1)
    full_cell(run, some, lambda row: "before \ud83d after")
    page = build([run], run / "report").out / "report.html"
    with opened(browser, page, "#case=astock/astock-0000") as tab:
        assert "before \ufffd after" in tab.case().inner_text()
    assert tab.said == []


def test_the_page_cannot_be_made_to_ask_the_network(browser: Any, cases: Path) -> None:
    with opened(browser, cases) as tab:
        tab.page.evaluate(
            "() => { const i = new Image(); i.src = 'http://127.0.0.1:9/planted'; document.body.append(i); }"
        )
        tab.page.evaluate("fetch('http://127.0.0.1:9/planted').catch(() => null)")
        tab.page.wait_for_timeout(50)
    assert len([text for text in tab.said if "Content Security Policy" in text]) >= 2


def test_forecasts_alone_are_enough_and_what_is_missing_is_said(browser: Any, run: Path) -> None:
    write_cell(run, rows(n=5))
    page = build([run], run / "report").out / "report.html"
    with opened(browser, page, "#case=astock/astock-0001") as tab:
        notes = tab.text("#cases")
        for name in ("evidence.parquet", "calls.parquet", "the cache of replies"):
            assert f"The cell lacks {name}" in notes
        text = tab.case().inner_text()
        assert "no evidence.parquet" in text
        assert "no calls.parquet" in text
        assert "Invented." in text, "what forecasts.parquet holds is shown"
        assert tab.page.input_value("#case-gate") == ""
    assert tab.said == []


def test_an_unfinished_run_and_an_unusable_reply_are_said(browser: Any, cases: Path, tmp_path: Path) -> None:
    with opened(browser, cases, link("astock-0003", ZERO)) as tab:
        text = tab.case().inner_text()
        assert "only usable replies are stored, and this call ended as invalid" in text
        assert "Reason: no JSON object" in text
    some = rows("tiem", n=4)
    run = tmp_path / "part"
    write_cell(run, some, meta=meta_of(some, n=40, status="incomplete", reason="interrupted"))
    page = build([run], run / "report").out / "report.html"
    with opened(browser, page) as tab:
        assert "not complete (4 of 40 forecasts have a row)" in tab.text("#summary")
        assert tab.text("#case-count").startswith("4 of 4")


def test_details_beside_the_page_are_loaded_on_demand(browser: Any, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case_run(run)
    monkeypatch.setattr(viewer, "INSIDE_BYTES", 0)
    monkeypatch.setattr(viewer, "ROWS_A_CHUNK", 12)
    out = build([run], run / "report").out
    assert len(list((out / "cases").iterdir())) == 3
    assert "chunk-0" not in (out / "report.html").read_text("utf-8")
    with opened(browser, out / "report.html", link("astock-0002", TIEM)) as tab:
        assert "reports for astock-0002" in tab.case().inner_text()
        assert [url.rsplit("/", 2)[1:] for url in tab.asked if url.endswith(".js")] == [["cases", "0.js"]]
        shutil.rmtree(out / "cases")
        tab.page.evaluate(f"location.hash = '{link('astock-0011', TIEM)}'")
        tab.page.wait_for_selector("#case .gap")
        assert "are in cases/2.js" in tab.text("#case")
    monkeypatch.undo()
    build([run], out)
    assert not (out / "cases").exists(), "none of an earlier report stays behind"


def test_fourteen_thousand_rows_are_drawn_a_screen_at_a_time(browser: Any, run: Path) -> None:
    for method in ("tiem", "zero_shot"):
        write_cell(run, rows(method, n=7040))
    page = build([run], run / "report").out / "report.html"
    with opened(browser, page) as tab:
        assert tab.text("#case-count").startswith("14,080 of 14,080")
        assert 10 < tab.count("#case-list [role=option]") < 60
        tab.page.focus("#case-list")
        tab.page.keyboard.press("End")
        tab.page.wait_for_selector("#option-14079.active")
        assert 10 < tab.count("#case-list [role=option]") < 60


def test_print_shows_the_report_without_its_controls(browser: Any, demo: Report) -> None:
    with opened(browser, demo.out / "report.html") as tab:
        tab.page.emulate_media(media="print")
        assert tab.page.is_hidden("nav")
        assert tab.page.is_hidden("#case-list")
        assert tab.page.is_visible("[data-table=results] table")
        assert tab.page.pdf().startswith(b"%PDF")


def test_every_heading_of_our_prompts_opens_a_stream(browser: Any, cases: Path) -> None:
    found = {line for text in PROMPTS for line in text.splitlines() if line.startswith("## ")}
    found |= {f"### {heading}" for heading in HEADINGS.values()} | {
        "Entities:",
        "Relations:",
        "Statements and what they are about:",
        "Sources:",
    }
    found |= {f"-----{name}-----" for name in ("Reports", "Entities", "Relationships", "Sources")}
    with opened(browser, cases) as tab:
        known = "heading => STREAMS.some(([pattern]) => pattern.test(heading))"
        assert [heading for heading in sorted(found) if not tab.page.evaluate(known, heading)] == []
        assert not tab.page.evaluate(known, "## A heading inside a document")


def test_what_a_table_is_sorted_by(browser: Any, cases: Path) -> None:
    shown = ["<0.001", "0.001", "−3.5", "-0.378", "1,234", "300 × 3", "—", "", "tiem", "[0.1, 0.2]"]
    with opened(browser, cases) as tab:
        values = tab.page.evaluate("texts => texts.map(sortValue)", shown)
    assert values[1:] == [0.001, -3.5, -0.378, 1234, 300, None, None, "tiem", "[0.1, 0.2]"]
    assert values[0] < values[1]


def test_evidence_without_times_and_several_epochs(browser: Any, run: Path) -> None:
    some = rows("tiem", n=2, epochs=2)
    write_cell(run, some, meta=meta_of(some), evidence=evidence_of(some, late=1))
    page = build([run], run / "report").out / "report.html"
    with opened(browser, page, "#case=astock/astock-0000") as tab:
        assert "epoch 1" in tab.text("#case-list")
        case = tab.case()
        assert case.locator("svg.timeline .record").count() == 2
        assert "NaN" not in case.inner_html()
        assert "unknown" in case.locator("tr.not-ok").text_content()
        tab.page.locator("#case select").nth(1).select_option(index=1)
        tab.page.wait_for_selector("#case .columns.two")
        assert tab.page.url.endswith(".1"), "two epochs of one method stand side by side"
    assert tab.said == []


def test_a_row_without_a_decision_time_has_no_timeline(browser: Any, run: Path) -> None:
    some = rows("tiem", n=1, decision_time=None, decision_day=None, label="dropped", fwd_ret=None, catalyst_type=None)
    write_cell(run, some, evidence=evidence_of(some))
    page = build([run], run / "report").out / "report.html"
    with opened(browser, page, "#case=astock/astock-0000") as tab:
        text = tab.case().inner_text()
        assert "The decision time is not on file" in text
        assert "not scored" in tab.text("#case-count")
    assert tab.said == []
