"""Take the pictures of `examples/chat_web` in a real browser: docs/chat.png and docs/approval.png. Needs npm and Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, sync_playwright

DOCS = Path(__file__).parent
SERVER = DOCS.parent / "examples" / "chat_web" / "server.py"
PORT = "8321"


def main() -> None:
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "PACE": "0.1", "CHATS": f"{folder}/chats.sqlite"}
        server = subprocess.Popen([sys.executable, str(SERVER), "--port", PORT], env=environment)
        try:
            take_pictures()
        finally:
            server.terminate()
            server.wait(10)


def take_pictures() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(
            viewport={"width": 760, "height": 620}, device_scale_factor=1.5, timezone_id="Europe/Berlin"
        )
        for _ in range(100):
            try:
                page.goto(f"http://127.0.0.1:{PORT}/")
                break
            except Exception:
                page.wait_for_timeout(300)
        reloaded(page)
        page.set_viewport_size({"width": 760, "height": 490})
        page.goto(f"http://127.0.0.1:{PORT}/#approval")
        page.reload()
        asking(page)


def reloaded(page: Page) -> None:
    """In the middle of a reload: one tool is complete, and the other one is still being written."""
    page.click("#send")
    page.wait_for_selector(".tool[data-state=input-streaming]")
    page.reload()
    page.wait_for_selector(".tool[data-state=output-available]")
    page.wait_for_selector(".tool[data-state=input-streaming]")
    page.locator(".search summary").click()
    page.screenshot(path=DOCS / "chat.png")


def asking(page: Page) -> None:
    """A call waits for a person."""
    page.fill("#question", "Book a room in Lisbon, please.")
    page.click("#send")
    page.wait_for_selector(".question")
    page.screenshot(path=DOCS / "approval.png")


if __name__ == "__main__":
    main()
