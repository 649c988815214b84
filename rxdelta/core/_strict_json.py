"""Strict JSON from an untrusted source, such as a model's tool arguments.

`json.loads` accepts more than JSON (`NaN`, `1e999` as infinity), returns strings that cannot be encoded as UTF-8
(lone surrogates) and raises several exceptions (`RecursionError`, the digit limit's `ValueError`). Here a text is
either one JSON value that every other program can read, or raises `InvalidJson` with the reason.
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
"""The most digits of an integer. Python's own default, whatever the process sets: conversion takes quadratic time."""

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
    """The text is not strict JSON.

    Attributes:
        reason: The reason in a few words, e.g. `"NaN is not JSON"`. Characters are counted from 0.

    Example:
        >>> InvalidJson("NaN is not JSON").reason
        'NaN is not JSON'
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def parse_json(text: str, *, max_depth: int = 200, control_characters: bool = False) -> object:
    """Parse one JSON value into plain dicts, lists, strings, numbers, booleans or `None`.

    Like `json.loads`, but refuses NaN, the infinities, numbers that overflow to infinity, integers of more than 4300
    digits and a nesting deeper than `max_depth`. Half a surrogate pair becomes U+FFFD. If a key is repeated, the last
    value counts.

    Args:
        text: The JSON text.
        max_depth: How deep containers may be nested.
        control_characters: Whether strings may have control characters, such as line ends, that aren't escaped.

    Raises:
        InvalidJson: `text` is not one strict JSON value.

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
        return cast("object", (_LENIENT_DECODER if control_characters else _DECODER).decode(text))
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at")
        raise InvalidJson(f"not valid JSON: {what} at character {error.pos}") from None
    except RecursionError:
        raise InvalidJson("nested deeper than the interpreter can follow") from None


def parse_object(text: str, *, max_depth: int = 200, control_characters: bool = False) -> dict[str, object]:
    """Parse one JSON object, like `parse_json`.

    Raises:
        InvalidJson: `text` is not strict JSON, or its value is not an object.

    Example:
        >>> parse_object('{"city": "Oslo", "city": "Bergen"}')
        {'city': 'Bergen'}
        >>> parse_object("[]")
        Traceback (most recent call last):
            ...
        rxdelta.core._strict_json.InvalidJson: not a JSON object but a list
    """
    value = parse_json(text, max_depth=max_depth, control_characters=control_characters)
    if not isinstance(value, dict):
        raise InvalidJson(f"not a JSON object but {_kind(value)}")
    return cast("dict[str, object]", value)


def clean_text(text: str) -> str:
    """Replace each pair of surrogate code points by its character, and each lone surrogate by U+FFFD.

    The result can be encoded as UTF-8. A text without surrogates is returned unchanged.

    Example:
        >>> clean_text("\\ud83d\\ude00 \\ud83d")
        '😀 �'
    """
    if text.isascii() or _SURROGATES.search(text) is None:
        return text
    return _SURROGATES.sub(_whole_character, text)


def read_integer(text: str) -> int:
    """The integer of a JSON number without fraction and exponent; raises `InvalidJson` if it is too long."""
    if len(text) - text.startswith("-") > MAX_DIGITS:
        raise InvalidJson(f"a number with more than {MAX_DIGITS} digits")
    try:
        return int(text)
    except ValueError:  # the process has set a lower limit
        raise InvalidJson(f"a number with more than {sys.get_int_max_str_digits()} digits") from None


def read_decimal(text: str) -> float:
    """The float of a JSON number with fraction or exponent; raises `InvalidJson` if it overflows."""
    value = float(text)
    if math.isinf(value):
        shown = text if len(text) <= 20 else f"{text[:19]}…"
        raise InvalidJson(f"a number too large for a float: {shown}")
    return value


def _refuse_constant(name: str) -> object:
    raise InvalidJson(f"{name} is not JSON")


_DECODER, _LENIENT_DECODER = (
    json.JSONDecoder(
        parse_float=read_decimal, parse_int=read_integer, parse_constant=_refuse_constant, strict=strict
    )
    for strict in (True, False)
)


def _check_depth(text: str, max_depth: int) -> None:
    """Refuse text that is nested too deep before the decoder recurses into it."""
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
    # The replacement has the same length, so that positions in errors stay right.
    return r"\ufffd" if len(match[0]) == _LONE_ESCAPE_LENGTH else match[0]


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "a number"
