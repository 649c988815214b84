"""Lines and records: time, values, errors and the end, in both notations."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Literal, Protocol, TypeAlias

import rxdelta.core as core
from rxdelta.core import InvalidValueError, ProviderError, Seconds, check_seconds
from rxdelta.recording import RecordedError
from rxdelta.testing.marbles.items import EventNotation
from rxdelta.testing.marbles.scanner import Scanner, ValueNotation, Values, quoted

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


_WAIT = re.compile(r"\((\d{1,12})(?:\.(\d{1,12}))?(ms|s)\)")
_NAME = re.compile(r"[^\W\d]\w*")
_MOST_DASHES = 20


class _Notation(Protocol):
    @property
    def has_words(self) -> bool:
        """Whether a text continues up to a blank, so that two texts need one between them."""
        ...

    def read(self, scanner: Scanner) -> list[Any]:
        """The values of the item that comes next."""
        ...

    def finish(self) -> list[Any]:
        """The values that `|` tells before it completes."""
        ...

    def drawn(self, values: Sequence[Any], completes: bool) -> tuple[list[str], bool]:
        """The items that say these values, and whether `|` completes them."""
        ...


def _notation(values: Values | None) -> _Notation:
    return EventNotation() if values is None else ValueNotation(values)


def parse(
    line: str, *, values: Values | None = None, frame: Seconds = 0.1, error: Exception | None = None
) -> list[Record]:
    """Read a line.

    Args:
        line: The line; the module says what one is.
        values: The values of the marks: a mapping, or a function such as `str`, which makes the value of each. By default
            the line is one of model events.
        frame: The seconds of a frame.
        error: The exception that `#` is; by default a `ConnectionError`.

    Returns:
        The records, in the order of their times, which are whole microseconds.

    Raises:
        InvalidValueError: The line can't be read; the message shows where.

    Example:
        >>> from rxdelta.testing import marbles
        >>> for record in marbles.parse("-Hi|"):
        ...     print(record)
        (0.1, 'next', MessageStart(id=None, model=None, usage=None, metadata={}, choice=0))
        (0.1, 'next', BlockStart(index=0, content={'type': 'text', 'text': ''}, choice=0))
        (0.1, 'next', TextDelta(index=0, text='Hi', choice=0))
        (0.2, 'next', BlockFinish(index=0, content=None, choice=0))
        (0.2, 'next', MessageFinish(reason='stop', provider_reason=None, usage=None, metadata={}, choice=0))
        (0.2, 'completed', None)
        >>> marbles.parse("a--[bc]", values=str, frame=1)
        [(0.0, 'next', 'a'), (3.0, 'next', 'b'), (3.0, 'next', 'c')]
    """
    return [
        (seconds(time), kind, value)  # type: ignore[misc]
        for time, kind, value in _read(line, _notation(values), microseconds("frame", frame), error)
    ]


def _read(line: str, notation: _Notation, frame: int, error: Exception | None) -> list[Timed]:
    scanner = Scanner(line)
    found: list[Timed] = []
    time, opened = 0, None
    while True:
        scanner.skip_blanks()
        begin = scanner.at
        if not scanner.next:
            break
        if found and found[-1][1] != "next" and scanner.next != "]":
            scanner.fail("nothing comes behind the end")
        if wait := scanner.match(_WAIT):
            time += _waited(wait, scanner, begin)
        elif scanner.takes("-"):
            if opened is not None:
                scanner.fail("there are no dashes in brackets, but waits, such as (40ms)", begin)
            time += frame
        elif scanner.takes("["):
            if opened is not None:
                scanner.fail("there are no brackets in brackets", begin)
            opened = begin
        elif scanner.takes("]"):
            if opened is None:
                scanner.fail("no [ was before it", begin)
            opened = None
            time += frame
        elif scanner.takes("|"):
            found += [*((time, "next", value) for value in notation.finish()), (time, "completed", None)]
        elif isinstance(notation, EventNotation) and scanner.takes("/"):
            found.append((time, "completed", None))
        elif scanner.takes("#"):
            found.append((time, "error", _read_error(scanner, error)))
        else:
            said = [scanner.literal()] if scanner.next == "<" else notation.read(scanner)
            found += [(time, "next", value) for value in said]
            takes_time = bool(said)  # a change of the lane doesn't
            time += frame if takes_time and opened is None else 0
        if time > LATEST:
            scanner.fail("this is later than 1e9 seconds", begin)
    if opened is not None:
        scanner.fail("no ] is behind it", opened)
    return found


def _waited(wait: Any, scanner: Scanner, begin: int) -> int:
    whole, part, unit = wait.groups()
    digits = 3 if unit == "ms" else 6
    part = (part or "").rstrip("0")
    if len(part) > digits:
        scanner.fail("times are whole microseconds", begin)
    return int(whole + part.ljust(digits, "0"))


def _read_error(scanner: Scanner, error: Exception | None) -> Exception:
    name = scanner.match(_NAME)
    if name is None:
        return broken() if error is None else error
    text = ""
    if scanner.takes("("):
        begin = scanner.at
        found = scanner.json()
        if not isinstance(found, str):
            scanner.fail('an error is #Name or #Name("what it says")', begin)
        if not scanner.takes(")"):
            scanner.fail("here the error should end with )")
        text = found
    return error_named(name[0], text)


def draw(
    records: Iterable[Record],
    *,
    values: Values | None = None,
    frame: Seconds = 0.1,
    error: Exception | None = None,
) -> str:
    """Write records as a line, in one form: the same records make the same line.

    `parse` reads the line back to the same records, with times to the microsecond and errors of the same class name and
    text. The only exceptions are values of one's own that have no mark: they are drawn as `<` their `repr` `>`, which is
    read back if it is a literal.

    Args:
        records: The records, in the order of their times.
        values, frame, error: As in `parse`.

    Raises:
        InvalidValueError: They are no records, or not in order.

    Example:
        >>> from rxdelta.testing import marbles
        >>> marbles.draw(marbles.parse('"Let" _me _look. (300ms) (call:look{"at": "sea"}) (usage:9,4) |'))
        'Let _me _look.---(call:look{"at": "sea"})(usage:9,4)|'
        >>> marbles.draw([(0.0, "next", "a"), (0.05, "next", "b"), (0.35, "completed", None)], values=str)
        '[a(50ms)b]--|'
    """
    return _drawn(timed(records), _notation(values), microseconds("frame", frame), error)


def _drawn(records: Sequence[Timed], notation: _Notation, frame: int, error: Exception | None) -> str:
    line, clock = "", 0
    for group in _grouped(records, frame):
        begin = group[0][0]
        line += _gap(begin - clock, frame)
        said: list[str] = []
        time = begin
        for now, found in _by_time(group):
            said += [_wait(now - time)] if now > time else []
            said += _items(found, notation, error)
            time = now
        whole = said[0] if len(said) == 1 else f"[{_joined(said, notation)}]"
        line = _joined([line, whole], notation)
        clock = time + frame
    return line


def _grouped(records: Sequence[Timed], frame: int) -> list[list[Timed]]:
    """The records, those together that are less than a frame behind one another."""
    groups: list[list[Timed]] = []
    for record in records:
        if groups and record[0] - groups[-1][-1][0] < frame:
            groups[-1].append(record)
        else:
            groups.append([record])
    return groups


def _by_time(records: Sequence[Timed]) -> list[tuple[int, list[Timed]]]:
    found: dict[int, list[Timed]] = {}
    for record in records:
        found.setdefault(record[0], []).append(record)
    return [*found.items()]


def _items(records: Sequence[Timed], notation: _Notation, error: Exception | None) -> list[str]:
    """The items of what comes at one time."""
    kind, last = records[-1][1:]
    items, is_finished = notation.drawn(
        [value for _, kind, value in records if kind == "next"], kind == "completed"
    )
    if kind == "completed":
        items.append("|" if is_finished else "/")
    elif kind == "error":
        items.append(_error(last, broken() if error is None else error))
    return items


def _error(error: BaseException, usual: Exception) -> str:
    if error is usual or (type(error) is type(usual) and is_same_error(error, usual)):
        return "#"
    text = error_text(error)
    return f"#{error_name(error)}" + (f"({quoted(text)})" if text else "")


def _gap(gap: int, frame: int) -> str:
    frames, rest = divmod(gap, frame)
    return "-" * frames if not rest and frames <= _MOST_DASHES else _wait(gap)


def _wait(time: int) -> str:
    whole, part, unit = (*divmod(time, 1_000_000), "s") if time >= 1_000_000 else (*divmod(time, 1000), "ms")
    shown = f"{whole}.{part:0{6 if unit == 's' else 3}}".rstrip("0").rstrip(".")
    return f"({shown}{unit})"


def _joined(items: Sequence[str], notation: _Notation) -> str:
    """The items, with a blank between two texts."""
    line = ""
    for item in items:
        both = line and notation.has_words and _is_text(line[-1]) and _is_text(item[0])
        line += f" {item}" if both else item
    return line


def _is_text(char: str) -> bool:
    return char not in "-|/#()[]<>"
