"""The replies in a stream: each folded while it comes, and how it ended."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

import attrs
from reactivex import Observable
from reactivex import operators as ops

from rxdelta.aio import for_each, from_async_iterable
from rxdelta.cli._endings import StoppedError, UnusableError, signals_handled
from rxdelta.cli._files import at_their_times, opened, read_on_a_thread, unwrapped
from rxdelta.cli._view import View
from rxdelta.core import (
    Event,
    IncompleteMessageError,
    InvalidToolCallError,
    InvalidValueError,
    LimitExceededError,
    MalformedChunkError,
    Message,
    RxDeltaError,
    Snapshot,
    UnknownWireFormatError,
)
from rxdelta.operators import (
    MessageStream,
    decode,
    group_by_message,
    scan_deltas,
    throttle_latest,
    until_stopped,
)
from rxdelta.recording import Line, read_lines

__all__ = [
    "Replies",
    "Stop",
    "fold_replies",
    "no_stream",
    "read_replies",
    "replies_of",
    "stopped_by_signals",
]

FRAME = 1 / 20
_NO_STREAM = (
    MalformedChunkError,
    UnknownWireFormatError,
    LimitExceededError,
    InvalidValueError,
    InvalidToolCallError,
)
_HINTS = {
    "line 1 should hold a field of an event stream, found '<": "it is a web page, as a gateway sends one that has failed",
    "line 1 should hold a field of an event stream, found 'HTTP/": "it begins with the headers of the answer, which curl leaves out without -i",
}
"""What a file is of which the parser says this."""


class Stop(asyncio.Event):
    signal = 0


@contextmanager
def stopped_by_signals() -> Generator[Stop]:
    """An event for Ctrl-C and SIGTERM. A second signal of the same kind has its usual effect."""
    loop, stop = asyncio.get_running_loop(), Stop()

    def on_signal(number: int, usual: Any) -> None:
        signal.signal(number, usual)
        stop.signal = number
        loop.call_soon_threadsafe(stop.set)

    with signals_handled(on_signal):
        yield stop


@attrs.frozen
class Replies:
    """What a stream was folded to.

    Attributes:
        snapshots: The last one of each reply.
        failure: The error that ended the stream, if any.
    """

    snapshots: list[Snapshot]
    failure: RxDeltaError | None

    def refuse_nothing(self, file: str, wire_format: str) -> None:
        """Check that something of a reply was read.

        Raises:
            UnusableError: Nothing was.
        """
        is_empty = not any(snapshot.blocks for snapshot in self.snapshots)
        if not self.snapshots or (is_empty and isinstance(self.failure, _NO_STREAM)):
            raise no_stream(file, wire_format, self.failure)

    def endings(self) -> list[tuple[Message | Snapshot, RxDeltaError | None]]:
        """The message of each reply; of an incomplete one the snapshot, and why there is no message."""
        found = [_ending(snapshot) for snapshot in self.snapshots]
        if self.failure is not None and found:
            found[-1] = found[-1][0], self.failure
        return found


def no_stream(file: str, wire_format: str, failure: BaseException | None) -> UnusableError:
    """The error of a file of which nothing was read.

    Args:
        file: What the error calls it.
        wire_format: The format in which it was read, or `auto`.
        failure: What the reading raised.
    """
    reason = str(failure or "it holds nothing of a message")
    kind = "known stream" if wire_format == "auto" else f"stream of {wire_format}"
    # An error of `decode` tells a program which argument fits; here that is an option.
    reason = re.sub(r"decode\('([^']+)'\)", r"--format \1", reason)
    hints = [f"; {hint}" for found, hint in _HINTS.items() if found in reason]
    return UnusableError(f"{file} is no {kind}: {reason}{''.join(hints)}")


def read_replies(file: str, wire_format: str) -> Replies:
    """The replies of a file, or of standard input for `-`.

    Raises:
        UnusableError: It can't be read, or holds nothing of a reply.
    """
    with opened(file) as found:
        return replies_of(read_lines(found), file, wire_format)


def replies_of(lines: Iterable[Line], file: str, wire_format: str) -> Replies:
    """The replies in the lines of a file.

    Args:
        lines: The lines.
        file: What errors call the file.
        wire_format: The format of chunks, or `auto`.

    Raises:
        UnusableError: They can't be read, or hold nothing of a reply.
    """

    async def fold() -> Replies:
        with stopped_by_signals() as stop:
            chunks = at_their_times(read_on_a_thread(unwrapped(lines)), 0)
            replies = await fold_replies(wire_format, chunks, stop, None)
            if stop.is_set():
                raise StoppedError(stop.signal)
            return replies

    replies = asyncio.run(fold())
    replies.refuse_nothing(file, wire_format)
    return replies


async def fold_replies(
    wire_format: str, chunks: AsyncIterator[Any], stop: asyncio.Event, view: View | None
) -> Replies:
    """Fold a stream of chunks or events, and draw it meanwhile."""
    latest: dict[int, Snapshot] = {}

    def fold(message: MessageStream, number: int) -> Observable[Snapshot]:
        def keep(snapshot: Snapshot) -> None:
            latest[number] = snapshot

        return message.pipe(scan_deltas(), ops.do_action(keep))

    def draw(_: object) -> None:
        if view is not None:
            view.draw([*latest.values()])

    events = from_async_iterable(chunks).pipe(_decode(wire_format), until_stopped(stop))
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
    return Replies([*latest.values()], error)


def _decode(wire_format: str) -> Callable[[Observable[Any]], Observable[Event]]:
    """Events pass, whatever the format of chunks would be."""
    return decode("auto") if wire_format == "auto" else decode("auto", only=wire_format)


def _ending(snapshot: Snapshot) -> tuple[Message | Snapshot, RxDeltaError | None]:
    try:
        return snapshot.to_message(), None
    except (IncompleteMessageError, InvalidToolCallError) as unfinished:
        return snapshot, unfinished
