"""The replies in a stream or file: each folded while it comes, with its end; and as replies of a fake provider."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
from reactivex import Observable, operators as ops

from rxdelta.aio import for_each, from_async_iterable
from rxdelta.cli.files import at_their_times, is_stored, opened, read_on_a_thread, unwrapped
from rxdelta.cli.output import StoppedError, UnusableError, signals_handled
from rxdelta.cli.view import View
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
    StreamInterrupted,
    UnknownWireFormatError,
    to_events,
)
from rxdelta.core.events import MessageFinish, MessageStart
from rxdelta.operators import (
    MessageStream,
    decode,
    group_by_message,
    scan_deltas,
    throttle_latest,
    until_stopped,
)
from rxdelta.recording import Line, read_lines
from rxdelta.testing import FakeProvider, open_sample, provider_of_lines

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
        file: The file's name in errors.
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


def provider_of(
    files: Iterable[str], samples: Iterable[str] = (), *, speed: float = 1.0, repeat: bool = False
) -> FakeProvider:
    """A fake provider that gives the replies of these files and samples. All are read at once.

    A stored message comes word by word. Each message of a file that holds several is a reply of its own.

    Raises:
        UnusableError: A file can't be read, or holds nothing of a reply.
    """
    recordings = [lines for file in files for lines in _recordings(file)]
    for sample in samples:
        with open_sample(sample) as recorded:
            recordings.append([*read_lines(recorded)])
    return provider_of_lines(recordings, speed=speed, repeat=repeat)


def _recordings(file: str) -> list[Sequence[Line]]:
    """What the file holds, as the lines of recordings: mostly its own.

    Raises:
        UnusableError: It can't be read, or holds nothing of a reply.
    """
    lines: list[Line] = []
    failure: RxDeltaError | None = None
    with opened(file) as source:
        try:
            lines.extend(read_lines(source))
        except RxDeltaError as error:
            failure = error
            lines.append(Line(0.0, "error", error))
    replies = replies_of(iter(lines), file, "auto")
    if failure is not None:
        raise UnusableError(f"{file} can't be read to its end: {failure}") from failure
    if not any(is_stored(line.value) for line in lines):
        return [lines]
    return [_lines(reply) for reply, _ in replies.endings()]


def _lines(reply: Message | Snapshot) -> Sequence[Line]:
    """A stored reply as the lines of a recording without times. An incomplete reply ends with an error."""
    events = _by_words(reply) if isinstance(reply, Message) else to_events(reply)
    end = Line(0.0, "end")
    if reply.status == "incomplete":
        end = Line(0.0, "error", StreamInterrupted("the stored reply is incomplete"))
    return [*(Line(0.0, "value", event) for event in events), end]


def _by_words(message: Message) -> Iterator[Event]:
    """The message's events, its text word by word, without what a fake provider adds."""
    for event in FakeProvider(message).events():
        if isinstance(event, MessageStart):
            yield attrs.evolve(event, id=message.id, model=message.model)
        elif isinstance(event, MessageFinish):
            yield attrs.evolve(event, usage=message.usage)
        else:
            yield event
