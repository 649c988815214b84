"""A Textual app: each block of a reply is a stream of its own in a panel of its own, and tools run meanwhile.

Shows two recorded replies (q quits); `--svg FILE` draws their picture. Needs `pip install textual`. What a model writes
is shown as text, also where it is markup or a terminal's control characters.
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import reactivex as rx
from rich.segment import Segment
from rich.text import Text
from textual.app import App, ComposeResult
from textual.color import Color
from textual.containers import VerticalGroup
from textual.filter import LineFilter
from textual.widgets import Markdown, Static

import rxdelta as rd
from rxdelta.cli import visible
from rxdelta.testing import sample_chunks


async def get_forecast(city: str, **_: Any) -> AsyncIterator[Any]:
    yield rd.ToolProgress(display_text=f"Looking up {city}")
    await asyncio.sleep(0.5)
    yield {"Lisbon": "17 °C, dry", "Oslo": "-4 °C, 10 cm of snow"}[city]


def reply(name: str, pause: float) -> rx.Observable[rd.Event]:
    chunks = rd.from_async_iterable(
        lambda: sample_chunks(name, pause=pause)
    )  # in your code: the SDK's stream
    tools = rd.run_tools({"get_forecast": get_forecast}, max_concurrency=4)
    return chunks.pipe(rd.decode("anthropic-messages"), tools)


class BlockPanel(VerticalGroup):
    """One block. Whatever happens to it, the others go on."""

    def __init__(self, stream: rd.types.BlockStream) -> None:
        super().__init__(classes=stream.kind)
        self.stream = stream
        self.border_title = stream.kind

    def compose(self) -> ComposeResult:
        yield Markdown() if self.stream.kind == "text" else Static(markup=False)

    async def follow(self) -> None:
        try:
            await rd.for_each(self.stream.pipe(rd.throttle_latest(0.05)), self.draw, overflow="latest")
        except rd.RxDeltaError as error:  # what has come stays
            self.border_subtitle = type(error).__name__
            self.add_class("failed")

    async def draw(self, block: rd.ContentPart | rd.ToolCall) -> None:
        if isinstance(block, rd.ToolCall):
            status = block.execution_status()
            title = visible(block.display_text or block.name or "", lines=False)
            self.border_title, self.border_subtitle = Text(title), status  # a string would be read as markup
            self.set_classes(f"tool_call {status}")
            self.query_one(Static).update(visible(card(block)))
        elif block.type == "text":
            await self.query_one(Markdown).update(visible(block.text or ""))
        else:
            self.query_one(Static).update(visible(block.text or ""))


def card(call: rd.ToolCall) -> str:
    known = rd.core.thaw(call.arguments_so_far)  # while they stream, too
    lines = [f"{name} = {value!r}" for name, value in known.items()] if isinstance(known, dict) else []
    result = "" if call.result is None else f"→ {call.result.content}"
    return "\n".join(filter(None, [*lines, call.error, result]))


class Visible(LineFilter):
    """Looks at all that is drawn once more: Markdown decodes `%1b` in an address that it shows."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(visible(text), style, control) for text, style, control in segments]


class Panels(App[None]):
    BINDINGS = [("q", "quit", "Quit")]
    CSS = """
    BlockPanel { border: round $primary; padding: 0 1; }
    Markdown { padding: 0; }
    .reasoning { border: round $foreground-muted; color: $text-muted; text-style: italic; }
    .executing { border: round $warning; }
    .completed { border: round $success; }
    .failed { border: round $error; }
    """

    def __init__(self, events: rx.Observable[rd.Event]) -> None:
        super().__init__()
        self.events = events

    def on_mount(self) -> None:
        self.screen.anchor()
        self.run_worker(self.read())

    def get_line_filters(self) -> list[LineFilter]:
        return [*super().get_line_filters(), Visible()]

    async def read(self) -> None:
        async def add(stream: rd.types.BlockStream) -> None:
            await self.mount(panel := BlockPanel(stream))
            following.create_task(panel.follow())

        async with asyncio.TaskGroup() as following:
            try:
                await rd.for_each(self.events.pipe(rd.group_by_block()), add)
            except rd.RxDeltaError as error:
                self.notify(visible(str(error)), severity="error", timeout=60, markup=False)
        if not self.is_headless:
            self.set_timer(2, self.exit)


async def draw(app: Panels, path: str | None) -> None:
    async with app.run_test(size=(84, 31)) as pilot:  # without a terminal
        await app.workers.wait_for_complete()
        await pilot.pause()
        lines = [f"{panel.border_title} {panel.border_subtitle or ''}" for panel in app.query(BlockPanel)]
        svg = app.export_screenshot(title="$ python examples/panels.py")
    print("\n".join(lines))
    if path:  # no font is fetched from anywhere
        Path(path).write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), "utf-8")


if __name__ == "__main__":
    live = sys.stdout.isatty() and len(sys.argv) == 1
    app = Panels(rx.concat(*(reply(name, 0.03 if live else 0) for name in ("weather", "forecast"))))
    app.run() if live else asyncio.run(draw(app, sys.argv[2] if sys.argv[1:2] == ["--svg"] else None))
