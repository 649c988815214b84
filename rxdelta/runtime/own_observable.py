"""The base of the library's own Observables."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, NoReturn, TypeVar

from reactivex import Observable

from rxdelta.core import InvalidValueError

if TYPE_CHECKING:
    from rxdelta.runtime.marks import Mark

__all__ = ["OwnObservable", "no_coroutine_function"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


def no_coroutine_function(on_next: T) -> T:
    """The observer, unless `subscribe` would call it without running it.

    Raises:
        InvalidValueError: It is a coroutine function.
    """
    if iscoroutinefunction(on_next):
        raise InvalidValueError(
            "subscribe() calls its function and awaits nothing, so a coroutine function never runs: "
            "write await rd.for_each(observable, fn)",
            field="on_next",
            value=on_next,
        )
    return on_next


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

    def __repr__(self) -> str:
        steps: list[str] = []
        source: Observable[object] = self
        while isinstance(source, OwnObservable) and source._made is not None:
            operator, source = source._made
            steps.append(repr(operator)[1:-1])
        return f"<Observable of {' | '.join([_named(source), *reversed(steps)])}>"

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
