"""The errors of recorded streams, and what a file keeps of an error."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any

import rxdelta.core as core
from rxdelta.core import RxDeltaError, redact
from rxdelta.operators import header_of, is_transient, status_of

_DEPTH = 9  # the error, and causes of causes
_HEADERS = ("retry-after", "retry-after-ms", "x-should-retry", "date")
_BACK_AS_THEMSELVES = (OSError, RuntimeError, ValueError, LookupError)


class RecordedError(Exception):
    """The error of a recorded stream, in the place of one whose class isn't made again.

    `from_recording` raises errors of Python's own kinds (`OSError`, `RuntimeError`, `ValueError`, `LookupError`, and those
    below them, such as `ConnectionResetError`) as themselves, and those of this library, too. An error of any other class,
    such as an SDK's, becomes a `RecordedError`: a file can't make the program import a class. It is no `RxDeltaError`, so
    `retry_stream` retries it as it would have retried the original.

    Attributes:
        type: The name of the original's class; `"StreamInterrupted"` if the recording ends before the stream did.
        status_code: The HTTP status; `None` if there was none.
        transient: Whether `rd.errors.is_transient` said of the original that another try may succeed; `None` if the file
            doesn't say so.
        headers: The headers of the original's response that say when to try again.
        module: The module of the original's class; `None` for Python's own and if the file doesn't say so.

    Example:
        >>> import rxdelta as rd
        >>> error = rd.RecordedError("slow down", "RateLimitError", status_code=429)
        >>> str(error), error.type, rd.errors.is_transient(error)
        ('slow down', 'RateLimitError', True)
    """

    def __init__(
        self,
        message: str,
        type: str = "Exception",
        *,
        status_code: int | None = None,
        transient: bool | None = None,
        headers: Mapping[str, str] | None = None,
        module: str | None = None,
    ) -> None:
        super().__init__(message)
        self.type = type
        self.status_code = status_code
        self.transient = transient
        self.headers: dict[str, str] = dict(headers or {})
        self.module = module


def error_to_dict(error: BaseException, depth: int = _DEPTH) -> dict[str, Any]:
    """What a file keeps of an error."""
    kind = type(error)
    found: dict[str, Any] = {"type": kind.__name__, "module": kind.__module__, "message": _message(error)}
    found["status_code"] = status_of(error)
    found["headers"] = {name: text for name in _HEADERS if (text := header_of(error, name)) is not None}
    found["transient"] = is_transient(error)
    if isinstance(error, RecordedError):
        found |= {"type": error.type, "module": error.module, "transient": error.transient}
    elif kind.__module__ == "builtins":
        found |= {"module": None, "errno": getattr(error, "errno", None)}
    elif getattr(core, kind.__name__, None) is kind:
        found |= {"module": "rxdelta", "status_code": None, "fields": _fields(error)}
    else:
        return _without_empty(found)
    if error.__cause__ is not None and depth > 1:
        found["cause"] = error_to_dict(error.__cause__, depth - 1)
    return _without_empty(found)


def error_from_dict(found: Mapping[str, Any], depth: int = _DEPTH) -> Exception:
    """The error that a file tells of. It never fails: what can't be made again is a `RecordedError`."""
    name, message, module = (
        _word(found, "type") or "Exception",
        _word(found, "message") or "",
        _word(found, "module"),
    )
    error: Exception | None = None
    if module is None:
        error = _of_python(name, message, found.get("errno"))
    elif module == "rxdelta":
        error = _of_ours(name, message, found.get("fields"))
    if error is None:
        status, transient, headers = found.get("status_code"), found.get("transient"), found.get("headers")
        error = RecordedError(
            message,
            name,
            status_code=status if type(status) is int else None,
            transient=transient if isinstance(transient, bool) else None,
            headers=_texts(headers),
            module=module,
        )
    cause = found.get("cause")
    if isinstance(cause, Mapping) and depth > 1:
        error.__cause__ = error_from_dict(cause, depth - 1)  # pyright: ignore[reportUnknownArgumentType]
    return error


def _message(error: BaseException) -> str:
    try:
        only = error.args[0] if len(error.args) == 1 else None  # `str` of a KeyError is a repr
        text = only if isinstance(only, str) else str(error)
        if isinstance(error, core.ProviderError):
            text = error.message
    except Exception as failure:
        text = f"<its str() raises {type(failure).__name__}>"
    return redact(text)


def _keywords(kind: type[Any]) -> list[str]:
    """The facts that an error of ours takes."""
    parameters = signature(kind.__init__).parameters.values()
    return [one.name for one in parameters if one.kind is Parameter.KEYWORD_ONLY and one.name != "snapshot"]


def _fields(error: BaseException) -> dict[str, Any]:
    values = {name: getattr(error, name, None) for name in _keywords(type(error))}
    return {
        name: redact(value) if isinstance(value, str) else value
        for name, value in values.items()
        if type(value) in (str, int, float, bool)
    }


def _of_ours(name: str, message: str, fields: object) -> Exception | None:
    kind: Any = getattr(core, name, None)
    if not (isinstance(kind, type) and issubclass(kind, RxDeltaError)):
        return None
    given: Mapping[Any, Any] = fields if isinstance(fields, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]
    known = {one: given[one] for one in _keywords(kind) if type(given.get(one)) in (str, int, float, bool)}
    return kind(message, **known)


def _of_python(name: str, message: str, errno: object) -> Exception | None:
    kind: Any = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, _BACK_AS_THEMSELVES)) or issubclass(
        kind, UnicodeError
    ):
        return None
    error: Exception = kind(message)
    if isinstance(error, OSError) and type(errno) is int:
        error.errno = errno
    return error


def _word(found: Mapping[str, Any], name: str) -> str | None:
    value = found.get(name)
    return value if isinstance(value, str) else None


def _texts(headers: object) -> dict[str, str]:
    named: Mapping[Any, Any] = headers if isinstance(headers, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]
    return {name: text for name, text in named.items() if name in _HEADERS and isinstance(text, str)}


def _without_empty(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value is not None and value != {}}
