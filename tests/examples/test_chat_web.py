"""`examples/chat_web` in a real browser: text grows, a tool card goes through its states, stop closes the request."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.browser import needed, page

pytestmark = pytest.mark.slow

SERVER = Path(__file__).resolve().parents[2] / "examples" / "chat_web" / "server.py"
WATCH = """
window.seen = [];
new MutationObserver(() => {
  for (const card of document.querySelectorAll(".tool")) {
    const state = card.querySelector("b")?.textContent + ":" + card.dataset.state;
    if (!seen.includes(state)) seen.push(state);
  }
}).observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(pace=0.02) as address:
        yield address


@pytest.fixture(scope="module")
def slow() -> Iterator[str]:
    """A reply there takes minutes, so that it is still coming when the page is done with it."""
    with serving(pace=0.8) as address:
        yield address


@contextmanager
def serving(pace: float) -> Iterator[str]:
    for package in ("starlette", "uvicorn"):
        pytest.importorskip(package)
    needed("npm", "node", "chromium")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if name != "ANTHROPIC_API_KEY"}
    process = subprocess.Popen(
        [sys.executable, str(SERVER), "--port", str(port)], env={**environment, "PACE": str(pace)}
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise RuntimeError("the example has ended")
            try:
                status(address)
                break
            except OSError:
                time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait(10)


def status(address: str) -> Any:
    with urllib.request.urlopen(f"{address}/status") as response:
        return json.load(response)


def no_request_is_open(address: str) -> bool:
    """Once the reader has gone the server's request goes too; how soon is the network's business."""
    for _ in range(300):
        if status(address)["requests_open"] == 0:
            return True
        time.sleep(0.1)
    return False


GROWN = "() => document.querySelector('.assistant, #reply')?.innerText.length > {}"


@pytest.mark.parametrize("path", ["/", "/plain"])
def test_the_page_shows_a_reply_as_it_grows(server: str, path: str) -> None:
    with page() as browser:
        browser.goto(server + path)
        browser.wait_for_selector("#send")
        browser.evaluate(WATCH)
        browser.click("#send")
        lengths: list[int] = []
        for least in (0, 40, 200):
            browser.wait_for_function(GROWN.format(least))
            lengths.append(browser.evaluate("document.querySelector('.assistant, #reply').innerText.length"))
        assert lengths == sorted(lengths)
        browser.wait_for_selector(".text >> text=take skis instead")
        browser.wait_for_selector("#send:visible")
        cards = browser.locator(".tool")
        assert cards.count() == 2
        assert [cards.nth(n).get_attribute("data-state") for n in range(2)] == ["output-available"] * 2
        assert '"Oslo"' in cards.nth(1).inner_text()
        seen = [state.partition(":")[2] for state in browser.evaluate("seen")]
        order = ["input-streaming", "input-available", "output-available"]
        assert [state for state in seen if state in order] == order
        assert "Two cities" in browser.locator(".reasoning").first.inner_text()
    assert no_request_is_open(server)


@pytest.mark.parametrize("path", ["/", "/plain"])
def test_stop_closes_the_provider_s_request_and_keeps_what_was_said(slow: str, path: str) -> None:
    with page() as browser:
        browser.goto(slow + path)
        browser.click("#send")
        browser.wait_for_function(GROWN.format(20))
        assert status(slow)["requests_open"] == 1
        browser.click("#stop")
        assert no_request_is_open(slow)
        browser.wait_for_selector("#send:visible")
        said = browser.locator(".assistant, #reply").inner_text()
        assert said
        assert "take skis instead" not in said


def test_leaving_the_page_closes_it_too(slow: str) -> None:
    with page() as browser:
        browser.goto(slow)
        browser.click("#send")
        browser.wait_for_function(GROWN.format(20))
    assert no_request_is_open(slow)


def test_a_reload_shows_the_finished_message(server: str) -> None:
    with page() as browser:
        browser.goto(server)
        browser.click("#send")
        browser.wait_for_selector(".text >> text=take skis instead")
        browser.wait_for_selector("#send")
        before = browser.locator("section").all_inner_texts()
        browser.wait_for_function(
            "async () => (await (await fetch(`/api/chat/${location.hash.slice(1)}/messages`)).json()).length == 2"
        )
        browser.reload()
        browser.wait_for_selector(".text >> text=take skis instead")
        assert browser.locator("section").all_inner_texts() == before


@pytest.mark.parametrize(
    "body", [b"no json", b"{}", b'{"messages": 3}', b'{"messages": [{"role": "system"}]}']
)
def test_what_is_no_conversation_is_refused(server: str, body: bytes) -> None:
    request = urllib.request.Request(f"{server}/api/chat/x", body, method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    assert caught.value.code == 400
    caught.value.close()
