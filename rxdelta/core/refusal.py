"""The errors that end a stream of events."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from rxdelta.core.errors import InvalidValueError, ProviderError
from rxdelta.core.event_classes import EVENT_TYPES, Event, StreamError
from rxdelta.core.json_values import is_mapping
from rxdelta.core.message import Message
from rxdelta.core.snapshot import Snapshot

_WIRE_NAMES = frozenset(kind.event for kind in get_args(Event))

Reads: TypeAlias = Literal["events", "snapshots", "events or snapshots"]
"""The values that an operator, a fold or an encoder can use."""


def is_readable(reads: Reads, value: object) -> bool:
    """Whether the value is one of those that an operator reads."""
    return (reads != "snapshots" and type(value) in EVENT_TYPES) or (
        reads != "events" and isinstance(value, Snapshot)
    )


def wrong_value(operator: str, value: object, reads: Reads = "events") -> InvalidValueError:
    """The error for a value that an operator can't use. It names the operator, and what makes the value usable.

    Example:
        >>> import rxdelta as rd
        >>> from rxdelta.core import wrong_value
        >>> str(wrong_value("run_tools", rd.Snapshot()))
        'run_tools() reads events, and got a Snapshot; put it in front of scan_deltas()'
    """
    named = f"{operator}()" if operator.isidentifier() else operator
    return InvalidValueError(
        f"{named} reads {reads}, and got {_kind(value)}; {_advice(value, reads)}",
        field="snapshot" if reads == "snapshots" else "event",
        value=value,
    )


def refusal(value: object, operator: str = "this operator") -> Exception | None:
    """The error that an operator emits instead of this value: for a `StreamError`, and for a value that is no event."""
    if isinstance(value, StreamError):
        return ProviderError.by(value)
    return None if type(value) in EVENT_TYPES else wrong_value(operator, value)


def _kind(value: object) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"an {name}" if name[:1] in "AEIOUaeiou" else f"a {name}"


def _advice(value: object, reads: Reads) -> str:
    if isinstance(value, Snapshot):
        return "put it in front of scan_deltas()"
    if type(value) in EVENT_TYPES:
        return "put scan_deltas() in front of it"
    if callable(getattr(value, "subscribe", None)):
        return "put ops.merge_all() in front of it, or use it on each of the inner streams"
    if isinstance(value, Message):
        return "to_events() makes events of a message"
    if is_mapping(value) and str(value.get("event")) in _WIRE_NAMES:
        return "events.from_dict() makes an event of its stored form"
    text = isinstance(value, (bytes, bytearray, str))
    made = "parse_sse() or parse_ndjson(), then decode(), make" if text else "decode() makes"
    return f"{made} events of {'it' if text else 'chunks'}" + (
        ", and scan_deltas() makes snapshots of events" if reads == "snapshots" else ""
    )
