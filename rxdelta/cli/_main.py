"""`rxdelta demo` and `rxdelta replay`: a recorded stream, drawn while it grows."""

from __future__ import annotations

import argparse
import asyncio
import errno
import json
import os
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import IO, Any

from rxdelta.aio import for_each, from_async_iterable
from rxdelta.cli._recording import chunks_of, paced
from rxdelta.cli._view import Lines, View, live_view
from rxdelta.cli._visible import visible
from rxdelta.core import (
    IncompleteMessageError,
    InvalidToolCallError,
    LimitExceededError,
    MalformedChunkError,
    Message,
    RxDeltaError,
    Snapshot,
    UnknownWireFormatError,
)
from rxdelta.operators import decode, scan_deltas, throttle_latest, until_stopped
from rxdelta.providers import FORMATS
from rxdelta.testing import SAMPLES, open_sample

__all__ = ["main"]

FRAME = 1 / 20

COMPLETE, UNUSABLE, INCOMPLETE = 0, 2, 3
STOPPED = 128  # and the number of the signal
_SIGPIPE = 13  # has no name on Windows
_UNREADABLE = (MalformedChunkError, UnknownWireFormatError, LimitExceededError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        0 for a message that is complete or cut by length, 3 for an incomplete one, 2 for input that is no known stream;
        130 after Ctrl-C and 143 after SIGTERM, with the reply so far; 141 if the reader of the output has gone.
    """
    options = _parser().parse_args(arguments)
    stdout: Any = sys.stdout
    if hasattr(stdout, "reconfigure"):
        # The encoding of standard output may lack characters of the reply.
        stdout.reconfigure(errors="backslashreplace")
    try:
        with _open(options) as file:
            code = asyncio.run(_replay(file, options))
        print(end="", flush=True)
        return code
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())  # the exit flushes the buffer once more
        return STOPPED + _SIGPIPE
    except OSError as error:
        _print_error(f"cannot read {options.file}: {error.strerror or error}")
        return UNUSABLE
    except KeyboardInterrupt:
        _print_error("stopped")
        return STOPPED + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rxdelta", description="Watch a model's streamed reply grow into snapshots and end as a message."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="replay a bundled sample")
    demo.add_argument(
        "sample",
        nargs="?",
        choices=SAMPLES,
        default="weather",
        help="weather (Anthropic: reasoning, text, two tool calls), forecast (its answer), "
        "tides (OpenAI chat, as SSE), overloaded (ends in an error)",
    )
    replay = commands.add_parser("replay", help="replay a recording, or a live stream from a pipe")
    replay.add_argument(
        "file", metavar="FILE", help="a JSONL file of chunks or an SSE capture; - is standard input"
    )
    for command in (demo, replay):
        command.add_argument(
            "--format",
            default="auto",
            choices=("auto", *FORMATS),
            help="the wire format (default: by the first chunk)",
        )
        command.add_argument(
            "--speed",
            type=_speed,
            metavar="X",
            help="how fast; 0 doesn't wait (default: 1 on a terminal, 0 elsewhere)",
        )
        command.add_argument(
            "--json",
            action="store_true",
            help="print one JSON object, the message (or snapshot), and nothing else",
        )
    return parser


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 <= speed < float("inf"):
        raise argparse.ArgumentTypeError("must be 0 or more")
    return speed


def _open(options: argparse.Namespace) -> AbstractContextManager[IO[bytes]]:
    if options.command == "demo":
        options.file = SAMPLES[options.sample]
        return open_sample(options.sample)
    if options.file != "-":
        return open(options.file, "rb")
    stdin: Any = sys.stdin
    if stdin is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return nullcontext(stdin.buffer)


async def _replay(file: IO[bytes], options: argparse.Namespace) -> int:
    chunks = chunks_of(file)
    console = None if options.json else _console()
    speed = options.speed if options.speed is not None else 1.0 if console is not None else 0.0
    view: AbstractContextManager[View | None] = nullcontext(None)
    if not options.json:
        view = nullcontext(Lines(sys.stdout)) if console is None else live_view(console)
    with _stopped_by_signals() as stop, view as shown:
        reply, failure = _ending(*await _fold(options.format, paced(chunks, speed), stop, shown))
        if reply is None and not stop.is_set():
            _print_error(f"{options.file} is not a known stream: {failure}")
            return UNUSABLE
        if reply is not None and shown is not None:
            shown.show(reply)
    if options.json and reply is not None:
        output = reply.to_dict()
        if failure is not None:
            output["error"] = {"type": type(failure).__name__, "message": str(failure)}
        print(json.dumps(output, allow_nan=False))  # ASCII, because it is the same in every encoding
    if stop.is_set():
        _print_error("stopped")
        return STOPPED + stop.signal
    if failure is not None:
        _print_error(f"{type(failure).__name__}: {failure}")
    return COMPLETE if reply is not None and reply.status in ("complete", "length") else INCOMPLETE


class _Stop(asyncio.Event):
    signal = 0


@contextmanager
def _stopped_by_signals() -> Generator[_Stop]:
    """An event for Ctrl-C and SIGTERM. A second signal of the same kind has its usual effect."""
    loop, stop = asyncio.get_running_loop(), _Stop()

    def on_signal(number: int, _frame: object) -> None:
        signal.signal(number, before[number])
        stop.signal = number
        loop.call_soon_threadsafe(stop.set)

    before: dict[int, Any] = {}
    with suppress(ValueError):  # only the main thread gets signals
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.getsignal(number)
            if before[number] is not signal.SIG_IGN:  # a background job ignores it
                signal.signal(number, on_signal)
    try:
        yield stop
    finally:
        for listened, handler in before.items():
            signal.signal(listened, handler)


async def _fold(
    wire_format: str, chunks: Any, stop: asyncio.Event, view: View | None
) -> tuple[Snapshot | None, RxDeltaError | None]:
    """Draw the snapshots. Return the last one, and the error that ended the stream, if any."""
    latest: Snapshot | None = None

    def keep(snapshot: Snapshot) -> None:
        nonlocal latest
        latest = snapshot
        if view is not None:
            view.draw(snapshot)

    snapshots = from_async_iterable(chunks).pipe(
        decode(wire_format), until_stopped(stop), scan_deltas(), throttle_latest(FRAME)
    )
    try:
        await for_each(snapshots, keep, overflow="latest")
    except RxDeltaError as error:
        if not isinstance(error, _UNREADABLE) or latest is not None:
            latest = error.snapshot
        return latest, error
    return latest, None


def _ending(
    snapshot: Snapshot | None, error: RxDeltaError | None
) -> tuple[Message | Snapshot | None, RxDeltaError | None]:
    """Return the message; or the snapshot, and why it is no message; or only the error."""
    if snapshot is None:
        return None, error or MalformedChunkError("it holds nothing of a message")
    try:
        return snapshot.to_message(), error
    except (IncompleteMessageError, InvalidToolCallError) as unfinished:
        return snapshot, error or unfinished


def _console() -> Any:
    """A console to draw on, if standard output is a terminal and rich is installed."""
    stdout: Any = sys.stdout
    if stdout is None or not stdout.isatty():  # `None` if the parent process has closed it
        return None
    try:
        from rich.console import Console
    except ImportError:
        _print_error("for the live view: pip install 'rxdelta[cli]'")
        return None
    return Console()


def _print_error(message: str) -> None:
    print(visible(f"rxdelta: {message}", lines=False), file=sys.stderr)
