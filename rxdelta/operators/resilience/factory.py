"""How `retry_stream` calls its factory."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeAlias

from reactivex import Observable

from rxdelta.core import Event, InvalidValueError, Snapshot

__all__ = ["Request", "request_of"]

Request: TypeAlias = Callable[[Snapshot | None, Exception | None, int], Observable[Event]]

_MOST = 3
_WANTED = "must take none, (snapshot), (snapshot, error) or (snapshot, error, attempt)"


def request_of(factory: Callable[..., Observable[Event]], *, resume: bool) -> Request:
    """Return a function that gives the factory as many arguments as it takes.

    They are counted by its positional parameters without a default. A parameter with a default is its owner's, as in
    `lambda model=model: …`. Where there are none to count (`*args`, a builtin without a signature), the factory gets
    the snapshot if the message may be resumed, and else nothing.

    Raises:
        InvalidValueError: The factory needs other arguments.
    """
    count = _count(factory, resume=resume)

    def request(snapshot: Snapshot | None, error: Exception | None, attempt: int) -> Observable[Event]:
        return factory(*(snapshot, error, attempt)[:count])

    return request


def _count(factory: Callable[..., object], *, resume: bool) -> int:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return int(resume)
    needed = [one for one in parameters if one.default is one.empty]
    positional = [one for one in needed if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if len(positional) > _MOST or any(one.kind is one.KEYWORD_ONLY for one in needed):
        raise InvalidValueError.of([("factory", factory, _WANTED)])
    if not positional and any(one.kind is one.VAR_POSITIONAL for one in needed):
        return int(resume)
    return len(positional)
