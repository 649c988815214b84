"""A real browser, headless. See `support.needs` for what happens where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.needs import LEFT_OUT, without

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]


def needed(*commands: str) -> None:
    """Skip the test, or fail in CI, unless these programs are here."""
    missing = [command for command in commands if shutil.which(command) is None]
    if missing or "browser" in LEFT_OUT:
        pytest.skip(without("browser", ", ".join(missing)))


@contextmanager
def chromium() -> Iterator[Any]:
    """A Chromium for one thread at a time: Playwright runs a loop in it."""
    needed("chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def tab(browser: Any) -> Iterator[Any]:
    """A page that shares nothing with others; what raises in the page fails the test."""
    context = browser.new_context(viewport={"width": 820, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(30_000)
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    yield opened
    context.close()
    assert wrong == []


@contextmanager
def page() -> Iterator[Any]:
    """A page in a Chromium of its own."""
    with chromium() as browser, tab(browser) as opened:
        yield opened
