"""The Textual example, driven by Textual's own pilot. What it waits for is a state of the app, never time."""

from __future__ import annotations

import asyncio
import html
import importlib.util
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.cli import visible

pytest.importorskip("textual")

from textual.widgets import Markdown

PATH = Path(__file__).resolve().parents[2] / "examples" / "panels.py"
spec = importlib.util.spec_from_file_location("panels", PATH)
assert spec is not None
assert spec.loader is not None
panels: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(panels)

SECONDS = 60  # nothing here takes time; what hangs is found


class Reply:
    """Events that come when the test says so, and a tool that ends when it says so."""

    def __init__(self) -> None:
        self.closed = False
        self.given: asyncio.Queue[Any] = asyncio.Queue()
        self.answers: dict[str, asyncio.Future[str]] = {}
        chunks = rd.from_async_iterable(self._events())
        self.app = panels.Panels(chunks.pipe(rd.run_tools({"get_forecast": self.get_forecast})))

    async def _events(self) -> AsyncIterator[Any]:
        try:
            while (event := await self.given.get()) is not None:
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.closed = True

    async def get_forecast(self, city: str) -> str:
        self.answers[city] = asyncio.get_running_loop().create_future()
        return await self.answers[city]

    def send(self, *events: Any) -> None:
        for event in events:
            self.given.put_nowait(event)

    def texts(self) -> list[str]:
        bodies = [panel.children[0] for panel in self.app.query(panels.BlockPanel) if panel.children]
        return [body.source if isinstance(body, Markdown) else str(body.visual) for body in bodies]

    def frames(self) -> list[tuple[Any, Any]]:
        return [(panel.border_title, panel.border_subtitle) for panel in self.app.query(panels.BlockPanel)]

    def drawn(self) -> str:
        svg = self.app.export_screenshot()
        return html.unescape(re.sub(r"<style.*?</style>|<[^>]*>", "", svg, flags=re.DOTALL)).replace(
            "\xa0", " "
        )


def drive(test: Callable[[Reply, Callable[[Callable[[], bool]], Any]], Any]) -> None:
    async def main() -> None:
        reply = Reply()
        async with reply.app.run_test(size=(84, 40), notifications=True) as pilot:

            async def until(condition: Callable[[], bool]) -> None:
                while not condition():
                    await pilot.pause()

            await asyncio.wait_for(test(reply, until), SECONDS)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def call(index: int, name: str) -> ev.BlockStart:
    return ev.BlockStart(index, {"type": "tool_call_chunk", "id": name, "name": "get_forecast"})


def test_each_block_has_its_panel_and_a_call_shows_how_far_it_is() -> None:
    async def test(reply: Reply, until: Any) -> None:
        reply.send(ev.MessageStart(), ev.BlockStart(0, {"type": "reasoning"}), ev.ReasoningDelta(0, "Hm [b]"))
        await until(lambda: reply.texts() == ["Hm [b]"])
        reply.send(ev.BlockFinish(0), ev.BlockStart(1, {"type": "text"}), ev.TextDelta(1, "I *look"))
        await until(lambda: reply.texts()[1:] == ["I *look"])

        reply.send(call(2, "c1"), ev.ToolCallDelta(2, '{"city": "Lis'), call(3, "c2"))
        await until(lambda: reply.texts()[2:] == ["city = 'Lis'", ""])
        assert reply.frames()[2:] == [("get_forecast", "identified")] * 2
        reply.send(
            ev.ToolCallDelta(3, '{"city": "Oslo"}'), ev.ToolCallDelta(2, 'bon"}'), ev.TextDelta(1, "*.")
        )
        await until(lambda: reply.texts()[2:] == ["city = 'Lisbon'", "city = 'Oslo'"])
        await until(lambda: reply.texts()[1] == "I *look*.")
        assert reply.answers == {}

        reply.send(ev.BlockFinish(3))
        await until(lambda: [end for _, end in reply.frames()[2:]] == ["identified", "executing"])
        reply.send(ev.BlockFinish(2), ev.ToolUpdate("c1", display_text="Looking up Lisbon"))
        await until(
            lambda: reply.frames()[2:] == [("Looking up Lisbon", "executing"), ("get_forecast", "executing")]
        )

        reply.send(ev.BlockFinish(1), ev.MessageFinish("tool_use"), None)
        reply.answers["Oslo"].set_exception(rd.ToolError("no snow"))
        await until(lambda: reply.frames()[3] == ("get_forecast", "failed"))
        assert "no snow" in reply.texts()[3]
        assert reply.frames()[2] == ("Looking up Lisbon", "executing")
        reply.answers["Lisbon"].set_result("17 °C")
        await until(lambda: reply.frames()[2] == ("Looking up Lisbon", "completed"))
        await reply.app.workers.wait_for_complete()
        assert reply.texts()[2] == "city = 'Lisbon'\n→ 17 °C"
        assert [sorted(panel.classes) for panel in reply.app.query(panels.BlockPanel)] == [
            ["reasoning"],
            ["text"],
            ["completed", "tool_call"],
            ["failed", "tool_call"],
        ]

    drive(test)


def test_a_call_that_must_not_be_run_has_failed() -> None:
    async def test(reply: Reply, until: Any) -> None:
        reply.send(ev.MessageStart(), call(0, "c1"), ev.ToolCallDelta(0, '["Lisbon"]'), ev.BlockFinish(0))
        await until(lambda: [end for _, end in reply.frames()] == ["failed"])
        reply.send(call(1, "c2"), ev.ToolCallDelta(1, '{"city": "Os'), ev.MessageFinish("length"), None)
        await until(lambda: [end for _, end in reply.frames()] == ["failed", "failed"])
        await reply.app.workers.wait_for_complete()
        assert "object" in reply.texts()[0]
        assert "token limit" in reply.texts()[1]
        assert reply.answers == {}

    drive(test)


def test_what_has_come_stays_when_the_stream_breaks() -> None:
    async def test(reply: Reply, until: Any) -> None:
        reply.send(ev.MessageStart(), ev.BlockStart(0, {"type": "text", "text": "Do"}), ev.BlockFinish(0))
        reply.send(
            ev.BlockStart(1, {"type": "text"}),
            ev.TextDelta(1, "ne"),
            rd.StreamInterrupted("the cable is out"),
        )
        await until(lambda: [end for _, end in reply.frames()] == [None, "StreamInterrupted"])
        await reply.app.workers.wait_for_complete()
        assert reply.texts() == ["Do", "ne"]
        assert [sorted(panel.classes) for panel in reply.app.query(panels.BlockPanel)] == [
            ["text"],
            ["failed", "text"],
        ]
        assert [notice.message for notice in reply.app._notifications] == ["the cable is out"]

    drive(test)


def test_q_ends_it_and_closes_the_request() -> None:
    async def main() -> None:
        reply = Reply()
        async with reply.app.run_test() as pilot:
            reply.send(ev.MessageStart(), ev.BlockStart(0, {"type": "text", "text": "Hi"}))
            while reply.frames() == []:
                await pilot.pause()
            await pilot.press("q")
            assert reply.app.return_code == 0
        assert not reply.app.is_running
        while not reply.closed:
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(main(), SECONDS))


def test_the_picture_shows_both_replies_to_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main() -> None:
        app = panels.Panels(panels.rx.concat(panels.reply("weather", 0), panels.reply("forecast", 0)))
        await asyncio.wait_for(panels.draw(app, str(tmp_path / "panels.svg")), SECONDS)

    asyncio.run(main())
    assert capsys.readouterr().out.splitlines() == [
        "reasoning ",
        "text ",
        "Looking up Lisbon completed",
        "Looking up Oslo completed",
        "text ",
    ]
    svg = (tmp_path / "panels.svg").read_text("utf-8")
    said = re.sub(r"<[^>]*>|&#160;|\s", "", svg)
    for words in ("calls don", "usually mild by now", "city", "→ 17", "10 cm of snow", "take skis instead."):
        assert words.replace(" ", "") in said
    assert "font-face" not in svg


def test_the_picture_in_the_documentation_is_there() -> None:
    assert "take" in (PATH.parents[1] / "docs" / "panels.svg").read_text("utf-8")


@pytest.mark.parametrize("markup", ["get[/bold]", "[@click=app.quit()]x[/]", "[red]x[/red]"])
def test_a_models_markup_is_text(markup: str) -> None:
    async def test(reply: Reply, until: Any) -> None:
        start = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "a", "name": f"name {markup}"})
        reply.send(ev.MessageStart(), start, ev.ToolCallDelta(0, "{}"))
        reply.send(rd.StreamInterrupted(f"error {markup}"))
        await until(lambda: "name" in reply.drawn() and "error" in reply.drawn())
        await reply.app.workers.wait_for_complete()
        assert f"name {markup}" in reply.drawn()
        assert f"error {markup}" in reply.drawn()

    drive(test)


def test_a_models_control_characters_are_symbols() -> None:
    steers, shown = "\x1b[2J\x9b2J\x07\u202e", "␛[2J\\u009b2J␇\\u202e"
    places = ("reasoning", "text", "http", "name", "argument", "error")

    async def test(reply: Reply, until: Any) -> None:
        reply.send(ev.MessageStart())
        reply.send(ev.BlockStart(0, {"type": "reasoning"}), ev.ReasoningDelta(0, f"reasoning{steers}"))
        reply.send(ev.BlockFinish(0), ev.BlockStart(1, {"type": "text"}))
        reply.send(ev.TextDelta(1, f"text{steers} <http://x/%1b[2J%E2%80%AE>"), ev.BlockFinish(1))
        reply.send(ev.BlockStart(2, {"type": "tool_call_chunk", "id": "a", "name": f"name{steers}"}))
        reply.send(ev.ToolCallDelta(2, json.dumps({f"argument{steers}": 1})))
        reply.send(ev.BlockFinish(2), rd.StreamInterrupted(f"error{steers}"))
        await until(lambda: all(place in reply.drawn() for place in places))
        drawn = reply.drawn()
        assert visible(drawn) == drawn
        for place in places:
            assert (place + shown if place != "http" else "http://x/␛[2J\\u202e") in drawn

    drive(test)
