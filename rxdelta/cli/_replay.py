"""`rxdelta demo` and `rxdelta replay`: a recorded stream, drawn while it grows."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import signal
import sys
from argparse import Namespace
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import IO, Any

from reactivex import Observable
from reactivex import operators as ops

from rxdelta.aio import for_each, from_async_iterable
from rxdelta.cli._recording import UnreadableError, chunks_of, paced
from rxdelta.cli._view import Plain, View, live_view
from rxdelta.core import (
    IncompleteMessageError,
    InvalidToolCallError,
    LimitExceededError,
    MalformedChunkError,
    Message,
    RxDeltaError,
    Snapshot,
    UnknownWireFormatError,
    visible,
)
from rxdelta.operators import (
    MessageStream,
    decode,
    group_by_message,
    scan_deltas,
    throttle_latest,
    until_stopped,
)
from rxdelta.testing import SAMPLES, open_sample

__all__ = ["run"]

FRAME = 1 / 20

COMPLETE, UNWRITABLE, UNUSABLE, INCOMPLETE = 0, 1, 2, 3
STOPPED = 128  # and the number of the signal
_SIGPIPE = 13  # has no name on Windows
_NO_STREAM = (MalformedChunkError, UnknownWireFormatError, LimitExceededError)


def run(options: Namespace) -> int:
    """Replay what the arguments name. Return the exit code, see `main`."""
    try:
        with _open(options) as file:
            code = asyncio.run(_replay(file, options))
        print(end="", flush=True)
        return code
    except UnreadableError as error:
        _print_error(f"cannot read {options.file}: {error}")
        return UNUSABLE
    except OSError as error:
        # The exit flushes the buffer once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader has closed the pipe, as `head` does
            return STOPPED + _SIGPIPE
        _print_error(f"cannot write the output: {error.strerror or error}")
        return UNWRITABLE
    except KeyboardInterrupt:
        _print_error("stopped")
        return STOPPED + signal.SIGINT


def _open(options: Namespace) -> AbstractContextManager[IO[bytes]]:
    if options.command == "demo":
        options.file = SAMPLES[options.sample]
        return open_sample(options.sample)
    try:
        if options.file != "-":
            return open(options.file, "rb")
        stdin: Any = sys.stdin
        if stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    except OSError as error:
        raise UnreadableError(error.strerror) from error
    return nullcontext(stdin.buffer)


async def _replay(file: IO[bytes], options: Namespace) -> int:
    chunks = chunks_of(file)
    stdout: Any = sys.stdout
    is_terminal = stdout is not None and stdout.isatty()  # `None` if the parent process has closed it
    console = _console() if is_terminal and not options.json else None
    view: AbstractContextManager[View | None] = nullcontext(None)
    if not options.json:
        view = nullcontext(Plain(stdout, sys.stderr)) if console is None else live_view(console)
    speed = options.speed if options.speed is not None else float(is_terminal and not options.json)
    with _stopped_by_signals() as stop, view as shown:
        snapshots, failure = await _fold(options.format, paced(chunks, speed), stop, shown)
        is_empty = not any(snapshot.blocks for snapshot in snapshots)
        if (not snapshots or (is_empty and isinstance(failure, _NO_STREAM))) and not stop.is_set():
            reason = str(failure or "it holds nothing of a message")
            kind = "known stream" if options.format == "auto" else f"stream of {options.format}"
            # An error of `decode` tells a program which argument fits; here that is an option.
            reason = re.sub(r"decode\('([^']+)'\)", r"--format \1", reason)
            _print_error(f"{options.file} is no {kind}: {reason}")
            return UNUSABLE
        endings = [_ending(snapshot) for snapshot in snapshots]
        if failure is not None and endings:
            endings[-1] = endings[-1][0], failure
        if shown is not None:
            shown.end(snapshots)
    for reply, fault in endings if options.json else ():
        output = reply.to_dict()
        if fault is not None:
            output["error"] = {"type": type(fault).__name__, "message": str(fault)}
        print(json.dumps(output, allow_nan=False))  # ASCII, because it is the same in every encoding
    if stop.is_set():
        _print_error("stopped")
        return STOPPED + stop.signal
    for said in dict.fromkeys(
        f"{type(error).__name__}: {error}" for _, error in endings if error is not None
    ):
        _print_error(said)
    if console is not None and options.command == "demo":
        console.print("[dim]--json prints the message; rxdelta replay FILE draws a recording of yours[/dim]")
    return COMPLETE if all(reply.status in ("complete", "length") for reply, _ in endings) else INCOMPLETE


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
) -> tuple[list[Snapshot], RxDeltaError | None]:
    """Draw the snapshots of each message. Return the last ones, and the error that ended the stream, if any."""
    latest: dict[int, Snapshot] = {}

    def fold(message: MessageStream, number: int) -> Observable[Snapshot]:
        def keep(snapshot: Snapshot) -> None:
            latest[number] = snapshot

        return message.pipe(scan_deltas(), ops.do_action(keep))

    def draw(_: object) -> None:
        if view is not None:
            view.draw([*latest.values()])

    events = from_async_iterable(chunks).pipe(decode(wire_format), until_stopped(stop))
    snapshots = events.pipe(
        group_by_message(), ops.map_indexed(fold), ops.merge_all(), throttle_latest(FRAME)
    )
    error: RxDeltaError | None = None
    try:
        await for_each(snapshots, draw, overflow="latest")
    except RxDeltaError as failure:
        error = failure
        if not latest and not isinstance(error, _NO_STREAM):
            latest[0] = error.snapshot or Snapshot()
    return [*latest.values()], error


def _ending(snapshot: Snapshot) -> tuple[Message | Snapshot, RxDeltaError | None]:
    """Return the message; or the snapshot, and why it is no message."""
    try:
        return snapshot.to_message(), None
    except (IncompleteMessageError, InvalidToolCallError) as unfinished:
        return snapshot, unfinished


def _console() -> Any:
    """A console to draw on, if rich is installed and the terminal can show a picture."""
    try:
        from rich.console import Console
    except ImportError:
        _print_error("for the live view: pip install 'rxdelta[cli]'")
        return None
    console = Console()
    return None if console.is_dumb_terminal or console.options.ascii_only else console


def _print_error(message: str) -> None:
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
        with suppress(OSError):  # no other stream could report it
            print(visible(f"rxdelta: {message}", lines=False), file=sys.stderr)
