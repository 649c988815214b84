"""Strict JSON from a source that nobody vouches for, such as a model's tool arguments.

`json.loads` takes more than JSON (`NaN`, `1e999` as infinity), gives strings that cannot be encoded as
UTF-8 (lone surrogates) and leaves by several exceptions (`RecursionError`, the digit limit's `ValueError`).
Here a text is either one JSON value that every other program can read back, or `InvalidJson` says why not.
"""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Final, cast

__all__ = [
    "MAX_DIGITS",
    "InvalidJson",
    "clean_text",
    "parse_json",
    "parse_object",
    "read_decimal",
    "read_integer",
]

MAX_DIGITS: Final = 4300
"""Digits in an integer: Python's own default, held fast because converting one takes quadratic time."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")
# A pair, a half, any other escape. The last keeps `\\ud83d`, an escaped backslash and letters, from matching.
_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)",
    re.DOTALL,
)
_STRINGS_AND_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_LONE_ESCAPE_LENGTH = 6


class InvalidJson(ValueError):
    """The text is not what strict JSON allows.

    Attributes:
        reason: Why, short and for people, as `"NaN is not JSON"`. Characters are counted from 0.

    Example:
        >>> InvalidJson("NaN is not JSON").reason
        'NaN is not JSON'
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def parse_json(text: str, *, max_depth: int = 200) -> object:
    """The one JSON value that `text` is, as plain dicts, lists, strings, numbers, booleans or `None`.

    As `json.loads`, but NaN, the infinities, numbers that overflow to one, integers of more than 4300 digits
    and a nesting deeper than `max_depth` are refused, and half a surrogate pair becomes U+FFFD. Of a repeated
    key the last value counts.

    Raises:
        InvalidJson: `text` is anything else.

    Example:
        >>> parse_json(' [1, 2.5, "\\\\ud83d\\\\ude00"] ')
        [1, 2.5, '😀']
        >>> parse_json("[1, NaN]")
        Traceback (most recent call last):
            ...
        rxdelta.core._strict_json.InvalidJson: NaN is not JSON
    """
    text = clean_text(text)
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPES.sub(_whole_escape, text)
    if text.startswith("\ufeff"):
        raise InvalidJson("not valid JSON: a byte order mark at character 0")
    if not text.strip(" \t\r\n"):
        raise InvalidJson("no text")
    _check_depth(text, max_depth)
    try:
        return cast("object", _DECODER.decode(text))
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise InvalidJson(f"not valid JSON: {what} at character {error.pos}") from None
    except RecursionError:
        raise InvalidJson("nested deeper than the interpreter can follow") from None


def parse_object(text: str, *, max_depth: int = 200) -> dict[str, object]:
    """The one JSON object that `text` is; otherwise as `parse_json`.

    Raises:
        InvalidJson: `text` is not strict JSON, or is another value than an object.

    Example:
        >>> parse_object('{"city": "Oslo", "city": "Bergen"}')
        {'city': 'Bergen'}
        >>> parse_object("[]")
        Traceback (most recent call last):
            ...
        rxdelta.core._strict_json.InvalidJson: not a JSON object but a list
    """
    value = parse_json(text, max_depth=max_depth)
    if not isinstance(value, dict):
        raise InvalidJson(f"not a JSON object but {_kind(value)}")
    return cast("dict[str, object]", value)


def clean_text(text: str) -> str:
    """`text` with each pair of surrogate code points as the character it means, and each lone one as U+FFFD.

    The result can be encoded as UTF-8. A text without surrogates is returned itself.

    Example:
        >>> clean_text("\\ud83d\\ude00 \\ud83d")
        '😀 �'
    """
    if text.isascii() or _SURROGATES.search(text) is None:
        return text
    return _SURROGATES.sub(_whole_character, text)


def read_integer(text: str) -> int:
    """The integer that a JSON number without fraction and exponent means; `InvalidJson` if it is too long."""
    if len(text) - text.startswith("-") > MAX_DIGITS:
        raise InvalidJson(f"a number with more than {MAX_DIGITS} digits")
    try:
        return int(text)
    except ValueError:  # the process has set a limit lower than ours
        raise InvalidJson(f"a number with more than {sys.get_int_max_str_digits()} digits") from None


def read_decimal(text: str) -> float:
    """The float that a JSON number with fraction or exponent means; `InvalidJson` if it overflows."""
    value = float(text)
    if math.isinf(value):
        shown = text if len(text) <= 20 else f"{text[:19]}…"
        raise InvalidJson(f"a number too large for a float: {shown}")
    return value


def _refuse_constant(name: str) -> object:
    raise InvalidJson(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_float=read_decimal, parse_int=read_integer, parse_constant=_refuse_constant)


def _check_depth(text: str, max_depth: int) -> None:
    """Refuse what the decoder would have to recurse into too deeply, without recursing."""
    if text.count("[") + text.count("{") <= max_depth:
        return
    depth = 0
    for match in _STRINGS_AND_BRACKETS.finditer(text):
        first = text[match.start()]
        if first in "[{":
            depth += 1
            if depth > max_depth:
                raise InvalidJson(f"nested deeper than {max_depth}")
        elif first in "]}":
            depth -= 1


def _whole_character(match: re.Match[str]) -> str:
    found = match[0]
    if len(found) == 1:
        return _REPLACEMENT
    return chr(0x10000 + ((ord(found[0]) - 0xD800) << 10) + (ord(found[1]) - 0xDC00))


def _whole_escape(match: re.Match[str]) -> str:
    # As long as what it replaces, so that positions in errors stay right.
    return r"\ufffd" if len(match[0]) == _LONE_ESCAPE_LENGTH else match[0]


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "a number"
