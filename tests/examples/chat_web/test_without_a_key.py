"""The example on `rxdelta serve`: its server asks what it takes for Anthropic, and its page shows a recording."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.served_chat import ask, ended

pytestmark = pytest.mark.slow

SERVER = Path(__file__).resolve().parents[3] / "examples" / "chat_web" / "server.py"
SECONDS = 60  # nothing here takes time; what hangs is found


@contextmanager
def running(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    program = [sys.executable, *arguments]
    with subprocess.Popen(
        program, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=SECONDS)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    for package in ("anthropic", "starlette", "uvicorn"):
        pytest.importorskip(package)
    samples = ["--sample", "weather", "--sample", "forecast"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with ExitStack() as stack:
        kit = stack.enter_context(
            running("-m", "rxdelta", "serve", *samples, "--as", "anthropic-messages", "--speed", "0")
        )
        assert kit.stdout is not None
        url = kit.stdout.readline().strip()
        environment = {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "any",
            "CHATS": str(tmp_path / "chats"),
        }
        server = stack.enter_context(running(str(SERVER), "--port", port, **environment))
        while server.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/plain").close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"


def test_the_page_shows_what_is_served_through_the_sdk(address: str, open_tab: Any) -> None:
    page = open_tab(f"{address}/#chat")
    ask(page, "Lisbon or Oslo for a weekend of walking?")
    ended(page)
    with urllib.request.urlopen(f"{address}/api/chat/chat") as answer:
        kept = json.load(answer)
    assert kept["messages"][-1]["ended"] == "done"
    assert page.locator(".assistant .tool[data-state=output-available]").count() == 2
    assert "walking" in page.locator(".assistant").inner_text()
