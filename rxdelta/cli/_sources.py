"""Files as the replies of a fake provider, whatever they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from rxdelta.cli._endings import UnusableError
from rxdelta.cli._files import is_stored, opened
from rxdelta.cli._replies import replies_of
from rxdelta.core import Event, Message, RxDeltaError, Snapshot, StreamInterrupted, to_events
from rxdelta.core.events import MessageFinish, MessageStart
from rxdelta.recording import Line, read_lines
from rxdelta.testing import FakeProvider, open_sample, provider_of_lines

__all__ = ["provider_of"]


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
