"""A real browser."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
EVIL = "evil.example"  # for this browser a name of this machine
_ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--host-resolver-rules=MAP {EVIL} 127.0.0.1",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    """One for a file, and no longer: while it runs, nothing else in this process can use asyncio."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine: install Debian's package chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    yield context.new_page()
    context.close()
