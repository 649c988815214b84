"""Take the picture of `rxdelta inspect --html` in a real browser: docs/inspect.png. Needs Chromium.

The recording is made of the bundled samples, with times that are the same at each run: a reply that calls two tools, their
results, and the reply to these.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

import rxdelta as rd
from rxdelta.cli import main as rxdelta
from rxdelta.testing import open_sample

DOCS = Path(__file__).parent
WIDTH = 1000
GAPS = (
    0.02,
    0.05,
    0.03,
    0.02,
    0.08,
    0.04,
    0.03,
    0.06,
    0.02,
    0.11,
)  # seconds between two events, over and over
RUNS = (1.3, 2.1)  # seconds that the tools take

Timed = tuple[float, rd.events.Event]


def main() -> None:
    with TemporaryDirectory() as folder:
        recording, page = Path(folder) / "weekend.jsonl", Path(folder) / "weekend.html"
        write(recording, [*turn()])
        rxdelta(["inspect", str(recording), "--html", str(page)])
        take_pictures(page)


def turn() -> Iterator[Timed]:
    """The events of a turn with their times."""
    calling = [*spread("weather", 0.64)]
    yield from calling
    at = calling[-1][0]
    starts = [event.content for _, event in calling if isinstance(event, rd.events.BlockStart)]
    call_ids = [content["id"] for content in starts if content["type"] == "tool_call_chunk"]
    updates: list[Timed] = []
    for call_id, seconds in zip(call_ids, RUNS, strict=True):
        result = rd.ToolResult(call_id, {"saturday": "17 °C, dry", "sunday": "17 °C, dry"})
        updates.append((at + 0.02, rd.events.ToolUpdate(call_id, "executing")))
        updates.append((at + 0.02 + seconds, rd.events.ToolUpdate(call_id, "completed", result=result)))
    yield from sorted(updates, key=lambda update: update[0])
    yield from spread("forecast", at + 2.9)


def spread(sample: str, at: float) -> Iterator[Timed]:
    """A sample's events, one after the other."""
    with open_sample(sample) as file:
        chunks = [json.loads(line) for line in file.read().splitlines()]
    decoder = rd.providers.decoder("anthropic-messages")
    for place, chunk in enumerate(chunks):
        at += GAPS[place % len(GAPS)]
        for event in decoder.decode(chunk):
            yield at, event


def write(path: Path, events: list[Timed]) -> None:
    lines = [{"rxdelta": "recording", "version": 1}]
    lines += [{"t": round(at, 3), "event": event.to_dict()} for at, event in events]
    lines.append({"t": round(events[-1][0], 3), "end": True})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")


def take_pictures(page: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        opened = browser.new_page(
            viewport={"width": WIDTH, "height": 900}, device_scale_factor=1.5, color_scheme="light"
        )
        opened.goto(page.as_uri())
        box = opened.locator(".timeline").bounding_box()
        assert box is not None
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": box["y"] + box["height"] + 20}
        opened.screenshot(path=DOCS / "inspect.png", full_page=True, clip=clip)


if __name__ == "__main__":
    main()
