"""Every error that rxdelta raises, under one root, and what makes the texts that they quote harmless.

Each takes its message first and the facts behind it as keywords, so that a handler can act without parsing the
message; pickling keeps both. Errors from `scan_deltas` and later stages also have `.snapshot`, so that a partial
reply is never lost.

Errors are logged, traced and shown by people who don't know the text that is quoted. No rule can find every secret.
These are removed: values whose name says that they are secret (`token=`, `"api_key": "…"`, `Bearer …`,
`https://user:password@…`), values in the form of a known kind of key, and strings too long and too mixed to be words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from functools import wraps
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import attrs
import attrs.exceptions

if TYPE_CHECKING:
    from rxdelta.core.event_classes import StreamError
    from rxdelta.core.snapshot import Snapshot

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SYMBOLS: dict[int, int | str] = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
    **{code: f"\\u{code:04x}" for code in (*range(0x80, 0xA0), *_BIDI)},  # Unicode has no pictures of these
}
_SYMBOLS_IN_LINES = {code: symbol for code, symbol in _SYMBOLS.items() if chr(code) not in "\t\n"}


def visible(text: str, *, lines: bool = True) -> str:
    r"""Replace each character that would control a terminal by a visible symbol.

    These are the control characters (C0, DEL, C1), with which a model could set the window's title, write to the
    clipboard or clear the screen, and the characters that change the direction of writing.

    Args:
        text: Any text of a provider or a model.
        lines: Whether to keep line ends and tabs; otherwise they become symbols, too.

    Example:
        >>> from rxdelta.core import visible
        >>> visible("\x1b[2J"), visible("a\nb"), visible("a\nb", lines=False), visible("\u202eexe.txt")
        ('␛[2J', 'a\nb', 'a␊b', '\\u202eexe.txt')
    """
    return text.replace("\r\n", "\n").translate(_SYMBOLS_IN_LINES if lines else _SYMBOLS)


_GONE: Final = "[redacted]"
_LOOKS = 4  # what stands between two secrets may look like a part of one, once they are gone
_NAMES = (
    r"pass(?:word|wd|phrase|code)|pwd|secret|credentials?|token|signature"
    r"|(?:api|access|secret|private|account|shared|master|auth|session|subscription)[-_ ]?key|(?<![a-z])(?:key|sig|auth)"
)
_BETWEEN = r"""(?:\\{0,6}["'])?(?:\s|\\[nrt]){0,8}[:=](?:\s|\\[nrt]|[(\[{]){0,8}+"""
_STILL_THERE = r"(?!\[?redacted\])"
# The work grows in proportion to the text: repeats are bounded or possessive, so that no alternative backtracks over a
# long stretch; lookaheads span a few characters; and a name is found by its end.
_SECRET = re.compile(
    rf"""
      (?P<line> (?:set-)?cookie {_BETWEEN} ["']? ) {_STILL_THERE} [^"'\r\n]++
    | (?P<name> (?:{_NAMES}|authorization) {_BETWEEN} ) {_STILL_THERE}
      (?:
          (?P<quote> " ) (?: [^"\\] | \\++"? )*+
        | (?P<single> ' ) (?: [^'\\] | \\++'? )*+
        | (?P<escaped> (?P<slashes>\\{{1,6}}) (?P<mark>["']) )
          (?: (?!(?P=mark))[^\\] | \\++(?!(?P=mark)) | (?P=slashes)\\++(?P=mark) )*+
        | (?: (?:bearer|basic|digest|token) \s{{1,8}} )? [^\s"'\\,;&)\]}}]++
      )
    | (?P<scheme> \bbearer \s{{1,8}} ) {_STILL_THERE} [^\s"'\\,;)\]}}]++
    | (?P<url> :// ) (?: [^\s"'/@]{{1,256}}+ @ )++
    | -----BEGIN[A-Z\ ]{{0,40}}PRIVATE\ KEY-----(?:(?!-----END).)*+
    | (?<![a-z0-9]) (?:
          (?:sk|pk|rk|gsk|csk|hf|r8|xai|pplx|tvly|nvapi|gh[opsur]|github_pat|glpat|xox[a-z]|ya29)[-_.][\w.-]{{6,}}+
        | (?-i: AIza[\w-]{{10,}}+ | A[KS]IA[A-Z0-9]{{12,}}+ | eyJ[\w-]{{6,}}+(?:\.[\w-]*+){{0,4}} )
      )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL | re.ASCII,
)
_OPAQUE = re.compile(r"[A-Za-z0-9+/_=-]{32,}+")
_KEPT = ("line", "name", "scheme", "url")
_QUOTES = ("quote", "single", "escaped")
_STRETCH = re.compile(r"[A-Za-z0-9]{16,}+")


def redact(text: str) -> str:
    """The text with apparent secrets replaced by `[redacted]`. The name before a secret stays.

    Takes time in proportion to the text's length. Long random strings are replaced too, although some are ids: a lost
    clue is better than a leak.

    Example:
        >>> redact('{"error": "bad key", "api_key": "sk-abc123def456"}')
        '{"error": "bad key", "api_key": "[redacted]"}'
        >>> redact("GET /?token=abc&page=2 with Bearer abc.def")
        'GET /?token=[redacted]&page=2 with Bearer [redacted]'
    """
    for _ in range(_LOOKS):
        # Names first: a long run of letters may end with a name, and the secret follows it.
        seen, text = text, _OPAQUE.sub(_unless_words, _SECRET.sub(_without, text))
        if text == seen:
            break
    return text


def _unless_words(match: re.Match[str]) -> str:
    run = match[0]
    return _GONE if any(_is_mixed(stretch[0]) for stretch in _STRETCH.finditer(run)) else run


def _without(match: re.Match[str]) -> str:
    kept = "".join(match[group] or "" for group in (*_KEPT, *_QUOTES))
    return f"{kept}{_GONE}{'@' if match['url'] else ''}"


def _is_mixed(text: str) -> bool:
    """Whether the text has both letters and digits, as no word has."""
    return not text.isalpha() and not text.isdigit()


T = TypeVar("T", bound=type)


class FrozenInstanceError(attrs.exceptions.FrozenInstanceError):
    """That of attrs, with a text of our own."""

    def __init__(self, msg: str) -> None:
        AttributeError.__init__(self, msg)
        self.msg = msg


def refuse_change(self: Any, name: str, _: object) -> NoReturn:
    """The `__setattr__` of a value. That of attrs says only that it can't."""
    kind: Any = self.__class__
    is_field = any(name == field.alias for field in attrs.fields(kind) if field.init)
    cure = f"attrs.evolve(value, {f'{name}=…' if is_field else '…'})"
    if hasattr(kind, "__attrs_init__"):  # a snapshot, whose constructor doesn't take the fields
        cure = "rd.apply_event(snapshot, event)"
    raise FrozenInstanceError(f"a {kind.__name__} is a value, which doesn't change; {cure} makes another")


def public_signature(cls: type) -> Signature:
    """The signature without the fields that only the library gives, whose names there begin with an underscore."""
    whole = signature(cls)
    public = [one for name, one in whole.parameters.items() if not name.startswith("_")]
    return whole.replace(parameters=public)


def explained(cls: T, advice: str) -> T:
    """The attrs class, all of whose fields are given by name. The error of a wrong call says what is right.

    Args:
        cls: The class.
        advice: How a value is usually made.
    """
    make: Any = cls.__init__  # type: ignore[misc]
    fields = {field.alias for field in attrs.fields(cls) if field.init}

    @wraps(make)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        if args:
            raise TypeError(f"{cls.__name__} takes its fields by their names; {advice}")
        unknown = given.keys() - fields
        if unknown:
            raise TypeError(f"{cls.__name__} has no field {', '.join(map(repr, sorted(unknown)))}; {advice}")
        make(self, **given)

    cls.__init__ = checked  # type: ignore[misc]
    return cls


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
        action: The refused action: `"publish"`, `"watch"`, `"cancel"` or `"delete"`.
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
