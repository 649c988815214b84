"""The mistake of an operator without its parentheses: `source.pipe(scan_deltas)`."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from reactivex import Observable

from rxdelta.core import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["operator_maker"]

P = ParamSpec("P")
R = TypeVar("R")


def operator_maker(make: Callable[P, R]) -> Callable[P, R]:
    """The same function, which refuses the source as its first argument.

    Raises:
        InvalidValueError: By the function, at once.
    """
    name = make.__name__

    @wraps(make)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        first: Any = args[0] if args else None
        if isinstance(first, Observable):
            raise InvalidValueError(f"{name} makes an operator: write source.pipe({name}(…))")
        return make(*args, **options)

    return checked
