"""A headless Chromium that says what it was told on the console and what it asked for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip


@dataclass
class Tab:
    """A page with what it said and asked for."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))

    def count(self, selector: str) -> int:
        return int(self.page.locator(selector).count())

    def choose(self, name: str, value: str) -> None:
        """Set a filter of the viewer."""
        self.page.select_option(f"#case-{name}", value)

    def case(self) -> Any:
        """Wait until the open case stands there in full."""
        self.page.wait_for_selector("#case:not([aria-busy]) .columns > *")
        return self.page.locator("#case")

    @property
    def outward(self) -> list[str]:
        """Requests that left the machine's own disk."""
        return [url for url in self.asked if not url.startswith(("file:", "data:"))]


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, path: Path, fragment: str = "", *, width: int = 1280, scheme: str = "light") -> Iterator[Tab]:
    """``path`` in a tab of its own, once the viewer is ready."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab = Tab(page)
    page.on("console", lambda message: tab.said.append(message.text))
    page.on("pageerror", lambda error: tab.said.append(str(error)))
    page.on("request", lambda request: tab.asked.append(request.url))
    page.goto(path.resolve().as_uri() + fragment)
    page.wait_for_selector("#cases[data-ready]")
    try:
        yield tab
    finally:
        page.close()
