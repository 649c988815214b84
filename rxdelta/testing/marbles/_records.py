"""What a line tells: records, their times, and the errors among them."""

from __future__ import annotations

import builtins
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import rxdelta.core as core
from rxdelta.core import InvalidValueError, ProviderError, check_seconds
from rxdelta.recording import RecordedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rxdelta.core import Seconds

__all__ = [
    "LATEST",
    "Record",
    "Timed",
    "broken",
    "error_named",
    "is_same_error",
    "microseconds",
    "seconds",
    "timed",
]

Record: TypeAlias = tuple[float, Literal["next", "error", "completed"], Any]
"""A notification: the seconds since the subscription, what it is, and the value or the exception (`None` for an end)."""

Timed: TypeAlias = tuple[int, str, Any]
"""A record whose time is in microseconds, so that times can be added and compared."""

LATEST = 10**15
"""The latest time, in microseconds."""
_KINDS = ("next", "error", "completed")
_LIBRARY: dict[str, Any] = {"RecordedError": RecordedError} | {
    name: kind
    for name in core.__all__
    if isinstance(kind := getattr(core, name), type) and issubclass(kind, Exception)
}
_NO_LETTERS = re.compile(r"\W")


def microseconds(name: str, value: Seconds) -> int:
    """A length of time, which is at least a microsecond.

    Raises:
        InvalidValueError: It isn't.
    """
    found = round(check_seconds(name, value) * 1_000_000)
    if not found:
        raise InvalidValueError.of([(name, value, "must be at least a microsecond")])
    return found


def seconds(time: int) -> float:
    return time / 1_000_000


def timed(records: Iterable[Record]) -> list[Timed]:
    """The records, checked.

    Raises:
        InvalidValueError: They aren't in the order of their times, something comes behind the end, or one isn't a record.
    """
    found: list[Timed] = []
    for number, record in enumerate(records):
        try:
            at, kind, value = record
            time = round(at * 1_000_000)
        except (TypeError, ValueError, OverflowError):
            raise _wrong(number, record, "must be (seconds, kind, value)") from None
        if time > LATEST:
            raise _wrong(number, record, "must not be later than 1e9 seconds")
        if kind not in _KINDS:
            raise _wrong(number, record, 'must be of the kind "next", "error" or "completed"')
        if kind == "error" and not isinstance(value, BaseException):
            raise _wrong(number, record, "must have an exception, because it is an error")
        if found and found[-1][1] != "next":
            raise _wrong(number, record, "must not come behind the end")
        if time < (found[-1][0] if found else 0):
            raise _wrong(number, record, "must not be earlier than the one before it, or than 0")
        found.append((time, kind, value))
    return found


def _wrong(number: int, record: object, fault: str) -> InvalidValueError:
    return InvalidValueError.of([(f"records[{number}]", record, fault)])


def broken() -> Exception:
    """The error of a `#` without a name."""
    return ConnectionError("the connection broke")


def error_named(name: str, text: str) -> Exception:
    """An exception of this name and text: a built-in one, the library's, or one of a class that is made for the name."""
    kind = _LIBRARY.get(name) or getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        for arguments in ([text] if text else [], [text]):
            try:
                error = kind(*arguments)
            except TypeError:
                continue
            if error_text(error) == text:  # a SyntaxError without arguments says "None"
                return error
    return _made(name)(*([text] if text else []))


@cache
def _made(name: str) -> type[RuntimeError]:
    return type(name, (RuntimeError,), {})


def error_name(error: BaseException) -> str:
    """The name of the exception's class, as far as a line can have it."""
    return _NO_LETTERS.sub("_", type(error).__name__)


def error_text(error: BaseException) -> str:
    """The text of the exception: its only argument if that is a text."""
    if isinstance(error, ProviderError):
        return error.message
    if len(error.args) == 1 and isinstance(error.args[0], str):
        return error.args[0]
    try:
        return str(error)
    except Exception:
        return ""


def is_same_error(one: BaseException, other: BaseException) -> bool:
    """Whether two exceptions have the same class name and the same text, which is all that a line tells of them."""
    return one is other or (error_name(one), error_text(one)) == (error_name(other), error_text(other))
