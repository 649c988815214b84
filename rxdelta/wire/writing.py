"""A reply as a provider would stream it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

from rxdelta.core import Event, InvalidValueError, StreamInterrupted
from rxdelta.formats import registry
from rxdelta.formats.carrying import read_carried
from rxdelta.formats.encoding import Encoder, Masked, masked
from rxdelta.formats.format import Format, WireFormat
from rxdelta.framing import DONE


def write(
    events: Iterable[Event], wire_format: WireFormat | str, *, on_error: Masked = masked
) -> list[dict[str, Any]]:
    """The chunks of a reply, as a provider that speaks this format would stream them.

    The chunks are JSON objects, such as `rd.decode(wire_format)` reads. It gets the same reply of them, but for the
    details that the format loses; docs/reference/written-formats.md has the table. The same events always become the same chunks.

    A reply without its end becomes a stream without its end, as of a connection that broke. A `StreamError` becomes the
    provider's own error.

    Args:
        events: The events of one reply, such as those of `rd.to_events(message)`.
        wire_format: The format, one of `rd.providers.FORMATS`.
        on_error: Makes the text of an error. By default the error's own message is replaced by a fixed sentence.

    Raises:
        InvalidValueError: The format can't carry what the reply has, or has no writer. Nothing is written then.
        UnknownWireFormatError: There is no such format; the error lists those there are.
        LimitExceededError: A block is too long, or there are too many blocks, choices or runs.

    Example:
        >>> import rxdelta as rd
        >>> message = rd.Message.of("assistant", "Hi")
        >>> for chunk in rd.wire.write(rd.to_events(message), "bedrock-converse"):
        ...     print(chunk)
        {'messageStart': {'role': 'assistant'}}
        {'contentBlockDelta': {'contentBlockIndex': 0, 'delta': {'text': 'Hi'}}}
        {'contentBlockStop': {'contentBlockIndex': 0}}
        {'messageStop': {'stopReason': 'end_turn'}}
    """
    return [chunk for chunks in write_each([*events], wire_format, on_error=on_error) for chunk in chunks]


def write_each(
    events: Sequence[Event], wire_format: WireFormat | str, *, on_error: Masked = masked
) -> list[list[dict[str, Any]]]:
    """The chunks of each event of a reply, as by `write`; the last event has those of the end, too."""
    known, make = _written(wire_format)
    ended = read_carried(events, known)
    taken_back: list[Exception] = []

    def shown(error: Exception) -> str:
        if isinstance(error, StreamInterrupted):
            taken_back.append(error)
        return on_error(error)

    writer = make(shown)
    frames = [[*writer.encode(event)] for event in events]
    if ended:
        frames[-1] += writer.close()
    if taken_back:
        wrong = f"must be a reply that a stream of {known.name} can carry: {taken_back[0]}"
        raise InvalidValueError.of([("events", events, wrong)])
    return [[_chunk(frame) for frame in some if frame is not DONE] for some in frames]


def carried_by(wire_format: WireFormat | str) -> Set[str]:
    """What a stream of this format can carry, in the words of the table in docs/reference/written-formats.md.

    Raises:
        InvalidValueError: The format has no writer.
        UnknownWireFormatError: There is no such format.
    """
    return _written(wire_format)[0].carries


def _written(wire_format: Any) -> tuple[Format, Callable[[Masked], Encoder[Any]]]:
    """The format, and what makes its writer."""
    if not isinstance(wire_format, str):
        raise InvalidValueError.of([("wire_format", wire_format, "must be the name of a format")])
    known = registry.get(wire_format)
    if known.writer is None:
        raise InvalidValueError.of([("wire_format", wire_format, "must be a format that has a writer")])
    return known, known.writer


def _chunk(frame: Any) -> dict[str, Any]:
    if isinstance(frame, dict):
        return dict(frame)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    chunk: dict[str, Any] = frame.model_dump(mode="json", by_alias=True, exclude_none=True)
    return chunk
