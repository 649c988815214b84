"""A reply as a provider would stream it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rxdelta.core import Event, InvalidValueError, StreamInterrupted
from rxdelta.formats import registry
from rxdelta.formats.carrying import read_carried
from rxdelta.formats.encoding import Masked, masked
from rxdelta.formats.format import WireFormat
from rxdelta.framing import DONE

__all__ = ["write"]


def write(
    events: Iterable[Event], wire_format: WireFormat | str, *, on_error: Masked = masked
) -> list[dict[str, Any]]:
    """The chunks of a reply, as a provider that speaks this format would stream them.

    The chunks are JSON objects, such as `rd.decode(wire_format)` reads. It gets the same reply of them, but for the
    details that the format loses; docs/formats.md has the table. The same events always become the same chunks.

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
    if not isinstance(wire_format, str):
        raise InvalidValueError.of([("wire_format", wire_format, "must be the name of a format")])
    known = registry.get(wire_format)
    if known.writer is None:
        raise InvalidValueError.of([("wire_format", wire_format, "must be a format that has a writer")])
    given = [*events]
    ended = read_carried(given, known)
    taken_back: list[Exception] = []

    def shown(error: Exception) -> str:
        if isinstance(error, StreamInterrupted):
            taken_back.append(error)
        return on_error(error)

    writer = known.writer(shown)
    frames = [frame for event in given for frame in writer.encode(event)]
    if ended:
        frames += writer.close()
    if taken_back:
        wrong = f"must be a reply that a stream of {known.name} can carry: {taken_back[0]}"
        raise InvalidValueError.of([("events", given, wrong)])
    return [_chunk(frame) for frame in frames if frame is not DONE]


def _chunk(frame: Any) -> dict[str, Any]:
    if isinstance(frame, dict):
        return dict(frame)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    chunk: dict[str, Any] = frame.model_dump(mode="json", by_alias=True, exclude_none=True)
    return chunk
