"""The ids that an encoder makes up where the provider sent none."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import TYPE_CHECKING
from uuid import NAMESPACE_OID, uuid4, uuid5

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["IdsOf", "made_id"]

_make: ContextVar[Callable[[], str] | None] = ContextVar("rxdelta_made_ids", default=None)


def made_id() -> str:
    """An id: a random one, or within `IdsOf.made` the stream's next one."""
    return (_make.get() or _random)()


class IdsOf:
    """The ids that are made up for one stream: every encoder of the stream makes the same.

    An encoder that goes on for another one must name the messages that this one has begun.
    """

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._numbers = count()

    @contextmanager
    def made(self) -> Generator[None]:
        """Within the `with` block `made_id` makes this stream's ids."""
        token = _make.set(self._next)
        try:
            yield
        finally:
            _make.reset(token)

    def _next(self) -> str:
        return str(uuid5(NAMESPACE_OID, f"{self._stream}\n{next(self._numbers)}"))


def _random() -> str:
    return str(uuid4())
