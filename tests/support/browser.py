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
def page() -> Iterator[Any]:
    """A page in a new Chromium; what goes wrong in the page goes wrong in the test."""
    needed("chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        opened = browser.new_page(viewport={"width": 820, "height": 900})
        opened.set_default_timeout(60_000)
        wrong: list[str] = []
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        yield opened
        browser.close()
        assert wrong == []
