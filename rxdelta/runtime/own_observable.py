"""The base of the library's own Observables."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

from reactivex import Observable

from rxdelta.core import InvalidValueError

if TYPE_CHECKING:
    from rxdelta.runtime.marks import Mark

__all__ = ["OwnObservable"]

T_co = TypeVar("T_co", covariant=True)


class OwnObservable(Observable[T_co]):
    """An Observable that is marked with what it emits, and that refuses to be read by a loop.

    In Rx `observable[n]` is the observable of one value, so Python would let a plain `for` run for ever, without a value.
    """

    _mark: Mark | None = None

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
