"""An error as those may read it who must not see all of the reply."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from rxdelta.core import RxDeltaError, Snapshot, StreamInterrupted, described, is_list, is_mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["told_error"]

_DEEPEST, _MOST = 5, 10_000  # how far the fields of other libraries' objects are read


def told_error(error: Exception, rewrite: Callable[[str], str]) -> Exception:
    """The error with its texts rewritten, without the reply so far, which the next fold adds again.

    It is another object if anything changes. Then it has no causes and no traceback: they may quote the same text, the
    frames in their local variables, which error trackers show. An exception of another library becomes a `StreamInterrupted`.
    """

    def says_it(value: object) -> bool:
        return any(rewrite(text) != text for text in _texts(value))

    def rewritten(value: Any) -> Any:
        if isinstance(value, str):
            return rewrite(value)
        if is_list(value):
            return [rewritten(item) for item in value]
        return None if says_it(value) else value

    is_changed = says_it(error)
    if not isinstance(error, RxDeltaError):
        if not is_changed:
            return error
        return StreamInterrupted(f"the stream broke off: {rewrite(described(error))}")
    if not is_changed and error.snapshot is None:
        return error
    told = copy(error)
    told.snapshot = None
    if is_changed:
        told.args = tuple(rewritten(one) for one in error.args)
        vars(told).update({name: rewritten(value) for name, value in vars(told).items()})
    else:
        told.__cause__, told.__suppress_context__ = error.__cause__, error.__suppress_context__
        told.__context__, told.__traceback__ = error.__context__, error.__traceback__
    return told


def _texts(value: object) -> Iterator[str]:
    """All that a value says; of an error, also all that led to it, and the provider's answer that it may have."""
    seen: set[int] = set()
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting and len(seen) < _MOST:
        one, depth = waiting.pop()
        if isinstance(one, Snapshot):
            one = one.to_dict()
        if isinstance(one, (str, bytes, bytearray)):
            yield one if isinstance(one, str) else one.decode("utf-8", "replace")
        elif id(one) not in seen and depth <= _DEEPEST and not isinstance(one, type):
            seen.add(id(one))
            inner = _parts(one)
            if not isinstance(one, BaseException):
                depth += 1
                if not inner:
                    yield repr(one)
            else:
                depth = 0
                yield described(one)
            waiting += [(part, depth) for part in inner]


def _parts(value: object) -> Sequence[object]:
    if is_mapping(value):
        return [*value.keys(), *value.values()]
    if is_list(value):
        return value
    fields: object = getattr(value, "__dict__", None)
    parts: list[object] = [*fields.values()] if isinstance(fields, dict) else []
    if isinstance(value, BaseException):
        parts += [*value.args, value.__cause__, value.__context__, *getattr(value, "exceptions", ())]
    return parts
