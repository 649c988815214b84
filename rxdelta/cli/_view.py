"""Views of a snapshot: a live picture on a terminal, plain lines elsewhere."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

from rxdelta.cli._visible import visible
from rxdelta.core import Block, ContentPart, Message, Snapshot, ToolCall, thaw

__all__ = ["Lines", "View", "live_view", "picture"]


class View(Protocol):
    """Shows snapshots while they grow, then the final reply."""

    def draw(self, snapshot: Snapshot) -> None: ...

    def show(self, reply: Snapshot | Message) -> None: ...


class Lines:
    """Prints a line for each block when it has ended, then one for the message."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._printed: set[Any] = set()

    def _print(self, line: str) -> None:
        print(visible(line, lines=False), file=self._out, flush=True)

    def draw(self, snapshot: Snapshot) -> None:
        for block in snapshot.blocks:
            if not block.open and block.key not in self._printed:
                self._printed.add(block.key)
                self._print(line_of(block))

    def show(self, reply: Snapshot | Message) -> None:
        if isinstance(reply, Snapshot):
            for block in reply.blocks:
                if block.key not in self._printed:
                    self._print(f"{line_of(block)} …")
        self._print(summary(reply))


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
    parts = [reply.status, reply.finish_reason, reply.model, *tokens]
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
        body = Markdown(visible(block.text or ""))
        title, style = f"text{mark}", "white"
    else:
        body = block.text or json.dumps(thaw(block.options), ensure_ascii=False)[:500]
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


class _Live:
    def __init__(self, console: Any, live: Any) -> None:
        self._console = console
        self._live = live

    def draw(self, snapshot: Snapshot) -> None:
        self._live.update(picture(snapshot), refresh=True)

    def show(self, reply: Snapshot | Message) -> None:
        from rich.pretty import Pretty

        self._live.update(picture(reply), refresh=True)
        self._live.stop()
        self._console.print()
        self._console.print(f"[bold]{type(reply).__name__}[/bold]", Pretty(reply.to_dict()))


@contextmanager
def live_view(console: Any) -> Generator[View]:
    """A picture for a terminal, redrawn in place."""
    from rich.live import Live

    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        yield _Live(console, live)
