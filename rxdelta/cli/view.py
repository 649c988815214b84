"""Views of a snapshot: a live picture on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TextIO

from rxdelta.core import Block, ContentPart, Message, Snapshot, ToolCall, thaw, visible


class View(Protocol):
    """Shows the snapshots of a stream's messages while they grow, then the last ones."""

    def draw(self, replies: Sequence[Snapshot]) -> None: ...

    def end(self, replies: Sequence[Snapshot]) -> None: ...


class Plain:
    """The text on standard output while it grows, as a pipe or a file wants it.

    The rest goes to standard error: a line for each block of another kind when it has ended, and one for each message.
    """

    def __init__(self, out: TextIO | None, err: TextIO | None) -> None:
        self._out, self._err = out, err
        self._written: dict[int, str] = {}  # the text of each message
        self._said: set[tuple[int, Any]] = set()
        self._last = "\n"  # character of the output

    def draw(self, replies: Sequence[Snapshot]) -> None:
        for number, reply in enumerate(replies):
            has_ended = reply.status != "incomplete" and reply is not replies[-1]
            self._show(number, reply, has_ended)
            if not has_ended:  # the text of the next message comes behind the text of this one
                break

    def end(self, replies: Sequence[Snapshot]) -> None:
        for number, reply in enumerate(replies):
            self._show(number, reply, True)
            self._say(summary(reply))

    def _show(self, number: int, reply: Snapshot, has_ended: bool) -> None:
        text = ""
        for block in reply.blocks:
            if isinstance(block, ContentPart) and block.type == "text":
                text += block.text or ""
                # Half a line end waits for the other half.
                self._write(number, text if has_ended else text.rstrip("\r"))
            elif (number, block.key) not in self._said and (has_ended or not block.open):
                self._said.add((number, block.key))
                self._say(f"{line_of(block)}{' …' if block.open else ''}")
        if has_ended and text[-1:] not in ("", "\n"):
            self._write(number, f"{text}\n")

    def _write(self, number: int, text: str) -> None:
        written = self._written.get(number, "")
        if written.startswith(text):
            return
        if not text.startswith(written):
            self._say("the provider has replaced this text; it is now:")
            self._end_line()
            written = ""
        self._put(text[len(written) :])
        self._written[number] = text

    def _put(self, text: str) -> None:
        if self._out is not None:
            self._out.write(visible(text))
            self._out.flush()
            self._last = text[-1]

    def _end_line(self) -> None:
        if self._last != "\n":
            self._put("\n")

    def _say(self, line: str) -> None:
        if self._out is not None and self._out.isatty():
            self._end_line()  # both streams are likely to be on this terminal
        if self._err is not None:
            with suppress(OSError):  # the text is what counts
                print(visible(line, lines=False), file=self._err, flush=True)


def line_of(block: Block) -> str:
    """A block on one line."""
    if isinstance(block, ToolCall):
        return f"[{block.type}] {block.name}({_arguments(block, indent=None)})"
    return f"[{block.type}] {' '.join((block.text or '').split())}"


def summary(reply: Snapshot | Message) -> str:
    """A reply's end on one line."""
    usage = reply.usage
    counts = (usage.input_tokens, usage.output_tokens) if usage else (None, None)
    tokens = [
        f"{count:,} {name} tokens" for count, name in zip(counts, ("input", "output")) if count is not None
    ]
    run = f"run {reply.run_id}" if reply.run_id else None
    parts = [reply.status, reply.finish_reason, reply.model, *tokens, run]
    return " · ".join(part for part in parts if part)


def _arguments(call: ToolCall, indent: int | None) -> str:
    so_far = call.arguments if call.type == "invalid_tool_call" else call.arguments_so_far
    if so_far is None:
        return ""
    return so_far if isinstance(so_far, str) else json.dumps(thaw(so_far), ensure_ascii=False, indent=indent)


def picture(reply: Snapshot | Message) -> Any:
    """The reply as a rich renderable: a panel for each block, and a line with the status."""
    from rich.console import Group
    from rich.text import Text

    panels = [_panel(block) for block in reply.blocks if not _is_empty(block)]
    style = {"complete": "green", "incomplete": "yellow"}.get(reply.status, "red")
    return _Visible(Group(*panels, Text(visible(summary(reply), lines=False), style=style)))


def _is_empty(block: Block) -> bool:
    return isinstance(block, ContentPart) and not block.text and not block.options and not block.open


def _panel(block: Block) -> Any:
    from rich.markdown import Markdown
    from rich.panel import Panel
    from rich.syntax import Syntax
    from rich.text import Text

    mark = " …" if block.open else ""
    if isinstance(block, ToolCall):
        invalid = block.type == "invalid_tool_call"
        arguments = visible(_arguments(block, indent=2))
        body: Any = Syntax(arguments or " ", "json", background_color="default", word_wrap=True)
        title, style = f"{block.type} {block.name or ''}{mark}", "red" if invalid else "cyan"
    elif block.type == "text":
        # An address stands behind its link: a link of the terminal's would hide where it leads to.
        body = Markdown(visible(block.text or ""), hyperlinks=False)
        title, style = f"text{mark}", "white"
    else:
        options = json.dumps(thaw(block.options), ensure_ascii=False)[:500] if block.options else ""
        body = block.text or options
        body = Text(visible(body), style="dim italic")
        title, style = f"{block.type}{mark}", "bright_black"
    # A Text, because rich parses markup in strings.
    return Panel(body, title=Text(visible(title, lines=False)), title_align="left", border_style=style)


class _Visible:
    """A renderable whose output is cleaned by `visible` again: Markdown decodes `%1b` in addresses."""

    def __init__(self, drawn: Any) -> None:
        self._drawn = drawn

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.segment import Segment

        for text, style, control in console.render(self._drawn, options):
            yield Segment(text if control else visible(text), style, control)


class _Tail:
    """The last lines of a renderable, as many as the screen has: what has scrolled off can't be drawn anew."""

    def __init__(self, drawn: Any) -> None:
        self._drawn = drawn

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.segment import Segment

        lines = console.render_lines(self._drawn, options, pad=False)[-options.size.height :]
        for number, line in enumerate(lines):
            yield from ([Segment.line()] if number else [])
            yield from line


class _Live:
    def __init__(self, live: Any) -> None:
        self._live = live

    def draw(self, replies: Sequence[Snapshot]) -> None:
        self._live.update(_Tail(_pictures(replies)), refresh=True)

    def end(self, replies: Sequence[Snapshot]) -> None:
        self._live.update(_pictures(replies))  # whole, because `live` draws once more when it ends


def _pictures(replies: Sequence[Snapshot]) -> Any:
    from rich.console import Group

    return Group(*(picture(reply) for reply in replies))


@contextmanager
def live_view(console: Any) -> Generator[View]:
    """A picture for a terminal, redrawn in place."""
    from rich.live import Live

    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        yield _Live(live)
