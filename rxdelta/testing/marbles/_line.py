"""Lines and records: what both notations share, which is time and the end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

from rxdelta.testing.marbles._events import EventNotation
from rxdelta.testing.marbles._records import (
    LATEST,
    broken,
    error_name,
    error_named,
    error_text,
    is_same_error,
    microseconds,
    seconds,
    timed,
)
from rxdelta.testing.marbles._scanner import Scanner, quoted
from rxdelta.testing.marbles._values import ValueNotation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rxdelta.core import Seconds
    from rxdelta.testing.marbles._records import Record, Timed
    from rxdelta.testing.marbles._values import Values

__all__ = ["draw", "parse"]

_WAIT = re.compile(r"\((\d{1,12})(?:\.(\d{1,12}))?(ms|s)\)")
_NAME = re.compile(r"[^\W\d]\w*")
_MOST_DASHES = 20


class _Notation(Protocol):
    @property
    def has_words(self) -> bool:
        """Whether a text goes on up to a blank, so that two texts need one between them."""
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
