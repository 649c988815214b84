"""Kinds of values: those that say nothing of the provider (pings), and those that are newer states of something.

A policy that keeps the newest value keeps it for each *key*, which names what a value is a state of: a message, for a
snapshot; a block of a message; a call, for the value of its arguments. A `Message` is final, so each has a key of its own.
All other values have one key, whatever their types, unless the user's `key=` tells them apart. Events and Observables are
states of nothing, and are refused.

A fold's snapshots and blocks know their message by its `Origin`. Those that were stored or made by hand have none. They are
told apart by run, id and choice, or by key and call, and by one more rule: a finished state isn't replaced by an open one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import attrs
from reactivex import abc

from rxdelta.core import (
    PIECE_FIELDS,
    TERMINAL,
    ContentPart,
    Fold,
    Message,
    MessageDelta,
    Snapshot,
    ToolCall,
    is_over,
)
from rxdelta.core.events import EVENT_TYPES, Custom, ProviderEvent
from rxdelta.runtime.observables import piece_error

T = TypeVar("T")
KeyOf: TypeAlias = Callable[[Any], Hashable]
"""The user's function: what a value is a state of. In `pipe` its argument's type can't be inferred."""

_PINGS = ("ping", "keepalive")


class Pings:
    """Finds values of a stream that say nothing of the provider: also snapshots that add only data of the application."""

    def __init__(self) -> None:
        self._last: Snapshot | None = None

    def __call__(self, value: Any) -> bool:
        if type(value) is not Snapshot:
            return is_ping(value)
        last, self._last = self._last or Fold(choice=value.choice).snapshot, value
        head, before = value._head, last._head
        return (
            head.custom is not before.custom
            and value.blocks == last.blocks
            and attrs.evolve(head, custom=before.custom) == before
        )


def is_ping(value: Any) -> bool:
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    field = PIECE_FIELDS.get(kind)
    if field is not None:
        return not getattr(value, field)
    if kind in EVENT_TYPES:
        return kind is Custom or (isinstance(value, ProviderEvent) and value.name in _PINGS)
    if isinstance(value, (bytes, bytearray)):
        return all(not line.strip() or line.startswith(b":") for line in value.splitlines())
    if isinstance(value, Mapping):
        named: Any = value.get("type")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    else:
        named = getattr(value, "type", None)
    return isinstance(named, str) and named in _PINGS


class _ById(tuple[Hashable, ...]):
    """A key that consists of ids only, which another message may have, too."""

    __slots__ = ()


class _Kind(NamedTuple):
    key: Callable[[Any], Hashable]
    is_finished: Callable[[Any], bool]


def _itself(_: object) -> Hashable:
    return object()


def _always(_: object) -> bool:
    return True


def _never(_: object) -> bool:
    return False


def _the_one(_: object) -> None:
    return None


def _message_of(snapshot: Snapshot) -> Hashable:
    head = snapshot._head
    return head.origin or _ById((head.run_id, head.id, head.choice))


def _block_of(block: ContentPart | ToolCall) -> Hashable:
    call_id = block.call_id if isinstance(block, ToolCall) else None
    return _ById((block.key, call_id)) if block._origin is None else (block._origin, block.key)


def _is_closed(part: ContentPart) -> bool:
    return not part.open


def _is_not_running(call: ToolCall) -> bool:
    """Whether nobody runs the call: it has an outcome, or no executor has said that it is theirs."""
    return call.metadata.get("execution_status") in (None, *TERMINAL)


def _call_is_over(call: ToolCall) -> bool:
    return not call.open and _is_not_running(call)


def _reply_is_over(snapshot: Snapshot) -> bool:
    return is_over(snapshot) and all(map(_is_not_running, snapshot.tool_calls))


_KINDS: dict[type, _Kind] = {
    Snapshot: _Kind(_message_of, _reply_is_over),
    MessageDelta: _Kind(_message_of, _reply_is_over),
    ContentPart: _Kind(_block_of, _is_closed),
    ToolCall: _Kind(_block_of, _call_is_over),
    Message: _Kind(_itself, _always),
}
_USERS = _Kind(_the_one, _never)


def replaceable(
    kind: type[object], ids: Callable[[Any], tuple[Hashable, ...]], is_finished: Callable[[Any], bool]
) -> None:
    """Say what the values of one of our types are states of, and which of them is the last."""

    def key(value: object) -> _ById:
        return _ById(ids(value))

    _KINDS[kind] = _Kind(key, is_finished)


def _kind_of(value: object, by: str) -> _Kind:
    """The kind of a value.

    Raises:
        InvalidValueError: It is a state of nothing.
    """
    kind: Any = type(value)
    known = _KINDS.get(kind)
    if known is not None:
        return known
    if kind in EVENT_TYPES:
        raise piece_error(by, value, "events")
    if issubclass(kind, abc.ObservableBase):
        raise piece_error(by, value, "streams")
    return _USERS


class Newest(Generic[T]):
    """A queue of the newest value of each key, in the order of their last changes.

    One thread may append while another takes: each step on the queue is atomic. The queue may look empty for a moment.

    Args:
        by: The operator that drops the older values, for messages.
        key: The user's function, if there is one. Nothing is refused then.
    """

    def __init__(self, by: str, key: KeyOf | None = None) -> None:
        self._by = by
        self._kind = None if key is None else _Kind(key, _never)
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._head: Any = None  # of the snapshot that came last, and its key
        self._key: Hashable = None
        self._users: Any = None  # the type of a value of the user's, which is looked at once

    def __len__(self) -> int:
        return len(self._values)

    def append(self, value: T) -> None:
        """Add a value, which replaces an older state of the same key.

        Raises:
            InvalidValueError: It is a state of nothing.
            Exception: That of the user's key.
        """
        given: Any = value
        values = self._values
        if type(given) is self._users:
            values[None] = value
            return
        if type(given) is Snapshot and given._head is self._head:  # the next delta of the same message
            values[self._key] = value
            return
        kind = self._kind or _kind_of(value, self._by)
        key = kind.key(value)
        if type(key) is _ById and key in values:
            self._keep_apart(key, kind, value)
        values[key] = value
        with suppress(KeyError):  # the other thread has taken it
            values.move_to_end(key)
        if kind is _KINDS[Snapshot] and given.status == "incomplete":  # else a tool's news may finish it
            self._head, self._key = given._head, key
        if kind is _USERS:
            self._users = type(given)
        self._put(key, kind, value)

    def _keep_apart(self, key: Hashable, kind: _Kind, value: T) -> Hashable:
        """A finished state isn't replaced by an open one, which must be another message's. Return its new name, if any."""
        held = self._values.get(key)
        if held is None or not kind.is_finished(held) or kind.is_finished(value):
            return None
        apart = object()
        self._values[apart] = held
        return apart

    def _put(self, key: Hashable, kind: _Kind, value: T) -> None:
        """A value has been added."""

    def popleft(self) -> T:
        """Take the value whose key has waited longest for a change; `IndexError` if there is none."""
        try:
            return self._values.popitem(last=False)[1]
        except KeyError:
            raise IndexError from None

    def clear(self) -> None:
        self._values.clear()


class NewestForLate(Newest[T]):
    """The values for a late reader: the newest of each open key, and of the finished ones only the newest."""

    _finished: Hashable = None

    def all(self) -> Sequence[T]:
        return tuple(self._values.values())

    def _keep_apart(self, key: Hashable, kind: _Kind, value: T) -> Hashable:
        apart = super()._keep_apart(key, kind, value)
        if apart is not None:
            self._finished = apart
        return apart

    def _put(self, key: Hashable, kind: _Kind, value: T) -> None:
        if kind.is_finished(value):
            if self._finished is not None and self._finished != key:
                self._values.pop(self._finished, None)
            self._finished = key
        elif self._finished == key:
            self._finished = None
