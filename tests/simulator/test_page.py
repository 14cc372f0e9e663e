"""The page at ``/`` in a browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import Served

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    with playwright.sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=arguments)
        yield browser
        browser.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_fits_the_screen_and_looks_again_in_place(browser: Any, served: Served, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.goto(served.url + "/")
    assert page.title() == "profile: simulated platform"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("window.kept = true")
    before = page.inner_text(".up")
    page.wait_for_function("before => document.querySelector('.up').innerText !== before", arg=before, timeout=20_000)
    assert page.evaluate("window.kept")  # the same document: nothing was loaded anew
    assert page.locator("section h2").all_inner_texts()[:3] == [
        "The last minutes", "Nodes, filled as far as pods request their cores", "Queues",
    ]  # fmt: skip
    assert page.locator("svg polyline").count() == 3
    assert not said
    page.close()
