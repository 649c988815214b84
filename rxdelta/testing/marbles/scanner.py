"""Reading a line from left to right; and lines of any values, where each character that is no notation marks one."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from rxdelta.core import InvalidValueError, is_mapping

_JSON = json.JSONDecoder()
_SHOWN = 60  # characters of the line on either side of a mistake
_ODD = re.compile(
    # A lone high surrogate in front of a lone low one would be read as one character if both were escaped.
    r"(?<![\ud800-\udbff])[\udc00-\udfff]|[^\x00-\x7e\udc00-\udfff]"
)


class Scanner:
    """A line, and the place up to which it has been read."""

    def __init__(self, line: str, at: int = 0) -> None:
        self.line = line
        self.at = at

    @property
    def next(self) -> str:
        """The next character; `""` at the end."""
        return self.line[self.at : self.at + 1]

    def skip_blanks(self) -> None:
        while self.next.isspace():
            self.at += 1

    def takes(self, text: str) -> bool:
        """Whether this comes next; then it has been read."""
        if not self.line.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.line, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def up_to(self, mark: str, what: str) -> str:
        """The text before the next such mark, which is read, too."""
        begin, end = self.at, self.line.find(mark, self.at)
        if end < 0:
            self.fail(f"{what} has no {mark} at its end")
        self.at = end + len(mark)
        return self.line[begin:end]

    def json(self) -> Any:
        """The JSON value that comes next."""
        try:
            value, self.at = _JSON.raw_decode(self.line, self.at)
        except json.JSONDecodeError as error:
            self.fail(f"this is no JSON: {error.msg}", error.pos)
        except (ValueError, RecursionError) as error:
            self.fail(f"this JSON can't be read: {error}")
        return value

    def literal(self) -> Any:
        """The literal of Python in `<…>` that comes next."""
        end = self.line.find(">", self.at)
        value: Any = None
        while end >= 0:
            try:
                value = literal_eval(self.line[self.at + 1 : end])
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                end = self.line.find(">", end + 1)
            else:
                break
        if end < 0:
            self.fail(
                "<…> is a literal of Python, such as <'text'> or <3>; give other values a mark with values="
            )
        self.at = end + 1
        return value

    def fail(self, what: str, at: int | None = None) -> NoReturn:
        at = self.at if at is None else at
        begin = max(0, at - _SHOWN)
        shown = self.line[begin : at + _SHOWN].translate({ord(blank): " " for blank in "\n\r\t\v\f"})
        raise InvalidValueError(
            f"the marble line can't be read at {at}: {what}\n  {shown}\n  {' ' * (at - begin)}^",
            field="line",
            value=self.line,
        )


def quoted(value: object) -> str:
    """A value as JSON, on one line. Invisible characters are escaped."""
    return _ODD.sub(lambda found: _escaped(found[0]), json.dumps(value, ensure_ascii=False))


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    code = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[at : at + 4]}" for at in range(0, len(code), 4))


def shown_literal(value: object) -> str:
    """A value that has no other form."""
    shown = repr(value)
    return f"<{shown}>" if shown.isprintable() else f"<{quoted(shown)[1:-1]}>"


Values: TypeAlias = Mapping[str, Any] | Callable[[str], Any]
"""The values of marks: a mapping, or a function that makes the value of a mark."""

_NO_MARKS = "-|#[]()<>"
_ASCII = [chr(code) for code in range(0x21, 0x7F) if chr(code) not in _NO_MARKS]


class ValueNotation:
    """The notation of values that have marks.

    Raises:
        InvalidValueError: A mark is not one character, or is notation; or `values` is neither a mapping nor a function.
    """

    has_words = False

    def __init__(self, values: Values) -> None:
        self._made: Callable[[str], Any] | None = None
        if is_mapping(values):
            self._values: dict[str, Any] = dict(values)
            for mark in self._values:
                if not isinstance(mark, str) or len(mark) != 1 or mark in _NO_MARKS or mark.isspace():
                    fault = f"must be one character, no blank and none of {_NO_MARKS}"
                    raise InvalidValueError.of([("values", mark, fault)])
        elif callable(values):
            self._made, self._values = values, {}
        else:
            raise InvalidValueError.of(
                [("values", values, "must be a mapping of marks, or a function of a mark")]
            )

    def read(self, scanner: Scanner) -> list[Any]:
        mark = scanner.next
        if mark not in self._values:
            if self._made is None or mark in _NO_MARKS:
                scanner.fail(f"values= has no mark {mark!r}")
            try:
                self._values[mark] = self._made(mark)
            except Exception as error:
                scanner.fail(f"values= made no value of the mark {mark!r}: {type(error).__name__}: {error}")
        scanner.at += 1
        return [self._values[mark]]

    def finish(self) -> list[Any]:
        return []

    def drawn(self, values: Sequence[Any], completes: bool) -> tuple[list[str], bool]:
        return [self._mark(value) for value in values], completes

    def _mark(self, value: Any) -> str:
        candidates = [*self._values] if self._made is None else [str(value), *_ASCII]
        return next((mark for mark in candidates if self._is_mark_of(mark, value)), shown_literal(value))

    def _is_mark_of(self, mark: str, value: Any) -> bool:
        if mark not in self._values:
            if self._made is None or len(mark) != 1 or mark in _NO_MARKS or mark.isspace():
                return False
            try:
                self._values[mark] = self._made(mark)
            except Exception:  # it makes no values of other marks than the lines have
                return False
        known = self._values[mark]
        return known is value or (type(known) is type(value) and bool(known == value))
