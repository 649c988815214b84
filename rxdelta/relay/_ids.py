"""The names of streams, and the ids of their entries."""

from __future__ import annotations

import re
from typing import Any, TypeGuard

import attrs

from rxdelta.core import Event, InvalidValueError

__all__ = [
    "Entry",
    "check_entry_id",
    "check_stream_id",
    "check_tenant",
    "entry_id",
    "is_epoch",
    "is_name",
    "number_of",
]

_LONGEST_NAME = 256
_EPOCH = re.compile(r"[0-9a-f]{16}")
_ENTRY_ID = re.compile(rf"({_EPOCH.pattern})-([1-9][0-9]{{0,17}})", re.ASCII)


@attrs.frozen
class Entry:
    """An event of a stream in a relay, and the place behind which a reader can go on.

    Attributes:
        id: At most 64 printable ASCII characters. Opaque: each event of each stream has another one, also where two
            streams had one name one after the other.
        event: The event.
    """

    id: str
    event: Event


def check_stream_id(stream_id: Any) -> str:
    """Return the name of a stream as it is.

    Raises:
        InvalidValueError: It isn't a string of 1 to 256 printable characters.
    """
    return _check_name("stream_id", stream_id)


def check_tenant(tenant: Any) -> str:
    """Return the name of a tenant as it is.

    Raises:
        InvalidValueError: It isn't a string of 1 to 256 printable characters.
    """
    return _check_name("tenant", tenant)


def is_name(name: object) -> TypeGuard[str]:
    """Whether it can be the name of a stream or a tenant."""
    # A lone surrogate isn't printable.
    return isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable()


def is_epoch(epoch: object) -> bool:
    """Whether it can be a log's epoch, with which the ids of its entries begin."""
    return isinstance(epoch, str) and _EPOCH.fullmatch(epoch) is not None


def _check_name(field: str, name: Any) -> str:
    if is_name(name):
        return name
    raise InvalidValueError.of([(field, name, "must be a string of 1 to 256 printable characters")])


def check_entry_id(name: str, given: Any) -> None:
    """Refuse what can't be the id of an entry, whichever stream it is of.

    Raises:
        InvalidValueError: It can't.
    """
    if given is not None and not (isinstance(given, str) and _ENTRY_ID.fullmatch(given)):
        raise InvalidValueError.of([(name, given, "must be the id of an entry")])


def entry_id(epoch: str, number: int) -> str:
    return f"{epoch}-{number}"


def number_of(name: str, given: str, epoch: str, newest: int) -> int:
    """The number of the entry with this id in a log.

    Args:
        name: The argument, for the message.
        given: The id.
        epoch: The log's.
        newest: The number of the log's newest entry.

    Raises:
        InvalidValueError: The log has no such entry.
    """
    own, _, number = given.partition("-")
    if own != epoch or int(number) > newest:
        raise InvalidValueError.of([(name, given, "is no id of an entry of this stream")])
    return int(number)
