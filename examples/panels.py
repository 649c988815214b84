"""A Textual app: each block of a reply is a stream of its own, in a panel of its own, and tools run meanwhile.

`python examples/panels.py` shows two recorded replies (q quits), `--svg FILE` draws the picture of them.
Needs `pip install textual`.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import reactivex as rx
from textual.app import App, ComposeResult
from textual.containers import VerticalGroup, VerticalScroll
from textual.widgets import Markdown, Static

import rxdelta as rd
from rxdelta.testing import sample_chunks

FORECASTS = {"Lisbon": "17 °C, dry", "Oslo": "-4 °C, 10 cm of snow"}
LIVE = 0.03  # seconds between two chunks


async def get_forecast(city: str, **more: Any) -> AsyncIterator[Any]:
    yield rd.ToolProgress(display_text=f"Looking up {city}")
    await asyncio.sleep(20 * LIVE)
    yield FORECASTS[city]


def conversation(pause: float) -> rx.Observable[rd.Event]:
    """In your code: the stream of the provider's SDK, instead of the samples."""

    def reply(name: str) -> rx.Observable[rd.Event]:
        chunks = rd.from_async_iterable(lambda: sample_chunks(name, pause=pause))
        tools = rd.run_tools({"get_forecast": get_forecast}, max_concurrency=4)
        return chunks.pipe(rd.decode("anthropic-messages"), tools)

    return rx.concat(reply("weather"), reply("forecast"))


class BlockPanel(VerticalGroup):
    """One block. Whatever happens to it, the other panels go on."""

    def __init__(self, stream: rd.BlockStream) -> None:
        super().__init__(classes=stream.kind)
        self.stream = stream
        self.border_title = stream.kind
        self.body = Markdown() if stream.kind == "text" else Static(markup=False)

    def compose(self) -> ComposeResult:
        yield self.body

    async def follow(self) -> None:
        try:
            await rd.for_each(self.stream.pipe(rd.throttle_latest(0.05)), self.draw, overflow="latest")
        except rd.RxDeltaError as error:  # what has come stays
            self.border_subtitle = type(error).__name__
            self.add_class("failed")

    async def draw(self, block: rd.ContentPart | rd.ToolCall) -> None:
        if isinstance(block, rd.ToolCall):
            status = "failed" if block.error else block.execution_status()
            self.border_title, self.border_subtitle = block.display_text or block.name, status
            self.set_classes(f"tool_call {status}")
        await self.body.update(text_of(block))


def text_of(block: rd.ContentPart | rd.ToolCall) -> str:
    if isinstance(block, rd.ContentPart):
        return block.text or ""
    known = rd.thaw(block.arguments_so_far)  # while they stream, too
    lines = [f"{name} = {value!r}" for name, value in known.items()] if isinstance(known, dict) else []
    result = "" if block.result is None else f"→ {block.result.content}"
    return "\n".join(filter(None, [*lines, block.error, result]))


class Panels(App[None]):
    """Draws a stream of events."""

    BINDINGS = [("q", "quit", "Quit")]
    CSS = """
    BlockPanel { border: round $primary; padding: 0 1; Markdown { padding: 0; margin: 0; } }
    .reasoning { border: round $surface; color: $text-muted; text-style: italic; }
    .executing { border: round $warning; }
    .completed { border: round $success; }
    .failed { border: round $error; }
    """

    def __init__(self, events: rx.Observable[rd.Event]) -> None:
        super().__init__()
        self.events = events
        self.panels: list[BlockPanel] = []
        self.over = asyncio.Event()

    def compose(self) -> ComposeResult:
        yield VerticalScroll()

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).anchor()
        self.run_worker(self.read())

    async def read(self) -> None:
        async with asyncio.TaskGroup() as following:

            async def add(stream: rd.BlockStream) -> None:
                self.panels.append(panel := BlockPanel(stream))
                await self.query_one(VerticalScroll).mount(panel)
                following.create_task(panel.follow())

            try:
                await rd.for_each(self.events.pipe(rd.group_by_block()), add)
            except rd.RxDeltaError as error:
                self.notify(str(error), title=type(error).__name__, severity="error", timeout=60)
        self.over.set()
        if not self.is_headless:
            self.set_timer(2, self.exit)


@asynccontextmanager
async def without_terminal(app: Panels) -> AsyncIterator[None]:
    """The app when the replies are over."""
    async with app.run_test(size=(84, 38)) as pilot:
        await app.over.wait()
        await pilot.pause()
        yield


async def draw(path: str | None) -> None:
    app = Panels(conversation(0))
    async with without_terminal(app):
        svg = app.export_screenshot(title="$ python examples/panels.py")
        if path:  # no font is fetched from anywhere
            Path(path).write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), "utf-8")
        for panel in app.panels:
            print(panel.border_title, panel.border_subtitle or "")


if __name__ == "__main__":
    if sys.stdout.isatty() and not sys.argv[1:]:
        Panels(conversation(LIVE)).run()
    else:
        asyncio.run(draw(sys.argv[2] if sys.argv[1:2] == ["--svg"] else None))
