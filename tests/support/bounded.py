"""An operator with the limits and the choice of its pipeline, for helpers that pass options on."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from reactivex import compose

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import Callable


def bounded(
    make: Callable[..., Any], *arguments: Any, limits: rd.Limits | None = None, **options: Any
) -> Any:
    """The operator that `make` returns, behind `only_choice(choice)` and in front of `with_limits(limits)`."""
    choice = None if "choice" in inspect.signature(make).parameters else options.pop("choice", None)
    front = [] if choice is None else [rd.only_choice(choice)]
    behind = [] if limits is None else [rd.with_limits(limits)]
    return compose(*front, make(*arguments, **options), *behind)
