"""Draw what a message shows that links to the site, `docs/_static/preview.png`. With Chromium."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

STATIC = Path(__file__).parent / "_static"
PAGE = """
<style>
  body {{ margin: 0; width: 1200px; height: 630px; background: #10233f; color: #fff; font-family: sans-serif; }}
  main {{ padding: 70px 80px; }}
  header {{ display: flex; align-items: center; gap: 32px; font-size: 84px; font-weight: 700; }}
  header svg {{ width: 120px; }}
  p {{ font-size: 40px; line-height: 1.35; margin: 36px 0; color: #d6e4f7; }}
  pre {{ font-size: 27px; line-height: 1.5; background: #0a1729; color: #ffd166; padding: 26px 34px; border-radius: 14px; margin: 0; }}
</style>
<main>
  <header>{logo}rxdelta</header>
  <p>A model's streamed reply as immutable snapshots,<br>for every provider, in Python</p>
  <pre>async with rd.stream(chunks) as reply:
    async for snapshot in reply:
        draw(snapshot.text)</pre>
</main>
"""


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 630})
        page.set_content(PAGE.format(logo=(STATIC / "logo.svg").read_text("utf-8")))
        page.screenshot(path=str(STATIC / "preview.png"))
        browser.close()


if __name__ == "__main__":
    main()
