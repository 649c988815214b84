"""A quick parser of JSON in front of `json.loads`, which has the last word.

What the quick parser refuses, `json.loads` reads: NaN and infinities, a number beyond a float, half a surrogate pair. It also
reads what a quick parser reads otherwise: some round integers of more than 64 bits, or floats of a thousand digits.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from rxdelta.core import check_function

__all__ = ["SAME_DEPTH", "check_loads", "quick_parser"]

SAME_DEPTH: Final = 200
"""A nesting that every parser follows. Where one gives up, `json.loads` may go on, or have given up already."""

_DECODER = json.JSONDecoder()  # that of `json.loads`, whose own work around a small document costs as much
_TO_ZERO = bytes(0x30 if 0x30 <= code <= 0x39 else 0x20 for code in range(256))  # digits, and all else
_MANY_DIGITS = "0" * 19  # 18 digits are always an integer of 64 bits


def check_loads(loads: object) -> None:
    """Check an option that is a function of JSON text; raises `InvalidValueError` if it is neither that nor `None`."""
    if loads is not None:
        check_function("loads", loads, "a function of JSON text, such as orjson.loads")


def quick_parser(loads: Callable[[str], Any] | None) -> Callable[[str], Any]:
    """The function to ask before `json.loads`: its value is the same, or it raises. By default msgspec's, if installed."""
    check_loads(loads)
    if loads is None:
        return _by_default()
    return _standard if loads is json.loads else _but_for_long_numbers(loads)


@cache
def _by_default() -> Callable[[str], Any]:
    try:
        msgspec: Any = import_module("msgspec")
        if [*map(int, msgspec.__version__.split(".")[:2])] >= [0, 18]:  # before, a large exponent overflows
            return _but_for_long_numbers(msgspec.json.Decoder().decode)
    except Exception:  # not installed, or not as we know it
        pass
    return _standard


def _standard(text: str) -> Any:
    value, end = _DECODER.raw_decode(text)
    if end < len(text):  # white space, or an error that `json.loads` explains
        raise ValueError
    return value


def _but_for_long_numbers(loads: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        some = text[::9].encode().translate(_TO_ZERO).decode()  # a cheap look: of 19 digits two are here
        if "00" in some and _MANY_DIGITS in text.encode().translate(_TO_ZERO).decode():
            return _standard(text)
        return loads(text)

    return read
