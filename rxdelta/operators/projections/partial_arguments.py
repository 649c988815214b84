"""A call's arguments while they are streaming."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from rxdelta.core.events import ToolCallDelta
from rxdelta.operators.projections.partial import Into, PartialReading, PartialValue
from rxdelta.operators.projections.projection import (
    Projection,
    argument_growth,
    argument_text,
    call_of,
    project,
)
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from reactivex import Observable

    from rxdelta.core import BlockFold, Change, Event, Walk


T = TypeVar("T")


@overload
def partial_arguments(
    call_id: str | None = None, into: None = None
) -> Callable[[Observable[Event]], Observable[PartialValue[Any]]]: ...
@overload
def partial_arguments(
    call_id: str | None = None, *, into: type[T]
) -> Callable[[Observable[Event]], Observable[PartialValue[T]]]: ...
@overload
def partial_arguments(
    call_id: str | None, into: type[T]
) -> Callable[[Observable[Event]], Observable[PartialValue[T]]]: ...
@operator_maker
def partial_arguments(
    call_id: str | None = None,
    into: type[Any] | None = None,
) -> Callable[[Observable[Event]], Observable[PartialValue[Any]]]:
    """Emit the arguments of the reply's calls as values while they arrive.

    ::

        events  (call:look)(args:{"at":)(args:"\\"sea\\"")(args:})       (end)            |
                partial_arguments()
        values  -          <{}>         <{"at": "sea"}> <{"at": "sea"}><{"at": "sea"} ✓>|

    A `PartialValue` is emitted whenever the visible part of a call's arguments changes, the document closes, or the
    text turns out not to be JSON. A last one, `complete`, is emitted when the provider has finished a call whose
    arguments are one strict JSON object that the class accepts. An invalid call gets an `error`, and its `so_far` is
    kept. Values of parallel calls are interleaved, each with its `call_id` and `name`. Calls that the provider runs
    itself are left out. A call that begins again after its end is read again, without another last value.

    Every character is read once, for any deltas. Replaced text (by a `BlockDelta`, or a finish, with other arguments)
    is read again from its beginning.

    Completes with the source. Another attempt, or another message, emits its own calls.

    Args:
        call_id: The id of the only call to be read; `None` is all calls.
        into: A dataclass, an attrs class, a Pydantic model, a msgspec Struct or a TypedDict, also with such classes in
            its fields, in `Optional`, in lists and mappings. Its constructor makes the `value` of the whole arguments.
            Until then `value` is `None`, and `so_far` has the JSON so far. Arguments that the class refuses are never
            `complete`; `error` says why. Keys that the class doesn't have are left out. A value that doesn't fit an
            annotation stays JSON, unless the class checks it, as Pydantic and msgspec do. A TypedDict refuses arguments
            without a required key.

    Raises:
        InvalidValueError: At once, if `into` is no such class.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for
    a value that is no event. Invalid arguments are no error.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": "search"})
        >>> args = ['{"query": "ti', 'des", "days"', ": 3}"]
        >>> events = rx.of(start, *[rd.events.ToolCallDelta(0, text) for text in args], rd.events.BlockFinish(0))
        >>> def draw(partial: rd.types.PartialValue) -> None:
        ...     print(partial.value, partial.is_final("query"), partial.complete)
        >>> events.pipe(rd.partial_arguments()).subscribe(draw).dispose()
        {'query': 'ti'} False False
        {'query': 'tides'} True False
        {'query': 'tides', 'days': 3} True False
        {'query': 'tides', 'days': 3} True True
    """
    made = None if into is None else Into(into)
    return project("partial_arguments", lambda name, walk: _Arguments(name, walk, call_id, made))


class _Arguments(Projection[PartialValue[T]]):
    """One subscription's state."""

    def __init__(self, name: str, walk: Walk, call_id: str | None, into: Into[T] | None) -> None:
        self._call_id = call_id
        self._into = into
        super().__init__(name, walk, ToolCallDelta)

    def begin(self) -> None:
        self._readings: dict[BlockFold, PartialReading[T]] = {}  # of the open calls

    def grown(self, fold: BlockFold, piece: str) -> Sequence[PartialValue[T]]:
        reading = self._readings.get(fold)
        if reading is None:
            return ()
        reading.more(piece)
        partial = reading.changed_value()
        return () if partial is None else (partial,)

    def changed(self, changes: Sequence[Change], event: Event) -> Iterator[PartialValue[T]]:
        for change in changes:
            fold, call = change.fold, call_of(change.fold)
            reading = self._readings.pop(fold, None)
            if call is None or change.repeated or self._call_id not in (None, call.call_id):
                continue
            if change.kind == "opened" and not call.open:  # its end is the next change
                continue
            is_new = reading is None
            reading = reading or PartialReading(self._into, self.walk.limits)
            reading.call_id, reading.name = call.call_id, call.name
            if call.status != "complete":
                reading.take(
                    ("begun", argument_text(call)) if is_new else argument_growth(call, change, event)
                )
            if call.open:
                self._readings[fold] = reading
            partial = reading.changed_value() if call.open else reading.last_value(call)
            if partial is not None:
                yield partial
