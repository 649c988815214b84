"""The base of the library's own Observables."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.internal import default_error, noop

from rxdelta.core import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rxdelta.runtime.marks import Mark

__all__ = ["OwnObservable", "SourceObservable", "Taker", "pipeline_of"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Taker(NamedTuple, Generic[T]):
    """What a subscriber is called by."""

    on_next: Callable[[T], None]
    on_error: Callable[[Exception], None]
    on_completed: Callable[[], None]


def _named(source: Observable[object]) -> str:
    """What is known of an Observable whose source isn't: the operator of Rx, or the function of ours, that has made it."""
    if isinstance(source, OwnObservable):
        return str(getattr(source, "_name", None) or type(source).__name__)
    subscribe = getattr(source, "_subscribe", None)
    module: str = getattr(subscribe, "__module__", None) or ""
    function: str = getattr(subscribe, "__qualname__", "").partition(".")[0].strip("_")
    if module.startswith("reactivex.operators."):
        return f"… | ops.{function}(…)"
    return f"rd.{function}(…)" if module.startswith("rxdelta.") else "…"


class OwnObservable(Observable[T_co]):
    """An Observable that is marked with what it emits, and that refuses to be read by a loop.

    In Rx `observable[n]` is the observable of one value, so Python would let a plain `for` run for ever, without a value.
    """

    _mark: Mark | None = None
    _made: tuple[object, Observable[object]] | None = None
    """The operator that has made it, and the source of that."""

    def subscribe(
        self,
        on_next: abc.ObserverBase[T_co] | abc.OnNext[T_co] | None = None,
        on_error: abc.OnError | None = None,
        on_completed: abc.OnCompleted | None = None,
        *,
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        """Subscribe functions, or an observer, as in Rx.

        Raises:
            InvalidValueError: `on_next` is a coroutine function, which would be called without running.
        """
        take: Any = on_next
        if iscoroutinefunction(take):
            raise InvalidValueError(
                "subscribe() calls its function and awaits nothing, so a coroutine function never runs: "
                "write await rd.for_each(observable, fn)",
                field="on_next",
                value=take,
            )
        if callable(getattr(take, "on_next", None)):
            take, on_error, on_completed = take.on_next, take.on_error, take.on_completed
        return self._start(Taker(take or noop, on_error or default_error, on_completed or noop), scheduler)

    def _start(self, taker: Taker[T_co], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        """Begin a subscription."""
        raise NotImplementedError

    def __repr__(self) -> str:
        operators, source = pipeline_of(self)
        steps = [repr(operator)[1:-1] for operator in reversed(operators)]
        return f"<Observable of {' | '.join([_named(source), *steps])}>"

    def __iter__(self) -> NoReturn:
        raise InvalidValueError(
            "a `for` loop can't read an Observable: write `with rd.to_iterable(observable) as values:` and loop over "
            "values, or rd.stream(chunks) for a whole reply",
            field="source",
        )

    def __aiter__(self) -> NoReturn:
        raise InvalidValueError(
            "an `async for` loop can't read an Observable: write `async with rd.to_async_iterable(observable) as values:` "
            "and loop over values, or rd.stream(chunks) for a whole reply",
            field="source",
        )


def pipeline_of(source: Observable[Any]) -> tuple[list[Any], Observable[Any]]:
    """Our operators that have made an Observable, the last one first, and what they were applied to, as far as it shows."""
    operators: list[Any] = []
    while isinstance(source, OwnObservable) and source._made is not None:
        operator, source = source._made
        operators.append(operator)
    return operators, source


class SourceObservable(OwnObservable[T]):
    """A source that ends once, and stops when it is disposed, so that values don't need Rx's wrapper of an observer.

    Args:
        name: The name in `repr`.
        begin: Begins to call a subscriber, and returns what stops it. An exception becomes `on_error`.
    """

    def __init__(
        self, name: str, begin: Callable[[Taker[T], abc.SchedulerBase | None], abc.DisposableBase]
    ) -> None:
        super().__init__()
        self._name = name
        self._begin = begin

    def _start(self, taker: Taker[T], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        try:
            return self._begin(taker, scheduler)
        except Exception as error:
            taker.on_error(error)
            return Disposable()
