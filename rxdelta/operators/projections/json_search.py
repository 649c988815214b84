"""The JSON value in a text that a model wrote around it.

Models write a sentence in front of the JSON that they were asked for, a markdown fence around it, or their reasoning
between tags, and a sentence behind it. The value is the first one in the text that begins an object or a list:

- A text that is JSON from its first character, behind a fence and `<think>…</think>`, is shown as it grows, be it a string,
  a number or a word. All other values are searched for.
- Sentences have marks: `[1]`, `[ ]`, `{}`. A value that may be one counts only if none follows that can't be. It is shown at
  the end, unless the text begins with it.
- Text that turns out not to be JSON is passed over, such as `{name}`, or `[{"a": 1} or so]` up to the object. The last string
  of such text may have begun with a quotation mark of a sentence, so the search goes on behind that mark.
- A value that is nested too deep is an error.

The result depends on the text alone, not on its pieces. The time is in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from rxdelta.core import InvalidJson, PartialJsonParser

_STRETCH: Final = 1024
_SPACE: Final = " \t\r\n"
_QUOTE: Final = '"'
_FENCE: Final = "```"
_TAGS: Final = ("<think>", "<thinking>")
_SCALAR: Final = '"-0123456789tfn'
_end_of_first_line = re.compile(r"[\n{\[]").search
_mark = re.compile(r"\[[ \t\r\n]*+[0-9]{0,4}[ \t\r\n]*+\]|\{[ \t\r\n]*+\}").fullmatch
_shows_no_mark = re.compile(r'[",{\[]').search
_bracket = re.compile(  # with what may follow it in JSON, or may come yet
    r'\{(?=[ \t\r\n]*+(?:["}]|\Z))|\[(?=[ \t\r\n]*+(?:[\]\[{"0-9tfn-]|\Z))'
).search
_tokens = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL).finditer
_NOTHING: Final = "no JSON object or list in the text"


class JsonSearch:
    """The search in one text.

    Args:
        max_depth: How deep containers may be nested.

    Attributes:
        shown: The value to show: the one that was found, or may be. A text that was shown and is none stays until another
            value is shown.
        error: Why the search has ended before the text.
    """

    def __init__(self, max_depth: int) -> None:
        self._max_depth = max_depth
        self._read: Callable[[str], str] = self._read_head
        self._at = 0  # the position of the text that is read next
        self._held = ""  # its beginning, which can't be decided alone
        self._has_text = False
        self._closing = ""  # the tag that ends the reasoning
        self._fenced = False
        self._pieces: list[str] = []  # the text from the value on that is being read
        self._first = False  # whether the text begins with that value
        self._weak: PartialJsonParser | None = None  # the first that may be a mark
        self._why: str | None = None  # what was wrong with the first that was shown
        self._value = self.shown = self._parser(0)
        self._start = 0  # where it begins
        self.error: str | None = None

    def feed(self, text: str) -> None:
        """Read more text."""
        self._has_text = self._has_text or bool(text.strip(_SPACE))
        waiting = _stretches(text)
        while waiting:
            text, self._held = self._held + waiting.pop(), ""
            rest = self._read(text)
            if rest:
                waiting += _stretches(rest)

    @property
    def complete(self) -> bool:
        """Whether the value is closed, and no more text can replace it."""
        if self._read == self._read_value:
            return self._value.complete
        return self._read == self._read_nothing and self.error is None

    def close(self) -> object:
        """The value, at the end of the text.

        Raises:
            InvalidJson: The text has no value, or an open one.
        """
        if self.error is not None:
            raise InvalidJson(self.error)
        if self._read == self._read_value:
            self.shown = self._last()
        elif self._read != self._read_nothing:
            if self._weak is None:
                raise InvalidJson(self._why or (_NOTHING if self._has_text else "no text"))
            self.shown = self._weak
        return self.shown.close()

    def _last(self) -> PartialJsonParser:
        """The value at the end of a text that ends with one, which may be open."""
        text = "".join(self._pieces)
        is_closed = self._value.complete and not _mark(text.rstrip(_SPACE))
        if self._first or is_closed or _shows_no_mark(text, 1) or self._weak is None:
            return self._value
        return self._weak

    # Each of these reads from the beginning of the text, and returns the rest for the next one.

    def _read_head(self, text: str) -> str:
        if text[0] in _SPACE:
            return self._behind(text, len(text) - len(text.lstrip(_SPACE)))
        for opening in (*_TAGS, _FENCE):
            if text.startswith(opening):
                self._closing = opening.replace("<", "</")
                self._fenced = opening == _FENCE
                self._read = self._read_first_line if self._fenced else self._read_reasoning
                return self._behind(text, len(opening))
            if opening.startswith(text):
                self._held = text
                return ""
        self._read = self._read_first
        return text

    def _read_reasoning(self, text: str) -> str:
        end = text.find(self._closing)
        if end >= 0:
            self._read = self._read_head
            return self._behind(text, end + len(self._closing))
        sizes = range(len(self._closing) - 1, 0, -1)
        size = next((size for size in sizes if text.endswith(self._closing[:size])), 0)
        self._held = self._behind(text, len(text) - size)
        return ""

    def _read_first_line(self, text: str) -> str:
        end = _end_of_first_line(text)
        if end is None:
            return self._behind(text, len(text))
        self._read = self._read_first if end[0] == "\n" else self._read_prose
        return self._behind(text, end.start())

    def _read_first(self, text: str) -> str:
        if text[0] in _SPACE:
            return self._behind(text, len(text) - len(text.lstrip(_SPACE)))
        if text[0] in _SCALAR or text[0] in "{[":
            self._begin(is_first=True)
        else:
            self._read = self._read_prose
        return text

    def _read_prose(self, text: str) -> str:
        found = _bracket(text)
        if found is None:
            return self._behind(text, len(text))
        rest = self._behind(text, found.start())
        self._begin(is_first=False)
        return rest

    def _read_value(self, text: str) -> str:
        value = self._value
        value.feed(text)
        self._pieces.append(text)
        if value.error is None:
            self._at += len(text)
            if _shows_no_mark(text, 1 if len(self._pieces) == 1 else 0):
                self.shown = value
            return ""
        whole, size, why = "".join(self._pieces), value._failed_at - self._start, value.error
        if why.startswith("nested deeper"):
            self.error = why
            return self._found(value)
        if not value.is_final():
            return self._failed(whole, size, why)
        value._error = None  # the text behind the value is not its error
        return self._closed(whole, size, why)

    def _read_nothing(self, _: str) -> str:
        return ""

    # The common part.

    def _parser(self, start: int) -> PartialJsonParser:
        parser = PartialJsonParser(max_depth=self._max_depth)
        parser._position = start
        return parser

    def _behind(self, text: str, size: int) -> str:
        self._at += size
        return text[size:]

    def _begin(self, *, is_first: bool) -> None:
        self._value, self._start, self._pieces = self._parser(self._at), self._at, []
        self._first = is_first
        self._read = self._read_value
        if is_first:
            self.shown = self._value

    def _found(self, value: PartialJsonParser) -> str:
        self.shown = value
        self._read = self._read_nothing
        return ""

    def _go_on(self, whole: str, size: int) -> str:
        """Go on behind so many characters of the value."""
        self._at = self._start + size
        self._read = self._read_prose
        return whole[size:]

    def _closed(self, whole: str, size: int, why: str) -> str:
        """The value is closed, and something follows."""
        value = self._value
        if whole[0] in _SCALAR:
            if self._fenced and whole[size] == "`":
                return self._found(value)
            self._why = why
            return self._go_on(whole, 0)
        if not _mark(whole[:size].rstrip(_SPACE)):
            return self._found(value)
        self._weak = self._weak or value
        return self._go_on(whole, size)

    def _failed(self, whole: str, size: int, why: str) -> str:
        """The value is none: it can't go on behind so many characters."""
        read = whole[:size]
        if self._why is None and (self._first or _shows_no_mark(read, 1)):
            self._why = why
        if whole[0] in _SCALAR:
            return self._go_on(whole, 0)
        closed, last_string = _parts(read)
        for start, end in closed:
            is_mark = _mark(read, start, end)
            if not is_mark or self._weak is None:
                value = self._parser(self._start + start)
                value.feed(read[start:end])
                if not is_mark:
                    return self._found(value)
                self._weak = value
        return self._go_on(whole, size if last_string is None else last_string + 1)


def _stretches(text: str) -> list[str]:
    """The text in stretches, the last one first. Each text that turns out not to be a value copies the rest behind it."""
    return [text[at : at + _STRETCH] for at in range(0, len(text), _STRETCH)][::-1]


def _parts(read: str) -> tuple[list[tuple[int, int]], int | None]:
    """Where the closed containers are in the beginning of a value, each in none of the others, and the last string."""
    opened: list[int] = []
    closed: list[tuple[int, int]] = []
    last_string: int | None = None
    for token in _tokens(read):
        if token[0][0] == _QUOTE:
            last_string = token.start()
        elif token[0] in "[{":
            opened.append(token.start())
        else:
            start = opened.pop()
            while closed and closed[-1][0] > start:
                closed.pop()
            closed.append((start, token.end()))
    return closed, last_string


class Unfenced:
    """A document without the markdown fence that models often put around it.

    The opening fence and the rest of its line become spaces, so that characters keep their positions. The closing
    fence and all text after it are left out.
    """

    def __init__(self) -> None:
        self._read: Callable[[str, Callable[[], bool]], Iterable[str]] = self._read_start
        self._ticks = ""

    def pieces(self, text: str, is_whole: Callable[[], bool]) -> Iterable[str]:
        """Split the text into pieces. Each must be parsed before the next is requested.

        Args:
            text: The new text.
            is_whole: Whether the parsed pieces are a whole document: then a backtick ends it.
        """
        return self._read(text, is_whole)

    def rest(self) -> str:
        """The held text, at the end of the text."""
        return self._ticks

    def _read_start(self, text: str, is_whole: Callable[[], bool]) -> Iterator[str]:
        if not self._ticks:
            rest = text.lstrip(" \t\r\n")
            yield text[: len(text) - len(rest)]
            text = rest
        text = self._ticks + text
        if len(text) < 3 and text == "`" * len(text):
            self._ticks = text
            return
        self._ticks = ""
        fenced = text.startswith("```")
        self._read = self._read_first_line if fenced else self._read_plain
        yield from self._read(text, is_whole)

    def _read_first_line(self, text: str, is_whole: Callable[[], bool]) -> Iterator[str]:
        line, end, rest = text.partition("\n")
        yield " " * len(line) + end
        if end:
            self._read = self._read_fenced
            yield from self._read(rest, is_whole)

    def _read_fenced(self, text: str, is_whole: Callable[[], bool]) -> Iterator[str]:
        """Pass backticks on until the document is whole: before that they can only be part of a string."""
        at = 0
        while (tick := text.find("`", at)) >= 0:
            yield text[at:tick]
            if is_whole():
                self._read = self._read_nothing
                return
            yield "`"
            at = tick + 1
        yield text[at:]

    def _read_plain(self, text: str, _: Callable[[], bool]) -> Iterable[str]:
        return (text,)

    def _read_nothing(self, _: str, __: Callable[[], bool]) -> Iterable[str]:
        return ()
