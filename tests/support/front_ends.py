"""Recorded replies that end in every place and in every way, for the front ends' own clients, and what these must show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeAlias

import attrs

import rxdelta as rd
from support.shared import RECORDED, recordings

__all__ = [
    "ENDINGS",
    "LEAK",
    "Ending",
    "Frame",
    "Reply",
    "endings",
    "in_javascript",
    "read_by_lines",
    "recorded_replies",
    "sse",
]

ev = rd.events
Json: TypeAlias = dict[str, Any]
Frame: TypeAlias = Any
LEAK = "hunter2"
"""What only the server may know: the text of each error."""


class Encoder(Protocol):
    def encode(self, event: rd.Event) -> Sequence[Frame]: ...
    def fail(self, error: Exception) -> Sequence[Frame]: ...
    def close(self) -> Sequence[Frame]: ...


def _then(event: rd.Event) -> Callable[[Encoder], list[Frame]]:
    return lambda encoder: [*encoder.encode(event), *encoder.close()]


ENDINGS: Mapping[str, Callable[[Encoder], list[Frame]]] = {
    "completes": lambda encoder: [*encoder.close()],
    "source error": lambda encoder: [*encoder.fail(ConnectionError(LEAK))],
    "provider error": _then(ev.StreamError(LEAK, "overloaded")),
    "stop": _then(ev.MessageInterrupted("user")),
    "stall": lambda encoder: [*encoder.fail(rd.errors.StallTimeoutError(LEAK, limit="idle", seconds=1.0))],
}
"""How a stream may end, each with the frames that an encoder then writes."""


@attrs.frozen(eq=False)
class Reply:
    """A recorded reply: the first choice of it, up to an error."""

    name: str
    wire_format: str
    chunks: Sequence[Any]
    events: Sequence[rd.Event]

    def folded(self, count: int, *, cut: bool = True) -> rd.Snapshot:
        """What the first so many events say, if nothing follows."""
        fold = rd.Fold(choice=0)
        for event in self.events[:count]:
            fold.step(event)
        if cut:  # so that half a call is known to be one
            fold.step(ev.MessageInterrupted())
        return fold.snapshot


@cache
def recorded_replies() -> tuple[Reply, ...]:
    return tuple(
        Reply(
            f"{wire_format}/{case.id}",
            wire_format,
            case.values[0],
            tuple(_events(wire_format, case.values[0])),
        )
        for wire_format in RECORDED
        for case in recordings(wire_format)
        if not case.marks
    )


def _events(wire_format: str, chunks: Sequence[Any]) -> Iterator[rd.Event]:
    decoder = rd.providers.decoder(wire_format)
    for event in (*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()):
        if isinstance(event, ev.StreamError):
            return
        if getattr(event, "choice", 0) in (0, None):
            yield event


@attrs.frozen(eq=False)
class Ending:
    """One way in which a reply ends.

    Attributes:
        count: So many of its events came.
        how: One of `ENDINGS`.
        snapshot: What these events say.
        finished: Whether the model had finished.
    """

    count: int
    how: str
    snapshot: rd.Snapshot
    finished: bool


LONG = 400
_DELTAS = ev.TextDelta, ev.ReasoningDelta, ev.ToolCallDelta, ev.DataDelta


def endings(reply: Reply) -> Iterator[Ending]:
    """The reply cut behind each of its events: in all ways, or in turn where it is one more delta between two others.

    Of such a delta of a very long reply it is cut behind every eighth, because a cut costs as much as all before it.
    """
    fold, finished = rd.Fold(choice=0), False
    for count in range(len(reply.events) + 1):
        if count:
            event = reply.events[count - 1]
            fold.step(event)
            finished = finished or isinstance(event, (ev.MessageFinish, ev.MessageInterrupted))
        around = reply.events[max(0, count - 2) : count + 1]
        in_the_middle = len(around) == 3 and all(isinstance(event, _DELTAS) for event in around)
        if in_the_middle and count > LONG and count % 8:
            continue
        snapshot = rd.Fold(fold.snapshot).step(ev.MessageInterrupted()) if not finished else fold.snapshot
        for how in [[*ENDINGS][count % len(ENDINGS)]] if in_the_middle else ENDINGS:
            yield Ending(count, how, snapshot, finished)


def read_by_lines(reply: Reply, ends: Sequence[Ending], new: Callable[[], Encoder]) -> Json:
    """The line that asks a client's script about these ends."""
    counts: list[int] = [0]
    frames: list[str] = []
    encoder = new()
    for event in reply.events:
        frames += map(sse, encoder.encode(event))
        counts.append(len(frames))
    asked: list[Any] = []
    for end in ends:
        encoder = new()
        for event in reply.events[: end.count]:
            encoder.encode(event)
        asked.append([counts[end.count], "".join(map(sse, ENDINGS[end.how](encoder)))])
    return {"frames": frames, "ends": asked}


def sse(frame: Frame) -> str:
    return rd.wire.sse_frame(frame).decode()


def in_javascript(value: Any) -> Any:
    """JavaScript has one kind of number, and no negative zero."""
    return json.loads(json.dumps(value), parse_int=float)
