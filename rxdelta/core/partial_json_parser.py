"""Read a JSON document while it is still arriving, in fragments cut anywhere.

A model's tool arguments come a few characters at a time. Parsing the text again after each fragment costs
quadratic time. This parser reads every character once and keeps its state: in a container, between two tokens,
inside a string, an escape or a number. A closed container is frozen and shared by all values that are returned, so
reading the value copies only the containers that are still open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, cast

from rxdelta.core.json_values import (
    FrozenDict,
    FrozenList,
    InvalidJson,
    clean_text,
    read_decimal,
    read_integer,
)

# The states of the parser, between tokens ...
_VALUE: Final = 0
_VALUE_OR_END: Final = 1
_KEY: Final = 2
_KEY_OR_END: Final = 3
_COLON: Final = 4
_COMMA_OR_END: Final = 5
_DONE: Final = 6
# ... or inside one.
_IN_STRING: Final = 7
_IN_KEY: Final = 8
_IN_NUMBER: Final = 9
_IN_WORD: Final = 10

_WANTED: Final = {
    _VALUE: "a value",
    _VALUE_OR_END: "a value or ']'",
    _KEY: "a key in double quotes",
    _KEY_OR_END: "a key in double quotes or '}'",
    _COLON: "':'",
    _DONE: "nothing more",
    _IN_STRING: "the end of a string",
    _IN_KEY: "the end of a key",
    _IN_NUMBER: "a digit",
}

_SPACE: Final = " \t\r\n"
_NUMBER_START: Final = "-0123456789"
_NUMBER_STOP: Final = " \t\r\n,]}"

_not_space = re.compile(r"[^ \t\r\n]").search
_string_stop = re.compile(r'["\\\x00-\x1f]').search
_lenient_string_stop = re.compile(r'["\\]').search
_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").match

_escape = re.compile(r'\\(?:u([0-9a-fA-F]{4})|["\\/bfnrt])').match
_second_escape = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})").match
_cut_escape = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z").match
_cut_second_escape = re.compile(r"(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?\Z").match
_SHORT_ESCAPES: Final = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}

_WORDS: Final[dict[str, tuple[str, object]]] = {
    "t": ("true", True),
    "f": ("false", False),
    "n": ("null", None),
}

_DIGITS: Final = "0123456789"
# For a number that is cut: in each phase, the next phase for each possible character.
_NUMBER_PHASES: Final[dict[str, dict[str, str]]] = {
    "start": {"-": "minus", "0": "zero", **dict.fromkeys("123456789", "integer")},
    "minus": {"0": "zero", **dict.fromkeys("123456789", "integer")},
    "zero": {".": "point", "e": "exponent", "E": "exponent"},
    "integer": {".": "point", "e": "exponent", "E": "exponent", **dict.fromkeys(_DIGITS, "integer")},
    "point": dict.fromkeys(_DIGITS, "fraction"),
    "fraction": {"e": "exponent", "E": "exponent", **dict.fromkeys(_DIGITS, "fraction")},
    "exponent": {"+": "sign", "-": "sign", **dict.fromkeys(_DIGITS, "power")},
    "sign": dict.fromkeys(_DIGITS, "power"),
    "power": dict.fromkeys(_DIGITS, "power"),
}
_WHOLE_INTEGER: Final = frozenset({"zero", "integer"})
_WHOLE_NUMBER: Final = _WHOLE_INTEGER | {"fraction", "power"}


class _Missing:
    """The type of `_MISSING`: no value yet, as opposed to JSON's null."""


_MISSING: Final = _Missing()


class PartialJsonParser:
    """Parses one strict JSON document while its fragments arrive.

    It accepts exactly the texts that `parse_json` accepts. Any other text, also one nested deeper than `max_depth`,
    sets `error` and ends the parsing. Feeding takes time in proportion to the fragment, wherever the document is
    cut. Not for use by two threads at once.

    Args:
        max_depth: How deep containers may be nested.
        control_characters: Whether strings may have control characters, such as line ends, that aren't escaped. A
            call's arguments may, because models write them.

    Example:
        >>> reader = PartialJsonParser()
        >>> reader.feed('{"city": "Os')
        >>> reader.value
        {'city': 'Os'}
        >>> reader.feed('lo", "days": 1')
        >>> reader.value, reader.is_final(["city"])
        ({'city': 'Oslo'}, True)
        >>> reader.feed("2}")
        >>> reader.close()
        {'city': 'Oslo', 'days': 12}
    """

    __slots__ = (
        "_before_repeat",
        "_closed",
        "_containers",
        "_count",
        "_error",
        "_failed_at",
        "_is_shown",
        "_keys",
        "_max_depth",
        "_open_text",
        "_phase",
        "_pieces",
        "_position",
        "_root",
        "_shown",
        "_state",
        "_string_stop",
        "_tail",
        "_word",
    )

    def __init__(self, *, max_depth: int = 200, control_characters: bool = False) -> None:
        self._max_depth = max_depth
        self._string_stop = _lenient_string_stop if control_characters else _string_stop
        self._state = _VALUE
        self._root: object = _MISSING
        # The open containers, outermost first, with their closed members only (an open one may have left None in its
        # place). For each of them, the key whose value is awaited or open, None between members; in lists the index.
        self._containers: list[dict[str, object] | list[object]] = []
        self._keys: list[Any] = []
        # The open string as far as it has been shown; then the pieces that have come since, or those of an open number:
        # joining them at every fragment would take quadratic time.
        self._open_text = ""
        self._pieces: list[str] = []
        self._count = 0  # of changes; those of the open string are its pieces
        # From the first repeated key on, a change may lead back to an older value: the one that was read last, then.
        self._before_repeat: object = None
        self._phase = "start"
        # The open literal: the letters still awaited, and its value.
        self._word: tuple[str, object] = ("", None)
        # The end of the text if it has no meaning alone: a cut escape, or half a surrogate pair.
        self._tail: str = ""
        # The number of characters read before the current text, without the tail.
        self._position = 0
        # The value that was read last, and whether it is still the value.
        self._shown: object = _MISSING
        self._is_shown = False
        self._error: str | None = None
        # Where the reading stopped at an error: outside of strings, no bracket or quotation mark is between here and it.
        self._failed_at = 0
        self._closed = False

    def feed(self, fragment: str) -> None:
        """Read one more fragment. Invalid text does not raise: see `error`.

        After an error or `close()`, fragments are ignored.

        Example:
            >>> reader = PartialJsonParser()
            >>> reader.feed("[1, 2, ")
            >>> reader.feed("x")
            >>> reader.value, reader.error
            ([1, 2], "not valid JSON: expected a value but found 'x' at character 7")
        """
        if self._error is not None or self._closed or not fragment:
            return
        if type(fragment) is not str:
            fragment = "".join((fragment,))  # a subclass of str may index and compare differently
        text = self._tail + fragment if self._tail else fragment
        held = ""
        if not text.isascii():
            if "\ud800" <= text[-1] <= "\udbff":
                held = text[-1]
                text = text[:-1]
            text = clean_text(text)
        if text and self._state == _IN_STRING and self._string_stop(text) is None:
            # As `_read_string`, with less around it: most fragments are of this kind.
            self._pieces.append(text)
            self._position += len(text)
            self._tail = held
            self._is_shown = False
            return
        self._read(text)
        self._tail += held

    @property
    def value(self) -> object:
        """The document so far; `None` if it has not begun (see `started`).

        An open string is shown up to its last whole character, an open container with its members so far. A
        number or literal is not shown before it is complete, nor a key before its value begins. After an error
        the value no longer changes.

        Dicts and lists are read-only (`FrozenDict`, `FrozenList`) and never change afterwards. Reading copies
        the containers that are still open, with references to their members, and the open string. So reading after
        every fragment takes time in proportion to the number of members of the open containers.

        Example:
            >>> reader = PartialJsonParser()
            >>> reader.feed('{"days": [{"high": 21}, {"high": 1')
            >>> reader.value
            {'days': [{'high': 21}, {}]}
        """
        if not self._is_shown:
            self._shown = _MISSING  # let go of its string, before that grows
            self._shown = self._show()
            self._is_shown = True
        return None if self._shown is _MISSING else self._shown

    @property
    def started(self) -> bool:
        """Whether there is a value to show. Distinguishes a `null` from no document.

        Example:
            >>> reader = PartialJsonParser()
            >>> reader.feed("nul")
            >>> reader.value, reader.started
            (None, False)
            >>> reader.feed("l")
            >>> reader.value, reader.started
            (None, True)
        """
        return bool(self._containers) or self._root is not _MISSING or self._state == _IN_STRING

    @property
    def complete(self) -> bool:
        """Whether one whole document has been read, with only whitespace after it.

        A document that is a number is complete only after whitespace or `close()`: a digit may follow.

        Example:
            >>> reader = PartialJsonParser()
            >>> reader.feed("{} ")
            >>> reader.complete
            True
        """
        return self._state == _DONE and not self._tail and self._error is None

    @property
    def error(self) -> str | None:
        """The reason why the text cannot become strict JSON, and the character (from 0); `None` while it can.

        Example:
            >>> reader = PartialJsonParser()
            >>> reader.feed('{"a" 1}')
            >>> reader.error
            "not valid JSON: expected ':' but found '1' at character 5"
        """
        return self._error

    def is_final(self, path: Sequence[str | int] = ()) -> bool:
        """Whether the value at `path`, a list of keys and indexes from the outermost container, is closed.

        A final value never changes, with one exception: if a document repeats a key, the last value counts, and the
        path is not final between the repeated key and the end of its new value. A path that does not exist yet is not
        final.

        Example:
            >>> reader = PartialJsonParser()
            >>> reader.feed('{"a": [1, "x"], "b": ["y", "z')
            >>> reader.is_final(["a"]), reader.is_final(["a", 1]), reader.is_final(["b", 0])
            (True, True, True)
            >>> reader.is_final(), reader.is_final(["b"]), reader.is_final(["b", 1])
            (False, False, False)
        """
        if not path:
            return not self._containers and self._root is not _MISSING
        for depth, (container, key) in enumerate(zip(self._containers, self._keys)):
            if depth == len(path):
                return False
            step = path[depth]
            if step != key or isinstance(step, bool):
                return _has(container, path[depth:])
        return not self._containers and self._root is not _MISSING and _has(self._root, path)

    def close(self) -> object:
        """End the text and return the whole document, which equals `parse_json` of the text.

        Raises:
            InvalidJson: The text was not strict JSON, or ended too early. Raised at every call of `close`.

        Example:
            >>> reader = PartialJsonParser()
            >>> reader.feed("42")
            >>> reader.value, reader.close(), reader.value
            (None, 42, 42)
        """
        if not self._closed and self._error is None:
            self._finish()
        self._closed = True
        if self._error is not None:
            raise InvalidJson(self._error)
        return self.value

    @property
    def _changes(self) -> int:
        """How often the value has changed, so that two values needn't be compared. To be closed is no change."""
        return self._count + len(self._pieces) if self._state == _IN_STRING else self._count

    def _open_path(self) -> tuple[str | int, ...] | None:
        """The keys and indexes on the way to the innermost open value that is shown; `None` if all are closed."""
        path = tuple(self._keys)
        if self._state == _IN_STRING:
            return path
        if not path:
            return () if self._root is _MISSING else None
        innermost = self._containers[-1]
        return path if isinstance(innermost, dict) and path[-1] in innermost else path[:-1]  # a repeated key

    def __repr__(self) -> str:
        read = f"{self._position + len(self._tail):,} characters"
        if self._error is not None:
            return f"<PartialJsonParser: {read}, {self._error}>"
        if self.complete:
            return f"<PartialJsonParser: {read}, complete>"
        return f"<PartialJsonParser: {read}, {len(self._containers)} containers open>"

    def _read(self, text: str) -> None:
        """Read `text`, which begins with the previous tail and has no surrogates."""
        self._tail = ""
        self._is_shown = False
        at, size, steps = 0, len(text), self._steps
        try:
            while at < size:
                at = steps[self._state](self, text, at)
        except InvalidJson as error:
            self._error = error.reason
            self._failed_at = self._position + at
        self._position += size - len(self._tail)

    def _finish(self) -> None:
        self._is_shown = False
        if self._tail:
            self._read(clean_text(self._tail))
        if self._error is not None:
            return
        if self._state == _IN_NUMBER and not self._containers and self._phase in _WHOLE_NUMBER:
            try:
                self._end_number(0)
            except InvalidJson as error:
                self._error = error.reason
        elif self._state != _DONE:
            blank = self._state == _VALUE and not self._containers
            cut = f"not valid JSON: it ends where {self._wanted()} should follow"
            self._error = "no text" if blank else cut

    # Each step handles one state. It reads from text[at] on and returns the place where it stopped: further on, or
    # the same place in another state. It raises InvalidJson for invalid text.

    def _read_value(self, text: str, at: int) -> int:
        first = text[at]
        if first == '"':
            return self._begin_string(text, at, _IN_STRING)
        if first in _NUMBER_START:
            return self._begin_number(text, at)
        if first == "{":
            return self._open({}, _KEY_OR_END, at)
        if first == "[":
            return self._open([], _VALUE_OR_END, at)
        if first in _SPACE:
            return _skip_space(text, at)
        if first in _WORDS:
            self._word = _WORDS[first]
            self._state = _IN_WORD
            return at
        if first == "]" and self._state == _VALUE_OR_END:
            return self._close_container(at)
        raise self._unexpected(text, at)

    def _read_key(self, text: str, at: int) -> int:
        first = text[at]
        if first == '"':
            return self._begin_string(text, at, _IN_KEY)
        if first in _SPACE:
            return _skip_space(text, at)
        if first == "}" and self._state == _KEY_OR_END:
            return self._close_container(at)
        raise self._unexpected(text, at)

    def _read_colon(self, text: str, at: int) -> int:
        if text[at] == ":":
            self._state = _VALUE
            return (
                at + 2 if text.startswith(" ", at + 1) else at + 1
            )  # one blank is usual, and needs no step of its own
        if text[at] in _SPACE:
            return _skip_space(text, at)
        raise self._unexpected(text, at)

    def _read_comma_or_end(self, text: str, at: int) -> int:
        first = text[at]
        in_list = isinstance(self._containers[-1], list)
        if first == ",":
            self._state = _VALUE if in_list else _KEY
            return at + 2 if text.startswith(" ", at + 1) else at + 1
        if first == ("]" if in_list else "}"):
            return self._close_container(at)
        if first in _SPACE:
            return _skip_space(text, at)
        raise self._unexpected(text, at)

    def _read_end(self, text: str, at: int) -> int:
        if text[at] in _SPACE:
            return _skip_space(text, at)
        raise self._unexpected(text, at)

    def _read_string(self, text: str, at: int) -> int:
        found = self._string_stop(text, at)
        stop = found.start() if found else len(text)
        if stop > at:
            self._pieces.append(text[at:stop])
        if found is None:
            return stop
        if found[0] == '"':
            self._end_string(self._open_text + "".join(self._pieces))
            return stop + 1
        if found[0] == "\\":
            return self._read_escape(text, stop)
        raise self._invalid("an unescaped control character in a string", stop)

    def _read_escape(self, text: str, at: int) -> int:
        found = _escape(text, at)
        if found is None:
            if _cut_escape(text, at):
                return self._keep_tail(text, at)
            raise self._invalid("an escape that JSON does not have", at)
        after = found.end()
        if found[1] is None:
            self._pieces.append(_SHORT_ESCAPES[text[at + 1]])
            return after
        code = int(found[1], 16)
        if 0xD800 <= code < 0xDC00:
            second = _second_escape(text, after)
            if second is None:
                if _cut_second_escape(text, after):
                    return self._keep_tail(text, at)
            else:
                code = 0x10000 + ((code - 0xD800) << 10) + (int(second[1], 16) - 0xDC00)
                after = second.end()
        self._pieces.append(clean_text(chr(code)))
        return after

    def _read_number(self, text: str, at: int) -> int:
        phase = self._phase
        stop = at
        while stop < len(text):
            following = _NUMBER_PHASES[phase].get(text[stop])
            if following is None:
                break
            phase = following
            stop += 1
        self._phase = phase
        self._pieces.append(text[at:stop])
        if stop < len(text):
            if phase not in _WHOLE_NUMBER:
                raise self._unexpected(text, stop)
            self._end_number(stop)
        return stop

    def _read_word(self, text: str, at: int) -> int:
        letters, meaning = self._word
        part = text[at : at + len(letters)]
        if not letters.startswith(part):
            wrong = next(n for n, letter in enumerate(part) if letter != letters[n])
            raise self._unexpected(text, at + wrong, repr(letters[wrong:]))
        if len(part) == len(letters):
            self._count += 1
            self._put(meaning)
        else:
            self._word = (letters[len(part) :], meaning)
        return at + len(part)

    def _begin_string(self, text: str, at: int, state: int) -> int:
        found = self._string_stop(text, at + 1)
        stop = found.start() if found else len(text)
        self._state = state
        if state == _IN_STRING:
            self._count += 1
        if found and found[0] == '"':
            self._end_string(text[at + 1 : stop])
            return stop + 1
        self._pieces = [text[at + 1 : stop]]
        return stop

    def _end_string(self, string: str) -> None:
        if self._state == _IN_KEY:
            self._keys[-1] = string
            self._state = _COLON
            if self._before_repeat is None and string in self._containers[-1]:
                self._before_repeat = self._shown
        else:
            self._count += len(self._pieces)
            self._put(string)
        self._open_text = ""
        self._pieces = []

    def _begin_number(self, text: str, at: int) -> int:
        found = _number(text, at)
        if found:
            stop = found.end()
            if stop < len(text) and text[stop] in _NUMBER_STOP:
                number = found[0]
                is_integer = number.isdigit() or number[1:].isdigit()
                self._put_number(number, is_integer, stop)
                return stop
        self._pieces = []
        self._phase = "start"
        self._state = _IN_NUMBER
        return at

    def _end_number(self, at: int) -> None:
        self._put_number("".join(self._pieces), self._phase in _WHOLE_INTEGER, at)
        self._pieces = []

    def _put_number(self, number: str, is_integer: bool, at: int) -> None:
        self._count += 1
        try:
            self._put(read_integer(number) if is_integer else read_decimal(number))
        except InvalidJson as error:
            raise InvalidJson(f"{error.reason}, before character {self._position + at}") from None

    def _open(self, container: dict[str, object] | list[object], state: int, at: int) -> int:
        if len(self._containers) >= self._max_depth:
            raise InvalidJson(f"nested deeper than {self._max_depth} at character {self._position + at}")
        self._count += 1
        self._containers.append(container)
        self._keys.append(None if isinstance(container, dict) else 0)
        self._state = state
        return at + 1

    def _close_container(self, at: int) -> int:
        container = self._containers.pop()
        self._keys.pop()
        # Frozen once, here, so that all values returned from now on share it.
        self._put(FrozenList(container) if isinstance(container, list) else FrozenDict(container))
        return at + 1

    def _put(self, value: object) -> None:
        """Add a closed value to the innermost open container."""
        if not self._containers:
            self._root = value
            self._state = _DONE
            return
        container = self._containers[-1]
        if isinstance(container, list):
            container.append(value)
            self._keys[-1] = len(container)
        else:
            container[self._keys[-1]] = value
            self._keys[-1] = None
        self._state = _COMMA_OR_END

    def _keep_tail(self, text: str, at: int) -> int:
        self._tail = text[at:]
        return len(text)

    def _show(self) -> object:
        shown: object = _MISSING
        if self._state == _IN_STRING:
            # CPython extends a string in its place if nothing else refers to it: if nobody keeps the last reading.
            text, self._open_text = self._open_text, ""
            text += "".join(self._pieces)
            self._count += len(self._pieces)
            self._pieces.clear()
            self._open_text = shown = text
        for depth in range(len(self._containers) - 1, -1, -1):
            container = self._containers[depth]
            # The open member is put in for the copy: `[*container, shown]` would copy all members twice. A dict keeps its
            # place, because a dict with gaps is copied more slowly.
            if isinstance(container, list):
                if shown is _MISSING:
                    shown = FrozenList(container)
                else:
                    container.append(shown)
                    shown = FrozenList(container)
                    container.pop()
            elif shown is _MISSING:
                shown = FrozenDict(container)
            else:
                key = self._keys[depth]
                container[key] = shown
                shown = FrozenDict(container)
                container[key] = None
        return self._root if shown is _MISSING else shown

    def _wanted(self) -> str:
        if self._state == _IN_WORD:
            return repr(self._word[0])
        in_whole_number = self._state == _IN_NUMBER and self._phase in _WHOLE_NUMBER
        if self._state == _COMMA_OR_END or in_whole_number:
            return "',' or ']'" if isinstance(self._containers[-1], list) else "',' or '}'"
        return _WANTED[self._state]

    def _unexpected(self, text: str, at: int, wanted: str = "") -> InvalidJson:
        return self._invalid(f"expected {wanted or self._wanted()} but found {text[at]!r}", at)

    def _invalid(self, what: str, at: int) -> InvalidJson:
        return InvalidJson(f"not valid JSON: {what} at character {self._position + at}")

    _steps: ClassVar[tuple[Callable[..., int], ...]] = (
        _read_value,  # _VALUE
        _read_value,  # _VALUE_OR_END
        _read_key,  # _KEY
        _read_key,  # _KEY_OR_END
        _read_colon,  # _COLON
        _read_comma_or_end,  # _COMMA_OR_END
        _read_end,  # _DONE
        _read_string,  # _IN_STRING
        _read_string,  # _IN_KEY
        _read_number,  # _IN_NUMBER
        _read_word,  # _IN_WORD
    )


def _skip_space(text: str, at: int) -> int:
    found = _not_space(text, at)
    return found.start() if found else len(text)


def _has(value: object, path: Sequence[str | int]) -> bool:
    """Whether `path` exists in `value`, which is closed."""
    for step in path:
        if isinstance(value, dict):
            members = cast("dict[object, object]", value)
            if not isinstance(step, str) or step not in members:
                return False
            value = members[step]
        elif isinstance(value, list):
            items = cast("list[object]", value)
            if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < len(items):
                return False
            value = items[step]
        else:
            return False
    return True
