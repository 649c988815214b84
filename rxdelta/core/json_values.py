"""JSON values that an untrusted source wrote: read strictly, kept read-only, and stored under the number of their form.

`json.loads` accepts more than JSON (`NaN`, `1e999` as infinity), returns strings that cannot be encoded as UTF-8
(lone surrogates) and raises several exceptions (`RecursionError`, the digit limit's `ValueError`). Here a text is
either one JSON value that every other program can read, or raises `InvalidJson` with the reason.

They are subclasses of `dict` and `list`, not proxies, because subclasses pickle, print, compare and go through
`json.dumps` as users expect.

A stored value has the key `format`, which is left out where it is 1. A reader of format 1 reads every file of format 1:
fields may be added within a format, and a reader that doesn't know a field keeps it and writes it back. So two versions
of the library can share a log while one replaces the other. A change that an older reader would misread gets a new
number, which that reader refuses.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any, Final, NoReturn, TypeAlias, TypeGuard, TypeVar, cast

from rxdelta.core.errors import InvalidValueError
from rxdelta.core.options import DEFAULT_LIMITS

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
        rxdelta.core.json_values.InvalidJson: NaN is not JSON
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
        rxdelta.core.json_values.InvalidJson: not a JSON object but a list
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


V = TypeVar("V")


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """`isinstance(value, Mapping)`, after which type checkers know the types of the members."""
    return isinstance(value, (dict, Mapping))  # asked alone, `Mapping` takes long


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether the value is a list or tuple, which JSON writes as an array."""
    return isinstance(value, (list, tuple))


def is_iterable(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether the value is an iterable of items, which text and mappings are not."""
    return isinstance(value, Iterable) and not isinstance(value, (str, Mapping))


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__} is read-only; make a copy with dict(…) or list(…), or rxdelta.core.thaw(…)"
    )


class FrozenDict(dict[str, V]):
    """A read-only `dict`. Equal to a plain `dict` with the same items; hashable if its values are.

    Example:
        >>> FrozenDict({"a": 1}) == {"a": 1}
        True
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]  # dict sets it to None
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return super().__repr__()

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (dict(self),))

    def __copy__(self) -> FrozenDict[V]:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict[V]:
        return self

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


class FrozenList(list[V]):
    """A read-only `list`. Equal to a plain `list` with the same items; hashable if its items are.

    Example:
        >>> FrozenList([1, 2]) == [1, 2]
        True
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]  # list sets it to None
        return hash(tuple(self))

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (list(self),))

    def __copy__(self) -> FrozenList[V]:
        return self

    def __deepcopy__(self, memo: object) -> FrozenList[V]:
        return self

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse


EMPTY: FrozenDict[Any] = FrozenDict()

_MAX_INTEGER = 10**MAX_DIGITS  # `json.dumps` raises for larger ones


def freeze(value: object, field: str = "value", *, lenient: bool = False) -> Any:
    """The same JSON value, read-only at every depth.

    Args:
        value: Strings, numbers, booleans, `None`, and mappings (string keys), lists and tuples of them. Lone
            surrogates in strings become U+FFFD, so that the result can always be written as UTF-8.
        field: The name of the value in errors.
        lenient: Refuse nothing, because the value is a provider's and not a user's. A number that JSON cannot
            express, and a value nested too deep, becomes `None`; keys become strings; other objects become
            their `repr`.

    Raises:
        InvalidValueError: The value is not JSON, or is nested deeper than `Limits.json_depth`.

    Example:
        >>> frozen = freeze({"path": ["a"]})
        >>> frozen["path"].append("b")
        Traceback (most recent call last):
            ...
        TypeError: FrozenList is read-only; make a copy with dict(…) or list(…), or rxdelta.core.thaw(…)
    """
    return _freeze(value, field, lenient, 0)


_Path: TypeAlias = "str | tuple[_Path, str | int]"
"""The name of a field, or the path of a container and the place in it. Only an error writes it as text: keys may be long."""


def _freeze(value: object, path: _Path, lenient: bool, depth: int) -> Any:
    if type(value) is int and -_MAX_INTEGER < value < _MAX_INTEGER:
        return value
    if isinstance(value, str):
        return clean_text(str.__str__(value))  # an enum becomes its value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        known = -_MAX_INTEGER < value < _MAX_INTEGER if isinstance(value, int) else math.isfinite(value)
        if known:
            return int(value) if isinstance(value, int) else float(value)
        if lenient:
            return None
        raise InvalidValueError.of([(_written(path), value, "is not a number that JSON has")])
    if is_mapping(value) or is_list(value):
        if depth == DEFAULT_LIMITS.json_depth:
            if lenient:
                return None
            raise InvalidValueError.of([(_written(path), "…", "is nested too deep")])
        if is_mapping(value):
            return _freeze_mapping(value, path, lenient, depth)
        items = [_freeze(item, (path, n), lenient, depth + 1) for n, item in enumerate(value)]
        if isinstance(value, FrozenList) and all(map(is_, items, value)):
            return value
        return FrozenList(items)
    if lenient:
        return clean_text(repr(value))
    wrong = f"is a {type(value).__name__}, not a JSON value"
    unawaited = inspect.iscoroutine(value)
    advice = "an `await` is missing in front of what made it" if unawaited else ""
    raise InvalidValueError.of([(_written(path), value, wrong, advice)])


def _freeze_mapping(value: Mapping[Any, Any], path: _Path, lenient: bool, depth: int) -> FrozenDict[Any]:
    frozen: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str) and not lenient:
            raise InvalidValueError.of([(_written(path), key, "has a key that is not a string")])
        name = clean_text(str.__str__(key) if isinstance(key, str) else str(key))
        frozen[name] = _freeze(item, (path, name), lenient, depth + 1)
    if (
        isinstance(value, FrozenDict)
        and value.keys() == frozen.keys()
        and all(map(is_, value.values(), frozen.values()))
    ):
        return value  # it is frozen at every depth already
    return FrozenDict(frozen)


def _written(path: _Path) -> str:
    places: list[str] = []
    while isinstance(path, tuple):
        path, place = path
        places.append(f"[{place}]" if isinstance(place, int) else f".{place}")
    return path + "".join(reversed(places))


def freeze_mapping(value: object, field: str, *, lenient: bool = False) -> FrozenDict[Any]:
    """`freeze` for a field that holds a mapping; `None` is the empty one."""
    if value is None:
        return EMPTY
    if is_mapping(value):
        return _freeze_mapping(value, field, lenient, 0)
    raise InvalidValueError.of([(field, value, "must be a mapping")])


_SCALARS: Final = frozenset([str, int, float, bool, type(None)])


def thaw(value: Any) -> Any:
    """A plain copy of a frozen JSON value, which can be edited; the value itself stays frozen.

    Example:
        >>> import rxdelta as rd
        >>> arguments = rd.core.thaw(rd.ToolCall(arguments={"path": ["a"]}, status="complete").arguments)
        >>> arguments["path"].append("b")
    """
    if type(value) in _SCALARS:  # most are, and asking them for `Mapping` takes long
        return value
    if is_mapping(value):
        return {key: thaw(item) for key, item in value.items()}
    if is_list(value):
        return [thaw(item) for item in value]
    return value


_FORMAT = 1


def check_format(data: Mapping[str, Any]) -> None:
    """Check that this version can read the stored value.

    Raises:
        InvalidValueError: The value has a newer format, or a format that is no number.
    """
    number = data.get("format", _FORMAT)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InvalidValueError.of([("format", number, "must be a whole number from 1")])
    if number > _FORMAT:
        what = f"is {number}, but this version of rxdelta reads format {_FORMAT} only: a newer one wrote the value"
        raise InvalidValueError.of([("format", number, what)])


def check_mapping(what: str, data: object) -> None:
    """Check that stored data is an object. `what` names it in the error.

    Raises:
        InvalidValueError: It isn't one.
    """
    if not is_mapping(data):
        raise InvalidValueError.of([(what, data, "must be a mapping")])


def unknown_fields(data: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The fields that this version doesn't know."""
    return {name: value for name, value in data.items() if name not in known}


def to_more(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    """Unknown fields as the field `more` of a value."""
    return EMPTY if not value else freeze_mapping(value, "more", lenient=True)
