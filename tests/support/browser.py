"""A real browser, headless; where there is none its tests are skipped, but in CI that is a failure."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]


def needed(*commands: str) -> None:
    """Skip, or fail in CI, unless these programs are here."""
    missing = [command for command in commands if shutil.which(command) is None]
    if missing and os.environ.get("CI") == "true":
        raise FileNotFoundError(f"CI needs {', '.join(missing)}")
    if missing:
        pytest.skip(f"{', '.join(missing)} is not here")


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
