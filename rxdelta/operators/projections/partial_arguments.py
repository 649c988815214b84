"""What a tool is going to be called with, while the model still writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from rxdelta.core import DEFAULT_LIMITS, Event, Limits
from rxdelta.operators.projections.calls import Calls, argument_text
from rxdelta.operators.projections.into import Into
from rxdelta.operators.projections.partial import PartialReading, PartialValue
from rxdelta.operators.projections.projection import Projection, project

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

    from rxdelta.core.events import Index

__all__ = ["partial_arguments"]

T = TypeVar("T")


@overload
def partial_arguments(
    call_id: str | None = None, into: None = None, *, choice: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Observable[Event]], Observable[PartialValue[Any]]]: ...
@overload
def partial_arguments(
    call_id: str | None = None, *, into: type[T], choice: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Observable[Event]], Observable[PartialValue[T]]]: ...
@overload
def partial_arguments(
    call_id: str | None, into: type[T], *, choice: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Observable[Event]], Observable[PartialValue[T]]]: ...
def partial_arguments(
    call_id: str | None = None,
    into: type[Any] | None = None,
    *,
    choice: int = 0,
    limits: Limits = DEFAULT_LIMITS,
) -> Callable[[Observable[Event]], Observable[PartialValue[Any]]]:
    """The arguments of the reply's calls as values, as far as they have come.

    A `PartialValue` is emitted whenever what can be seen of a call's arguments changed, the document closed, or the
    text turned out not to be JSON; and a last one, `complete`, when the provider has finished a call whose
    arguments are one strict JSON object that the class accepts. A call that isn't valid gets an `error`, and
    `so_far` stays what it was. Values of parallel calls come interleaved, each with its `call_id` and `name`. Calls
    that the provider runs itself are left out.

    Every character is read once, however the text is cut. Text that is replaced (a `BlockDelta`, or a finish, that
    carries other arguments) is read again from its beginning.

    Completes with the source. Another attempt, or another message, goes on with its own calls.

    Args:
        call_id: The one call that is wanted; `None` is all of them.
        into: An attrs class, a dataclass or a Pydantic model, also with such in its fields, in `Optional`, in lists
            and mappings. The class itself makes the `value` of the whole arguments; until then that is `None`, and
            `so_far` is what has come, as JSON. Arguments that the class refuses are never `complete`: `error` says
            why. Keys that the class doesn't have are left out; what doesn't fit an annotation that it doesn't check
            stays JSON.
        choice: Which of several alternative replies.
        limits: What the stream may make us hold.

    Raises:
        InvalidValueError: At once, if `into` is no such class.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for
    what is no event. Arguments that can't be read are no error.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": "search"})
        >>> args = ['{"query": "ti', 'des", "days"', ": 3}"]
        >>> events = rx.of(start, *[rd.events.ToolCallDelta(0, text) for text in args], rd.events.BlockFinish(0))
        >>> def draw(partial: rd.PartialValue) -> None:
        ...     print(partial.value, partial.is_final("query"), partial.complete)
        >>> events.pipe(rd.partial_arguments()).subscribe(draw).dispose()
        {'query': 'ti'} False False
        {'query': 'tides'} True False
        {'query': 'tides', 'days': 3} True False
        {'query': 'tides', 'days': 3} True True
    """
    made = None if into is None else Into(into)
    return project(lambda observer: _Arguments(observer, call_id, made, choice, limits))


class _Arguments(Projection[PartialValue[T]]):
    """One subscription's state."""

    def __init__(
        self,
        observer: abc.ObserverBase[PartialValue[T]],
        call_id: str | None,
        into: Into[T] | None,
        choice: int,
        limits: Limits,
    ) -> None:
        self._call_id = call_id
        self._into = into
        self._limits = limits
        super().__init__(observer, choice)

    def begin(self) -> None:
        self._calls = Calls(self._choice, self._limits)
        self._readings: dict[Index, PartialReading[T]] = {}

    def step(self, event: Event, emit: Callable[[PartialValue[T]], None]) -> None:
        for index, call, how, text in self._calls.step(event):
            reading = self._readings.pop(index, None)
            if self._call_id is not None and call.call_id != self._call_id:
                continue
            if reading is None:
                reading = PartialReading(self._into, self._limits)
                how, text = "begun", argument_text(call)
            if call.open:
                self._readings[index] = reading
            if call.status != "complete":
                reading.take(how, text)
            partial = reading.changed_value(call) if call.open else reading.last_value(call)
            if partial is not None:
                emit(partial)
