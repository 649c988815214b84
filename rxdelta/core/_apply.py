"""The reply after one more event or small delta, as functions of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Union, overload

from rxdelta.core._events import Event, StreamError
from rxdelta.core._fold import Fold
from rxdelta.core._frozen import is_list
from rxdelta.core._message_delta import MessageDelta, merge_snapshots
from rxdelta.core._snapshot import Snapshot, empty_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["apply_event", "merge_delta", "merge_deltas"]

S = TypeVar("S", bound=Snapshot)
Nested: TypeAlias = Union[Snapshot, Event, "Sequence[Nested]"]


def apply_event(snapshot: Snapshot | None, event: Event) -> Snapshot:
    """The snapshot after one event of the chat stream event protocol.

    One step of a `Fold`. For many events, keep a `Fold`, which is faster.

    Args:
        snapshot: The reply so far; `None` is an empty assistant message. An event of another choice changes
            nothing.
        event: The event.

    Raises:
        ProviderError: The event is a `StreamError`; the error's `.snapshot` is `snapshot`.
        ProtocolError: The event is of another run. Or another message begins: a start comes after the end, or once a
            block has begun, unless it repeats the message's own id.
        LimitExceededError: An index that is too large, too many blocks, or one too large.
        InvalidValueError: `event` is not an event.

    Example:
        >>> import rxdelta as rd
        >>> rd.apply_event(None, rd.events.MessageStart(id="m1")).id
        'm1'
    """
    return Fold(snapshot).step(event)


@overload
def merge_delta(primary: None, delta: Snapshot | Event) -> MessageDelta: ...
@overload
def merge_delta(primary: S, delta: Snapshot | Event) -> S: ...
def merge_delta(primary: Snapshot | None, delta: Snapshot | Event) -> Snapshot:
    """The reply `primary` with one more delta merged into it: a `MessageDelta`, unless `primary` is a `Snapshot`.

    Content goes to the slot `delta.index` (0 if it has none). A part of the same type as the newest part of the slot
    is joined to that part; a part of another type becomes a new block behind it; empty text is ignored. The fragment
    of a call is merged, among the calls of the same index, into the call with the same id; else into an open call
    without an id; else, if the fragment has no id, into the newest call; else it begins a new call. The blocks of a
    delta that is itself a snapshot are merged one by one. The status never goes back, usage is added, and of other
    metadata the later value wins. A delta of another choice changes nothing.

    Args:
        primary: The reply so far; `None` is an empty assistant message, whatever role the delta has.
        delta: A `MessageDelta`, a snapshot, or an event. A `StreamError` changes nothing; any other event is applied as
            by `apply_event`.

    Raises:
        MergeError: The role of `primary` is not `assistant`.
        ProtocolError: The delta is of another run. A snapshot without a run belongs to any.

    Example:
        >>> import rxdelta as rd
        >>> start = rd.MessageDelta(tool_calls=[rd.ToolCall(call_id="c1", name="add", index=0)])
        >>> more = rd.MessageDelta(tool_calls=[rd.ToolCall(arguments='{"a":1}', index=0)])
        >>> rd.merge_deltas([start, more]).tool_calls[0].arguments
        '{"a":1}'
    """
    if primary is None:
        primary = MessageDelta._made(empty_head(getattr(delta, "choice", 0)), ())
    if isinstance(delta, StreamError):
        return primary
    if isinstance(delta, Snapshot):
        return merge_snapshots(primary, delta)
    after = apply_event(primary, delta)
    return primary._made(after._head, after.blocks, None, getattr(primary, "index", None))


@overload
def merge_deltas(deltas: Sequence[Nested], /) -> MessageDelta | None: ...
@overload
def merge_deltas(accumulated: None, deltas: Sequence[Nested], /) -> MessageDelta | None: ...
@overload
def merge_deltas(accumulated: S, deltas: Sequence[Nested], /) -> S: ...
def merge_deltas(*arguments: Any) -> Snapshot | None:
    """Merge many deltas: `merge_deltas(deltas)` or `merge_deltas(accumulated, deltas)`.

    Lists may be nested to any depth. If there are no deltas, the result is `accumulated`, or `None`.

    Raises:
        MergeError: As `merge_delta`.
    """
    accumulated, deltas = arguments if len(arguments) == 2 else (None, arguments[0])
    snapshot: Snapshot | None = accumulated
    for delta in _flat(deltas):
        snapshot = merge_delta(snapshot, delta)
    return snapshot


def _flat(deltas: Iterable[Any]) -> Iterable[Snapshot | Event]:
    pending = [iter(deltas)]
    while pending:  # a loop, because recursion would limit the depth
        for delta in pending[-1]:
            if is_list(delta):
                pending.append(iter(delta))
                break
            yield delta
        else:
            pending.pop()


Snapshot._merged = merge_delta
