"""Every error that rxdelta raises, under one root.

Each takes its message first and the facts behind it as keywords, so that a handler can act without parsing the
message; pickling keeps both. Errors from `scan_deltas` and later stages also have `.snapshot`, so that a partial
reply is never lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

from rxdelta.core._redact import redact
from rxdelta.core._visible import visible

if TYPE_CHECKING:
    from rxdelta.core._events import StreamError
    from rxdelta.core._snapshot import Snapshot

__all__ = [
    "AccessDeniedError",
    "BufferOverflowError",
    "EmptyStreamError",
    "GuardError",
    "IncompleteMessageError",
    "InvalidToolCallError",
    "InvalidValueError",
    "LimitExceededError",
    "MalformedChunkError",
    "MergeError",
    "ProtocolError",
    "ProviderError",
    "RxDeltaError",
    "StallTimeoutError",
    "StreamInterrupted",
    "ToolError",
    "UnknownWireFormatError",
    "quote",
]

_QUOTED = 200


class RxDeltaError(Exception):
    """The root of all errors of this library.

    Attributes:
        snapshot: The reply as folded when the error occurred; `None` if there was no fold.
    """

    snapshot: Snapshot | None = None

    def __init__(self, message: str, *, snapshot: Snapshot | None = None) -> None:
        super().__init__(message)
        self.snapshot = snapshot


class InvalidValueError(RxDeltaError, ValueError):
    """A value was constructed with an invalid field.

    Attributes:
        field: The name of the (first) invalid field.
        value: The field's invalid value.
    """

    def __init__(self, message: str, *, field: str = "", value: object = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value

    @classmethod
    def of(
        cls, problems: Sequence[tuple[str, object, str] | tuple[str, object, str, str]]
    ) -> InvalidValueError:
        """One error for all invalid fields of one value.

        Args:
            problems: Each as (field, value, fault), or as (field, value, fault, advice).
        """
        faults = "; ".join(f"{quote(field)}: {wrong}" for field, _, wrong, *_ in problems)
        got = ", ".join(f"{quote(field)}={quote(_shown(value))}" for field, value, *_ in problems)
        advice = "".join(f"; {text}" for _, _, _, *texts in problems for text in texts if text)
        return cls(f"{faults} (got {got}){advice}", field=problems[0][0], value=problems[0][1])


class AccessDeniedError(RxDeltaError):
    """Your application doesn't allow this use of a stream. It isn't said whether there is such a stream.

    `__cause__` is the exception of a check that failed; `None` if the check said no.

    Attributes:
        action: What was to be done: `"publish"`, `"watch"`, `"cancel"` or `"delete"`.
        stream_id: The id of the stream.
    """

    def __init__(self, message: str, *, action: str = "", stream_id: str = "") -> None:
        super().__init__(message)
        self.action = action
        self.stream_id = stream_id


class MalformedChunkError(RxDeltaError, ValueError):
    """A chunk, or the bytes that should hold one, does not conform to the wire format.

    Attributes:
        wire_format: The name of the format, as in `decode(wire_format)`.
        path: The place in the chunk, e.g. `choices[0].delta.content`; `""` is the chunk itself.
        found: The value at that place, shortened, with apparent secrets removed.
    """

    def __init__(self, message: str, *, wire_format: str = "", path: str = "", found: str = "") -> None:
        super().__init__(message)
        self.wire_format = wire_format
        self.path = path
        self.found = found

    @classmethod
    def at(cls, wire_format: str, path: str, expected: str, found: object) -> MalformedChunkError:
        """The usual case: `found` is at `path`, where the format requires `expected`."""
        where = f"at {path}" if path else "as the chunk"
        shown = quote(_shown(found))
        return cls(
            f"malformed {wire_format} chunk: {where} expected {expected}, found {shown}",
            wire_format=wire_format,
            path=path,
            found=shown,
        )


class ProtocolError(RxDeltaError):
    """Events came in an order that the protocol forbids.

    Attributes:
        violation: The broken rule, e.g. `"delta_before_start"`; see `rxdelta.operators.validate`.
    """

    def __init__(self, message: str, *, violation: str = "") -> None:
        super().__init__(message)
        self.violation = violation


class MergeError(RxDeltaError):
    """Two values cannot be merged: their indexes differ, or the accumulator's role is not `assistant`."""


class ProviderError(RxDeltaError):
    """The provider reported an error inside the stream.

    Attributes:
        message: The provider's own message.
        type: The provider's error type, e.g. `"overloaded_error"`; `None` if it sent none.
        code: The provider's code as text, a word or a number; `None` if it sent none. If the provider said by the
            reply's finish reason that it failed, this is the finish reason.
        transient: Whether another try may succeed, where the decoder knows. `None` leaves it to `type` and `code`,
            which `is_transient` reads.
    """

    def __init__(
        self,
        message: str,
        *,
        type: str | None = None,
        code: str | None = None,
        transient: bool | None = None,
        snapshot: Snapshot | None = None,
    ) -> None:
        label = "/".join(word for word in (type, code) if word)
        super().__init__(
            f"the provider ended the stream with an error{f' ({label})' if label else ''}: {message}"
        )
        self.message = message
        self.type = type
        self.code = code
        self.transient = transient
        self.snapshot = snapshot

    @classmethod
    def by(cls, event: StreamError) -> ProviderError:
        """The error that a `StreamError` is."""
        return cls(event.message, type=event.type, code=event.code, transient=event.transient)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.message,), self.__dict__ | {"args": self.args})


class IncompleteMessageError(RxDeltaError):
    """A message was requested from an unfinished snapshot, which is in `.snapshot`."""


class InvalidToolCallError(RxDeltaError, ValueError):
    """A tool call lacks its id or name, or its arguments are not one JSON object.

    Attributes:
        call_id: The call's id, if it has one.
        name: The tool's name, if it has one.
        field: The invalid field: `"call_id"`, `"name"` or `"arguments"`.
    """

    def __init__(
        self, message: str, *, call_id: str | None = None, name: str | None = None, field: str = ""
    ) -> None:
        super().__init__(message)
        self.call_id = call_id
        self.name = name
        self.field = field


class StreamInterrupted(RxDeltaError):
    """The stream broke off because of an exception from outside the library, which is `__cause__`."""

    @classmethod
    def by(cls, cause: BaseException, *, snapshot: Snapshot | None = None) -> StreamInterrupted:
        """The usual case: an exception from outside the library ended the stream."""
        error = cls(f"the stream broke off: {described(cause)}", snapshot=snapshot)
        error.__cause__ = cause
        return error


class StallTimeoutError(RxDeltaError):
    """The stream emitted nothing for longer than a limit.

    Attributes:
        limit: The limit that was reached: `"first"`, `"idle"` or `"total"`.
        seconds: The limit's length.
    """

    def __init__(
        self, message: str, *, limit: str = "", seconds: float = 0.0, snapshot: Snapshot | None = None
    ) -> None:
        super().__init__(message, snapshot=snapshot)
        self.limit = limit
        self.seconds = seconds


class EmptyStreamError(RxDeltaError):
    """A value was requested from a stream that completed without one."""


class GuardError(RxDeltaError):
    """A check of `guard` refused a part of the reply. The snapshot has what was let pass."""


class BufferOverflowError(RxDeltaError):
    """A consumer was too slow for a bounded buffer whose policy is to raise."""


class LimitExceededError(RxDeltaError):
    """Untrusted input exceeded a limit; see `rxdelta.Limits`.

    Attributes:
        limit: The name of the limit, a field of `Limits`.
        maximum: The limit's value.
    """

    def __init__(self, message: str, *, limit: str = "", maximum: int = 0) -> None:
        super().__init__(message)
        self.limit = limit
        self.maximum = maximum

    @classmethod
    def of(cls, limit: str, maximum: int, what: str) -> LimitExceededError:
        return cls(
            f"{what} exceeds the limit of {maximum:,} ({limit}); rd.with_limits(rd.Limits({limit}=…)) allows a trusted source more",
            limit=limit,
            maximum=maximum,
        )


class ToolError(RxDeltaError):
    """Raised by a tool to explain its failure. It is the only exception of a tool whose text is shown.

    The text goes to the model, and to every reader of the call's result.

    Example:
        >>> import rxdelta as rd
        >>> def get_forecast(city: str) -> str:
        ...     raise rd.ToolError(f"there is no city called {city}")
    """


class UnknownWireFormatError(RxDeltaError, LookupError):
    """No decoder has this name, or no known format begins with such a chunk."""


def as_exception(error: BaseException) -> Exception:
    """The error as an `Exception`, which is all that `on_error` takes; another `BaseException` is wrapped."""
    return error if isinstance(error, Exception) else StreamInterrupted.by(error)


def with_snapshot(error: Exception, snapshot: Snapshot) -> RxDeltaError:
    """The error as the reader of a reply gets it, with the reply so far."""
    if not isinstance(error, RxDeltaError):
        return StreamInterrupted.by(error, snapshot=snapshot)
    if error.snapshot is not None and error.snapshot is not snapshot:
        # Another subscription got the same error object, with its own snapshot: copy, so that each keeps its own.
        error, original = copy(error), error
        error.__traceback__, error.__cause__ = original.__traceback__, original.__cause__
    error.snapshot = snapshot
    return error


def described(error: BaseException) -> str:
    """The exception's type and text, even if its `str()` raises."""
    try:
        text = str(error)
    except Exception as failure:
        text = f"<its str() raises {type(failure).__name__}>"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def quote(text: str) -> str:
    """The beginning of a text for an error message, on one line, with apparent secrets, such as keys, removed.

    Errors are logged and shown on terminals, so what would control a terminal is made visible.

    Example:
        >>> quote('{"token": "sk-abc123def456"}')
        '{"token": "[redacted]"}'
        >>> len(quote("to be " * 1000))
        200
    """
    # Redact more text than is shown: the beginning of a secret that is cut in two does not look like a secret.
    shown = visible(redact(text[: 2 * _QUOTED]), lines=False)
    if len(text) > 2 * _QUOTED:
        shown = f"{shown[:-_QUOTED]}…"
    return shown if len(shown) <= _QUOTED else f"{shown[: _QUOTED - 1]}…"


def _shown(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:  # a hostile __repr__ must not hide the error that is being reported
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
