"""One server for all tests here; each test has a chat of its own, and tabs that share nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest
from support.browser import chromium, tab
from support.served_chat import ServedChat

_chats = count(1)


@pytest.fixture
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedChat]:
    with ServedChat.running(tmp_path_factory.mktemp("chats")) as one:
        yield one


@pytest.fixture
def chat(served: ServedChat) -> Iterator[str]:
    name = f"chat{next(_chats)}"
    yield name
    served.post(f"/api/chat/{name}/stop", None)


@pytest.fixture
def open_tab(browser: Any) -> Iterator[Any]:
    """`open_tab(url)` opens a page; `without` are addresses that it doesn't get."""
    with ExitStack() as stack:

        def go(url: str, without: str | None = None) -> Any:
            opened = stack.enter_context(tab(browser))
            if without is not None:
                opened.route(without, lambda route: route.abort())
            opened.goto(url)
            opened.wait_for_selector("#send:visible, #stop:visible")
            return opened

        yield go
