"""A real browser, headless. See `support.needs` for what happens where there is none."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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

_shared: list[tuple[Any, asyncio.AbstractEventLoop]] = []  # the browser, and Playwright's loop
_stack = ExitStack()


def needed(*commands: str) -> None:
    """Skip the test, or fail in CI, unless these programs are here."""
    missing = [command for command in commands if shutil.which(command) is None]
    if missing or "browser" in LEFT_OUT:
        pytest.skip(without("browser", ", ".join(missing)))


@contextmanager
def chromium() -> Iterator[Any]:
    """This process's Chromium, which is started for the first who needs it. For one at a time: Playwright's loop runs
    meanwhile, and rests when the block is left.
    """
    needed("chromium")
    try:
        if not _shared:
            sync_api = pytest.importorskip("playwright.sync_api")
            playwright = _stack.enter_context(sync_api.sync_playwright())
            launched = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            _stack.callback(launched.close)
            _shared.append((launched, asyncio.get_running_loop()))
        browser, loop = _shared[0]
        asyncio._set_running_loop(loop)
        yield browser
    finally:
        asyncio._set_running_loop(None)


def end_chromium() -> None:
    """End the browser, if one was started."""
    if _shared:
        _, loop = _shared.pop()
        asyncio._set_running_loop(loop)
        _stack.close()


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
    """A page in this process's Chromium."""
    with chromium() as browser, tab(browser) as opened:
        yield opened
