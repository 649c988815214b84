"""Reading a line from left to right."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from typing import Any, NoReturn

from rxdelta.core import InvalidValueError

__all__ = ["Scanner", "quoted", "shown_literal"]

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
        """What comes before the next one of this mark, which is read, too."""
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
