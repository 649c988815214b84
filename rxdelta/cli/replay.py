"""`rxdelta replay`: a recorded stream, drawn while it grows."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext
from typing import IO, Any

from rxdelta.cli.files import at_their_times, error_text, opened, read_on_a_thread, unwrapped
from rxdelta.cli.options import FILE_HELP, Parser, add_format, add_speed
from rxdelta.cli.output import COMPLETE, INCOMPLETE, StoppedError, print_error
from rxdelta.cli.replies import fold_replies, stopped_by_signals
from rxdelta.cli.view import Plain, View, live_view
from rxdelta.recording import read_lines


def add_arguments(command: Parser) -> None:
    """Add the arguments of `rxdelta replay`."""
    command.add_argument("file", metavar="FILE", help=FILE_HELP)
    add_view(command)


def add_view(command: Parser) -> None:
    """Add the options of whatever draws a reply."""
    add_format(command)
    add_speed(command, "1 on a terminal, 0 elsewhere")
    command.add_argument(
        "--json",
        action="store_true",
        help="print the message (or snapshot) as one line of JSON, and nothing else",
    )


def run(options: Namespace) -> int:
    """Replay a file."""
    with opened(options.file) as file:
        return replay(file, options.file, options)


def replay(file: IO[bytes], name: str, options: Namespace) -> int:
    """Draw the replies of an open file, as the options say. Return the exit code."""
    return asyncio.run(_replay(file, name, options))


async def _replay(file: IO[bytes], name: str, options: Namespace) -> int:
    stdout: Any = sys.stdout
    is_terminal = stdout is not None and stdout.isatty()  # `None` if the parent process has closed it
    console = _console() if is_terminal and not options.json else None
    view: AbstractContextManager[View | None] = nullcontext(None)
    if not options.json:
        view = nullcontext(Plain(stdout, sys.stderr)) if console is None else live_view(console)
    speed = options.speed if options.speed is not None else float(is_terminal and not options.json)
    chunks = at_their_times(read_on_a_thread(unwrapped(read_lines(file))), speed)
    with stopped_by_signals() as stop, view as shown:
        replies = await fold_replies(options.format, chunks, stop, shown)
        if not stop.is_set():
            replies.refuse_nothing(name, options.format)
        if shown is not None:
            shown.end(replies.snapshots)
    endings = replies.endings()
    for reply, fault in endings if options.json else ():
        output = reply.to_dict()
        if fault is not None:
            output["error"] = {"type": type(fault).__name__, "message": str(fault)}
        print(json.dumps(output, allow_nan=False))  # ASCII, because it is the same in every encoding
    if stop.is_set():
        raise StoppedError(stop.signal)
    for said in dict.fromkeys(error_text(error) for _, error in endings if error is not None):
        print_error(said)
    if console is not None and options.command == "demo":
        console.print("[dim]--json prints the message; rxdelta replay FILE draws a recording of yours[/dim]")
    return COMPLETE if all(reply.status in ("complete", "length") for reply, _ in endings) else INCOMPLETE


def _console() -> Any:
    """A console to draw on, if rich is installed and the terminal can show a picture."""
    try:
        from rich.console import Console
    except ImportError:
        print_error("for the live view: pip install 'rxdelta[cli]'")
        return None
    console = Console()
    return None if console.is_dumb_terminal or console.options.ascii_only else console
